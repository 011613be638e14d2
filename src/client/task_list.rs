//! Builds the parts of a spawn that a task list needs: the gate, the model and the permissions of the agent, and
//! the coordinator of `--jobs`.
//!
//! Used by [`super::spawn_params`].

use std::path::Path;

use swarm_state::caps::Caps;
use swarm_state::model::{PromptVia, RestartSpec, RestartWhen};
use swarm_state::profiles::{self, Profile};
use swarm_state::promise::Promise;
use swarm_state::sandbox::SandboxKind;
use swarm_state::spec::{Prompt, ReviewerSpec};
use swarm_state::tasks::gate::TaskGate;
use swarm_state::tasks::{DEFAULT_REVIEW_CAP, ReviewOptions};

use super::typed_path::absolute;
use crate::cli::TaskListArgs;
use crate::error::{Error, ErrorCode, Result};
use crate::paths::{self, Paths};
use crate::protocol::{SpawnParams, StoriesPlan};
use crate::settings::Settings;

/// The tag that an agent prints when it believes that every story is approved, unless `--promise` sets another.
const TASKS_PROMISE: &str = "COMPLETE";

/// How often in a row the daemon restarts a coordinator that was killed.
const COORDINATOR_RESTARTS: u32 = 10;

pub(super) fn is_parallel(args: &TaskListArgs) -> bool {
    args.jobs.is_some_and(|jobs| jobs > 1)
}

/// The worker that runs the stories of a task list at the same time. `child` is the loop of one story.
pub(super) fn with_coordinator(args: &TaskListArgs, child: SpawnParams) -> Result<SpawnParams> {
    // The copy stays when swarm is upgraded.
    let helper = Paths::from_env()?.helper();
    let program = if helper.is_file() { helper } else { paths::own_program()? };
    let program = program.into_os_string().into_string();
    let program = program.map_err(|_| Error::invalid("the path of swarm's program is not UTF-8"))?;
    let coordinator = SpawnParams {
        cmd: vec![program, "__stories".into()],
        prompt_via: PromptVia::Stdin,
        profile: Profile::generic(),
        worktree: Some(child.worktree.clone().unwrap_or_default()),
        ready_wait: false,
        done_pattern: None,
        record: false,
        // The coordinator talks to the daemon. The stories' workers and the checks of a merge are in the sandbox.
        sandbox: None,
        ralph: None,
        caps: Caps::default(),
        restart: Some(RestartSpec { when: RestartWhen::OnAbnormal, max_restarts: COORDINATOR_RESTARTS }),
        ..child.clone()
    };
    let child =
        SpawnParams { name: None, env: [].into(), worktree: None, replace: false, request: None, ..child };
    let plan = StoriesPlan { child, jobs: args.jobs.unwrap_or(1), max_in_review: args.max_in_review };
    let plan = serde_json::to_string(&plan);
    let plan = plan.map_err(|e| Error::new(ErrorCode::Internal, format!("cannot write the plan: {e}")))?;
    Ok(SpawnParams { prompt: Prompt::Text(plan), ..coordinator })
}

