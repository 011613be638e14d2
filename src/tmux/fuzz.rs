//! Properties that hold for any bytes from tmux, as one function for tests and the fuzzer.
//!
//! Only [`crate::fuzzing`] uses it. It is not part of the program.

use std::collections::VecDeque;

use super::control::unescape;
use super::look::assemble;
use super::parser::{Event, Parser};
use super::rows;
use super::version::Version;

/// Reads a control-mode stream in chunks whose sizes the first byte decides, and parses each reply in every way.
///
/// # Panics
/// When the chunk sizes change the result, or a parser invents a pane.
pub(crate) fn control_stream(bytes: &[u8]) {
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    let whole = Parser::default().feed(bytes);
    let mut parser = Parser::default();
    let pieces: Vec<Event> =
        bytes.chunks(usize::from(cut) + 1).flat_map(|chunk| parser.feed(chunk)).collect();
    assert_eq!(whole, pieces);
    let mut bodies: VecDeque<Vec<u8>> = VecDeque::from([bytes.to_vec()]);
    for event in whole {
        match event {
            Event::Block(block) => bodies.push_back(block.body),
            Event::Notification(line) => assert!(!line.contains(&b'\n')),
            Event::TooLong => {}
        }
    }
    for body in &bodies {
        reply(body);
    }
    let about = bodies.back().map(Vec::as_slice).unwrap_or_default();
    for history in [0, 7, u32::MAX] {
        if let Some(captured) = assemble(about, bytes, history) {
            assert!(captured.history_taken <= captured.history);
            assert!(captured.text.split('\n').all(|line| !line.ends_with(' ')));
        }
    }
}

fn reply(body: &[u8]) {
    assert!(unescape(body).len() <= body.len());
    let listed = rows::parse_all(body);
    let mut panes: Vec<&str> = listed.iter().map(|listed| listed.row.pane.as_str()).collect();
    let count = panes.len();
    panes.sort_unstable();
    panes.dedup();
    assert_eq!(panes.len(), count, "a pane twice");
    for listed in &listed {
        assert!(listed.row.pane.starts_with('%'));
        rows::is_ours(listed, "swarm");
    }
    Version::parse(&String::from_utf8_lossy(body));
}
