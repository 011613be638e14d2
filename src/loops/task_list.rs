//! The task list of a loop on disk: swarm's own record of it, and the start of an iteration that works on it.
//!
//! The record is signed and outside of the agent's tree. It has the list as it was before the iteration and as swarm
//! accepted it afterwards, and the text of `prd.md`. [`judge`] compares with it; [`marker`] writes `.ralph-active`.
//! `swarm_state::tasks` decides. Used by the daemon's runs.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use swarm_state::contract::{Failed, StoryChanges, TurnSection, without_dir};
use swarm_state::gates::{CheckResult, Verdict};
use swarm_state::ledger::{Base, Iteration};
use swarm_state::tasks::enforce::{Edited, Enforced, enforce};
use swarm_state::tasks::gate::{PRD_FILE, TaskGate, TaskTurn, TaskVerdict, is_sensitive};
use swarm_state::tasks::selection::Selection;
use swarm_state::tasks::{IterationMode, TaskList};

use super::protect;
use super::run::{LoopRun, read_signed, write_signed};
use crate::error::{Error, Result};
use crate::files::{create, read_bounded, replace};
use crate::git;
use crate::signed::Purpose;

mod judge;
pub(crate) mod marker;

/// The largest list and requirements that are read.
const MAX_TASK_FILE_BYTES: u64 = 16 << 20;

/// The permissions of a file of the user's that swarm creates.
const NEW_FILE_MODE: u32 = 0o644;

/// swarm's record in the loop's folder.
const RECORD_FILE: &str = "tasks.json";

/// The record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TaskRecord {
    /// The list before the iteration.
    before: String,
    /// The list after it, as swarm accepted it; `None` until the iteration was judged.
    after: Option<String>,
    /// The requirements; `None` if there was no such file.
    prd: Option<String>,
    /// The work of the iteration.
    turn: Option<TaskTurn>,
    /// The loop is paused or has ended, so a person may edit the files.
    is_open: bool,
}

/// Why no iteration can work on the list.
#[derive(Debug)]
pub(crate) enum NoTurn {
    /// Every story is done.
    AllDone,
    /// None can be worked on; the reason.
    Blocked(String),
    /// A file cannot be read or written.
    Failed(Error),
}

impl From<Error> for NoTurn {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The work of an iteration that is about to start.
#[derive(Debug)]
pub(crate) struct BegunTurn {
    pub(crate) turn: TaskTurn,
    /// The list.
    pub(crate) list: TaskList,
    /// What was wrong with the files since the last iteration: a sentence each.
    pub(crate) warnings: Vec<String>,
}

impl LoopRun {
    /// Chooses the work of an iteration, records the list, and writes `.ralph-active`. Repeating it after a crash chooses
    /// the same.
    ///
    /// # Errors
    /// When there is nothing to work on, or a file cannot be read or written.
    pub(crate) fn begin_turn(
        &self,
        gate: &TaskGate,
        (iteration, max): (u32, u32),
    ) -> Result<BegunTurn, NoTurn> {
        let record = self.read_task_record();
        let mut warnings = vec![];
        let list = match &record {
            None => self.first_list(gate)?,
            Some(record) => self.settled_list(gate, record, &mut warnings)?,
        };
        let prd = match record.as_ref().filter(|record| !record.is_open) {
            Some(record) => {
                warnings.extend(self.restore_prd(gate, record)?);
                record.prd.clone()
            }
            None => read_text(&self.task_file(gate, PRD_FILE)),
        };
        let turn = match list.select(gate.review.skip_review) {
            Selection::Work(mode, story) => TaskTurn { mode, story: story.id.clone() },
            Selection::AllDone => return Err(NoTurn::AllDone),
            Selection::Blocked => return Err(NoTurn::Blocked(list.blocked_because())),
        };
        let record =
            TaskRecord { before: list.to_text(), after: None, prd, turn: Some(turn.clone()), is_open: false };
        self.write_task_record(&record)?;
        marker::write(self, gate, &list, &turn, (iteration, max))?;
        Ok(BegunTurn { turn, list, warnings })
    }

    /// The list of a loop that has not started.
    fn first_list(&self, gate: &TaskGate) -> Result<TaskList, NoTurn> {
        let path = self.task_file(gate, swarm_state::tasks::gate::TASKS_FILE);
        let text = read_text(&path);
        let text = text.ok_or_else(|| NoTurn::Blocked(format!("cannot read '{}'", path.display())))?;
        TaskList::parse(&text).map_err(|fault| NoTurn::Blocked(format!("{}: {fault}", gate.file())))
    }