/// The gate of a task list; `None` without `--ralph-dir`. `root` is the worker's directory.
pub(super) fn task_gate(args: &TaskListArgs, promise: Option<&str>, root: &Path) -> Result<Option<TaskGate>> {
    let Some(typed) = &args.ralph_dir else { return Ok(None) };
    let promise = Promise::new(promise.unwrap_or(TASKS_PROMISE));
    let promise =
        promise.map_err(|e| Error::usage(format!("--promise: {e}")).hint("example: --promise COMPLETE"))?;
    // The directory is in the worker's. A path may still be relative to the current one, such as `.` in the list's.
    let dir = root.join(typed);
    let is_below = dir.is_dir() && paths::resolve(&dir) != paths::resolve(root);
    let dir = if is_below { dir } else { absolute(typed)? };
    if !dir.is_dir() {
        return Err(Error::invalid(format!("--ralph-dir: no such directory: {}", dir.display()))
            .hint("to create it: swarm ralph init --tasks"));
    }
    // A link could lead out of the project.
    let (dir, root) = (paths::resolve(&dir), paths::resolve(root));
    if dir == root {
        let why = "--ralph-dir: the task list needs a directory of its own below the project";
        let parent = root.parent().unwrap_or(&root).display();
        return Err(Error::usage(why).hint(format!("start the loop in the project: --cwd {parent}")));
    }
    let inside = dir.strip_prefix(&root).ok();
    let dir = inside.and_then(Path::to_str).filter(|dir| !dir.is_empty()).ok_or_else(|| {
        Error::usage(format!("--ralph-dir '{}' is not below {}", typed.display(), root.display()))
            .hint("the task list is in a directory of the project, such as ralph; --cwd sets the project")
    })?;
    let review_cap = args.review_cap.map_or(DEFAULT_REVIEW_CAP, u64::from);
    let review = ReviewOptions { skip_review: args.skip_review, review_cap };
    Ok(Some(TaskGate { dir: dir.to_owned(), review, promise, story: None }))
}

/// The agent that reviews stories; `None` for the agent itself.
pub(super) fn reviewer(
    args: &TaskListArgs,
    settings: &Settings,
    sandbox: Option<SandboxKind>,
) -> Result<Option<ReviewerSpec>> {
    if args.ralph_dir.is_none() || args.skip_review {
        return Ok(None);
    }
    let typed = args.reviewer.as_deref().map(|typed| {
        let words = shlex::split(typed).filter(|words| words.first().is_some_and(|word| !word.is_empty()));
        words.ok_or_else(|| {
            Error::usage("--reviewer must be a command, as in 'codex exec'").hint("check its quotes")
        })
    });
    let Some(cmd) = typed.transpose()?.or_else(|| settings.ralph.reviewer.clone()) else { return Ok(None) };
    let profile = profiles::find(&settings.agents, &cmd);
    // The model is that of the agent.
    let (ralph_dir, no_unattended) = (args.ralph_dir.clone(), args.no_unattended);
    let permissions = TaskListArgs { ralph_dir, no_unattended, ..TaskListArgs::default() };
    let cmd = agent_command(&permissions, &profile, cmd, sandbox)?;
    Ok(Some(ReviewerSpec { cmd, profile }))
}

/// The agent's command with the model and the permissions that were requested.
pub(super) fn agent_command(
    args: &TaskListArgs,
    profile: &Profile,
    mut cmd: Vec<String>,
    sandbox: Option<SandboxKind>,
) -> Result<Vec<String>> {
    if let Some(model) = &args.model {
        cmd = profile.command_with_model(&cmd, model).ok_or_else(|| {
            Error::usage(format!("--model: swarm cannot set the model of '{}'", profile.name))
                .hint("set the model in the command itself, after --")
        })?;
    }
    let is_wanted = args.unattended || args.ralph_dir.is_some();
    // The template of a Docker sandbox gives the agent its permissions.
    let has_own = sandbox == Some(SandboxKind::Docker);
    let is_wanted = is_wanted && !args.no_unattended && !has_own && !profile.unattended_args.is_empty();
    if !is_wanted || !profile.lacks_permissions(&cmd) {
        return Ok(cmd);
    }
    if let Some(variable) = &profile.root_variable
        && sandbox.is_none()
        && nix::unistd::geteuid().is_root()
        && std::env::var_os(variable).is_none()
    {
        let flag = profile.unattended_args.join(" ");
        return Err(Error::invalid(format!("{} refuses {flag} for root", profile.name)).hint(format!(
            "run swarm as another user, or with --sandbox bwrap; in a container or a VM, set {variable}=1; or use --no-unattended"
        )));
    }
    Ok(profile.command_unattended(&cmd))
}
