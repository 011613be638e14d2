//! Runs a loop in this process: steps the engine and carries out its effects.
//!
//! The events that an effect causes wait in a queue until the current step is done. Asynchronous work runs in a
//! thread of its own, so that a loop can be run from any thread, also from one of a runtime. Nothing that the daemon
//! would save is read back here: if the program dies, its loop ends.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use chrono::Local;
use swarm_state::ends::LoopEnd;
use swarm_state::engine::{Effect, Event, Now, Phase, Policy, SpawnError, Worker};
use swarm_state::gates::Verdict;
use swarm_state::ledger::Iteration;
use swarm_state::model::{Exit, Run};
use tokio::time::Instant;

use super::agent::{Agent, AgentContext, AgentState};
use super::config::RalphConfig;
use super::result::{CheckResult, LoopIteration, RalphLoopResult};
use super::runtime::block_on;
use crate::error::{Error, Result};
use crate::loops::{CONTRACT_FILE, Finished, LoopRun};
use crate::store::{read_bounded, write_unsynced};

const MAX_SPEC_BYTES: u64 = 16 << 20;

/// The clock of a loop; tests have their own.
pub(super) trait Clock: Send {
    fn now(&self) -> Now;
    fn wait(&mut self, how_long: Duration);
}

pub(super) struct SystemClock(std::time::Instant);

impl SystemClock {
    pub(super) fn new() -> Self {
        Self(std::time::Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        Now { mono: self.0.elapsed(), wall: Local::now().fixed_offset() }
    }

    fn wait(&mut self, how_long: Duration) {
        std::thread::sleep(how_long);
    }
}

pub(super) struct InProcessLoop<'a, F> {
    config: &'a RalphConfig,
    loop_run: &'a LoopRun,
    agent_factory: &'a mut F,
    clock: &'a mut dyn Clock,
    worker: Worker,
    events: VecDeque<Event>,
    /// How the last agent ended, and its account.
    last: (Exit, AgentState),
    /// The errors of agents, by iteration.
    errors: BTreeMap<u32, String>,
}

