//! Reads the answers that a dialog on the screen offers.
//!
//! The daemon types only these answers: most dialogs ignore other keys, and the Enter after such a key would select the
//! highlighted row. Deliberately absent: whether the screen shows a dialog ([`super::ScreenReader`]), and the
//! meaning of an answer.

use std::fmt;

use super::text::{plain, rows};
use crate::words::unique;

/// The marks before the highlighted row of a list, as in the markers of dialogs.
const ROW_MARKS: [char; 4] = ['❯', '›', '>', '●'];

/// The most rows between two numbered rows of a list.
const MAX_ROWS_BETWEEN: usize = 16;

/// The answers that a dialog offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// All answers except Enter alone, which each dialog accepts.
    offered: Vec<Answer>,
    /// The index of the highlighted row, if the dialog is a list.
    highlighted: Option<usize>,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The keys as the dialog shows them; empty if Enter alone is the answer.
    pub keys: String,
    /// The index of the chosen row in a list.
    row: Option<usize>,
}

/// The effect that the keys of an answer had on the dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterKeys {
    /// The chosen row is highlighted, or the keys appear after the question: Enter completes the answer.
    NeedsEnter,
    /// The keys had no effect, or a different one.
    Ignored,
    /// The screen shows something else.
    Changed,
}

impl Answers {
    /// Finds the answers that the dialog on this screen offers.
    pub fn on(screen: &str) -> Self {
        let plain = plain(screen);
        let rows = rows(&plain);
        let last = rows.last().copied().unwrap_or_default();
        let is_row_of_list = parse(last).number.is_some();
        let offered = yes_no(last);
        if !offered.is_empty() && !is_row_of_list {
            return Self { offered, highlighted: None };
        }
        if let Some(list) = list(&rows) {
            return list;
        }
        let offered = if is_row_of_list { Vec::new() } else { inline_numbers(last) };
        Self { offered, highlighted: None }
    }

    /// The answer for a text; `None` if the dialog does not offer it.
    pub fn find(&self, text: &str) -> Option<Answer> {
        if text.is_empty() {
            return Some(Answer::default());
        }
        self.offered.iter().find(|answer| answer.keys.eq_ignore_ascii_case(text)).cloned()
    }

    /// Compares the screens before and after the keys of an answer.
    pub fn after_keys(&self, answer: &Answer, before: &str, now: &str) -> AfterKeys {
        if self.highlighted.is_some() {
            // Another dialog with the same rows must not get the Enter for this one.
            if ink(before, true) != ink(now, true) {
                return AfterKeys::Changed;
            }
            let is_chosen = answer.row.is_some() && Self::on(now).highlighted == answer.row;
            return if is_chosen { AfterKeys::NeedsEnter } else { AfterKeys::Ignored };
        }
        let (before, now) = (ink(before, false), ink(now, false));
        match now.strip_prefix(before.as_str()) {
            Some("") => AfterKeys::Ignored,
            Some(rest) if rest == answer.keys => AfterKeys::NeedsEnter,
            _ => AfterKeys::Changed,
        }
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for answer in &self.offered {
            write!(f, "{}, ", answer.keys)?;
        }
        f.write_str(if self.offered.is_empty() { "Enter" } else { "or Enter" })
    }
}

/// A row of the screen, split.
struct Parsed<'r> {
    marked: bool,
    /// The column of its text, after frame and mark.
    column: usize,
    number: Option<u32>,
    /// Without frames and mark, with the number.
    text: &'r str,
}

fn is_edge(c: char) -> bool {
    c.is_whitespace() || matches!(c, '│' | '┃')
}

fn parse(row: &str) -> Parsed<'_> {
    let row_end = row.trim_end_matches(is_edge);
    let text = row_end.trim_start_matches(is_edge);
    let unmarked = text.strip_prefix(ROW_MARKS).filter(|rest| rest.starts_with(char::is_whitespace));
    let marked = unmarked.is_some();
    let text = unmarked.map_or(text, str::trim_start);
    let column = row_end[..row_end.len() - text.len()].chars().count();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (digits, rest) = text.split_at(digits);
    let is_numbered =
        rest.strip_prefix(['.', ')']).is_some_and(|label| label.starts_with(char::is_whitespace));
    let number = digits.parse().ok().filter(|_| is_numbered);
    Parsed { marked, column, number, text }
}

