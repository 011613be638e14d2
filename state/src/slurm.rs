//! Slurm: the output of its programs, and the decisions about jobs.
//!
//! Each worker on a Slurm host is one job with a daemon of its own. Deliberately absent: starting Slurm's programs, and
//! the files of a job.

use std::collections::BTreeMap;

use crate::model::Status;
use crate::notice::PauseBy;

/// The columns that squeue prints: id, state, reason, nodes.
pub const QUEUE_FORMAT: &str = "%i|%T|%r|%N";

/// The options of every submission; those of the settings follow and override them. Slurm sends SIGTERM to the batch
/// script 120 seconds before the time limit.
pub const SUBMIT_OPTIONS: [&str; 4] =
    ["--parsable", "--requeue", "--open-mode=append", "--signal=B:TERM@120"];

/// The state of a job, as far as swarm distinguishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It has no node: Slurm's reason.
    Waiting(String),
    /// It runs on this node.
    Running(String),
    /// Slurm ends its processes. It may then wait again.
    Ending,
    /// It has ended and does not start again: Slurm's state.
    Ended(String),
}

impl JobState {
    /// The state of a job that Slurm does not list: it ended some minutes ago.
    pub fn unknown() -> Self {
        Self::Ended("unknown to Slurm".to_owned())
    }

    fn of(word: &str, reason: &str, nodes: &str) -> Self {
        match word {
            "RUNNING" | "SIGNALING" | "RESIZING" | "STAGE_OUT" => Self::Running(nodes.to_owned()),
            "COMPLETING" => Self::Ending,
            "BOOT_FAIL" | "CANCELLED" | "COMPLETED" | "DEADLINE" | "FAILED" | "NODE_FAIL"
            | "OUT_OF_MEMORY" | "PREEMPTED" | "REVOKED" | "TIMEOUT" => Self::Ended(word.to_owned()),
            "SUSPENDED" | "STOPPED" => Self::Waiting("suspended".to_owned()),
            // PENDING, CONFIGURING, REQUEUED, REQUEUE_HOLD, SPECIAL_EXIT, and the states of later versions.
            _ if reason.is_empty() || reason == "None" => Self::Waiting(word.to_lowercase()),
            _ => Self::Waiting(reason.to_owned()),
        }
    }
}

/// Parses the output of squeue with [`QUEUE_FORMAT`].
pub fn parse_queue(text: &str) -> BTreeMap<String, JobState> {
    let row = |line: &str| {
        let mut columns = line.trim().split('|');
        let (id, word) = (columns.next()?, columns.next()?);
        let (reason, nodes) = (columns.next().unwrap_or_default(), columns.next().unwrap_or_default());
        Some((id.to_owned(), JobState::of(word, reason, nodes)))
    };
    text.lines().filter_map(row).collect()
}

/// The id that `sbatch --parsable` printed: `12` or `12;cluster`.
pub fn submitted_id(text: &str) -> Option<String> {
    let id = text.lines().next_back()?.split(';').next()?.trim();
    (!id.is_empty() && id.chars().all(|c| c.is_ascii_digit())).then(|| id.to_owned())
}

/// The reason that a program of Slurm printed: its first error, without the program's name.
pub fn fault(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let error = lines.iter().find_map(|line| line.split_once("error: ").map(|(_, rest)| rest));
    crate::screen::printable(error.or(lines.first().copied()).unwrap_or("it printed no message"))
}

/// The value of ProctrackType in the output of `scontrol show config`.
pub fn proctrack(config: &str) -> Option<&str> {
    let line = config.lines().find_map(|line| line.trim().strip_prefix("ProctrackType"))?;
    line.trim_start().strip_prefix('=').map(str::trim)
}

/// Why jobs cannot run with this ProctrackType; `None` if they can.
pub fn proctrack_fault(kind: &str) -> Option<String> {
    let loses = match kind {
        "proctrack/linuxproc" => "finds only children of the job's script",
        "proctrack/pgid" => "finds only processes in the job's process groups",
        _ => return None,
    };
    Some(format!(
        "Slurm uses {kind}, which {loses}: tmux and the agents would stay alive after the end of a job"
    ))
}

