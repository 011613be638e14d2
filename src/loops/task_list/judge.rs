//! The end of an iteration that worked on a task list: undoes illegal edits, runs the story's checks, and sends a story
//! back whose approval does not hold.

use std::collections::BTreeMap;
use std::time::Duration;

use swarm_state::contract::{MAX_OUTPUT_CHARS, last_characters};
use swarm_state::gates::{CheckResult, Verdict};
use swarm_state::promise::Source;
use swarm_state::tasks::enforce::{Edited, enforce};
use swarm_state::tasks::gate::{TASKS_FILE, TaskGate, TaskVerdict};
use swarm_state::tasks::{Story, TaskList};
use swarm_state::transcript::Account;
use tokio::time::Instant;

use super::files::{TaskRecord, read_text};
use crate::checks::{CheckPlan, KEPT_OUTPUT_BYTES, OnCheckStep, Step};
use crate::error::Result;
use crate::loops::run::{Finished, LoopRun};

impl LoopRun {
    /// Judges the agent's edits of the list, and sets [`Verdict::tasks`]. `promised`: the agent printed the tag.
    pub(crate) async fn judge_tasks(
        &self,
        gate: &TaskGate,
        (iteration, until): (u32, Option<Instant>),
        promised: bool,
        verdict: &mut Verdict,
        on_step: OnCheckStep<'_>,
    ) {
        let judged = self.try_judge_tasks(gate, (iteration, until), on_step).await;
        match judged {
            Ok(Some(mut tasks)) => {
                tasks.promised_early = promised && !tasks.is_complete();
                verdict.tasks = Some(tasks.into());
            }
            Ok(None) => verdict.trouble = Some("swarm's record of the task list is missing".into()),
            Err(error) => verdict.trouble = Some(error.to_string()),
        }
    }

    async fn try_judge_tasks(
        &self,
        gate: &TaskGate,
        (iteration, until): (u32, Option<Instant>),
        on_step: OnCheckStep<'_>,
    ) -> Result<Option<TaskVerdict>> {
        let Some(record) = self.read_task_record() else { return Ok(None) };
        let (Some(turn), Ok(before)) = (record.turn.clone(), TaskList::parse(&record.before)) else {
            return Ok(None);
        };
        let now = read_text(&self.task_file(gate, TASKS_FILE));
        let edited = Edited { mode: turn.mode, selected: &turn.story, before: &before, now: now.as_deref() };
        let mut enforced = enforce(edited, gate.review);
        if let Some(only) = &gate.story {
            enforced.keep_only(only, &before);
        }
        enforced.remarks.extend(self.restore_prd(gate, &record)?);
        let story = enforced.list.story(&turn.story).cloned();
        let old = before.story(&turn.story).map(|story| story.review);
        let is_submitted = story.as_ref().is_some_and(|story| Some(story.review) != old);
        let checks = match &story {
            Some(story) if is_submitted => self.run_story_checks(story, (iteration, until), on_step).await?,
            Some(_) | None => vec![],
        };
        let is_done = story.as_ref().is_some_and(|story| story.is_done(gate.review.skip_review));
        if let (true, Some(feedback)) = (is_done && is_submitted, failed_text(&checks)) {
            enforced.list.send_back(&turn.story, &feedback, gate.review);
            enforced.remarks.push(format!("story {} was sent back, because its checks failed", turn.story));
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
        if let Err(error) = self.reopen_story(gate, verdict) {
            verdict.trouble = Some(error.to_string());
        }
    }

    /// Sends the iteration's story back if every story is done but another gate does not hold: otherwise no iteration
    /// could fix it.
    fn reopen_story(&self, gate: &TaskGate, verdict: &mut Verdict) -> Result<()> {
        let is_undecided = verdict.trouble.is_some() || verdict.outage.is_some();
        let Some(tasks) = verdict.tasks.as_ref().filter(|tasks| tasks.is_complete() && !is_undecided) else {
            return Ok(());
        };
        let remarks = verdict.remarks();
        let (Some(record), false) = (self.read_task_record(), remarks.is_empty()) else { return Ok(()) };
        let Some(Ok(mut list)) = record.after.as_deref().map(TaskList::parse) else { return Ok(()) };
        let failed: Vec<CheckResult> = verdict.failed_checks().cloned().collect();
        let others = verdict.other_remarks();
        let feedback = [others.join("\n"), failed_text(&failed).unwrap_or_default()].join("\n");
        let id = tasks.turn.story.clone();
        list.send_back(&id, feedback.trim(), gate.review);
        self.write_text(&self.task_file(gate, TASKS_FILE), &list.to_text())?;
        self.write_task_record(&TaskRecord { after: Some(list.to_text()), ..record })?;
        if let Some(tasks) = &mut verdict.tasks {
            (tasks.done, tasks.total) = gate.count(&list);
            tasks.status = list.story(&id).and_then(|story| story.review.review_status);
            tasks.undone.push(format!("story {id} was sent back, because a gate of the loop does not hold"));
        }
        Ok(())
    }

    /// Runs the checks of a story. Their output goes into the iteration's folder.
    async fn run_story_checks(
        &self,
        story: &Story,
        (iteration, until): (u32, Option<Instant>),
        on_step: OnCheckStep<'_>,
    ) -> Result<Vec<CheckResult>> {
        if story.checks.is_empty() {
            return Ok(vec![]);
        }
        let folder = self.iteration_dir(iteration);
        crate::paths::private_dir(&folder)?;
        let env: &BTreeMap<String, String> = &self.env;
        let plan = CheckPlan {
            commands: &story.checks,
            cwd: &self.cwd,
            env,
            limit: Duration::from_secs(self.gates.check_timeout.max(1)),
            until,
            kept: KEPT_OUTPUT_BYTES,
            stem: "story-check",
            jobs: usize::try_from(self.gates.check_jobs).unwrap_or(1),
            folder: &folder,
            on_step,
        };
        plan.run().await
    }
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