/// The list around the last row with a mark. If a row below it is neither indented nor framed, the list is a quotation.
fn list(rows: &[&str]) -> Option<Answers> {
    let parsed: Vec<Parsed<'_>> = rows.iter().map(|row| parse(row)).collect();
    let mark = parsed.iter().rposition(|row| row.marked)?;
    let below = &rows[mark + 1..];
    if !below.iter().all(|row| row.is_empty() || row.starts_with([' ', '\u{a0}', '│', '┃', '╰'])) {
        return None;
    }
    let places = match parsed[mark].number {
        Some(number) => numbered(&parsed, mark, number),
        None => adjacent(&parsed, mark),
    };
    let highlighted = places.iter().position(|&place| place == mark).filter(|_| places.len() > 1)?;
    // Of a number with two digits, the first could already choose a row.
    let key_of = |(row, &place): (usize, &usize)| {
        let number = parsed[place].number.filter(|&number| number < 10)?;
        Some(Answer { keys: number.to_string(), row: Some(row) })
    };
    let mut offered: Vec<Answer> = places.iter().enumerate().filter_map(key_of).collect();
    let letters: Vec<_> = places.iter().map(|&place| letter(&parsed, place)).collect();
    for (row, letter) in letters.iter().enumerate() {
        let Some(letter) = letter else { continue };
        // A letter that two rows have chooses neither.
        let same = letters.iter().flatten().filter(|other| other.eq_ignore_ascii_case(letter));
        if same.count() == 1 {
            offered.push(Answer { keys: letter.to_string(), row: Some(row) });
        }
    }
    Some(Answers { offered, highlighted: Some(highlighted) })
}

