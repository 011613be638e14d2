//! The start of an iteration that works on a task list: its story, its record, and its prompt.

use swarm_state::contract::{Failed, StoryChanges, TurnSection, files_in, without_dir};
use swarm_state::gates::{CheckResult, Verdict};
use swarm_state::ledger::{Base, Iteration};
use swarm_state::notice::Entry;
use swarm_state::tasks::enforce::{Edited, enforce};
use swarm_state::tasks::gate::{PRD_FILE, TASKS_FILE, TaskGate, TaskTurn, is_sensitive};
use swarm_state::tasks::selection::Selection;
use swarm_state::tasks::{IterationMode, TaskList};
use swarm_state::template::tasks::fill;
use swarm_state::words::unique;

use super::files::{TaskRecord, read_text};
use super::marker;
use crate::error::{Error, Result};
use crate::git;
use crate::loops::protect;
use crate::loops::run::LoopRun;

/// Why no iteration can work on the list.
#[derive(Debug)]
pub(crate) enum NoTurn {
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
    pub(crate) list: TaskList,
    /// The text of prompt.md before an agent changed it; `None` if the prompt is another file.
    pub(crate) prompt: Option<String>,
    /// Faults of the files that arose since the last iteration: a sentence each.
    pub(crate) warnings: Vec<String>,
}

impl BegunTurn {
    pub(crate) fn notice(&self, iteration: u32, gate: &TaskGate) -> Entry {
        let (done, total) = gate.count(&self.list);
        Entry::StoryStarted {
            iteration,
            mode: self.turn.mode,
            story: self.turn.story.clone(),
            title: self.turn.title.clone(),
            done,
            total,
        }
    }
}

impl LoopRun {
    /// Chooses the work of an iteration, records the list, and writes `.ralph-active`. After a crash, repeating it
    /// chooses the same. Fails when there is nothing to work on, or a file cannot be read or written.
    pub(crate) fn begin_turn(
        &self,
        gate: &TaskGate,
        (iteration, max): (u32, u32),
        worked: bool,
    ) -> Result<BegunTurn, NoTurn> {
        let record = self.read_task_record();
        let mut warnings = vec![];
        let list = match &record {
            // Without the record, nothing shows which approvals are real.
            None if worked => return Err(NoTurn::Blocked(self.no_record())),
            None => self.first_list(gate)?,
            Some(record) => self.settled_list(gate, record, &mut warnings)?,
        };
        let closed = record.as_ref().filter(|record| !record.is_open);
        let (prd, prompt) = match closed {
            Some(record) => {
                warnings.extend(self.restore_texts(gate, record)?);
                (record.prd.clone(), record.prompt.clone())
            }
            None => (read_text(&self.text_file(gate, PRD_FILE)), self.own_prompt(gate)),
        };
        let turn = match gate.select(&list) {
            Selection::Work(mode, story) => {
                TaskTurn { mode, story: story.id.clone(), title: story.title.clone() }
            }
            Selection::AllDone if closed.is_some() => {
                return Err(NoTurn::Blocked(self.not_complete(iteration)));
            }
            Selection::AllDone => return Err(NoTurn::AllDone),
            Selection::Blocked => return Err(NoTurn::Blocked(gate.blocked_because(&list))),
        };
        let record = TaskRecord {
            before: list.to_text(),
            after: None,
            prd,
            prompt: prompt.clone(),
            turn: Some(turn.clone()),
            is_open: false,
        };
        self.write_task_record(&record)?;
        marker::write(self, gate, &list, &turn, (iteration, max))?;
        Ok(BegunTurn { turn, list, prompt, warnings })
    }

    /// Records the list for a test of the gates without an agent, as if the last story was worked on. A person may
    /// still edit the files. Fails when the list cannot be read or the record cannot be written.
    pub(crate) fn begin_without_agent(&self, gate: &TaskGate) -> Result<(), NoTurn> {
        let list = self.first_list(gate)?;
        let mut stories = list.stories().iter().rev();
        let last = stories.find(|story| gate.story.as_ref().is_none_or(|id| story.id == *id));
        let turn = last.map(|story| TaskTurn {
            mode: IterationMode::Implement,
            story: story.id.clone(),
            title: story.title.clone(),
        });
        let record = TaskRecord { before: list.to_text(), turn, is_open: true, ..TaskRecord::default() };
        Ok(self.write_task_record(&record)?)
    }

