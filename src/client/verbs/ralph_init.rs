//! `swarm ralph init`: write a starter PROMPT.md and TODO.md, or the files of a task list that are missing.
//!
//! Standard output has the documented line about PROMPT.md. Everything else goes to standard error, so that a script
//! that reads the output is not affected.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use swarm_state::model::WorkerName;
use swarm_state::tasks::marker::MARKER_FILE;
use swarm_state::template::tasks::feature_branch;
use swarm_state::template::{DONE_TEXT, PROMPT_TEMPLATE, TODO_TEMPLATE};

use crate::cli::RalphInit;
use crate::client::context::ClientContext;
use crate::client::task_list_file::{ListChange, refuse_used_list};
use crate::error::{Error, Result, failed};
use crate::files::if_exists;
use crate::out::{CommandResult, Failure};
use crate::shell::quote_path;
use crate::task_files::{PRD_FILE, PROGRESS_FILE, PROMPT_FILE, TASK_DIR, TASKS_FILE, TaskDir};

const STARTER_FILE: &str = "PROMPT.md";
const TODO_FILE: &str = "TODO.md";

pub(super) async fn run(ctx: &ClientContext, args: &RalphInit) -> CommandResult {
    if args.tasks {
        return write_task_list(ctx, args).await;
    }
    let there = fs::symlink_metadata(STARTER_FILE).is_ok();
    match write(STARTER_FILE, PROMPT_TEMPLATE, args.force) {
        Ok(()) if there => ctx.out.line("created PROMPT.md (overwritten)")?,
        Ok(()) => ctx.out.line("created PROMPT.md")?,
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            return Err(Error::invalid("PROMPT.md already exists (use --force to overwrite)").into());
        }
        Err(e) => return Err(Error::system("cannot write PROMPT.md", e).into()),
    }
    match write(TODO_FILE, TODO_TEMPLATE, false) {
        Ok(()) => ctx.out.note("created TODO.md with two example tasks; replace them with your own"),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            ctx.out.note("kept the existing TODO.md; the agent works through its tasks");
        }
        Err(e) => return Err(Error::system("cannot write TODO.md", e).into()),
    }
    ctx.out.hint("to start the loop, in a container or a VM (the last option turns off permission prompts):");
    // Without --name, swarm chooses a name that is free.
    ctx.out.note(&format!(
        "  swarm spawn --ralph --prompt-file {STARTER_FILE} -n 10 --done-pattern '{DONE_TEXT}' \\\n    \
         -- claude -p --dangerously-skip-permissions"
    ));
    Ok(0)
}

/// Writes a file. Without `overwrite`, an existing file is an error.
fn write(file: &str, text: &str, overwrite: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    if overwrite {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(file)?.write_all(text.as_bytes())
}

const INIT_FILES: [&str; 4] = [PRD_FILE, TASKS_FILE, PROGRESS_FILE, PROMPT_FILE];

async fn write_task_list(ctx: &ClientContext, args: &RalphInit) -> CommandResult {
    let branch = args.name.as_deref().map(branch).transpose()?;
    let place = TaskDir::find(args.cwd.as_deref(), None)?;
    if args.force {
        let warning = refuse_used_list(&place, ListChange::Replace).await?;
        warning.iter().for_each(|warning| ctx.out.warn(warning));
    }
    let is_new = !place.exists()?;
    // Everything is looked at before anything is written.
    let existing = INIT_FILES.into_iter().filter_map(|file| exists(&place, file, args.force).transpose());
    let existing: Vec<&str> = existing.collect::<Result<_>>()?;
    let ignore_file = place.project.join(".gitignore");
    let ignored = ignored(&ignore_file)?;
    if is_new {
        fs::create_dir(&place.dir)
            .map_err(|e| Error::system(format!("cannot create '{}'", place.shown("")), e))?;
    }
    for file in INIT_FILES {
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

/// The text to add to `.gitignore`, so that git ignores [`MARKER_FILE`]; `None` if it has that line.
fn ignored(file: &Path) -> Result<Option<String>> {
    let bytes = if_exists(fs::read(file)).map_err(|e| failed("read", file, e))?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let is_rule = |line: &str| line.trim() == MARKER_FILE || line.trim() == format!("/{MARKER_FILE}");
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Ok((!text.lines().any(is_rule)).then(|| format!("{gap}{MARKER_FILE}\n")))
}

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
    fn gitignore_gets_the_marker_file_once() {
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
