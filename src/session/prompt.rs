//! Carries out the slash commands of session loops: `/ralph-loop`, `/ulw-loop`, `/do-it:ralph` and `/cancel-ralph`.
//!
//! The prompt hook receives the text as it was typed, before any shell or template could change it. So the loop is
//! started here, and the command files of the plugin contain only a description. Used by [`crate::hooks::run`].

use std::path::PathBuf;

use serde_json::{Value, json};
use swarm_state::hook::HookInput;
use swarm_state::session::{Command, SessionId, SessionKind, brief, do_it_words, loop_words, start_text};

use super::project::StartRequest;
use super::start::{self, StartedLoop};
use super::store::SessionStore;
use crate::error::{Error, ErrorCode, Result};

/// Carries out the slash command of a prompt and returns the answer for the host; `None` when the prompt has none.
pub fn answer(sessions: &SessionStore, input: &HookInput) -> Option<Value> {
    let (command, rest) = Command::of(input.prompt.as_deref()?)?;
    Some(match carry_out(sessions, input, command, rest) {
        Ok(PromptAnswer::ToAgent(context)) => json!({
            "hookSpecificOutput": { "hookEventName": "UserPromptSubmit", "additionalContext": context }
        }),
        // The first hook has answered already.
        Ok(PromptAnswer::Nothing) => return None,
        Ok(PromptAnswer::ToPerson(text)) => json!({ "decision": "block", "reason": text }),
        Err(error) => {
            let hint = error.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
            json!({ "decision": "block", "reason": format!("swarm: {}{hint}", error.message) })
        }
    })
}

enum PromptAnswer {
    Nothing,
    ToAgent(String),
    /// Shown to the user; the agent does not receive the prompt.
    ToPerson(String),
}

fn carry_out(
    sessions: &SessionStore,
    input: &HookInput,
    command: Command,
    rest: &str,
) -> Result<PromptAnswer> {
    let id = input.session.as_deref().unwrap_or_default();
    let session = SessionId::new(id)
        .map_err(|e| Error::new(ErrorCode::Invalid, format!("this session has no id: {e}")))?;
    let project = std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let dir = project.or_else(|| input.cwd.clone()).unwrap_or_else(|| PathBuf::from("."));
    match command {
        Command::Start(kind) => {
            let words = match kind {
                SessionKind::DoIt => do_it_words(rest),
                SessionKind::Ralph | SessionKind::Ulw => loop_words(rest),
            };
            let words = words.map_err(|e| Error::invalid(e.to_string()))?;
            let started = start::start(sessions, &StartRequest { kind, session, dir, words })?;
            Ok(if started.repeated {
                PromptAnswer::Nothing
            } else {
                PromptAnswer::ToAgent(agent_text(&started))
            })
        }
        Command::Cancel => {
            Ok(PromptAnswer::ToPerson(match start::cancel_loop(sessions, Some(&session), &dir)? {
                Some(found) => format!("swarm: the loop is cancelled ({} is removed)", found.path.display()),
                // Two hooks report one prompt.
                None if start::was_just_cancelled(sessions, &session) => {
                    "swarm: the loop is cancelled".to_owned()
                }
                None => "swarm: this session has no loop".to_owned(),
            }))
        }
    }
}

/// Returns the text for the agent about a loop that was started or resumed.
pub fn agent_text(started: &StartedLoop) -> String {
    let StartedLoop { state, warnings, .. } = started;
    let warnings: String = warnings.iter().map(|warning| format!("Note for the user: {warning}\n")).collect();
    match state.kind {
        SessionKind::DoIt => format!(
            "{warnings}Tell the user this, word for word, then begin:\n\n{}\n\n{}",
            brief(state),
            start_text(state)
        ),
        SessionKind::Ralph | SessionKind::Ulw => format!("{warnings}{}", start_text(state)),
    }
}
