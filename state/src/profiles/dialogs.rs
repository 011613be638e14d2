//! The shapes of dialogs, and those dialogs that any agent may show.

use serde::{Deserialize, Serialize};

/// A screen marker: a regular expression (one match is enough) and what it means to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The pattern, in [`crate::pattern::Pattern`]'s syntax.
    pub pattern: String,
    /// Its meaning, as `status` shows it ("trust dialog").
    pub what: String,
}

/// The meaning of the marker of a question that ends in its choices, such as `[y/N]`.
pub const YES_OR_NO: &str = "a question to be answered with yes or no";

/// Matches at most `rows` more rows and the end of the text.
pub(super) fn end(rows: usize) -> String {
    format!(r"(?:\n[^\n]*){{0,{rows}}}\Z")
}

/// A dialog: the phrase, some rows, the selected option, and then nothing but indented or framed rows. An
/// input box below it (a mark or a rule in the first column) means that the phrase is only quoted.
pub(super) fn dialog(phrase: &str, option: &str, what: &str) -> Marker {
    let pattern = format!(
        r"(?i)(?:{phrase})[^\n]*\n(?:[^\n]*\n){{0,16}}?[ \u00a0│┃]*[❯›>●][ \u00a0](?:[0-9]+[.)] )?(?:{option})[^\n]*(?:\n(?:[ │┃╰][^\n]*)?)*\Z"
    );
    marker(&pattern, what)
}

pub(super) fn marker(pattern: &str, what: &str) -> Marker {
    Marker { pattern: pattern.to_owned(), what: what.to_owned() }
}

/// Dialogs at start-up that every profile knows.
pub fn common_startup() -> Vec<Marker> {
    vec![
        dialog(
            r"do you trust (?:the )?(?:files|contents|authors|this)\b|quick safety check:|trust this (?:folder|directory|project)\?",
            r"no\b|yes\b|trust\b|don.t trust|exit|back|quit",
            "trust dialog",
        ),
        dialog(r"in bypass permissions mode", r"no\b|yes\b", "bypass-permissions dialog"),
        dialog(r"detected a custom api key|do you want to use this api key", r"no\b|yes\b", "API key dialog"),
        // The wordings of these two are not from a real screen.
        dialog(
            r"(?:select|choose|pick) (?:a |your |the )?(?:[a-z]+ )?(?:theme|text style)",
            r"\S",
            "theme dialog",
        ),
        dialog(
            r"select (?:a )?login method|how (?:would|do) you (?:like|want) to (?:log|sign|authenticate)|sign in (?:with|to)",
            r"\S",
            "login dialog",
        ),
        // A theme question of one row that is still open.
        marker(r"(?i)^\s*(?:select|choose|pick)\s[^\n]{0,20}\btheme:?\s+\(?1[.)]\s[^\n]*\Z", "theme dialog"),
    ]
}

/// Dialogs during work that every profile knows. The last ones are recognized by their shape, with any text: a message
/// and an Enter would answer them unread.
pub fn common_permission() -> Vec<Marker> {
    let (chosen, other) = (r"[ \u00a0│┃]*[❯›>●][ \u00a0]+[0-9]+[.)] ", r"[ \u00a0│┃]+[0-9]+[.)] ");
    let between = r"[^\n]*\n(?:(?:[ \u00a0│┃][^\n]*)?\n){0,16}?";
    let below = r"[^\n]*(?:\n(?:[ │┃╰][^\n]*)?)*\Z";
    let esc = "esc(?:ape)? to (?:cancel|decline|deny|disable|exit|go back|quit|reject|skip)";
    vec![
        dialog(
            r"(?:do you want|would you like) to [^\n]*\?|allow [^\n]*\?",
            r"yes\b|no\b|allow\b|reject\b|deny\b",
            "permission dialog",
        ),
        // Numbered options, one of them chosen: the first or a later one.
        marker(&format!("^{chosen}{between}{other}{below}"), "a list to choose from"),
        marker(&format!("^{other}{between}{chosen}{below}"), "a list to choose from"),
        // Some show the default after the choices: `(yes/no) [no]: `.
        marker(
            r"(?i)[\[(]y(?:es)?[/|]no?(?:[/|]\[?[a-z]+\]?)*[\])](?:[ \u00a0]\[[a-z]+\])?[ \u00a0]*[:?>]?[ \u00a0]*\Z",
            YES_OR_NO,
        ),
        // sudo, ssh, git, gpg.
        marker(
            r"(?i)^[^\n]{0,80}\b(?:password|passphrase)\b[^\n]{0,120}:[ \u00a0]*\Z",
            "a prompt for a password",
        ),
        marker(r"^Username for '[^\n]*':[ \u00a0]*\Z", "a prompt for a user name"),
        // Below an empty row, the last row lists keys, and Esc is one of two or more. A panel that Esc only closes, and
        // a spinner's `(3s · esc to cancel)`, may stand there while the agent works.
        marker(
            &format!(
                r"(?i)^[ \u00a0│┃]*\n[ \u00a0│┃]+(?:[^\n(]*(?:·|\bor)[ \u00a0]{esc}\b[^\n]*|{esc}[ \u00a0]·[^\n]*)(?:\n[ \u00a0]*╰[^\n]*)?\Z"
            ),
            "a screen that waits for a key",
        ),
    ]
}