    /// The list of a loop that has worked on it. A person may edit it while the loop is paused; otherwise only what an
    /// agent may edit stays, since a process of the agent could have written it.
    fn settled_list(
        &self,
        gate: &TaskGate,
        record: &TaskRecord,
        warnings: &mut Vec<String>,
    ) -> Result<TaskList, NoTurn> {
        let path = self.task_file(gate, swarm_state::tasks::gate::TASKS_FILE);
        let now = read_text(&path);
        let known = record.after.as_ref().unwrap_or(&record.before);
        let known = TaskList::parse(known).map_err(|fault| NoTurn::Blocked(fault.to_string()))?;
        if record.is_open
            && let Some(list) = now.as_deref().and_then(|text| TaskList::parse(text).ok())
        {
            return Ok(list);
        }
        let was_judged = record.after.is_some() || record.turn.is_none();
        let turn = record.turn.as_ref().filter(|_| !was_judged);
        let edited = Edited {
            mode: turn.map_or(IterationMode::Implement, |turn| turn.mode),
            selected: turn.map_or("", |turn| turn.story.as_str()),
            before: &known,
            now: now.as_deref(),
        };
        let enforced = enforce(edited, gate.review);
        // An iteration that did not end has no result to complain about.
        if was_judged {
            warnings.extend(enforced.remarks.iter().cloned());
        }
        self.store_list(gate, &enforced, now.as_deref())?;
        Ok(enforced.list)
    }

    /// Writes the list if the file differs. A file that is replaced as a whole is kept in the loop's folder.
    fn store_list(&self, gate: &TaskGate, enforced: &Enforced, now: Option<&str>) -> Result<()> {
        let path = self.task_file(gate, swarm_state::tasks::gate::TASKS_FILE);
        let is_same = now.and_then(|text| TaskList::parse(text).ok()).is_some_and(|now| now == enforced.list);
        if is_same {
            return Ok(());
        }
        if let (true, Some(text)) = (enforced.is_restored, now) {
            let stamp = chrono::Utc::now().format("%Y%m%dT%H%M%S");
            let kept = self.folder.join(format!("tasks.json.broken-{stamp}"));
            crate::store::write_unsynced(&kept, text.as_bytes())
                .map_err(|e| Error::system(format!("cannot write '{}'", kept.display()), e))?;
        }
        write_text(&path, &enforced.list.to_text())
    }

    /// Restores the requirements if they were changed. Returns the warning.
    fn restore_prd(&self, gate: &TaskGate, record: &TaskRecord) -> Result<Option<String>> {
        let path = self.task_file(gate, PRD_FILE);
        let Some(prd) = record.prd.as_ref().filter(|prd| read_text(&path).as_ref() != Some(*prd)) else {
            return Ok(None);
        };
        write_text(&path, prd)?;
        Ok(Some(format!(
            "{}/{PRD_FILE} is read-only during the loop: it was changed, and was restored",
            gate.dir
        )))
    }

    /// Permits a person to edit the files: the loop is paused or has ended. Removes `.ralph-active`.
    pub(crate) fn open_task_files(&self) {
        if let Some(record) = self.read_task_record().filter(|record| !record.is_open) {
            let opened = TaskRecord { is_open: true, ..record };
            if let Err(error) = self.write_task_record(&opened) {
                tracing::warn!(worker = self.name, %error, "edits of the task list will be undone");
            }
        }
        marker::remove(self);
    }

    /// The prompt of an iteration: the user's text with its variables filled in, and the section of swarm.
    pub(crate) async fn turn_prompt(
        &self,
        gate: &TaskGate,
        begun: &BegunTurn,
        base: &Base,
        count: (u32, u32),
        prompt: &[u8],
    ) -> Vec<u8> {
        let prompt = filled(&String::from_utf8_lossy(prompt), gate, begun, count);
        let section = self.turn_section(gate, begun, base, count).await;
        format!("{}\n\n{section}", prompt.trim_end()).into_bytes()
    }