/// The status and its reason that replace those of the last view of a worker; `None` if the view holds. `view` is the
/// status of the last view, if the job has written one.
pub fn shown(id: &str, job: &JobState, view: Option<Status>) -> Option<(Status, String)> {
    if view.is_some_and(Status::is_finished) {
        return None;
    }
    match (job, view) {
        (JobState::Waiting(reason), _) => {
            Some((Status::Starting, format!("job {id} waits in the queue ({reason})")))
        }
        (JobState::Running(node), None) => Some((Status::Starting, format!("job {id} starts on {node}"))),
        (JobState::Ending, None) => Some((Status::Starting, format!("job {id} is ending"))),
        (JobState::Running(_) | JobState::Ending, Some(_)) => None,
        (JobState::Ended(word), None) => {
            Some((Status::Failed, format!("job {id} ended before its worker started ({word})")))
        }
        (JobState::Ended(word), Some(status)) if status.is_live() => {
            Some((Status::Lost, format!("job {id} has ended ({word})")))
        }
        (JobState::Ended(_), Some(_)) => None,
    }
}

/// The first step of a job's runner, once its daemon answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstStep {
    /// Spawn the worker.
    Spawn,
    /// Resume the loop.
    Resume,
    /// Start the command of a plain worker again.
    Respawn,
    /// Leave the worker as it is.
    Nothing,
}

/// The state of the worker in the directory of a job that starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoundWorker {
    /// Its status; `None` if it was never spawned.
    pub status: Option<Status>,
    /// It is a loop.
    pub is_loop: bool,
    /// The cause of its pause.
    pub paused_by: Option<PauseBy>,
    /// A person has resumed it, and the job was submitted for that.
    pub resume_requested: bool,
}

/// Decides how a job starts. A pause by a person holds; a loop that lost its node repeats the iteration.
pub fn first_step(found: FoundWorker) -> FirstStep {
    let FoundWorker { status, is_loop, paused_by, resume_requested } = found;
    let Some(status) = status else { return FirstStep::Spawn };
    match (status, is_loop) {
        (_, true) if resume_requested => FirstStep::Resume,
        (Status::Done | Status::Failed | Status::Killed, _) => FirstStep::Nothing,
        (_, true) if paused_by == Some(PauseBy::Shutdown) => FirstStep::Resume,
        (Status::Lost, true) if paused_by.is_none() => FirstStep::Resume,
        (Status::Lost, false) => FirstStep::Respawn,
        (_, _) => FirstStep::Nothing,
    }
}

