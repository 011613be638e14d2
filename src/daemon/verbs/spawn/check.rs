//! The checks of a worker's spec, before anything of the worker is created. Used by `spawn` and `respawn`.
//!
//! A check refuses the spec, or adds a warning that the client prints above its first line.

use std::path::{Path, PathBuf};

use swarm_state::model::{PromptVia, Status};
use swarm_state::pattern::Pattern;
use swarm_state::profiles::{self, HookStyle};
use swarm_state::spec::{LoopSpec, Prompt, WorkerSpec};

use super::{caps, docker, permissions, program, rooms};
use crate::daemon::run::prompt;
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, ErrorCode, Result};
use crate::paths::resolve;

/// The largest prompt that is passed as an argument. Linux allows 128 KiB for one, including the profile's prefix.
const MAX_ARGUMENT_BYTES: u64 = 120_000;

impl Supervisor {
    pub(crate) fn check_spec(&self, spec: &WorkerSpec) -> Result<Vec<String>> {
        let prompt = check(spec, self.store.paths().root())?;
        let mut warnings = program::check_gates(spec)?;
        warnings.extend(caps::warnings(&spec.caps));
        warnings.extend(permissions::warning(spec));
        warnings.extend(prompt_warning(spec, prompt.as_deref()));
        docker::refuse_obstacle(spec)?;
        self.refuse_shared_list(spec)?;
        self.refuse_shared_sandbox(spec)?;
        warnings.extend(self.shared_directory(spec));
        Ok(warnings)
    }

