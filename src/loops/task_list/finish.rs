//! Ends an iteration on a task list: undoes illegal edits, runs the story's checks, and sends back a story whose
//! approval does not hold.

use swarm_state::contract::{MAX_OUTPUT_CHARS, last_characters};
use swarm_state::gates::{CheckResult, Verdict};
use swarm_state::notice::named;
use swarm_state::promise::Source;
use swarm_state::tasks::enforce::{Edited, enforce};
use swarm_state::tasks::gate::{TASKS_FILE, TaskGate, TaskVerdict};
use swarm_state::tasks::{IterationMode, ReviewStatus, Story, TaskList};
use swarm_state::transcript::Account;
use swarm_state::words::unique;
use tokio::time::Instant;

use super::files::{TaskRecord, read_text};
use crate::checks::{CheckPlan, OnCheckStep, Step};
use crate::error::Result;
use crate::loops::run::{Finished, LoopRun, MAX_NAMED_FILES};

impl LoopRun {
    /// Judges the agent's edits of the list, and sets [`Verdict::tasks`]. `promised`: the agent printed the tag.
    pub(crate) async fn evaluate_tasks(
        &self,
        gate: &TaskGate,
        (iteration, until): (u32, Option<Instant>),
        (promised, reviewed): (bool, Reviewed),
        verdict: &mut Verdict,
        on_step: OnCheckStep<'_>,
    ) {
        let evaluated = self.try_evaluate_tasks(gate, (iteration, until), &reviewed, on_step).await;
        match evaluated {
            Ok(Some(mut tasks)) => {
                tasks.promised_early = promised && !tasks.is_complete();
                verdict.tasks = Some(tasks.into());
            }
            Ok(None) => verdict.trouble = Some(self.no_record()),
            Err(error) => verdict.trouble = Some(error.to_string()),
        }
    }

    async fn try_evaluate_tasks(
        &self,
        gate: &TaskGate,
        (iteration, until): (u32, Option<Instant>),
        reviewed: &Reviewed,
        on_step: OnCheckStep<'_>,
    ) -> Result<Option<TaskVerdict>> {
        let Some(record) = self.read_task_record() else { return Ok(None) };
        let (Some(turn), Ok(before)) = (record.turn.clone(), TaskList::parse(&record.before)) else {
            return Ok(None);
        };
        let now = read_text(&self.text_file(gate, TASKS_FILE));
        let edited = Edited { mode: turn.mode, selected: &turn.story, before: &before, now: now.as_deref() };
        let mut enforced = enforce(edited, gate.review);
        if let Some(only) = &gate.story {
            enforced.keep_only(only, &before);
        }
        enforced.remarks.extend(self.restore_texts(gate, &record)?);
        enforced.undo_approvals(&before, gate.review, &doubt(turn.mode, reviewed));
        let checks =
            self.run_story_checks(&enforced.list, &before, gate, (iteration, until), on_step).await?;
        for (story, feedback) in failing(&enforced.list, gate, &checks) {
            enforced.list.send_back(&story, &feedback, gate.review);
            enforced.remarks.push(format!("story {story} was sent back, because its checks failed"));
        }
        self.store_list(gate, &enforced, now.as_deref())?;
        on_step(Step::Reached("list"));
        let mut tasks = TaskVerdict::of(turn, &enforced, gate);
        tasks.checks = checks;
        self.write_task_record(&TaskRecord { after: Some(enforced.list.to_text()), ..record })?;
        Ok(Some(tasks))
    }

    /// Decides about empty answers and broken approvals once all gates were tested. `tree`: the files before the
    /// iteration.
    pub(crate) fn settle_tasks(
        &self,
        (account, source): (&Account, Source),
        finished: &Finished<'_>,
        tree: Option<&String>,
        verdict: &mut Verdict,
    ) {
        let Some(gate) = &self.gates.tasks else { return };
        let is_blank = |text: &String| text.trim().is_empty();
        let prints_nothing = account.texts.iter().all(is_blank)
            && account.tool_calls.unwrap_or(0) == 0
            && (source != Source::Screen || finished.output.trim().is_empty());
        let changes_nothing = verdict.tree.as_ref() == tree;
        verdict.is_empty_answer = finished.exit.is_success() && prints_nothing && changes_nothing;
        if let Err(error) = self.reopen_story(gate, finished.iteration, verdict) {
            verdict.trouble = Some(error.to_string());
        }
        self.count_sent_back(gate, finished.iteration, verdict);
    }

    /// Counts the reviews in a row that approved the story at its cap and that did not hold. At the cap, only swarm
    /// requests changes: the review itself has to approve.
    fn count_sent_back(&self, gate: &TaskGate, iteration: u32, verdict: &mut Verdict) {
        let Some(tasks) = verdict.tasks.as_mut().filter(|tasks| tasks.turn.mode == IterationMode::Review)
        else {
            return;
        };
        let story = tasks.turn.story.clone();
        let after = self.read_task_record().and_then(|record| TaskList::parse(&record.after?).ok());
        let count = after.as_ref().and_then(|list| list.story(&story)).map(|it| it.review.review_count);
        if tasks.status == Some(ReviewStatus::ChangesRequested) && count >= Some(gate.review.review_cap) {
            let earlier = (1..iteration).rev().filter_map(|n| self.read_iteration(n)?.verdict?.tasks);
            let last = earlier
                .into_iter()
                .find(|it| it.turn.mode == IterationMode::Review && it.turn.story == story);
            tasks.sent_back_at_cap = last.map_or(0, |last| last.sent_back_at_cap) + 1;
        }
    }

