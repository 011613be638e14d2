//! `swarm ralph init --tasks`: write the files of a task list that are missing.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use swarm_state::model::WorkerName;
use swarm_state::tasks::marker::MARKER_FILE;
use swarm_state::template::tasks::feature_branch;

use crate::cli::RalphInit;
use crate::client::context::ClientContext;
use crate::client::task_list_file::{ListChange, refuse_used_list};
use crate::error::{Error, Result, failed};
use crate::out::{CommandResult, Failure};
use crate::shell::quote_path;
use crate::task_files::{PRD_FILE, PROGRESS_FILE, PROMPT_FILE, TASK_DIR, TASKS_FILE, TaskDir};

const FILES: [&str; 4] = [PRD_FILE, TASKS_FILE, PROGRESS_FILE, PROMPT_FILE];

pub(super) async fn run(ctx: &ClientContext, args: &RalphInit) -> CommandResult {
    let branch = args.name.as_deref().map(branch).transpose()?;
    let place = TaskDir::find(args.cwd.as_deref(), None)?;
    if args.force {
        let warning = refuse_used_list(&place, ListChange::Replace).await?;
        warning.iter().for_each(|warning| ctx.out.warn(warning));
    }
    let is_new = !place.exists()?;
    // Everything is looked at before anything is written.
    let existing = FILES.into_iter().filter_map(|file| exists(&place, file, args.force).transpose());
    let existing: Vec<&str> = existing.collect::<Result<_>>()?;
    let ignore_file = place.project.join(".gitignore");
    let ignored = ignored(&ignore_file)?;
    if is_new {
        fs::create_dir(&place.dir)
            .map_err(|e| Error::system(format!("cannot create '{}'", place.shown("")), e))?;
    }
    for file in FILES {
        let is_kept = existing.contains(&file) && !args.force;
        let verb = match existing.contains(&file) {
            true if is_kept => "kept",
            true => "overwrote",
            false => "created",
        };
        if !is_kept {
            place.put(file, &place.fresh(file, branch.as_deref()))?;
        }
        ctx.out.line(&format!("{verb} {}", place.shown(file)))?;
    }
    if let Some(text) = ignored {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(&ignore_file);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|e| failed("write", &ignore_file, e))?;
        ctx.out.line(&format!("added {MARKER_FILE} to .gitignore"))?;
    }
    if branch.is_some() && existing.contains(&TASKS_FILE) && !args.force {
        let shown = place.shown(TASKS_FILE);
        ctx.out.warn(&format!("--name was not used, since {shown} exists; change its branchName there"));
    }
    if !existing.is_empty() && !args.force {
        ctx.out.note("existing files were kept; --force overwrites them");
    }
    next_steps(ctx, args, &place)
}

fn branch(name: &str) -> Result<String> {
    let refuse = || {
        let text = format!("{name:?} cannot be part of a branch name");
        Error::invalid(text).hint("use letters, digits and dashes, as in --name checkout")
    };
    feature_branch(name).ok_or_else(refuse)
}

/// The file, if it exists. With `force`, a link to a missing file is replaced.
fn exists<'a>(place: &TaskDir, file: &'a str, force: bool) -> Result<Option<&'a str>> {
    let path = place.dir.join(file);
    let problem = match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => error.to_string(),
        Ok(found) if found.is_symlink() && !path.exists() && !force => {
            "it is a link to a missing file".to_owned()
        }
        Ok(found) if found.is_dir() => "it is a directory".to_owned(),
        Ok(_) => return Ok(Some(file)),
    };
    let text = format!("cannot write '{}': {problem}", place.shown(file));
    Err(Error::invalid(text).hint("move it away, then retry"))
}

/// The text to add to `.gitignore`, so that git ignores [`MARKER_FILE`]; `None` if a line of it says so.
fn ignored(file: &Path) -> Result<Option<String>> {
    let text = match fs::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed("read", file, error)),
    };
    let is_rule = |line: &str| line.trim() == MARKER_FILE || line.trim() == format!("/{MARKER_FILE}");
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Ok((!text.lines().any(is_rule)).then(|| format!("{gap}{MARKER_FILE}\n")))
}

/// Prints the commands to run next.
fn next_steps(ctx: &ClientContext, args: &RalphInit, place: &TaskDir) -> Result<u8, Failure> {
    if !place.project.ancestors().any(|dir| dir.join(".git").exists()) {
        ctx.out
            .hint("the project is not a git repository, and each iteration commits; to make one: git init");
    }
    let name = args.name.as_deref().filter(|name| WorkerName::new(name).is_ok());
    let name = name.map(|name| format!("--name {name} ")).unwrap_or_default();
    ctx.out.hint("next steps:");
    if args.cwd.is_some() {
        ctx.out.note(&format!("  cd {}", quote_path(&place.project)));
    }
    ctx.out.note("  swarm ralph plan         # plan with an agent, or write prd.md and tasks.json yourself");
    ctx.out.note("  swarm ralph tasks check  # check the task list");
    ctx.out.note(&format!("  swarm spawn {name}--ralph --ralph-dir {TASK_DIR} -- claude"));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_ignored_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".gitignore");
        assert_eq!(ignored(&file).unwrap().as_deref(), Some(".ralph-active\n"));
        for (text, added) in [
            ("", Some(".ralph-active\n")),
            ("target\n", Some(".ralph-active\n")),
            ("target", Some("\n.ralph-active\n")),
            ("target\r\n.ralph-active\r\n", None),
            ("/.ralph-active", None),
            ("#.ralph-active\n", Some(".ralph-active\n")),
        ] {
            fs::write(&file, text).unwrap();
            assert_eq!(ignored(&file).unwrap().as_deref(), added, "{text:?}");
        }
        fs::write(&file, b"\xff\n").unwrap();
        assert!(ignored(&file).unwrap().is_some());
        assert!(ignored(dir.path()).is_err());
    }
}