    /// Refuses a loop whose task list another loop works on, of this daemon or of another one.
    fn refuse_shared_list(&self, spec: &WorkerSpec) -> Result<()> {
        let Some(dir) = task_dir(spec) else { return Ok(()) };
        let is_other = |slot: &&Slot| {
            let other = &slot.spec;
            other.name != spec.name
                && (slot.status().is_live_or_paused() || slot.status() == Status::Lost)
                && task_dir(other).as_ref() == Some(&dir)
        };
        let other = self.slots.values().find(is_other).map(|slot| slot.spec.name.clone());
        if let Some(other) = other {
            let message = format!("loop '{other}' works on the task list in {}", dir.display());
            let hint = format!("wait for it, or end it: swarm kill {other}; a second loop needs --worktree");
            return Err(Error::new(ErrorCode::Exists, message).hint(hint));
        }
        match crate::loops::foreign_marker(&spec.cwd, self.store.paths().root()) {
            Some(pid) if spec.worktree.is_none() => {
                let marker = spec.cwd.join(swarm_state::tasks::marker::MARKER_FILE);
                let message = format!("{} belongs to a loop that runs (process {pid})", marker.display());
                Err(Error::new(ErrorCode::Exists, message)
                    .hint("end that loop first; if there is none, remove the file"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The warning for a loop that starts in the directory of another loop that is live or may resume.
    pub(crate) fn shared_directory(&self, spec: &WorkerSpec) -> Option<String> {
        if spec.ralph.is_none() || spec.worktree.is_some() {
            return None;
        }
        let dir = resolve(&spec.cwd);
        let works_there = |slot: &&Slot| {
            let other = &slot.spec;
            let may_run = other.ralph.is_some() && slot.status().is_live_or_paused();
            may_run && other.name != spec.name && other.worktree.is_none() && resolve(&other.cwd) == dir
        };
        let other = &self.slots.values().find(works_there)?.spec.name;
        Some(format!(
            "loop '{other}' uses the same directory: {} (to separate the loops: --worktree)",
            dir.display()
        ))
    }
}

/// The directory of a loop's task list, if it works in the directory that it was started in.
fn task_dir(spec: &WorkerSpec) -> Option<PathBuf> {
    let gate = spec.ralph.as_ref()?.gates.tasks.as_ref()?;
    spec.worktree.is_none().then(|| resolve(&spec.cwd.join(&gate.dir)))
}

/// Checks a spec before anything is created. Returns the contents of its prompt file, unless swarm writes it itself.
pub(crate) fn check(spec: &WorkerSpec, root: &Path) -> Result<Option<Vec<u8>>> {
    let program = spec.cmd.first().filter(|p| !p.is_empty());
    let program =
        program.ok_or_else(|| Error::invalid("no command to run").hint("swarm spawn … -- COMMAND"))?;
    if !spec.cwd.is_dir() {
        return Err(Error::invalid(format!("no such directory: {}", spec.cwd.display())));
    }
    program::check(program, spec)?;
    if let Some(reviewer) = spec.of_reviewer() {
        check_reviewer(spec, &reviewer)?;
    }
    if let Some(pattern) = &spec.done_pattern {
        Pattern::compile(pattern)
            .map_err(|e| Error::invalid(format!("invalid done pattern: {}", e.trouble())))?;
    }
    if let Some(ralph) = &spec.ralph {
        check_loop(spec, ralph, root)?;
    }
    if spec.ralph.is_some() && spec.restart.is_some() {
        return Err(Error::invalid("a loop cannot have a restart policy: it restarts its agent itself"));
    }
    let file = match &spec.prompt {
        // swarm writes this file itself.
        Prompt::File(_) if spec.ralph.as_ref().is_some_and(|ralph| ralph.task.is_some()) => None,
        Prompt::File(file) => Some(file),
        Prompt::None | Prompt::Text(_) => None,
    };
    let read = |file: &PathBuf| prompt::read_file(file).map_err(Error::invalid);
    let prompt = file.map(read).transpose()?;
    prompt::refuse_blank(spec, prompt.as_deref()).map_err(Error::invalid)?;
    check_argument(spec, prompt.as_deref())?;
    Ok(prompt)
}

/// Refuses a reviewer that cannot take the place of the agent. The engine treats all iterations of a loop alike.
fn check_reviewer(spec: &WorkerSpec, reviewer: &WorkerSpec) -> Result<()> {
    let program = reviewer.cmd.first().map(String::as_str).unwrap_or_default();
    program::check(program, reviewer)?;
    let is_pasted = |spec: &WorkerSpec| spec.prompt_via == PromptVia::Paste;
    let is_one_shot = |spec: &WorkerSpec| spec.profile.is_one_shot(&spec.cmd);
    if is_pasted(spec) == is_pasted(reviewer) && is_one_shot(spec) == is_one_shot(reviewer) {
        return Ok(());
    }
    Err(Error::usage("--reviewer must run in the same way as the agent")
        .hint("make both interactive (claude), or both one-shot (claude -p, codex exec)"))
}

/// The warning for a loop's prompt file that is empty or not text.
fn prompt_warning(spec: &WorkerSpec, prompt: Option<&[u8]>) -> Option<String> {
    let (Some(_), Prompt::File(file), Some(bytes)) = (&spec.ralph, &spec.prompt, prompt) else { return None };
    if bytes.contains(&0) {
        return Some(format!("prompt file is not text (it contains NUL bytes): {}", file.display()));
    }
    prompt::is_empty(file, bytes).then(|| format!("prompt file is empty: {}", file.display()))
}

fn check_loop(spec: &WorkerSpec, ralph: &LoopSpec, root: &Path) -> Result<()> {
    if ralph.max_iterations == 0 || ralph.inactivity_timeout == 0 {
        return Err(Error::usage("iterations and the inactivity timeout must be at least 1"));
    }
    let (gates, budgets) = (ralph.gates.clone().validated().map_err(Error::of_gates)?, &ralph.budgets);
    if ralph.task.as_ref().is_some_and(|task| task.trim().is_empty()) {
        return Err(Error::usage("the task is empty"));
    }
    if budgets.max_failures == 0 {
        return Err(Error::usage("--max-failures must be at least 1"));
    }
    if let Some(percent) = budgets.max_context {
        check_context(spec, percent)?;
    }
    if budgets.max_cost.is_some() {
        check_cost(spec)?;
    }
    if gates.is_empty() {
        return Ok(());
    }
    // The coordinator of a story has checked the list, which is on its own branch.
    if let Some(gate) = gates.tasks.as_ref().filter(|gate| gate.story.is_none()) {
        crate::loops::check_task_files(&spec.cwd, gate)?;
    }
    crate::loops::check_protect(&gates.protect)?;
    rooms::check(spec, &gates.rooms)?;
    crate::loops::check_tests(&spec.cwd, &gates)?;
    crate::loops::check_canary(&spec.cwd, &gates)?;
    if spec.worktree.is_none() { crate::loops::check_progress(&spec.cwd, root) } else { Ok(()) }
}

/// Checks a limit of the context, and that swarm can see the agent's context.
pub(crate) fn check_context(spec: &WorkerSpec, percent: u8) -> Result<()> {
    if !(1..=100).contains(&percent) {
        return Err(Error::usage("--max-context must be a percentage from 1 to 100"));
    }
    if spec.profile.hooks == HookStyle::Off {
        let name = &spec.profile.name;
        if profiles::table().iter().any(|known| known.name == *name && known.hooks != HookStyle::Off) {
            let message =
                format!("--max-context: swarm cannot see the context of '{name}': its hooks are off");
            return Err(
                Error::invalid(message).hint(format!("remove hooks under [agents.{name}] in the settings"))
            );
        }
        let message = format!("--max-context: swarm cannot see the context of '{name}'");
        return Err(Error::invalid(message).hint("limit something else: --iteration-timeout"));
    }
    Ok(())
}

/// Checks that swarm can see what the agent costs.
pub(crate) fn check_cost(spec: &WorkerSpec) -> Result<()> {
    let profile = &spec.profile;
    if profile.tells_cost && !profile.leaves_record(&spec.cmd) {
        let args = profile.record_args.join(" ");
        let message = format!("--max-cost: '{}' reports its cost only with {args}", profile.name);
        return Err(Error::invalid(message).hint(format!("add {args} to the command")));
    }
    if !profile.knows_cost() {
        let message = format!("--max-cost: swarm cannot see the cost of '{}'", profile.name);
        return Err(Error::invalid(message)
            .hint(format!(
                "if it prints its usage as JSON, set input_price and output_price under [agents.{}] in the settings, or \
                 use --max-tokens; otherwise use --max-time or --max-iterations",
                profile.name
            )));
    }
    Ok(())
}

/// Refuses a prompt that cannot be an argument. If a loop's file changes to such a prompt later, the iteration fails.
fn check_argument(spec: &WorkerSpec, file: Option<&[u8]>) -> Result<()> {
    if spec.prompt_via != PromptVia::Arg {
        return Ok(());
    }
    let refuse = |why: String| {
        let hint = "pass it another way: --prompt-via stdin or --prompt-via paste";
        Err(Error::invalid(format!("the prompt cannot be an argument: {why}")).hint(hint))
    };
    let text = match (file, &spec.prompt) {
        (Some(bytes), _) => String::from_utf8_lossy(bytes).into_owned(),
        (None, Prompt::Text(text)) => text.clone(),
        (None, Prompt::None | Prompt::File(_)) => return Ok(()),
    };
    if text.len() as u64 > MAX_ARGUMENT_BYTES {
        return refuse(format!("it is longer than {MAX_ARGUMENT_BYTES} bytes"));
    }
    if text.contains('\0') { refuse("it contains a NUL byte".to_owned()) } else { Ok(()) }
}
