//! `swarm hooks status`: show where the session hooks are installed.

use serde::Serialize;

use crate::cli::{HookAgent, HookScope, HooksStatus, PageFormat, word};
use crate::error::Result;
use crate::hooks::install::{self, HookState, HookStatus};
use crate::hooks::words::quoted_path;
use crate::out::{CommandResult, Out, table};

/// The output of `--format json`.
#[derive(Serialize)]
struct HooksReport {
    hooks: Vec<HookStatus>,
}

pub(super) fn run(out: Out, args: &HooksStatus) -> CommandResult {
    let hooks = places(args)?.iter().map(install::status).collect::<Vec<_>>();
    if args.format == PageFormat::Json {
        out.json(&HooksReport { hooks })?;
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = hooks.iter().map(row).collect();
    out.lines(&table(&["AGENT", "SCOPE", "HOOKS", "PLUGINS", "PROGRAM", "FILE"], &rows, &[(5, 8)], None))?;
    for status in &hooks {
        if let Some(problem) = &status.problem {
            out.warn(problem);
        }
        if status.state != HookState::Absent && status.problem.is_none() && !status.program_found {
            let file = quoted_path(&status.place.file);
            out.warn(&format!("the hooks in {file} do nothing: their program does not exist"));
            out.hint(&format!(
                "swarm hooks install --agent {} --scope {}",
                word(status.place.agent),
                word(status.place.scope)
            ));
        }
    }
    Ok(0)
}

fn places(args: &HooksStatus) -> Result<Vec<install::HookFile>> {
    let agents = args.agent.map_or(vec![HookAgent::Claude, HookAgent::Codex], |agent| vec![agent]);
    let scopes = args.scope.map_or(vec![HookScope::Project, HookScope::User], |scope| vec![scope]);
    let places = agents.iter().flat_map(|agent| scopes.iter().map(|scope| install::place(*agent, *scope)));
    places.collect()
}

fn row(status: &HookStatus) -> Vec<String> {
    let program = status.program.clone().unwrap_or_else(|| "-".to_owned());
    let plugins = if status.plugin.is_some() { "enabled" } else { "-" };
    vec![
        word(status.place.agent),
        word(status.place.scope),
        status.state.word().to_owned(),
        plugins.to_owned(),
        program,
        status.place.file.display().to_string(),
    ]
}
