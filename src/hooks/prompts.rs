//! What a person typed into an agent: `/ralph-loop` and its kin.
//!
//! The prompt hook sees what was typed as it was typed, before any shell or template could damage it, so the loop is
//! started from here; the command files of the plugin hold nothing but a description. Used by [`super::run`].

use std::path::PathBuf;

use serde_json::{Value, json};
use swarm_state::hook::HookInput;
use swarm_state::session::{Kind, SessionId, brief, do_it_words, loop_words, start_text};

use super::sessions::Sessions;
use super::starting::{self, Started, Wanted};
use crate::error::{Error, ErrorCode, Result};

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Start(Kind),
    Cancel,
}

/// Every command, with and without the plugin's name in front.
const COMMANDS: [(&str, Verb); 8] = [
    ("/ralph-loop", Verb::Start(Kind::Ralph)),
    ("/swarm:ralph-loop", Verb::Start(Kind::Ralph)),
    ("/ulw-loop", Verb::Start(Kind::Ulw)),
    ("/swarm:ulw-loop", Verb::Start(Kind::Ulw)),
    ("/do-it:ralph", Verb::Start(Kind::DoIt)),
    ("/cancel-ralph", Verb::Cancel),
    ("/swarm:cancel-ralph", Verb::Cancel),
    ("/do-it:cancel-ralph", Verb::Cancel),
];

/// The command in a prompt, with what follows it.
fn command(prompt: &str) -> Option<(Verb, &str)> {
    let text = prompt.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end)?;
    COMMANDS.iter().find(|(name, _)| *name == word).map(|(_, verb)| (*verb, rest.trim()))
}

/// Carries out the command that a prompt is; `None` when it is none. Gives the answer to the host.
pub fn answer(sessions: &Sessions, input: &HookInput) -> Option<Value> {
    let (verb, rest) = command(input.prompt.as_deref()?)?;
    Some(match carry_out(sessions, input, verb, rest) {
        Ok(Said::ToAgent(context)) => json!({
            "hookSpecificOutput": { "hookEventName": "UserPromptSubmit", "additionalContext": context }
        }),
        Ok(Said::ToPerson(text)) => json!({ "decision": "block", "reason": text }),
        Err(error) => {
            let hint = error.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
            json!({ "decision": "block", "reason": format!("swarm: {}{hint}", error.message) })
        }
    })
}

enum Said {
    ToAgent(String),
    /// The agent need not hear of it.
    ToPerson(String),
}

fn carry_out(sessions: &Sessions, input: &HookInput, verb: Verb, rest: &str) -> Result<Said> {
    let id = input.session.as_deref().unwrap_or_default();
    let session = SessionId::new(id)
        .map_err(|e| Error::new(ErrorCode::Invalid, format!("this session has no id: {e}")))?;
    let project = std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let dir = project.or_else(|| input.cwd.clone()).unwrap_or_else(|| PathBuf::from("."));
    match verb {
        Verb::Start(kind) => {
            let words = match kind {
                Kind::DoIt => do_it_words(rest),
                Kind::Ralph | Kind::Ulw => loop_words(rest),
            };
            let words = words.map_err(|e| Error::invalid(e.to_string()))?;
            let started = starting::start(sessions, &Wanted { kind, session, dir, words })?;
            Ok(Said::ToAgent(context(&started)))
        }
        Verb::Cancel => Ok(Said::ToPerson(match starting::end(sessions, Some(&session), &dir)? {
            Some(found) => format!("swarm: the loop is cancelled ({} is removed)", found.path.display()),
            // Two hooks tell of one prompt.
            None if starting::was_just_cancelled(sessions, &session) => {
                "swarm: the loop is cancelled".to_owned()
            }
            None => "swarm: this session has no loop".to_owned(),
        })),
    }
}

/// What the agent is told of a loop that begins or goes on.
pub fn context(started: &Started) -> String {
    let Started { state, warnings, .. } = started;
    let warnings: String = warnings.iter().map(|warning| format!("Note for the user: {warning}\n")).collect();
    match state.kind {
        Kind::DoIt => format!(
            "{warnings}Tell the user this, word for word, then begin:\n\n{}\n\n{}",
            brief(state),
            start_text(state)
        ),
        Kind::Ralph | Kind::Ulw => format!("{warnings}{}", start_text(state)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_at_the_start_is_one() {
        assert_eq!(command("/ralph-loop \"x\" -n 3"), Some((Verb::Start(Kind::Ralph), "\"x\" -n 3")));
        assert_eq!(command(" /ulw-loop\ta\nb"), Some((Verb::Start(Kind::Ulw), "a\nb")));
        assert_eq!(command("/do-it:ralph 30"), Some((Verb::Start(Kind::DoIt), "30")));
        assert_eq!(command("/cancel-ralph"), Some((Verb::Cancel, "")));
        for text in ["", "/ralph", "/ralph-loops x", "please /ralph-loop x", "ralph-loop x", "/do-it:build"] {
            assert_eq!(command(text), None, "{text}");
        }
    }
}
