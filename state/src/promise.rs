//! The promise: an agent's claim that it is done, and the conditions under which it counts.
//!
//! A promise is the exact text `<promise>TOKEN</promise>`, case-sensitive, with nothing else inside the tag: a claim,
//! never proof; checks prove. A work rule guards against an agent that prints it before it did anything. Used by the
//! gates of the outer loop and by the Stop hook, which must judge alike. Deliberately absent: the source of the
//! agent's text ([`crate::transcript`], or a screen as the weaker source).

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::transcript::Account;

/// Maximum length of a token, bytes, so that it fits on one line of a screen.
pub(crate) const MAX_PROMISE_BYTES: usize = 100;

/// The token inside the promise's tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Promise(String);

impl Promise {
    /// Parses a token. Refuses an empty one, which would complete the loop at once, and one that an agent would not
    /// repeat exactly.
    pub fn new(token: &str) -> Result<Self, String> {
        Err(if token.trim().is_empty() {
            "a promise cannot be empty".to_owned()
        } else if token.trim() != token || token.chars().any(char::is_control) {
            "a promise has no white space at its ends and no line break".to_owned()
        } else if token.contains(['<', '>']) {
            "a promise cannot contain '<' or '>'".to_owned()
        } else if token.len() > MAX_PROMISE_BYTES {
            format!("a promise is at most {MAX_PROMISE_BYTES} bytes long")
        } else {
            return Ok(Self(token.to_owned()));
        })
    }

    /// The token alone.
    pub fn token(&self) -> &str {
        &self.0
    }

    /// The text that the agent must print.
    pub fn marker(&self) -> String {
        format!("<promise>{}</promise>", self.0)
    }

    /// The marker alone on a line, as a pattern for a screen's reader, which removes the echo of the prompt. A list
    /// mark, bold text, a code span and a full stop are allowed. Weaker than an account: a tool's output looks the
    /// same.
    pub fn pattern(&self) -> String {
        let marker = regex::escape(&self.marker());
        format!(
            r"(?m)^[{PROMISE_MARKS}]*(?:\d+[.)]\s*)?[{PROMISE_MARKS}]*{marker}[{PROMISE_MARKS}]*[.!]?[{PROMISE_MARKS}]*$"
        )
    }

    /// Whether the marker is anywhere in a text: the rule of session loops.
    pub fn is_in(&self, text: &str) -> bool {
        text.contains(&self.marker())
    }

    /// Whether the agent gave it: alone on a line of a message, or at the end of the last line of its last message. A
    /// sentence about the promise does not count.
    pub fn is_printed(&self, account: &Account) -> bool {
        let alone = Regex::new(&self.pattern());
        let is_alone = |text: &String| alone.as_ref().is_ok_and(|alone| alone.is_match(text));
        let ends_with_it = |text: &String| {
            let end = text.trim_end_matches(|c: char| c.is_whitespace() || "*_`.!".contains(c));
            end.ends_with(&self.marker())
        };
        account.texts.iter().any(is_alone) || account.texts.last().is_some_and(ends_with_it)
    }
}

/// The characters that may surround a promise, as a class of a pattern: spaces, the marks of lists, of bold text
/// and of code spans, and the marks that a TUI puts around an agent's text.
const PROMISE_MARKS: &str = r"\s●•⏺✦┃│>*_`+\-";

crate::words::serde_text!(Promise, String, Promise::new, Promise::token);

/// The treatment of a promise of an agent that did no work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnNoWork {
    /// The promise does not count.
    #[default]
    Reject,
    /// The promise counts, with a warning.
    Warn,
    /// The promise counts.
    Accept,
}

crate::word_table!(pub OnNoWork, word, of, [(Reject, "reject"), (Warn, "warn"), (Accept, "accept")]);

/// The work of an agent, as far as swarm can see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Tool calls; `None` if they cannot be counted.
    pub tool_calls: Option<u64>,
    /// The loop changed the tree, made a commit or made a check pass; `None` if unknown.
    pub tree_changed: Option<bool>,
}

