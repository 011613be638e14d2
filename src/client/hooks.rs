//! `swarm hooks` and `swarm plugin`: no daemon is needed for either.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Ctx, Ended};
use crate::cli::{
    HookAgent, HookPlace, HookScope, HooksCommand, HooksStatus, PageFormat, PluginCommand, PluginPlace,
};
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::file::Change;
use crate::hooks::install::{self, State, Status};
use crate::hooks::plugin;

use super::render::table;

pub(super) fn run(ctx: &Ctx, command: HooksCommand) -> Ended {
    match command {
        HooksCommand::Install(args) => put(ctx, &args),
        HooksCommand::Uninstall(args) => take(ctx, &args),
        HooksCommand::Status(args) => status(ctx, &args),
    }
}

fn put(ctx: &Ctx, args: &HookPlace) -> Ended {
    let place = install::place(args.agent, args.scope)?;
    let change = install::install(&ctx.paths()?, &place, &install::program()?)?;
    let file = shown(&place.file);
    ctx.out.line(&match change {
        Change::None => format!("{file} has the hooks already"),
        Change::Created => format!("made {file} with the hooks"),
        Change::Changed | Change::Restored | Change::Removed => format!("put the hooks into {file}"),
    })?;
    match args.agent {
        HookAgent::Claude => {
            ctx.out.hint("they hold for sessions from now on; for the commands: swarm plugin install")
        }
        HookAgent::Codex => ctx.out.hint("start codex once and trust them there; see: man swarm-hooks"),
    }
    Ok(0)
}

fn take(ctx: &Ctx, args: &HookPlace) -> Ended {
    let place = install::place(args.agent, args.scope)?;
    let change = install::uninstall(&ctx.paths()?, &place)?;
    ctx.out.line(&taken(&place.file, change, "hooks"))?;
    Ok(0)
}

fn taken(file: &Path, change: Change, what: &str) -> String {
    let file = shown(file);
    match change {
        Change::None => format!("{file} has no {what} of swarm's"),
        Change::Created | Change::Changed => format!("took swarm's {what} out of {file}"),
        Change::Restored => format!("{file} is as it was before"),
        Change::Removed => format!("removed {file}, which held nothing else"),
    }
}

/// What `--format json` prints.
#[derive(Serialize)]
struct Report {
    hooks: Vec<Status>,
}

fn status(ctx: &Ctx, args: &HooksStatus) -> Ended {
    let hooks = places(args)?.iter().map(install::status).collect::<Vec<_>>();
    if args.format == PageFormat::Json {
        ctx.out.json(&Report { hooks })?;
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = hooks.iter().map(row).collect();
    ctx.out.lines(&table(&["AGENT", "SCOPE", "HOOKS", "PLUGINS", "PROGRAM", "FILE"], &rows, &[5], None))?;
    for status in &hooks {
        if let Some(problem) = &status.problem {
            ctx.out.warn(problem);
        }
        if status.state != State::Absent && status.problem.is_none() && !status.program_found {
            let file = shown(&status.file);
            ctx.out.warn(&format!("the hooks in {file} do nothing: their program is gone"));
            ctx.out.hint(&format!(
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

pub(super) fn plugin(ctx: &Ctx, command: PluginCommand) -> Ended {
    match command {
        PluginCommand::Install(args) => install_plugin(ctx, &args),
        PluginCommand::Uninstall(args) => uninstall_plugin(ctx, &args),
    }
}

fn install_plugin(ctx: &Ctx, args: &PluginPlace) -> Ended {
    let program = install::program()?;
    let done = plugin::install(&ctx.paths()?, args.agent, args.scope, args.dir.as_deref(), &program)?;
    for line in told("wrote", &done.written, done.dir.as_deref()) {
        ctx.out.line(&line)?;
    }
    if let Some((file, change)) = &done.settings {
        match change {
            Change::None => {}
            Change::Created | Change::Changed | Change::Restored | Change::Removed => {
                ctx.out.line(&format!("enabled the plugins in {}", shown(file)))?;
            }
        }
    }
    let idle = done.settings.as_ref().is_none_or(|(_, change)| *change == Change::None);
    if done.written.is_empty() && idle {
        ctx.out.line("everything is there already")?;
    }
    if let Some(dir) = &done.dir {
        ctx.out.note(&format!(
            "Sessions that start from now on have /ralph-loop. By Claude Code's own means it is:\n  \
             claude plugin marketplace add {}\n  claude plugin install swarm@swarm\n  \
             claude plugin install do-it@swarm",
            shown(dir)
        ));
    }
    Ok(0)
}

fn uninstall_plugin(ctx: &Ctx, args: &PluginPlace) -> Ended {
    let done = plugin::uninstall(&ctx.paths()?, args.agent, args.scope, args.dir.as_deref())?;
    for line in told("removed", &done.removed, done.dir.as_deref()) {
        ctx.out.line(&line)?;
    }
    if let Some((file, change)) = &done.settings {
        ctx.out.line(&taken(file, *change, "plugins"))?;
    } else if done.removed.is_empty() {
        ctx.out.line("there was nothing of swarm's")?;
    }
    let Some(first) = done.left.first() else { return Ok(0) };
    let text = format!("{} was changed since it was written, and stays", shown(first));
    let more = done.left.len() - 1;
    let text = if more == 0 { text } else { format!("{text}, and so do {more} more") };
    Err(Error::new(ErrorCode::Conflict, text).hint("remove it yourself").into())
}

/// What was done to files, a line each; those of the marketplace in `dir` in one.
fn told(verb: &str, files: &[PathBuf], dir: Option<&Path>) -> Vec<String> {
    let inside = |file: &&PathBuf| dir.is_some_and(|dir| file.starts_with(dir));
    let plugins = files.iter().filter(inside).count();
    let mut lines: Vec<String> =
        files.iter().filter(|file| !inside(file)).map(|file| format!("{verb} {}", shown(file))).collect();
    if let (Some(dir), 1..) = (dir, plugins) {
        lines.insert(0, format!("{verb} the plugins in {} ({plugins} files)", shown(dir)));
    }
    lines
}

/// A path in a sentence.
fn shown(path: &Path) -> String {
    format!("'{}'", swarm_state::screen::printable(&path.display().to_string()))
}