/// The script of a job. The directory of the worker and the swarm executable are quoted for a shell. The shell replaces
/// itself, so that Slurm's signal reaches swarm.
pub fn job_script(dir: &str, program: &str) -> String {
    format!(
        "#!/bin/sh\n\
         [ -d {dir} ] || {{ echo \"swarm: error: node $(hostname) has no directory \"{dir} >&2; exit 1; }}\n\
         export SWARM_DIR={dir}\n\
         exec {program} connect --job-run\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_squeue_is_parsed() {
        use JobState::{Ended, Ending, Running, Waiting};
        for (line, wanted) in [
            ("1|RUNNING|None|node1", Running("node1".into())),
            ("1|PENDING|Priority|", Waiting("Priority".into())),
            ("1|PENDING|BeginTime|", Waiting("BeginTime".into())),
            ("1|CONFIGURING|None|node1", Waiting("configuring".into())),
            ("1|SUSPENDED|None|node1", Waiting("suspended".into())),
            ("1|COMPLETING|None|node1", Ending),
            ("1|NODE_FAIL|NodeDown|node1", Ended("NODE_FAIL".into())),
            ("1|CANCELLED|None|", Ended("CANCELLED".into())),
            ("  1|A_LATER_WORD|None|  ", Waiting("a_later_word".into())),
            ("1|TIMEOUT", Ended("TIMEOUT".into())),
        ] {
            assert_eq!(parse_queue(&format!("{line}\n")).remove("1"), Some(wanted), "{line}");
        }
        assert_eq!(parse_queue("1|RUNNING|None|a\n2|PENDING|Priority|\nnonsense\n\n").len(), 2);
    }

    #[test]
    fn output_of_slurm_programs_is_parsed() {
        for (text, wanted) in [
            ("12\n", Some("12")),
            ("12;main\n", Some("12")),
            ("sbatch: lua: note\n12\n", Some("12")),
            ("", None),
            ("Submitted batch job 12\n", None),
        ] {
            assert_eq!(submitted_id(text).as_deref(), wanted, "{text}");
        }
        for (text, wanted) in [
            (
                "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission failed: y\n",
                "invalid partition specified: x",
            ),
            (
                "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
                "Unable to contact slurm controller (connect failure)",
            ),
            ("\n", "it printed no message"),
        ] {
            assert_eq!(fault(text), wanted);
        }
        let config =
            "Configuration data as of x\nPriorityType = a\nProctrackType           = proctrack/cgroup\n";
        assert_eq!(proctrack(config), Some("proctrack/cgroup"));
        assert_eq!(proctrack("ProctrackTypes = x\n"), None);
        for (kind, is_refused) in [
            ("proctrack/cgroup", false),
            ("proctrack/linuxproc", true),
            ("proctrack/pgid", true),
            ("proctrack/later", false),
        ] {
            assert_eq!(proctrack_fault(kind).is_some(), is_refused, "{kind}");
        }
    }

    #[test]
    fn shown_status_follows_the_job_state() {
        use JobState::{Ended, Ending, Running, Waiting};
        let waiting = || Waiting("Priority".into());
        let ended = || Ended("NODE_FAIL".into());
        let rows = [
            (waiting(), None, Some(Status::Starting)),
            (waiting(), Some(Status::Running), Some(Status::Starting)),
            (waiting(), Some(Status::Paused), Some(Status::Starting)),
            (waiting(), Some(Status::Killed), None),
            (Running("a".into()), None, Some(Status::Starting)),
            (Running("a".into()), Some(Status::Running), None),
            (Ending, Some(Status::Running), None),
            (ended(), None, Some(Status::Failed)),
            (ended(), Some(Status::Running), Some(Status::Lost)),
            (ended(), Some(Status::Paused), None),
            (ended(), Some(Status::Done), None),
        ];
        for (job, view, wanted) in rows {
            assert_eq!(shown("1", &job, view).map(|(status, _)| status), wanted, "{job:?} {view:?}");
        }
        let (_, reason) = shown("12", &waiting(), None).unwrap();
        assert_eq!(reason, "job 12 waits in the queue (Priority)");
    }

    #[test]
    fn start_of_a_job_repeats_the_interrupted_iteration() {
        let none = FoundWorker::default();
        let of =
            |status, is_loop, paused_by| FoundWorker { status: Some(status), is_loop, paused_by, ..none };
        let (user, shutdown) = (Some(PauseBy::User), Some(PauseBy::Shutdown));
        for (found, wanted) in [
            (none, FirstStep::Spawn),
            (of(Status::Lost, true, None), FirstStep::Resume),
            (of(Status::Lost, true, shutdown), FirstStep::Resume),
            (of(Status::Paused, true, shutdown), FirstStep::Resume),
            (of(Status::Paused, true, user), FirstStep::Nothing),
            (of(Status::Lost, true, user), FirstStep::Nothing),
            (of(Status::Lost, false, None), FirstStep::Respawn),
            (of(Status::Done, true, None), FirstStep::Nothing),
            (of(Status::Killed, false, None), FirstStep::Nothing),
            (of(Status::Running, true, None), FirstStep::Nothing),
            (FoundWorker { resume_requested: true, ..of(Status::Paused, true, user) }, FirstStep::Resume),
            (FoundWorker { resume_requested: true, ..of(Status::Done, true, None) }, FirstStep::Resume),
        ] {
            assert_eq!(first_step(found), wanted, "{found:?}");
        }
    }

    #[test]
    fn job_script_executes_swarm() {
        let text = job_script("'/a b'", "/bin/swarm");
        assert!(text.starts_with("#!/bin/sh\n[ -d '/a b' ] || { "), "{text}");
        assert!(text.ends_with("\nexport SWARM_DIR='/a b'\nexec /bin/swarm connect --job-run\n"), "{text}");
    }
}
