//! What a person typed into an agent: `/ralph-loop` and its kin.
//!
//! The prompt hook sees what was typed as it was typed, before any shell or template could damage it, so the loop is
//! started from here; the command files of the plugin hold nothing but a description. Used by [`crate::hooks::run`].

use std::path::PathBuf;

use serde_json::{Value, json};
use swarm_state::hook::HookInput;
use swarm_state::session::{Command, SessionId, SessionKind, brief, do_it_words, loop_words, start_text};

use super::request::StartRequest;
use super::start::{self, Started};
use super::store::Sessions;
use crate::error::{Error, ErrorCode, Result};

/// Carries out the command that a prompt is; `None` when it is none. Gives the answer to the host.
pub fn answer(sessions: &Sessions, input: &HookInput) -> Option<Value> {
    let (command, rest) = Command::of(input.prompt.as_deref()?)?;
    Some(match carry_out(sessions, input, command, rest) {
        Ok(Said::ToAgent(context)) => json!({
            "hookSpecificOutput": { "hookEventName": "UserPromptSubmit", "additionalContext": context }
        }),
        // The agent has it from the hook that came first.
        Ok(Said::Nothing) => return None,
        Ok(Said::ToPerson(text)) => json!({ "decision": "block", "reason": text }),
        Err(error) => {
            let hint = error.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
            json!({ "decision": "block", "reason": format!("swarm: {}{hint}", error.message) })
        }
    })
}

enum Said {
    Nothing,
    ToAgent(String),
    /// The agent need not hear of it.
    ToPerson(String),
}

fn carry_out(sessions: &Sessions, input: &HookInput, command: Command, rest: &str) -> Result<Said> {
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
            Ok(if started.repeated { Said::Nothing } else { Said::ToAgent(context(&started)) })
        }
        Command::Cancel => Ok(Said::ToPerson(match start::end(sessions, Some(&session), &dir)? {
            Some(found) => format!("swarm: the loop is cancelled ({} is removed)", found.path.display()),
            // Two hooks tell of one prompt.
            None if start::was_just_cancelled(sessions, &session) => {
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
        SessionKind::DoIt => format!(
            "{warnings}Tell the user this, word for word, then begin:\n\n{}\n\n{}",
            brief(state),
            start_text(state)
        ),
        SessionKind::Ralph | SessionKind::Ulw => format!("{warnings}{}", start_text(state)),
    }
}
