//! What is new in a growing text: pure, for [`super::tail`] and the follower of `iterations.log`.
//!
//! The caller asks the daemon again and again for the last lines; [`Stream::feed`] gives those that were
//! not printed before. The last line of a live screen may still grow, so it is held back until another
//! line follows it, it stays the same for one more look, or the run is over.

/// One look: the last lines there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look<'a> {
    /// A new number means a new text.
    pub(super) run: u64,
    /// The number of the first line.
    pub(super) first: u64,
    pub(super) lines: &'a [String],
    /// The lines are a picture: they change in place and have no numbers.
    pub(super) picture: bool,
    /// More may come.
    pub(super) live: bool,
}

/// What was printed so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    run: Option<u64>,
    /// The number of the next line to print.
    next: u64,
    /// The last line of the look before, with its number.
    last: Option<(u64, String)>,
    /// The picture of the look before.
    picture: Vec<String>,
}

impl Stream {
    /// A stream that takes everything before line `next` as seen.
    pub(super) fn from(run: u64, next: u64) -> Self {
        Self { run: Some(run), next, ..Self::default() }
    }

    /// The number of the line that was not printed yet.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The lines of this look that are new.
    pub(super) fn feed(&mut self, look: &Look<'_>) -> Vec<String> {
        if self.run != Some(look.run) {
            *self = Self { run: Some(look.run), ..Self::default() };
        }
        if look.picture { self.changed(look) } else { self.grown(look) }
    }

    fn changed(&mut self, look: &Look<'_>) -> Vec<String> {
        // Should the cursor go to the end for a moment, these lines are not new.
        self.next = look.first + look.lines.len() as u64;
        self.last = None;
        let before = std::mem::replace(&mut self.picture, look.lines.to_vec());
        let is_new = |line: &&String| !line.trim().is_empty() && !before.contains(line);
        look.lines.iter().filter(is_new).cloned().collect()
    }

    fn grown(&mut self, look: &Look<'_>) -> Vec<String> {
        self.picture = look.lines.to_vec();
        let end = look.first + look.lines.len() as u64;
        // The text was cut short (cleared, rotated): what is left was seen or is gone.
        self.next = self.next.min(end);
        let mut new = Vec::new();
        for (number, line) in (look.first..).zip(look.lines) {
            if number < self.next {
                continue;
            }
            let may_grow = look.live && number + 1 == end;
            let same = self.last.as_ref().is_some_and(|(n, l)| *n == number && l == line);
            if may_grow && !same {
                break;
            }
            new.push(line.clone());
            self.next = number + 1;
        }
        self.last = look.lines.last().map(|line| (end.saturating_sub(1), line.clone()));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(stream: &mut Stream, run: u64, first: u64, text: &str, live: bool) -> String {
        let lines: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        stream.feed(&Look { run, first, lines: &lines, picture: false, live }).join(" ")
    }

    #[test]
    fn each_line_is_printed_once_however_the_looks_overlap() {
        let mut stream = Stream::default();
        assert_eq!(feed(&mut stream, 1, 0, "a b c", true), "a b");
        assert_eq!(feed(&mut stream, 1, 0, "a b cc", true), "", "the last line grew");
        assert_eq!(feed(&mut stream, 1, 1, "b cc d e", true), "cc d");
        assert_eq!(feed(&mut stream, 1, 1, "b cc d e", true), "e", "it stayed the same");
        assert_eq!(feed(&mut stream, 1, 1, "b cc d e", true), "");
        assert_eq!(feed(&mut stream, 1, 9, "x y", false), "x y", "a gap is jumped");
        assert_eq!(feed(&mut stream, 2, 0, "a b", false), "a b", "another run begins anew");
        assert_eq!(feed(&mut stream, 2, 0, "a", false), "");
    }

    #[test]
    fn a_tail_is_skipped() {
        let mut stream = Stream::from(0, 7);
        assert_eq!(feed(&mut stream, 0, 5, "f g h", false), "h");
    }

    #[test]
    fn of_a_picture_only_changed_rows_are_printed() {
        let mut stream = Stream::default();
        let mut look = |text: &[&str]| {
            let lines: Vec<String> = text.iter().map(|l| (*l).to_owned()).collect();
            stream.feed(&Look { run: 1, first: 0, lines: &lines, picture: true, live: true }).join(" ")
        };
        assert_eq!(look(&["a", "", "b"]), "a b");
        assert_eq!(look(&["b", "c", ""]), "c");
    }

    #[test]
    fn a_cursor_that_is_at_the_end_for_a_moment_repeats_nothing() {
        let mut stream = Stream::default();
        let mut look = |picture: bool, text: &[&str]| {
            let lines: Vec<String> = text.iter().map(|l| (*l).to_owned()).collect();
            stream.feed(&Look { run: 1, first: 0, lines: &lines, picture, live: true }).join(" ")
        };
        assert_eq!(look(true, &["a", "b", "box"]), "a b box");
        assert_eq!(look(false, &["a", "b", "box"]), "");
        assert_eq!(look(true, &["a", "c", "box"]), "c");
    }
}