    /// The section of the prompt.
    async fn turn_section(
        &self,
        gate: &TaskGate,
        begun: &BegunTurn,
        base: &Base,
        (iteration, max): (u32, u32),
    ) -> String {
        let Some(story) = begun.list.story(&begun.turn.story) else { return String::new() };
        let last = self.last_worked(iteration);
        let verdict = last.as_ref().and_then(|last| last.verdict.as_ref());
        let mut remarks = begun.warnings.clone();
        remarks.extend(verdict.map(faults).unwrap_or_default());
        let failed = verdict.map(failed_checks).unwrap_or_default();
        let failed: Vec<Failed<'_>> =
            failed.iter().map(|check| Failed { check: &check.name, output: &check.output }).collect();
        let changes = match begun.turn.mode {
            IterationMode::Review => Some(self.story_changes(base, &story.id, iteration).await),
            IterationMode::Implement | IterationMode::ReviewFix => None,
        };
        let review = changes.as_ref().map(|changes| StoryChanges {
            diff: &changes.diff,
            range: changes.range.as_ref().map(|(from, to)| (from.as_str(), to.as_str())),
            checks: &changes.checks,
            sensitive: &changes.sensitive,
        });
        TurnSection {
            turn: &begun.turn,
            story,
            file: &gate.file(),
            options: gate.review,
            iteration: (iteration, max),
            checks: &self.gates.checks,
            failed: &failed,
            remarks: &remarks,
            review,
        }
        .text()
    }

    /// What the iterations of a story changed, before `iteration`.
    async fn story_changes(&self, base: &Base, story: &str, iteration: u32) -> OwnChanges {
        let of_story = |it: &Iteration| {
            it.verdict
                .as_ref()
                .and_then(|verdict| verdict.tasks.as_ref())
                .is_some_and(|tasks| tasks.turn.story == story)
        };
        let earlier: Vec<Iteration> = (1..iteration).filter_map(|n| self.read_iteration(n)).collect();
        let first = earlier.iter().position(of_story).unwrap_or(0);
        let start =
            earlier.iter().take(first).rev().find_map(|it| it.commit.clone()).or_else(|| base.commit.clone());
        let end = earlier.iter().rev().find_map(|it| it.commit.clone());
        let last = earlier.into_iter().rev().find(of_story);
        let checks = last.and_then(|it| it.verdict?.tasks).map(|tasks| tasks.checks).unwrap_or_default();
        let Some((from, to)) = start.zip(end) else { return OwnChanges { checks, ..OwnChanges::default() } };
        let diff = git::diff(&self.cwd, &from, &to).await.unwrap_or_else(|error| error.to_string());
        // The list and the log of progress are no part of the work.
        let diff = self.gates.tasks.as_ref().map_or(diff.clone(), |gate| without_dir(&diff, &gate.dir));
        let mut sensitive = git::changed_between(&self.cwd, &from, &to).await.unwrap_or_default();
        let tests = protect::tests(base);
        sensitive.retain(|file| is_sensitive(file) || tests.iter().any(|glob| glob.is_match(file)));
        OwnChanges { diff, range: Some((from, to)), checks, sensitive }
    }

    /// The checks of the loop, and those of the stories in the list as it is now.
    pub(super) fn watched_commands(&self) -> Vec<String> {
        let list = self.gates.tasks.as_ref().and_then(|gate| self.first_list(gate).ok());
        let stories = list.iter().flat_map(|list| list.stories()).flat_map(|story| story.checks.iter());
        let mut commands = self.gates.checks.clone();
        for check in stories {
            if !commands.contains(check) {
                commands.push(check.clone());
            }
        }
        commands
    }

    fn task_file(&self, gate: &TaskGate, file: &str) -> PathBuf {
        self.cwd.join(&gate.dir).join(file)
    }

    fn read_task_record(&self) -> Option<TaskRecord> {
        read_signed(&self.key, Purpose::Tasks(&self.name, &self.id), &self.folder.join(RECORD_FILE))
    }