    /// Why a loop cannot continue without its record.
    pub(super) fn no_record(&self) -> String {
        let name = &self.name;
        format!(
            "swarm's record of the task list is missing, or swarm did not write it; start the loop again: swarm respawn {name}"
        )
    }

    /// Why a loop whose stories are all approved is not complete: no iteration could change that.
    fn not_complete(&self, iteration: u32) -> String {
        let verdict = self.last_worked(iteration).and_then(|last| last.verdict);
        let remarks = verdict.map(|verdict| verdict.remarks().join("; ")).unwrap_or_default();
        format!("every story is approved, but the last iteration did not hold: {remarks}")
    }

    fn first_list(&self, gate: &TaskGate) -> Result<TaskList, NoTurn> {
        let path = self.text_file(gate, TASKS_FILE);
        let text = read_text(&path);
        let missing =
            || format!("cannot read '{}' (a new worktree has only committed files)", path.display());
        let text = text.ok_or_else(|| NoTurn::Blocked(missing()))?;
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
        if record.is_open {
            // A person's file is never replaced.
            return self.first_list(gate);
        }
        let (list, remarks) = self.restore_list(gate, record)?;
        // An iteration that did not end has no result to complain about.
        if record.was_evaluated() {
            warnings.extend(remarks);
        }
        Ok(list)
    }

    /// Undoes the edits of the list since the record that an agent may not make. Approvals of an iteration that did not
    /// end are undone too: their checks never ran. Returns the list and what was undone.
    fn restore_list(&self, gate: &TaskGate, record: &TaskRecord) -> Result<(TaskList, Vec<String>), NoTurn> {
        let now = read_text(&self.text_file(gate, TASKS_FILE));
        let known = record.after.as_ref().unwrap_or(&record.before);
        let known = TaskList::parse(known).map_err(|fault| NoTurn::Blocked(fault.to_string()))?;
        let turn = record.turn.as_ref().filter(|_| !record.was_evaluated());
        let edited = Edited {
            mode: turn.map_or(IterationMode::Implement, |turn| turn.mode),
            selected: turn.map_or("", |turn| turn.story.as_str()),
            before: &known,
            now: now.as_deref(),
        };
        let mut enforced = enforce(edited, gate.review);
        if turn.is_some() {
            enforced.undo_approvals(&known, gate.review, "the iteration did not end");
        }
        self.store_list(gate, &enforced, now.as_deref())?;
        Ok((enforced.list, enforced.remarks))
    }

    /// The mode of the iteration that was started last.
    pub(crate) fn turn_mode(&self) -> Option<IterationMode> {
        Some(self.read_task_record()?.turn?.mode)
    }

    /// The work of that iteration, and the numbers of finished and of all stories.
    pub(crate) fn last_story(&self) -> Option<(TaskTurn, (u64, u64))> {
        let record = self.read_task_record()?;
        let list = TaskList::parse(record.after.as_ref().unwrap_or(&record.before)).ok()?;
        Some((record.turn?, self.gates.tasks.as_ref()?.count(&list)))
    }

    /// Permits a person to edit the files: the loop is paused or has ended. Removes `.ralph-active`. Before that,
    /// undoes the edits of an agent that was killed, since nothing evaluated them. Returns what was undone.
    pub(crate) fn open_task_files(&self) -> Vec<String> {
        let mut undone = vec![];
        if let Some(record) = self.read_task_record().filter(|record| !record.is_open) {
            match self.restore_files(&record) {
                Ok(remarks) => undone = remarks,
                Err(why) => undone.push(format!("the edits of the agent in the task list stay: {why}")),
            }
            let opened = TaskRecord { is_open: true, ..record };
            if let Err(error) = self.write_task_record(&opened) {
                tracing::warn!(worker = self.name, %error, "edits of the task list will be undone");
            }
        }
        marker::remove(self);
        undone
    }

