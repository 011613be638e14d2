//! `swarm session start`: start or resume a loop in one session.

use std::io::Read;

use swarm_state::session::{Ceiling, SessionKind, Words, brief, do_it_words, loop_words, start_text};

use super::view::SessionView;
use crate::cli::{PageFormat, SessionStart};
use crate::error::{Error, Result};
use crate::hooks::install;
use crate::out::{CommandResult, Out};
use crate::session::project::StartRequest;
use crate::session::start::{self, MAX_TASK_BYTES, StartedLoop, current_session, project_dir};
use crate::session::store::SessionStore;
use crate::{marks, paths};

const NO_HOOKS: &str = "no settings of Claude Code, Codex or opencode mention swarm: without its hooks, nothing continues \
                        this loop; to install them for new sessions: swarm hooks install";

pub(super) fn run(sessions: &SessionStore, args: SessionStart, out: Out) -> CommandResult {
    let session = match &args.session_id {
        Some(session) => session.clone(),
        None => current_session()?.ok_or_else(no_session)?,
    };
    let kind = match (&args.do_it, args.ulw) {
        (Some(_), _) => SessionKind::DoIt,
        (None, true) => SessionKind::Ulw,
        (None, false) => SessionKind::Ralph,
    };
    let dir = project_dir(args.cwd.as_ref())?;
    let words = words(kind, &args)?;
    let request = StartRequest { kind, session, dir, words };
    let started = start::start(sessions, &request)?;
    for warning in &started.warnings {
        out.warn(warning);
    }
    // swarm passes the hooks to the agents of its workers.
    if std::env::var_os(marks::WORKER).is_none() && !install::settings_mention_swarm(&request.dir) {
        out.warn(NO_HOOKS);
    }
    match args.format {
        PageFormat::Json => out.json(&SessionView::of(&started.path, &started.state, None))?,
        PageFormat::Text => out.lines(&page(&started))?,
    }
    Ok(0)
}

fn no_session() -> Error {
    Error::invalid("no session: this command does not run inside an agent session")
        .hint("type /ralph-loop TASK in the agent, or set --session-id ID")
}

/// Returns the task and the options. A flag overrides an option within the task.
fn words(kind: SessionKind, args: &SessionStart) -> Result<Words> {
    let text = match args.task.as_slice() {
        [dash] if dash == "-" => read_task()?,
        words => words.join(" "),
    };
    let mut words = match (kind, &args.do_it) {
        (SessionKind::DoIt, Some(max)) => do_it_words(&format!("{max} {text}")).map_err(Error::invalid)?,
        _ => loop_words(&text).map_err(Error::invalid)?,
    };
    if let Some(turns) = args.max_iterations {
        words.max_iterations = Some(Ceiling::new(turns).map_err(Error::invalid)?);
    }
    words.completion_promise = args.completion_promise.clone().or(words.completion_promise);
    words.min_tool_calls = args.min_tool_calls.or(words.min_tool_calls);
    words.on_no_work = args.on_promise_no_work.or(words.on_no_work);
    words.no_diff_limit = args.no_diff_limit.or(words.no_diff_limit);
    words.archive_on_branch_change |= args.archive_on_branch_change;
    words.create_branch |= args.create_branch;
    if let Some(file) = &args.contract {
        let path = paths::pin(file).map_err(|e| Error::system("cannot use the contract", e))?;
        words.contract = Some(path.to_string_lossy().into_owned());
    }
    Ok(words)
}

fn read_task() -> Result<String> {
    let mut bytes = vec![];
    std::io::stdin()
        .lock()
        .take(MAX_TASK_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::system("cannot read the task", e))?;
    if bytes.len() > MAX_TASK_BYTES {
        return Err(start::too_long());
    }
    String::from_utf8(bytes).map_err(|_| Error::invalid("the task is not valid UTF-8"))
}

/// Formats the output for the user, and for an agent that ran the command.
fn page(started: &StartedLoop) -> Vec<String> {
    let state = &started.state;
    let what = if started.resumed { "goes on" } else { "is active" };
    let mut lines = match state.kind {
        SessionKind::DoIt => brief(state).lines().map(ToOwned::to_owned).collect(),
        SessionKind::Ralph | SessionKind::Ulw => {
            vec![format!("the {} loop {what}: {}", state.kind.word(), state.position())]
        }
    };
    lines.push(format!("state file: {}", started.path.display()));
    lines.push(String::new());
    lines.extend(start_text(state).lines().map(ToOwned::to_owned));
    lines
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn slash_commands_accept_the_options_of_session_start() {
        let cli = Cli::command();
        let start =
            cli.find_subcommand("session").and_then(|session| session.find_subcommand("start")).unwrap();
        let of_the_shell = ["cwd", "do-it", "format", "help", "session-id", "ulw"];
        let options = start.get_arguments().filter_map(|option| Some((option, option.get_long()?)));
        for (option, name) in options.filter(|(_, name)| !of_the_shell.contains(name)) {
            // The wrong form is refused by an error that begins with the option.
            let takes_value = option.get_action().takes_values();
            let wrong = if takes_value { format!("--{name}") } else { format!("--{name}=yes") };
            let is_known = |words: Result<Words, String>| {
                words.is_err_and(|error| error.starts_with(&format!("--{name}")))
            };
            assert!(is_known(loop_words(&wrong)) || is_known(do_it_words(&wrong)), "{wrong}");
        }
    }
}