impl Work {
    /// Whether that is enough work, also if both are unknown. A change of the tree does not replace more than one
    /// required tool call, which the user has requested.
    pub(crate) fn is_enough(self, min_tool_calls: u64) -> bool {
        match (self.tool_calls, self.tree_changed) {
            _ if min_tool_calls == 0 => true,
            (Some(calls), changed) => calls >= min_tool_calls || min_tool_calls == 1 && changed == Some(true),
            (None, Some(changed)) => changed,
            (None, None) => true,
        }
    }
}

/// The source of a promise, the better source first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// In the record that the CLI keeps of its session: only the CLI writes there.
    Transcript,
    /// In the JSON that the CLI printed. A tool that writes to the terminal can print the same.
    Result,
    /// Alone on a line of the output. Any tool can print that.
    Screen,
}

crate::word_table!(pub Source, word, [(Transcript, "transcript"), (Result, "result"), (Screen, "screen")]);

/// The outcome of the promise at the end of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The promise was not given.
    Missing,
    /// The promise was given without work and does not count.
    Rejected,
    /// The promise was given without work and counts with a warning.
    Doubtful,
    /// The promise was given.
    #[serde(rename = "given")]
    Valid,
}

impl Claim {
    /// Decides whether a promise counts.
    pub fn of(printed: bool, work: Work, min_tool_calls: u64, policy: OnNoWork) -> Self {
        match (printed, work.is_enough(min_tool_calls), policy) {
            (false, _, _) => Self::Missing,
            (true, true, _) | (true, false, OnNoWork::Accept) => Self::Valid,
            (true, false, OnNoWork::Warn) => Self::Doubtful,
            (true, false, OnNoWork::Reject) => Self::Rejected,
        }
    }

    /// Whether the agent printed the promise, whether it counts or not.
    pub fn is_printed(self) -> bool {
        self != Self::Missing
    }

