//! An iteration of a loop in the driver: the daemon's side of [`crate::loops`].
//!
//! Provides the loop's folder and environment, reports each check, and lets a kill cut long work short.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use swarm_state::engine::{Ended, SpawnError};
use swarm_state::gates::{CheckResult, Verdict};
use swarm_state::ledger;
use swarm_state::model::{Exit, Run};
use swarm_state::notice::Entry;
use swarm_state::pattern::Pattern;
use swarm_state::spec::WorkerSpec;
use swarm_state::tasks::IterationMode;
use swarm_state::tasks::gate::TaskGate;
use tokio::time::{Instant, sleep_until};

use crate::checks::Step;
use crate::daemon::clock::local_now;
use crate::daemon::crash;
use crate::daemon::messages::{IterationInfo, RunReport};
use crate::daemon::run::context::RunContext;
use crate::daemon::run::exit::oom_warning;
use crate::daemon::run::hook_reports::HookRecord;
use crate::error::{Result, sentence};
use crate::loops::{Finished, LoopRun, NoTurn, hurried, session_id};

/// How long after the loop's time is up the work before an agent's start may still take. Checks end with the time.
const OUT_OF_TIME_MARGIN: Duration = Duration::from_secs(10);

/// The id of a loop: the time when it was spawned. Distinguishes loops of the same name.
pub(crate) fn loop_id(started: DateTime<FixedOffset>) -> String {
    started.to_utc().format("%Y%m%dT%H%M%S%3fZ").to_string()
}

/// The loop that a spec describes, working in `cwd`.
pub(crate) fn loop_run(context: &RunContext, spec: &WorkerSpec, id: &str, cwd: &Path) -> LoopRun {
    let paths = context.store.paths();
    LoopRun {
        name: context.name.to_string(),
        id: id.to_owned(),
        folder: paths.ralph_dir(&context.name),
        key: context.store.key().clone(),
        root: paths.root().to_owned(),
        cwd: cwd.to_owned(),
        env: Arc::new(context.environment(spec)),
        sandbox: context.worker_sandbox(spec, cwd).map(Arc::new),
        gates: spec.ralph.as_ref().map(|ralph| ralph.gates.clone()).unwrap_or_default(),
        profile: spec.profile.clone(),
        shows_text: spec.profile.shows_text(&spec.cmd, spec.prompt_via),
        task_file: spec
            .ralph
            .as_ref()
            .filter(|ralph| ralph.task.is_none())
            .map(|ralph| ralph.prompt_file.clone()),
    }
}

/// Records why an iteration had no agent, unless the worker was killed meanwhile. Failure to write is only logged.
pub(crate) fn write_unstarted(
    context: &RunContext,
    spec: &WorkerSpec,
    it: &IterationInfo,
    run: Run,
    why: &str,
) {
    if context.is_hurried() {
        return;
    }
    let loop_run = loop_run(context, spec, &it.id, &spec.cwd);
    if let Err(error) = loop_run.write_unstarted((it.number, run.0), it.started, local_now(), why) {
        tracing::warn!(worker = %context.name, %error, "cannot record why no agent was started");
    }
}

fn no_turn(none: NoTurn) -> SpawnError {
    match none {
        NoTurn::AllDone => SpawnError::NoStory("every story is approved".into()),
        NoTurn::Blocked(why) => SpawnError::NoStory(why),
        NoTurn::Failed(error) => SpawnError::Other(sentence(&error)),
    }
}

pub(crate) struct IterationRun<'a> {
    pub(crate) context: &'a RunContext,
    pub(crate) spec: &'a WorkerSpec,
    pub(crate) cwd: &'a Path,
    pub(crate) iteration: &'a IterationInfo,
}

