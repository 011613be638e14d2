//! Finds the lines of a growing text that were not printed yet. Pure; used by [`super::tail`] and `ralph logs
//! --follow`.
//!
//! The caller polls the daemon for the last lines; [`NewLines::feed`] returns the new ones. The last line of a live
//! screen may still grow, so it is held back until another line follows it, it is the same in two polls, or the run
//! ends.

/// The last lines of a text, as one poll returned them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineWindow<'a> {
    /// The run. Another number means another text.
    pub(super) run: u64,
    /// The number of the first line.
    pub(super) first: u64,
    pub(super) lines: &'a [String],
    /// The lines are the screen of a full-screen program: they change in place and have no numbers.
    pub(super) full_screen: bool,
    /// The text may still grow.
    pub(super) live: bool,
}

/// Remembers what was printed so far.
#[derive(Clone, Debug, Default)]
pub(super) struct NewLines {
    run: Option<u64>,
    /// The number of the next line to print.
    next: u64,
    /// The last line of the previous poll, with its number.
    last: Option<(u64, String)>,
    /// The screen of the previous poll.
    full_screen: Vec<String>,
}

impl NewLines {
    /// Starts with every line before `next` as printed.
    pub(super) fn from(run: u64, next: u64) -> Self {
        Self { run: Some(run), next, ..Self::default() }
    }

    /// Returns the number of the first line that was not printed yet.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn feed(&mut self, window: &LineWindow<'_>) -> Vec<String> {
        if self.run != Some(window.run) {
            *self = Self { run: Some(window.run), ..Self::default() };
        }
        if window.full_screen { self.changed(window) } else { self.grown(window) }
    }

    fn changed(&mut self, window: &LineWindow<'_>) -> Vec<String> {
        // If the program leaves full-screen mode for a moment, these lines are not new.
        self.next = window.first + window.lines.len() as u64;
        self.last = None;
        let before = std::mem::replace(&mut self.full_screen, window.lines.to_vec());
        let is_new = |line: &&String| !line.trim().is_empty() && !before.contains(line);
        window.lines.iter().filter(is_new).cloned().collect()
    }

    fn grown(&mut self, window: &LineWindow<'_>) -> Vec<String> {
        self.full_screen = window.lines.to_vec();
        let end = window.first + window.lines.len() as u64;
        // The text became shorter (cleared, rotated): what remains was printed, or is gone.
        self.next = self.next.min(end);
        let mut new = Vec::new();
        for (number, line) in (window.first..).zip(window.lines) {
            if number < self.next {
                continue;
            }
            let may_grow = window.live && number + 1 == end;
            let same = self.last.as_ref().is_some_and(|(n, l)| *n == number && l == line);
            if may_grow && !same {
                break;
            }
            new.push(line.clone());
            self.next = number + 1;
        }
        self.last = window.lines.last().map(|line| (end.saturating_sub(1), line.clone()));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(new_lines: &mut NewLines, run: u64, first: u64, text: &str, live: bool) -> String {
        let lines: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        new_lines.feed(&LineWindow { run, first, lines: &lines, full_screen: false, live }).join(" ")
    }

    #[test]
    fn each_line_is_printed_once_however_the_looks_overlap() {
        let mut new_lines = NewLines::default();
        assert_eq!(feed(&mut new_lines, 1, 0, "a b c", true), "a b");
        assert_eq!(feed(&mut new_lines, 1, 0, "a b cc", true), "", "the last line grew");
        assert_eq!(feed(&mut new_lines, 1, 1, "b cc d e", true), "cc d");
        assert_eq!(feed(&mut new_lines, 1, 1, "b cc d e", true), "e", "it stayed the same");
        assert_eq!(feed(&mut new_lines, 1, 1, "b cc d e", true), "");
        assert_eq!(feed(&mut new_lines, 1, 9, "x y", false), "x y", "a gap is jumped");
        assert_eq!(feed(&mut new_lines, 2, 0, "a b", false), "a b", "another run begins anew");
        assert_eq!(feed(&mut new_lines, 2, 0, "a", false), "");
    }

    #[test]
    fn a_tail_is_skipped() {
        let mut new_lines = NewLines::from(0, 7);
        assert_eq!(feed(&mut new_lines, 0, 5, "f g h", false), "h");
    }

    #[test]
    fn of_a_picture_only_changed_rows_are_printed() {
        let mut new_lines = NewLines::default();
        let mut window = |text: &[&str]| {
            let lines: Vec<String> = text.iter().map(|l| (*l).to_owned()).collect();
            new_lines
                .feed(&LineWindow { run: 1, first: 0, lines: &lines, full_screen: true, live: true })
                .join(" ")
        };
        assert_eq!(window(&["a", "", "b"]), "a b");
        assert_eq!(window(&["b", "c", ""]), "c");
    }

    #[test]
    fn a_cursor_that_is_at_the_end_for_a_moment_repeats_nothing() {
        let mut new_lines = NewLines::default();
        let mut window = |full_screen: bool, text: &[&str]| {
            let lines: Vec<String> = text.iter().map(|l| (*l).to_owned()).collect();
            new_lines.feed(&LineWindow { run: 1, first: 0, lines: &lines, full_screen, live: true }).join(" ")
        };
        assert_eq!(window(true, &["a", "b", "box"]), "a b box");
        assert_eq!(window(false, &["a", "b", "box"]), "");
        assert_eq!(window(true, &["a", "c", "box"]), "c");
    }
}