/// The places of the rows in the marked one's column whose numbers continue its number up and down.
fn numbered(parsed: &[Parsed<'_>], mark: usize, number: u32) -> Vec<usize> {
    let column = parsed[mark].column;
    let next = |from: &mut dyn Iterator<Item = usize>, wanted: u32| {
        for place in from.take(MAX_ROWS_BETWEEN + 1) {
            let row = &parsed[place];
            if row.number == Some(wanted) && row.column == column {
                return Some(place);
            }
            // Descriptions and wrapped labels are indented further.
            if !row.text.is_empty() && row.column <= column {
                return None;
            }
        }
        None
    };
    let mut places = vec![mark];
    let (mut first, mut wanted) = (mark, number);
    while let Some(lower) = wanted.checked_sub(1) {
        let Some(place) = next(&mut (0..first).rev(), lower) else { break };
        places.insert(0, place);
        (first, wanted) = (place, lower);
    }
    let (mut last, mut wanted) = (mark, number);
    while let Some(place) = next(&mut (last + 1..parsed.len()), wanted.saturating_add(1)) {
        places.push(place);
        (last, wanted) = (place, wanted.saturating_add(1));
    }
    places
}

/// The places of the rows without numbers directly above and below the marked one, in one column.
fn adjacent(parsed: &[Parsed<'_>], mark: usize) -> Vec<usize> {
    let column = parsed[mark].column;
    let belongs = |&place: &usize| {
        let row = &parsed[place];
        row.number.is_none() && row.column == column && !row.text.is_empty() && !row.marked
    };
    let mut places: Vec<usize> = (0..mark).rev().take_while(belongs).collect();
    places.reverse();
    places.push(mark);
    places.extend((mark + 1..parsed.len()).take_while(belongs));
    places
}

/// The letter in parentheses at the end of a row's label, which may continue in further rows.
fn letter(parsed: &[Parsed<'_>], place: usize) -> Option<char> {
    let at_end = |text: &str| {
        let (_, tail) = text.strip_suffix(')')?.rsplit_once('(')?;
        let mut chars = tail.chars();
        chars.next().filter(|c| c.is_ascii_alphabetic() && chars.next().is_none())
    };
    let row = &parsed[place];
    let continues = |next: &&Parsed<'_>| !next.text.is_empty() && !next.marked && next.column > row.column;
    let last = parsed[place + 1..].iter().take_while(continues).last();
    at_end(row.text).or_else(|| at_end(last?.text))
}

/// The answers of a question like `Proceed? [y/N]` or `Run it? (Y)es/(N)o [Yes]:`.
fn yes_no(row: &str) -> Vec<Answer> {
    let row = row.trim_end();
    let asks = row.trim_end_matches(|c: char| c.is_whitespace() || ":?>".contains(c));
    let mut words: Vec<String> = Vec::new();
    // `(Y)es`
    for (at, _) in row.match_indices('(') {
        let mut chars = row[at + 1..].chars();
        if let (Some(letter), Some(')'), Some(next)) = (chars.next(), chars.next(), chars.next())
            && letter.is_ascii_alphabetic()
            && next.is_alphabetic()
        {
            words.push(letter.to_ascii_lowercase().to_string());
        }
    }
    // `[y/N]`, or followed by its default: `(yes/no) [no]`
    let in_brackets = |text: &str| {
        let in_square = || text.strip_suffix(']')?.rsplit_once('[');
        let (before, inner) = text.strip_suffix(')').map_or_else(in_square, |text| text.rsplit_once('('))?;
        Some((before.trim_end().to_owned(), inner.to_owned()))
    };
    let last = in_brackets(asks);
    let before_default = last.as_ref().and_then(|(before, _)| in_brackets(before));
    if words.is_empty() {
        let choices = |(_, inner): (String, String)| {
            let bare = |choice: &str| choice.trim_matches(['[', ']']).to_ascii_lowercase();
            let choices: Vec<String> = inner.split(['/', '|']).map(bare).collect();
            let is_word = |word: &String| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic());
            let asks = choices.len() > 1 && matches!(choices[0].as_str(), "y" | "yes");
            (asks && choices.iter().all(is_word)).then_some(choices)
        };
        words = before_default.and_then(choices).or_else(|| last.and_then(choices)).unwrap_or_default();
    }
    for (short, long) in [("y", "yes"), ("n", "no")] {
        if words.iter().any(|word| word == short || word == long) {
            words.extend([short.to_owned(), long.to_owned()]);
        }
    }
    unique(words).into_iter().map(|keys| Answer { keys, row: None }).collect()
}

/// The numbers of a question of one row like `Select theme: 1) dark 2) light`.
fn inline_numbers(row: &str) -> Vec<Answer> {
    let number = |word: &str| {
        let digits = word.trim_start_matches('(').strip_suffix([')', '.'])?;
        let is_digit = digits.len() == 1 && digits.chars().all(|c| c.is_ascii_digit());
        is_digit.then(|| Answer { keys: digits.to_owned(), row: None })
    };
    let found: Vec<Answer> = row.split_whitespace().filter_map(number).collect();
    let follows = |(index, answer): (usize, &Answer)| answer.keys == (index + 1).to_string();
    if found.len() > 1 && found.iter().enumerate().all(follows) { found } else { Vec::new() }
}

/// Text without white space and frames, and on request without the marks of lists.
fn ink(screen: &str, drop_marks: bool) -> String {
    let is_frame = |c: char| matches!(c, '\u{2500}'..='\u{257f}');
    let is_dropped_mark = |c: char| drop_marks && ROW_MARKS.contains(&c);
    plain(screen).chars().filter(|&c| !(c.is_whitespace() || is_frame(c) || is_dropped_mark(c))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::SCREENS;
    use super::*;

    const CLAUDE: &str = concat!(
        "❯ a task\n\n────────────────\n Bash command\n\n   touch x\n   1. not an option\n\n",
        " Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and don't ask again for: touch *\n   3. Other\n   4. No\n\n",
        " Esc to cancel · Tab to amend\n"
    );
    const CODEX: &str = concat!(
        "  Would you like to run the following command?\n\n  $ touch x\n\n› 1. Yes, proceed (y)\n",
        "  2. Yes, and don't ask again for commands that\n     start with `touch` (p)\n",
        "  3. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel\n"
    );
    const AIDER: &str = "Run shell command? (Y)es/(N)o/(D)on't ask again [Yes]: ";

    fn offered(screen: &str) -> String {
        Answers::on(screen).to_string()
    }

    fn fixture(path: &str) -> &'static str {
        SCREENS.iter().find(|(name, _)| *name == path).map(|(_, text)| *text).unwrap()
    }

    #[test]
    fn dialogs_offer_numbers_letters_and_words() {
        let gemini = concat!(
            "╭────────────────────╮\n│ Allow execution of [Shell]?  │\n│ ● 1. Allow once │\n│   2. Allow always │\n",
            "│   3. No (esc) │\n╰────────────────────╯\n"
        );
        for (screen, want) in [
            (CLAUDE, "1, 2, 3, 4, or Enter"),
            (CODEX, "1, 2, 3, y, p, or Enter"),
            (gemini, "1, 2, 3, or Enter"),
            (AIDER, "y, n, d, yes, no, or Enter"),
            ("Proceed? [y/N] ", "y, n, yes, no, or Enter"),
            ("Proceed (yes/no/all)? ", "yes, no, all, y, n, or Enter"),
            ("Overwrite? (yes/no) [no]: ", "yes, no, y, n, or Enter"),
            ("Continue connecting (yes/no/[fingerprint])? ", "yes, no, fingerprint, y, n, or Enter"),
            ("Overwrite [a.rs] [y/N]", "y, n, yes, no, or Enter"),
            ("Password: ", "Enter"),
            ("Run it?\n> Yes (y)\n  No (n)\n", "y, n, or Enter"),
            ("Run it?\n> Yes (y)\n  Also yes (y)\n  No (n)\n", "n, or Enter"),
            // The number of an item above the list is none of the list.
            ("Plan:\n   1. read\n   2. write\n ❯ 1. Yes\n   2. No\n", "1, 2, or Enter"),
            // The list is only quoted.
            ("> 1. a\n  2. b\nDelete it?\n", "Enter"),
            // The list goes on above the highlighted row, and beyond one digit.
            ("  8. a\n  9. b\n> 10. c\n  11. d\n", "8, 9, or Enter"),
            ("  1. a\n  2. Yes, for (Y)es/(N)o [y/n]\n> 3. c\n  4. No, [y/n]\n", "1, 2, 3, 4, or Enter"),
            ("", "Enter"),
        ] {
            assert_eq!(offered(screen), want, "{screen}");
        }
    }

    #[test]
    fn recorded_dialogs_offer_what_they_show() {
        for (path, want) in [
            ("startup/claude_api_key", "Enter"),
            ("startup/claude_bypass", "Enter"),
            ("startup/claude_login", "1, 2, or Enter"),
            ("startup/claude_no_credit", "Enter"),
            ("startup/claude_trust", "Enter"),
            ("startup/codex_hooks", "1, 2, 3, or Enter"),
            ("startup/codex_login", "1, 2, 3, or Enter"),
            ("startup/codex_trust", "1, 2, or Enter"),
            ("startup/gemini_trust", "1, 2, or Enter"),
            ("startup/generic_theme", "1, 2, or Enter"),
            ("permission/aider_question", "y, n, yes, no, or Enter"),
            ("permission/claude_command", "1, 2, 3, or Enter"),
            ("permission/claude_context_limit", "Enter"),
            ("permission/claude_third_option", "1, 2, 3, or Enter"),
            ("permission/codex_approval", "1, 2, 3, y, p, or Enter"),
            ("permission/gemini_approval", "1, 2, 3, or Enter"),
            ("permission/generic_question", "Enter"),
            ("permission/generic_yes_or_no", "y, n, yes, no, or Enter"),
            ("permission/opencode_required", "Enter"),
        ] {
            assert_eq!(offered(fixture(path)), want, "{path}");
        }
    }

    #[test]
    fn text_that_the_dialog_does_not_offer_is_not_an_answer() {
        let texts = ["no", "stop", "y", "/cost", "/1", "5", "12", "1 ", " 1", "1\n", "esc", "yes", "❯"];
        for text in texts {
            assert_eq!(Answers::on(CLAUDE).find(text), None, "{text:?}");
        }
        for text in ["no", "n", "e", "esc", "/y", "yes", "4"] {
            assert_eq!(Answers::on(CODEX).find(text), None, "{text:?}");
        }
        for text in ["x", "/no", "nope", "2", "yes please", "don't"] {
            assert_eq!(Answers::on(AIDER).find(text), None, "{text:?}");
        }
        for text in ["no", "yes", "1", "y"] {
            assert_eq!(Answers::on(fixture("startup/claude_trust")).find(text), None, "{text:?}");
        }
    }

    #[test]
    fn answers_ignore_case_and_enter_is_always_an_answer() {
        assert_eq!(Answers::on(CODEX).find("P").unwrap().keys, "p");
        assert_eq!(Answers::on(AIDER).find("YES").unwrap().keys, "yes");
        for screen in [CLAUDE, CODEX, AIDER, "", fixture("startup/claude_trust")] {
            assert_eq!(Answers::on(screen).find(""), Some(Answer::default()), "{screen}");
        }
    }

    #[test]
    fn enter_completes_an_answer_only_if_its_row_is_highlighted() {
        let moved = CLAUDE.replace("❯ 1. Yes", "  1. Yes").replace("  4. No", "❯ 4. No");
        let second = CLAUDE.replace("touch x", "rm x");
        let answers = Answers::on(CLAUDE);
        for (text, now, want) in [
            ("1", CLAUDE, AfterKeys::NeedsEnter),
            ("4", CLAUDE, AfterKeys::Ignored),
            ("4", &moved, AfterKeys::NeedsEnter),
            ("1", &moved, AfterKeys::Ignored),
            ("1", &second, AfterKeys::Changed),
            ("1", "", AfterKeys::Changed),
        ] {
            let answer = answers.find(text).unwrap();
            assert_eq!(answers.after_keys(&answer, CLAUDE, now), want, "{text}: {now}");
        }
        let codex = Answers::on(CODEX);
        for (text, want) in [("y", AfterKeys::NeedsEnter), ("p", AfterKeys::Ignored)] {
            assert_eq!(codex.after_keys(&codex.find(text).unwrap(), CODEX, CODEX), want, "{text}");
        }
    }

    #[test]
    fn enter_completes_an_answer_only_after_its_question() {
        let answers = Answers::on(AIDER);
        let answer = answers.find("n").unwrap();
        for (now, want) in [
            (format!("{AIDER}n"), AfterKeys::NeedsEnter),
            (AIDER.to_owned(), AfterKeys::Ignored),
            (format!("{AIDER}n\n{AIDER}"), AfterKeys::Changed),
            (format!("{AIDER}y"), AfterKeys::Changed),
        ] {
            assert_eq!(answers.after_keys(&answer, AIDER, &now), want, "{now}");
        }
    }
}