impl<'a, F, A> InProcessLoop<'a, F>
where
    F: FnMut(&AgentContext<'_>) -> A,
    A: Agent,
{
    pub(super) fn new(
        config: &'a RalphConfig,
        loop_run: &'a LoopRun,
        agent_factory: &'a mut F,
        clock: &'a mut dyn Clock,
    ) -> Self {
        let policy = Policy { paste: false, ready_wait: false, ready_timeout: 0, one_shot: true };
        // There is no screen, so no agent counts as idle.
        let silence = u64::MAX;
        let worker = Worker::verified(policy, config.max_iterations, silence, config.budgets(), true);
        let (events, last) = (VecDeque::from([Event::Start]), (Exit::Unknown, AgentState::default()));
        Self { config, loop_run, agent_factory, clock, worker, events, last, errors: BTreeMap::new() }
    }

    pub(super) fn run(mut self) -> Result<RalphLoopResult> {
        loop {
            while let Some(event) = self.events.pop_front() {
                for effect in self.worker.step(event, self.clock.now()) {
                    self.carry_out(&effect)?;
                }
            }
            if let Phase::Stopped { reason } = self.worker.phase() {
                let end = reason.end();
                return Ok(self.result(end));
            }
            let Some(at) = self.worker.deadline() else {
                return Err(Error::internal("the loop waits for nothing"));
            };
            self.clock.wait(at.saturating_sub(self.clock.now().mono));
            self.events.push_back(Event::Tick);
        }
    }

    fn carry_out(&mut self, effect: &Effect) -> Result<()> {
        match effect {
            Effect::Spawn(run) => self.work(*run),
            Effect::Evaluate(run) => self.evaluate(*run),
            // When an effect could reach the agent, it has already ended.
            Effect::Persist
            | Effect::Deliver(_)
            | Effect::Terminate(_)
            | Effect::ForceKill(_)
            | Effect::Probe(_)
            | Effect::Look(_)
            | Effect::Notify(_) => Ok(()),
        }
    }

    /// Runs an iteration's agent, from its contract to its end.
    fn work(&mut self, run: Run) -> Result<()> {
        let (number, max) = self.worker.ralph().map_or((0, 0), |l| (l.iteration, l.max_iterations));
        let task = match self.task() {
            Ok(task) => task,
            Err(message) => {
                self.events.push_back(Event::SpawnFailed(run, SpawnError::Prompt(message)));
                return Ok(());
            }
        };
        let (until, worked) = (self.until(), self.worker.ralph().is_some_and(|l| l.worked));
        let base = block_on(self.loop_run.base(worked, &|_| {}, until))??;
        if self.until().is_some_and(|until| Instant::now() >= until) {
            self.events.push_back(Event::SpawnFailed(run, SpawnError::OutOfTime));
            return Ok(());
        }
        if self.loop_run.gates.is_spent(base.failed(), false) {
            self.events.push_back(Event::SpawnFailed(run, SpawnError::NoGate));
            return Ok(());
        }
        let contract = block_on(self.loop_run.contract(&base, (number, max), task))?;
        let folder = self.loop_run.iteration_dir(number);
        crate::paths::private_dir(&folder)?;
        write_unsynced(&folder.join(CONTRACT_FILE), &contract)
            .map_err(|e| Error::system("cannot keep the contract", e))?;
        let context = AgentContext {
            agent: &self.config.agent,
            model: self.config.model.as_deref(),
            iteration: number,
            cwd: &self.loop_run.cwd,
            folder: &folder,
            time_left: self.worker.ralph().and_then(|l| l.time_left(self.clock.now())),
        };
        let mut state = (self.agent_factory)(&context).run(&String::from_utf8_lossy(&contract));
        if self.config.max_cost.is_some() && self.loop_run.profile.cost(&state.account()).is_none() {
            state.error.get_or_insert_with(|| "max_cost is set, but the agent reports no cost".into());
        }
        self.errors.remove(&number);
        self.errors.extend(state.error.clone().map(|error| (number, error)));
        let exit = Exit::Code(i32::from(state.error.is_some()));
        self.last = (exit, state);
        // With the tick before the end of the run, the engine notices whether the time is up.
        self.events.extend([Event::Up(run), Event::Tick, Event::Exited(run, exit)]);
        Ok(())
    }

    /// The end of the loop's time.
    fn until(&self) -> Option<Instant> {
        Instant::now().checked_add(self.worker.ralph()?.time_left(self.clock.now())?)
    }

    /// The task, read again for each iteration.
    fn task(&self) -> Result<Vec<u8>, String> {
        let Some(file) = &self.loop_run.task_file else { return Ok(self.config.task.clone().into_bytes()) };
        let task = read_bounded(file, MAX_SPEC_BYTES)
            .map_err(|e| format!("cannot read spec file: {} ({e})", file.display()))?;
        if String::from_utf8_lossy(&task).trim().is_empty() {
            return Err(format!("the spec file is empty: {}", file.display()));
        }
        Ok(task)
    }

    fn evaluate(&mut self, run: Run) -> Result<()> {
        let (exit, state) = std::mem::replace(&mut self.last, (Exit::Unknown, AgentState::default()));
        let ralph = self.worker.ralph();
        let number = ralph.map_or(0, |l| l.iteration);
        let finished = Finished {
            run: run.0,
            started: ralph.and_then(|l| l.iteration_started),
            exit,
            end: self.worker.ended(),
            output: &state.output,
            account: Some(state.account()),
            ..Finished::without_agent(number, self.clock.now().wall, self.until())
        };
        // Nothing can kill this loop from outside.
        let never = AtomicBool::new(false);
        let ended: Iteration = block_on(self.loop_run.conclude(finished, &|_| {}, &never))?;
        self.loop_run.write_down(&ended)?;
        let lost = || Verdict { trouble: Some("there is no verdict".into()), ..Verdict::default() };
        self.events.push_back(Event::Evaluated(run, ended.verdict.unwrap_or_else(lost)));
        Ok(())
    }

    fn result(&self, end: LoopEnd) -> RalphLoopResult {
        let (last, spent) = self
            .worker
            .ralph()
            .map_or_else(Default::default, |ralph| (ralph.iteration, ralph.spent(self.clock.now())));
        let ledger = (1..=last).filter_map(|n| self.loop_run.read_iteration(n));
        let iterations: Vec<LoopIteration> =
            ledger.map(|it| LoopIteration::of(&it, self.errors.get(&it.iteration))).collect();
        let baseline = self.loop_run.read_base().map(|base| base.checks).unwrap_or_default();
        RalphLoopResult {
            total_iterations: iterations.len(),
            total_cost: iterations.iter().any(|it| it.cost.is_some()).then_some(spent.cost as f64 / 1e6),
            total_duration: spent.time.as_secs_f64(),
            iterations,
            success: end.exit_code(true) == 0,
            stop_reason: end.word().to_owned(),
            worktree_path: String::new(),
            baseline: baseline.iter().map(CheckResult::from).collect(),
        }
    }
}
