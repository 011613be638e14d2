//! Parses control mode: bytes from `tmux -C` become blocks (replies) and notifications.
//!
//! Pure; only the control client uses it. A reply is everything between `%begin GUARD` and `%end` or `%error` with
//! *the same* guard (time, number, flags). Replies are not escaped, so a pane may print a line that looks like one of
//! these. Notifications never occur inside a block. A pane may contain any bytes, so nothing here is text.

/// The longest reply or line. A whole history of 10,000 rows of 200 wide characters is 8 MB.
const MAX_BLOCK_BYTES: usize = 64 << 20;

/// One item of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Block(Block),
    /// A line outside blocks, without its `%`: `exit`, `sessions-changed`, …
    Notification(Vec<u8>),
    /// More than [`MAX_BLOCK_BYTES`] bytes without an end. The connection cannot be used any more.
    TooLong,
}

/// The reply to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Whether this control client sent the command (the last field of the guard is 1). The reply to the `attach` on
    /// tmux's command line, for example, is not ours.
    pub ours: bool,
    /// True for `%end`, false for `%error`.
    pub ok: bool,
    /// The lines, joined by `\n`, without a last one.
    pub body: Vec<u8>,
}

/// The parser's state between two chunks.
#[derive(Debug, Default)]
pub(super) struct Parser {
    line: Vec<u8>,
    /// The open block: its guard, and its body with a `\n` after each line.
    open: Option<(Vec<u8>, Vec<u8>)>,
}

impl Parser {
    /// Reads the next chunk and returns the items that it completes, in order.
    pub(super) fn feed(&mut self, mut chunk: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            chunk = rest;
            // Most lines are complete and need no copy.
            if self.line.is_empty() {
                events.extend(self.take_line(line));
                continue;
            }
            let mut begun = std::mem::take(&mut self.line);
            begun.extend_from_slice(line);
            events.extend(self.take_line(&begun));
        }
        self.line.extend_from_slice(chunk);
        if self.line.len() > MAX_BLOCK_BYTES
            || self.open.as_ref().is_some_and(|(_, body)| body.len() > MAX_BLOCK_BYTES)
        {
            *self = Self::default();
            events.push(Event::TooLong);
        }
        events
    }

    fn take_line(&mut self, line: &[u8]) -> Option<Event> {
        let Some((guard, body)) = &mut self.open else {
            if let Some(guard) = line.strip_prefix(b"%begin ") {
                self.open = Some((guard.to_vec(), Vec::new()));
                return None;
            }
            return line.strip_prefix(b"%").map(|rest| Event::Notification(rest.to_vec()));
        };
        let ok = if line.strip_prefix(b"%end ") == Some(guard) {
            true
        } else if line.strip_prefix(b"%error ") == Some(guard) {
            false
        } else {
            body.extend_from_slice(line);
            body.push(b'\n');
            return None;
        };
        let ours = guard.ends_with(b" 1");
        let mut body = std::mem::take(body);
        body.pop();
        self.open = None;
        Some(Event::Block(Block { ours, ok, body }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(ok: bool, body: &[u8]) -> Event {
        Event::Block(Block { ours: true, ok, body: body.to_vec() })
    }

    #[test]
    fn replies_and_notifications_are_distinguished() {
        let text = b"%begin 1 2 0\n%end 1 2 0\n%session-changed $0 x\n%begin 5 6 1\na\n\nb\n%end 5 6 1\n\
                     %begin 5 7 1\nno such pane\n%error 5 7 1\n%begin 5 8 1\n%end 5 8 1\n%exit\n";
        let events = Parser::default().feed(text);
        assert_eq!(
            events,
            [
                Event::Block(Block { ours: false, ok: true, body: vec![] }),
                Event::Notification(b"session-changed $0 x".to_vec()),
                block(true, b"a\n\nb"),
                block(false, b"no such pane"),
                block(true, b""),
                Event::Notification(b"exit".to_vec()),
            ]
        );
    }

    #[test]
    fn a_pane_cannot_end_its_own_reply() {
        let body = b"%end 5 5 1\n%error 5 6 0\n%end 5 6\n%end 5 6 1 \n%begin 9 9 1\n%exit\n\xff\xfe";
        let mut text = b"%begin 5 6 1\n".to_vec();
        text.extend_from_slice(body);
        text.extend_from_slice(b"\n%end 5 6 1\n");
        assert_eq!(Parser::default().feed(&text), [block(true, body)]);
    }

    #[test]
    fn an_endless_reply_is_cut_off() {
        let mut parser = Parser::default();
        parser.feed(b"%begin 1 1 1\n");
        let chunk = vec![b'x'; 1 << 20];
        let hit = (0..70).any(|_| parser.feed(&chunk).contains(&Event::TooLong));
        assert!(hit);
    }

    /// Lines that are likely to confuse a parser, and a few bytes of anything.
    fn lines() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            Just(b"%begin 1 2 1\n".to_vec()),
            Just(b"%end 1 2 1\n".to_vec()),
            Just(b"%error 1 2 1\n".to_vec()),
            Just(b"%end 1 3 1\n".to_vec()),
            Just(b"%\n".to_vec()),
            prop::collection::vec(any::<u8>(), 0..12),
        ];
        prop::collection::vec(line, 0..30).prop_map(|lines| lines.concat())
    }

    proptest! {
        #[test]
        fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            Parser::default().feed(&bytes);
        }

        #[test]
        fn chunked_input_gives_the_same_events(bytes in lines(), cuts in prop::collection::vec(1usize..9, 1..60)) {
            let whole = Parser::default().feed(&bytes);
            let (mut parser, mut events, mut rest) = (Parser::default(), Vec::new(), &bytes[..]);
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                events.extend(parser.feed(head));
                rest = tail;
            }
            events.extend(parser.feed(rest));
            prop_assert_eq!(whole, events);
        }

        #[test]
        fn reply_body_is_parsed_unchanged(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut text = b"%begin 7 8 1\n".to_vec();
            text.extend_from_slice(&body);
            text.extend_from_slice(b"\n%end 7 8 1\n");
            prop_assert_eq!(Parser::default().feed(&text), [block(true, &body)]);
        }
    }
}