impl IterationRun<'_> {
    fn loop_run(&self) -> LoopRun {
        loop_run(self.context, self.spec, &self.iteration.id, self.cwd)
    }

    /// Builds the text for the agent from the prompt file. Takes the baseline before the first iteration. Fails when
    /// the baseline cannot be taken or took all of the loop's time, or when the worker was killed meanwhile.
    pub(crate) async fn contract(&self, task: Option<Vec<u8>>) -> Result<Option<Vec<u8>>, SpawnError> {
        let loop_run = self.loop_run();
        let base = tokio::select! {
            base = self.base(&loop_run) => base.map_err(|e| SpawnError::Other(sentence(&e)))?,
            () = hurried(&self.context.hurry) => return Err(SpawnError::Other("it was killed".into())),
            () = self.out_of_time_plus_margin() => return Err(self.out_of_time()),
        };
        crash::point("base");
        self.keep_interrupted(&loop_run, &base).await;
        self.refuse_out_of_time()?;
        if loop_run.gates.is_spent(base.failed(), self.spec.done_pattern.is_some()) {
            return Err(SpawnError::NoGate);
        }
        let Some(task) = task else { return Ok(None) };
        let count = (self.iteration.number, self.iteration.max);
        match &loop_run.gates.tasks {
            Some(gate) => self.turn_prompt(&loop_run, gate, &base, task).await.map(Some),
            None => Ok(Some(loop_run.contract(&base, count, task).await)),
        }
    }

    /// Chooses the story of the iteration and builds the text for the agent.
    async fn turn_prompt(
        &self,
        loop_run: &LoopRun,
        gate: &TaskGate,
        base: &ledger::Base,
        task: Vec<u8>,
    ) -> Result<Vec<u8>, SpawnError> {
        let count = (self.iteration.number, self.iteration.max);
        let mut begun = loop_run.begin_turn(gate, count, self.iteration.worked);
        if matches!(begun, Err(NoTurn::AllDone)) {
            self.test_approved(loop_run, gate).await?;
            begun = loop_run.begin_turn(gate, count, self.iteration.worked);
        }
        let begun = begun.map_err(no_turn)?;
        crash::point("turn");
        for warning in &begun.warnings {
            self.context.warn(warning.clone());
        }
        self.context.report(RunReport::Notice(begun.notice(count.0, gate)));
        Ok(loop_run.turn_prompt(gate, &begun, base, count, &task).await)
    }

    /// Tests the gates of a list whose stories were all approved before the loop worked on it. Returns if a story was
    /// sent back because a gate does not hold.
    async fn test_approved(&self, loop_run: &LoopRun, gate: &TaskGate) -> Result<(), SpawnError> {
        loop_run.begin_without_agent(gate).map_err(no_turn)?;
        let finished = Finished::without_agent(self.iteration.number, local_now(), self.iteration.until);
        let on_step = |step: Step<'_>| self.notify(self.iteration.number, step);
        let ended = loop_run.conclude(finished, &on_step, &self.context.hurry).await;
        self.refuse_out_of_time()?;
        let verdict = ended.verdict.unwrap_or_default();
        if verdict.is_complete() {
            return Err(SpawnError::StoriesApproved);
        }
        let remarks = verdict.faults().into_iter().chain(verdict.failed_checks().map(CheckResult::remark));
        let why = remarks.collect::<Vec<_>>().join("; ");
        let why =
            format!("every story was approved before the loop started, but a gate does not hold: {why}");
        if verdict.tasks.is_none_or(|tasks| tasks.is_complete()) {
            return Err(SpawnError::NoStory(why));
        }
        self.context.warn(why);
        Ok(())
    }

    /// Keeps the files that an interrupted run of this iteration left.
    async fn keep_interrupted(&self, loop_run: &LoopRun, base: &ledger::Base) {
        let number = self.iteration.number;
        let kept = tokio::select! {
            kept = loop_run.keep_interrupted(base, number) => kept,
            () = hurried(&self.context.hurry) => return,
            () = self.out_of_time_plus_margin() => return,
        };
        let warning = match kept {
            Ok(None) => return,
            Ok(Some(reference)) => {
                format!("iteration {number} was interrupted; the files that it left are in {reference}")
            }
            Err(error) => format!("no snapshot of the interrupted iteration {number}: {}", error.message),
        };
        self.context.warn(warning);
    }

    /// Returns some time after the loop's time is up: git may hang while the baseline is taken.
    async fn out_of_time_plus_margin(&self) {
        match self.iteration.until {
            Some(until) => sleep_until(until + OUT_OF_TIME_MARGIN).await,
            None => std::future::pending().await,
        }
    }

    fn refuse_out_of_time(&self) -> Result<(), SpawnError> {
        let is_over = self.iteration.until.is_some_and(|until| Instant::now() >= until);
        if is_over { Err(self.out_of_time()) } else { Ok(()) }
    }

    fn out_of_time(&self) -> SpawnError {
        let number = self.iteration.number;
        self.context.warn(format!(
            "the work before iteration {number} took all of the loop's time; no agent was started"
        ));
        SpawnError::OutOfTime
    }

    /// Returns the baseline, or takes it. A client that waits for a new worker gets the warnings before the checks run.
    async fn base(&self, loop_run: &LoopRun) -> Result<ledger::Base> {
        if let Some(base) = loop_run.known_base(self.iteration.worked)? {
            return Ok(base);
        }
        let begun = loop_run.begin_base().await?;
        self.context.report(RunReport::Begun(begun.warnings.clone()));
        let on_step = |step: Step<'_>| self.notify(0, step);
        let (base, warnings) = loop_run.take_base(begun, &on_step, self.iteration.until).await?;
        for warning in warnings {
            self.context.warn(format!("no snapshot was taken: {warning}"));
        }
        Ok(base)
    }

    /// The spec with the agent of this iteration, if it is a review and the reviewer is another agent.
    pub(crate) fn reviewer(&self) -> Option<WorkerSpec> {
        let reviewer = self.spec.of_reviewer()?;
        (self.loop_run().turn_mode() == Some(IterationMode::Review)).then_some(reviewer)
    }

    /// The session id for the agent, if its CLI accepts one.
    pub(crate) fn session(&self, run: Run) -> Option<String> {
        let id = session_id(self.context.name.as_str(), &self.iteration.id, run.0);
        self.spec.profile.takes_session(&self.spec.cmd).then_some(id)
    }

    /// Evaluates and records the iteration. A kill cuts the checks short.
    pub(crate) async fn conclude(
        &self,
        run: Run,
        exit: Exit,
        end: Option<Ended>,
        output: &str,
        done_pattern: Option<bool>,
    ) -> Verdict {
        let record = crate::wrapper::read_exit(&self.context.run_dir(run));
        let hook_record = HookRecord::of(&self.context.run_dir(run));
        let pattern = self.spec.done_pattern.as_deref().and_then(|text| Pattern::compile(text).ok());
        let finished = Finished {
            run: run.0,
            started: self.iteration.started,
            exit,
            end,
            output,
            done_pattern,
            pattern: pattern.as_ref(),
            session: self.session(run),
            transcript: hook_record.transcript,
            api_error: hook_record.error,
            never_started: record.as_ref().and_then(|record| record.error.clone()),
            account: None,
            ..Finished::without_agent(self.iteration.number, local_now(), self.iteration.until)
        };
        let loop_run = self.loop_run();
        let on_step = |step: Step<'_>| self.notify(self.iteration.number, step);
        let mut ended = loop_run.conclude(finished, &on_step, &self.context.hurry).await;
        crash::point("concluded");
        self.warn_of_unseen_limits(&mut ended);
        if !ended.limits.is_empty() {
            self.context.report(RunReport::Limits(std::mem::take(&mut ended.limits)));
        }
        let warnings = ended.warnings.clone();
        // The warning was reported at the end of the run.
        ended.warnings.splice(..0, record.as_ref().and_then(oom_warning));
        ended.oom_kills = record.as_ref().map_or(0, |record| record.oom_kills);
        let what = format!("the result of iteration {}", ended.iteration);
        self.context.write_until_stored(&what, || loop_run.write_down(&ended)).await;
        crash::point("result");
        for warning in warnings {
            self.context.warn(warning);
        }
        ended.verdict.unwrap_or_default()
    }

    /// Warns about limits that could not be checked, because a person relies on them.
    fn warn_of_unseen_limits(&self, ended: &mut ledger::Iteration) {
        let Some(budgets) = self.spec.ralph.as_ref().map(|ralph| &ralph.budgets) else { return };
        let Some(verdict) = ended.verdict.as_mut().filter(|verdict| verdict.outage.is_none()) else { return };
        if ended.no_agent {
            return;
        }
        let unseen = [
            ("--max-cost", "cost", budgets.max_cost.is_some() && verdict.cost.is_none()),
            ("--max-tokens", "tokens", budgets.max_tokens.is_some() && verdict.tokens.is_none()),
        ];
        if budgets.no_progress.is_some() && verdict.moved.is_none() {
            let message = "--no-progress cannot be checked: the directory is not in a git repository";
            ended.warnings.push(message.into());
        }
        for (limit, what, _) in unseen.into_iter().filter(|(_, _, unseen)| *unseen) {
            let iteration = self.iteration.number;
            let message = format!(
                "{limit} could not count iteration {iteration}: the agent reported no {what} (does its command print JSON?)"
            );
            verdict.unseen.get_or_insert_with(|| message.clone());
            ended.warnings.push(message);
        }
    }

    fn notify(&self, iteration: u32, step: Step<'_>) {
        let check = match step {
            Step::Started(check) => {
                let entry = Entry::CheckStarted { iteration, check: check.to_owned() };
                return self.context.report(RunReport::Notice(entry));
            }
            Step::Ended(check) => check,
            Step::Reached(word) => return crash::point(word),
        };
        let seconds = Duration::try_from_secs_f64(check.seconds).unwrap_or_default().as_secs();
        let (check, passed) = (check.name.clone(), check.passed);
        self.context.report(RunReport::Notice(Entry::Checked { iteration, check, passed, seconds }));
    }
}
