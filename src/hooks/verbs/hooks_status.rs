//! `swarm hooks status`: show where the session hooks are installed.

use serde::Serialize;

use crate::cli::{HookAgent, HookScope, HooksStatus, PageFormat};
use crate::error::Result;
use crate::hooks::install::{self, State, Status};
use crate::hooks::words::shown;
use crate::out::{CommandResult, Out, table};

/// What `--format json` prints.
#[derive(Serialize)]
struct Report {
    hooks: Vec<Status>,
}

pub(super) fn run(out: Out, args: &HooksStatus) -> CommandResult {
    let hooks = places(args)?.iter().map(install::status).collect::<Vec<_>>();
    if args.format == PageFormat::Json {
        out.json(&Report { hooks })?;
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = hooks.iter().map(row).collect();
    out.lines(&table(&["AGENT", "SCOPE", "HOOKS", "PLUGINS", "PROGRAM", "FILE"], &rows, &[5], None))?;
    for status in &hooks {
        if let Some(problem) = &status.problem {
            out.warn(problem);
        }
        if status.state != State::Absent && status.problem.is_none() && !status.program_found {
            let file = shown(&status.file);
            out.warn(&format!("the hooks in {file} do nothing: their program is gone"));
            out.hint(&format!(
                "swarm hooks install --agent {} --scope {}",
                status.agent.word(),
                status.scope.word()
            ));
        }
    }
    Ok(0)
}

/// All places that were asked for.
fn places(args: &HooksStatus) -> Result<Vec<install::Place>> {
    let mut places = vec![];
    for agent in [HookAgent::Claude, HookAgent::Codex] {
        for scope in [HookScope::Project, HookScope::User] {
            let wanted = args.agent.is_none_or(|a| a == agent) && args.scope.is_none_or(|s| s == scope);
            if wanted {
                places.push(install::place(agent, scope)?);
            }
        }
    }
    Ok(places)
}

fn row(status: &Status) -> Vec<String> {
    let program = status.program.clone().unwrap_or_else(|| "-".to_owned());
    let plugins = if status.plugin.is_some() { "enabled" } else { "-" };
    vec![
        status.agent.word().to_owned(),
        status.scope.word().to_owned(),
        status.state.word().to_owned(),
        plugins.to_owned(),
        program,
        status.file.display().to_string(),
    ]
}