    /// Whether the gate holds.
    pub fn holds(self) -> bool {
        matches!(self, Self::Valid | Self::Doubtful)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pattern::Pattern;

    fn done() -> Promise {
        Promise::new("DONE").unwrap()
    }

    #[test]
    fn only_the_exact_text_is_a_promise() {
        for text in
            ["<promise>DONE</promise>", "so:\n```\n<promise>DONE</promise>\n```", "x<promise>DONE</promise>y"]
        {
            assert!(done().is_in(text), "{text}");
        }
        for text in [
            "DONE",
            "<promise>done</promise>",
            "<promise> DONE </promise>",
            "<promise>DONE.</promise>",
            "<promise>NOT DONE</promise>",
            "<PROMISE>DONE</PROMISE>",
            "<promise>\nDONE\n</promise>",
            "<promise>DONE<promise>",
            "",
        ] {
            assert!(!done().is_in(text), "{text}");
        }
    }

    #[test]
    fn a_token_that_cannot_work_is_refused() {
        assert_eq!(Promise::new(""), Err("a promise cannot be empty".to_owned()));
        assert_eq!(Promise::new("  "), Err("a promise cannot be empty".to_owned()));
        assert_eq!(
            Promise::new(" DONE"),
            Err("a promise has no white space at its ends and no line break".to_owned())
        );
        assert_eq!(
            Promise::new("A\nB"),
            Err("a promise has no white space at its ends and no line break".to_owned())
        );
        assert_eq!(Promise::new("</promise>"), Err("a promise cannot contain '<' or '>'".to_owned()));
        assert_eq!(Promise::new(&"x".repeat(101)), Err("a promise is at most 100 bytes long".to_owned()));
        assert_eq!(Promise::new("ALL TESTS PASS ✓").unwrap().token(), "ALL TESTS PASS ✓");
        assert!(serde_json::from_str::<Promise>("\"\"").is_err());
    }

    #[test]
    fn promise_on_a_screen_must_be_alone_on_its_line() {
        let pattern = Pattern::compile(&done().pattern()).unwrap();
        let marker = done().marker();
        for text in [
            format!("work\n● {marker}\n"),
            format!("│ {marker}   │"),
            format!("\t{marker}  \nbye"),
            format!("**{marker}**"),
            format!("so:\n`{marker}`.\nbye"),
            format!("- {marker}"),
            format!("2. {marker}"),
            format!("{marker}."),
        ] {
            assert!(pattern.is_match(&text), "{text}");
        }
        for text in [format!("say {marker} when done"), format!("{marker}{marker}"), "DONE".into()] {
            assert!(!pattern.is_match(&text), "{text}");
        }
    }

    #[test]
    fn promise_inside_a_sentence_does_not_count() {
        let marker = done().marker();
        let given =
            |texts: &[String]| done().is_printed(&Account { texts: texts.into(), ..Account::default() });
        let bye = || "bye".to_owned();
        for texts in [
            vec![format!("All done.\n\n{marker}")],
            vec![format!("**{marker}**"), bye()],
            vec![bye(), format!("All tests pass: {marker}.")],
            vec![format!("```\n{marker}\n```\nbye")],
        ] {
            assert!(given(&texts), "{texts:?}");
        }
        for texts in [
            vec![format!("I will output {marker} when the tests pass"), bye()],
            vec![format!("I will output {marker}"), bye()],
            vec![format!("I cannot say {marker} yet.")],
            vec![format!("The rule: say exactly this: {marker}\nI go on.")],
            vec![format!("{marker} is what I will say")],
            vec![],
        ] {
            assert!(!given(&texts), "{texts:?}");
        }
    }

    #[test]
    fn promise_without_work_is_handled_by_the_policy() {
        let none = Work { tool_calls: Some(0), tree_changed: Some(false) };
        assert_eq!(Claim::of(true, none, 1, OnNoWork::Reject), Claim::Rejected);
        assert_eq!(Claim::of(true, none, 1, OnNoWork::Warn), Claim::Doubtful);
        assert_eq!(Claim::of(true, none, 1, OnNoWork::Accept), Claim::Valid);
        assert_eq!(Claim::of(true, none, 0, OnNoWork::Reject), Claim::Valid);
        let earlier = Work { tree_changed: Some(true), ..none };
        assert_eq!(Claim::of(true, earlier, 1, OnNoWork::Reject), Claim::Valid);
        assert_eq!(Claim::of(true, earlier, 2, OnNoWork::Reject), Claim::Rejected);
        let by_tree = |changed| Work { tool_calls: None, tree_changed: changed };
        assert_eq!(Claim::of(true, by_tree(Some(false)), 1, OnNoWork::Reject), Claim::Rejected);
        assert_eq!(Claim::of(true, by_tree(Some(true)), 1, OnNoWork::Reject), Claim::Valid);
        assert_eq!(Claim::of(true, by_tree(None), 1, OnNoWork::Reject), Claim::Valid);
        assert_eq!(Claim::of(false, by_tree(Some(true)), 1, OnNoWork::Accept), Claim::Missing);
    }

    proptest! {
        #[test]
        fn accepted_token_is_found_only_in_its_marker(token in "\\PC{0,120}", around in "[^<]{0,40}") {
            if let Ok(promise) = Promise::new(&token) {
                let said = format!("{around}{}{around}", promise.marker());
                prop_assert!(promise.is_in(&said));
                prop_assert!(!promise.is_in(&around));
                prop_assert!(!promise.is_in(&token));
            }
        }

        #[test]
        fn missing_promise_never_holds(calls in proptest::option::of(0_u64..5), min in 0_u64..5) {
            let work = Work { tool_calls: calls, tree_changed: None };
            for policy in [OnNoWork::Reject, OnNoWork::Warn, OnNoWork::Accept] {
                prop_assert!(!Claim::of(false, work, min, policy).holds());
            }
        }
    }
}