    fn write_task_record(&self, record: &TaskRecord) -> Result<()> {
        let purpose = Purpose::Tasks(&self.name, &self.id);
        write_signed(&self.key, purpose, &self.folder.join(RECORD_FILE), record)
    }
}

/// Fills in the variables of a prompt.
fn filled(prompt: &str, gate: &TaskGate, begun: &BegunTurn, (iteration, max): (u32, u32)) -> String {
    let story = begun.list.story(&begun.turn.story);
    let title = story.map_or("", |story| story.title.as_str());
    let date = chrono::Local::now().format("%Y-%m-%d").to_string();
    // The longer name first: the other one is its beginning.
    let values = [
        ("$RALPH_MAX_ITERATIONS", max.to_string()),
        ("$RALPH_ITERATION", iteration.to_string()),
        ("{{MAX_ITERATIONS}}", max.to_string()),
        ("{{ITERATION}}", iteration.to_string()),
        ("{{MODE}}", begun.turn.mode.to_string()),
        ("{{STORY_ID}}", begun.turn.story.clone()),
        ("{{STORY_TITLE}}", title.to_owned()),
        ("{{REVIEW_CAP}}", gate.review.review_cap.to_string()),
        ("{{PROJECT_NAME}}", begun.list.text("project").to_owned()),
        ("{{DATE}}", date),
    ];
    values.iter().fold(prompt.to_owned(), |text, (name, value)| text.replace(name, value))
}

/// [`StoryChanges`], owned.
#[derive(Default)]
struct OwnChanges {
    diff: String,
    range: Option<(String, String)>,
    checks: Vec<CheckResult>,
    sensitive: Vec<String>,
}

/// Why the last iteration was not accepted as it was, without the number of stories that are left.
fn faults(verdict: &Verdict) -> Vec<String> {
    let tasks = verdict.tasks.iter().flat_map(TaskVerdict::faults);
    let others = Verdict { tasks: None, ..verdict.clone() };
    tasks.chain(others.other_remarks()).collect()
}

/// The checks of the loop and of the story that failed.
fn failed_checks(verdict: &Verdict) -> Vec<&CheckResult> {
    let story = verdict.tasks.iter().flat_map(|tasks| tasks.checks.iter().filter(|check| !check.passed));
    story.chain(verdict.failed_checks()).collect()
}

/// The text of a file; `None` if it cannot be read, is too large, or is not UTF-8.
fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read_bounded(path, MAX_TASK_FILE_BYTES).ok()?).ok()
}

/// Replaces a file of the user's. Its permissions stay.
fn write_text(path: &Path, text: &str) -> Result<()> {
    let path = crate::paths::resolve(path);
    let mode = std::fs::metadata(&path).map_or(NEW_FILE_MODE, |file| file.permissions().mode());
    let write = || {
        replace(&path, |temporary| {
            let mut file = create(temporary)?;
            file.set_permissions(Permissions::from_mode(mode))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
    };
    write().map_err(|e| Error::system(format!("cannot write '{}'", path.display()), e))
}

/// Reads and checks the list of a loop before it starts.
///
/// # Errors
/// A missing file, a fault of the list, or a list that no iteration could work on.
pub(crate) fn check_task_files(cwd: &Path, gate: &TaskGate) -> Result<TaskList> {
    let dir = cwd.join(&gate.dir);
    let init = "swarm ralph init --tasks";
    for file in [swarm_state::tasks::gate::TASKS_FILE, PRD_FILE] {
        if !dir.join(file).is_file() {
            let message = format!("no such file: {}", dir.join(file).display());
            return Err(Error::invalid(message).hint(format!("to create the files of a task list: {init}")));
        }
    }
    let path = dir.join(swarm_state::tasks::gate::TASKS_FILE);
    let check = format!("swarm ralph tasks check --ralph-dir {}", gate.dir);
    let refuse = |why: String| Error::invalid(format!("{}: {why}", path.display())).hint(check.clone());
    let text = read_text(&path).ok_or_else(|| refuse("it cannot be read as text".into()))?;
    let list = TaskList::parse(&text).map_err(|fault| refuse(fault.to_string()))?;
    if list.stories().is_empty() {
        let hint = "add stories, or let an agent plan them: swarm ralph plan";
        return Err(Error::invalid(format!("{}: it has no stories", path.display())).hint(hint));
    }
    if let Some(fault) = list.dependency_faults().first() {
        return Err(refuse(fault.to_string()));
    }
    if !gate.review.skip_review
        && let Some(broken) = swarm_state::tasks::review::invariants(&list, gate.review.review_cap).first()
    {
        return Err(refuse(broken.message.clone()));
    }
    match list.select(gate.review.skip_review) {
        Selection::Blocked => Err(refuse(list.blocked_because())),
        Selection::Work(..) | Selection::AllDone => Ok(list),
    }
}