    /// The watched files that were changed, with the iteration that changed each first, and the two ways to go on.
    fn changed_watched_files(&self, verdict: &Verdict, iteration: u32) -> Option<String> {
        let has_changed = |n: u32, file: &String| {
            self.read_iteration(n)
                .and_then(|it| it.verdict)
                .is_some_and(|earlier| earlier.changed.contains(file))
        };
        let named = |file: &String| {
            let first = (1..iteration).find(|n| has_changed(*n, file)).unwrap_or(iteration);
            format!("iteration {first} changed the protected file {file}")
        };
        let files: Vec<String> = verdict.changed.iter().take(MAX_NAMED_FILES).map(named).collect();
        let name = &self.name;
        let ways = format!("restore it, or a person accepts the change: swarm ralph approve {name}");
        (!files.is_empty()).then(|| format!("{} ({ways})", files.join(", ")))
    }

    /// Sends the iteration's story back if every story is done but another gate does not hold: otherwise no iteration
    /// could fix it.
    fn reopen_story(&self, gate: &TaskGate, iteration: u32, verdict: &mut Verdict) -> Result<()> {
        let is_undecided = verdict.trouble.is_some() || verdict.outage.is_some();
        let Some(tasks) = verdict.tasks.as_ref().filter(|tasks| tasks.is_complete() && !is_undecided) else {
            return Ok(());
        };
        let remarks = verdict.remarks();
        let (Some(record), false) = (self.read_task_record(), remarks.is_empty()) else { return Ok(()) };
        let Some(Ok(mut list)) = record.after.as_deref().map(TaskList::parse) else { return Ok(()) };
        let failed: Vec<CheckResult> = verdict.failed_checks().cloned().collect();
        let watched = self.changed_watched_files(verdict, iteration);
        let others = verdict.other_remarks().into_iter().chain(watched.clone()).collect::<Vec<_>>();
        let feedback = [others.join("\n"), failed_text(&failed).unwrap_or_default()].join("\n");
        let id = tasks.turn.story.clone();
        list.send_back(&id, feedback.trim(), gate.review);
        self.write_file(&self.text_file(gate, TASKS_FILE), &list.to_text())?;
        self.write_task_record(&TaskRecord { after: Some(list.to_text()), ..record })?;
        if let Some(tasks) = &mut verdict.tasks {
            (tasks.done, tasks.total) = gate.count(&list);
            tasks.status = list.story(&id).and_then(|story| story.review.review_status);
            let why = watched.map(|watched| format!(": {watched}")).unwrap_or_default();
            tasks
                .undone
                .push(format!("story {id} was sent back, because a gate of the loop does not hold{why}"));
        }
        Ok(())
    }

    /// Runs the checks of the stories that the iteration submitted or finished. Once all are finished, runs the checks
    /// of all: later work may have broken an earlier story. The output goes into the iteration's folder.
    async fn run_story_checks(
        &self,
        list: &TaskList,
        before: &TaskList,
        gate: &TaskGate,
        (iteration, until): (u32, Option<Instant>),
        on_step: OnCheckStep<'_>,
    ) -> Result<Vec<CheckResult>> {
        let (done, total) = gate.count(list);
        let is_new = |story: &&Story| before.story(&story.id).is_none_or(|old| old.review != story.review);
        let stories = list.stories().iter().filter(|story| done == total || is_new(story));
        let commands = unique(stories.flat_map(|story| story.checks.clone()));
        if commands.is_empty() {
            return Ok(vec![]);
        }
        let folder = self.make_iteration_dir(iteration)?;
        let plan = self.check_plan(&commands, &folder, until, on_step);
        CheckPlan { stem: "story-check", ..plan }.run().await
    }
}

/// The changes of the files during an iteration, for a review.
pub(crate) enum Reviewed {
    /// These files that existed before were changed or removed.
    Changed(Vec<String>),
    /// swarm could take a snapshot before, and none now.
    Unseen,
}

/// Why no approval of an iteration counts; empty if it counts.
fn doubt(mode: IterationMode, reviewed: &Reviewed) -> String {
    match reviewed {
        Reviewed::Unseen => {
            "swarm could not take a snapshot of the files (is the git repository gone?)".into()
        }
        Reviewed::Changed(files) if mode == IterationMode::Review && !files.is_empty() => {
            let files = named(files, MAX_NAMED_FILES);
            format!("the review changed files, which a review may not: {files}; restore them")
        }
        Reviewed::Changed(_) => String::new(),
    }
}

/// The finished stories whose checks failed, with the feedback for each.
fn failing(list: &TaskList, gate: &TaskGate, checks: &[CheckResult]) -> Vec<(String, String)> {
    let done = list.stories().iter().filter(|story| story.is_done(gate.review.skip_review));
    let own = |story: &Story| -> Vec<CheckResult> {
        checks.iter().filter(|check| story.checks.contains(&check.name)).cloned().collect()
    };
    done.filter_map(|story| Some((story.id.clone(), failed_text(&own(story))?))).collect()
}

/// The feedback for checks that failed; `None` if all passed.
fn failed_text(checks: &[CheckResult]) -> Option<String> {
    let failed = checks.iter().filter(|check| !check.passed);
    let texts: Vec<String> = failed
        .map(|check| {
            format!(
                "swarm ran `{}`, and it failed:\n{}",
                check.name,
                last_characters(&check.output, MAX_OUTPUT_CHARS)
            )
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