    /// Restores the list and the texts as far as an agent may not change them, if their directory exists.
    fn restore_files(&self, record: &TaskRecord) -> Result<Vec<String>, String> {
        let Some(gate) = self.gates.tasks.as_ref().filter(|_| self.cwd.is_dir()) else { return Ok(vec![]) };
        let (_, mut remarks) = self.restore_list(gate, record).map_err(|none| match none {
            NoTurn::Blocked(why) => why,
            NoTurn::Failed(error) => error.to_string(),
            NoTurn::AllDone => String::new(),
        })?;
        remarks.extend(self.restore_texts(gate, record).map_err(|error| error.to_string())?);
        Ok(remarks)
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
        let typed = String::from_utf8_lossy(prompt);
        let prompt = filled(begun.prompt.as_deref().unwrap_or(&typed), gate, begun, count);
        let section = self.turn_section(gate, begun, base, count).await;
        format!("{}\n\n{section}", prompt.trim_end()).into_bytes()
    }

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
        remarks.extend(verdict.map(Verdict::faults).unwrap_or_default());
        if begun.turn.mode == IterationMode::Review {
            // The reviewer reads the requirements as they are now.
            let earlier = (1..iteration).filter_map(|n| self.read_iteration(n)?.verdict?.tasks);
            remarks.extend(earlier.flat_map(|tasks| tasks.noted));
        }
        let failed = verdict.map(failed_checks).unwrap_or_default();
        let failed: Vec<Failed<'_>> =
            failed.iter().map(|check| Failed { check: &check.name, output: &check.output }).collect();
        let changes = match begun.turn.mode {
            IterationMode::Review => Some(self.story_changes(base, &story.id, iteration).await),
            IterationMode::Implement | IterationMode::ReviewFix => None,
        };
        TurnSection {
            turn: &begun.turn,
            story,
            file: &gate.file(),
            options: gate.review,
            iteration: (iteration, max),
            checks: &self.gates.checks,
            failed: &failed,
            remarks: &remarks,
            review: changes.as_ref(),
        }
        .text()
    }

    /// The changes of the iterations of a story before `iteration`.
    async fn story_changes(&self, base: &Base, story: &str, iteration: u32) -> StoryChanges {
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
        let Some((from, to)) = start.zip(end) else {
            return StoryChanges { checks, ..StoryChanges::default() };
        };
        // Also of files that an attribute declares binary.
        let diff = git::diff(&self.cwd, &["--text"], &from, &to).await;
        let diff = diff.unwrap_or_else(|error| error.to_string());
        // The reviewer judges the work, and not the list or the log of progress.
        let diff = self.gates.tasks.as_ref().map_or(diff.clone(), |gate| without_dir(&diff, &gate.dir));
        let mut sensitive = files_in(&diff);
        let tests = protect::tests(base);
        sensitive.retain(|file| is_sensitive(file) || tests.iter().any(|glob| glob.is_match(file)));
        StoryChanges { diff, range: Some((from, to)), checks, sensitive }
    }

    /// The checks of the loop, and those of the stories in the list as it is now.
    pub(crate) fn watched_commands(&self) -> Vec<String> {
        let list = self.gates.tasks.as_ref().and_then(|gate| self.first_list(gate).ok());
        let of_stories = list.iter().flat_map(|list| list.stories()).flat_map(|story| story.checks.clone());
        let checks = &self.gates.checks;
        [checks.clone(), unique(of_stories.filter(|check| !checks.contains(check)))].concat()
    }
}

fn filled(prompt: &str, gate: &TaskGate, begun: &BegunTurn, (iteration, max): (u32, u32)) -> String {
    let values = [
        ("ITERATION", iteration.to_string()),
        ("MAX_ITERATIONS", max.to_string()),
        ("MODE", begun.turn.mode.to_string()),
        ("STORY_ID", begun.turn.story.clone()),
        ("STORY_TITLE", begun.turn.title.clone()),
        ("REVIEW_CAP", gate.review.review_cap.to_string()),
        ("PROJECT_NAME", begun.list.text("project").to_owned()),
        ("DATE", chrono::Local::now().format("%Y-%m-%d").to_string()),
    ];
    fill(prompt, &values)
}

/// The checks of the loop and of the story that failed.
fn failed_checks(verdict: &Verdict) -> Vec<&CheckResult> {
    let story = verdict.tasks.iter().flat_map(|tasks| tasks.checks.iter().filter(|check| !check.passed));
    story.chain(verdict.failed_checks()).collect()
}
