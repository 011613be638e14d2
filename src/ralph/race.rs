//! One life of a loop: the engine, stepped in process, and its effects, carried out at once.
//!
//! An effect of the engine leads to events, which wait in a queue until the step that they follow from is over.
//! Everything asynchronous runs to its end in a thread of its own, so that a loop can be run from any thread, one of a
//! runtime too. What the daemon writes down, nobody reads here: a program that dies ends its loop.

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

use super::agent::{Agent, AgentState, CONTRACT, Seat};
use super::config::RalphConfig;
use super::result::{CheckResult, LoopIteration, RalphLoopResult};
use crate::error::{Error, ErrorCode, Result};
use crate::loops::{Course, Finished};
use crate::store::{read_bounded, write_unsynced};

/// The largest spec, bytes.
const LIMIT: u64 = 16 << 20;

/// Time as the loop has it.
pub(super) trait Clock: Send {
    /// The time.
    fn now(&self) -> Now;
    /// Lets time pass.
    fn wait(&mut self, how_long: Duration);
}

/// The real one.
pub(super) struct Awake(std::time::Instant);

impl Awake {
    pub(super) fn new() -> Self {
        Self(std::time::Instant::now())
    }
}

impl Clock for Awake {
    fn now(&self) -> Now {
        Now { mono: self.0.elapsed(), wall: Local::now().fixed_offset() }
    }

    fn wait(&mut self, how_long: Duration) {
        std::thread::sleep(how_long);
    }
}

/// Runs a future to its end, from wherever.
///
/// # Errors
/// When there is no room for another thread or its descriptors.
pub(super) fn finish<T: Send>(future: impl Future<Output = T> + Send) -> Result<T> {
    let trouble = |e| Error::system("cannot start a thread", e);
    let run = || {
        // It may neither run nor end inside of another one.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(trouble)?;
        Ok(runtime.block_on(future))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, run);
        match thread.map_err(trouble)?.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// A loop at work.
pub(super) struct Race<'a, F> {
    config: &'a RalphConfig,
    course: &'a Course,
    agent_factory: &'a mut F,
    clock: &'a mut dyn Clock,
    worker: Worker,
    events: VecDeque<Event>,
    /// The agent that ended last, and how.
    last: (Exit, AgentState),
    /// What went wrong with the agents, by iteration.
    errors: BTreeMap<u32, String>,
}

impl<'a, F, A> Race<'a, F>
where
    F: FnMut(&Seat<'_>) -> A,
    A: Agent,
{
    pub(super) fn new(
        config: &'a RalphConfig,
        course: &'a Course,
        agent_factory: &'a mut F,
        clock: &'a mut dyn Clock,
    ) -> Self {
        let policy = Policy { paste: false, ready_wait: false, ready_timeout: 0, one_shot: true };
        // There is no screen to be silent.
        let silence = u64::MAX;
        let worker = Worker::verified(policy, config.max_iterations, silence, config.budgets(), true);
        let (events, last) = (VecDeque::from([Event::Start]), (Exit::Unknown, AgentState::default()));
        Self { config, course, agent_factory, clock, worker, events, last, errors: BTreeMap::new() }
    }

    /// Runs to the end.
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
                return Err(Error::new(ErrorCode::Internal, "the loop waits for nothing"));
            };
            self.clock.wait(at.saturating_sub(self.clock.now().mono));
            self.events.push_back(Event::Tick);
        }
    }

    fn carry_out(&mut self, effect: &Effect) -> Result<()> {
        match effect {
            Effect::Spawn(run) => self.work(*run),
            Effect::Judge(run) => self.judge(*run),
            // An agent has ended by the time that anything could be done to it.
            Effect::Persist
            | Effect::Deliver(_)
            | Effect::Terminate(_)
            | Effect::ForceKill(_)
            | Effect::Probe(_)
            | Effect::Look(_)
            | Effect::Notify(_) => Ok(()),
        }
    }

    /// An iteration's agent, from its contract to its end.
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
        let base = finish(self.course.base(worked, &|_| {}, until))??;
        if self.until().is_some_and(|until| Instant::now() >= until) {
            self.events.push_back(Event::SpawnFailed(run, SpawnError::OutOfTime));
            return Ok(());
        }
        if self.course.gates.is_spent(base.failed(), false) {
            self.events.push_back(Event::SpawnFailed(run, SpawnError::NoGate));
            return Ok(());
        }
        let contract = finish(self.course.contract(&base, (number, max), task))?;
        let folder = self.course.iteration_dir(number);
        crate::paths::private_dir(&folder)?;
        write_unsynced(&folder.join(CONTRACT), &contract)
            .map_err(|e| Error::system("cannot keep the contract", e))?;
        let seat = Seat {
            agent: &self.config.agent,
            model: self.config.model.as_deref(),
            iteration: number,
            cwd: &self.course.cwd,
            folder: &folder,
            time_left: self.worker.ralph().and_then(|l| l.time_left(self.clock.now())),
        };
        let mut state = (self.agent_factory)(&seat).run(&String::from_utf8_lossy(&contract));
        if self.config.max_cost.is_some() && self.course.profile.cost(&state.account()).is_none() {
            state.error.get_or_insert_with(|| "max_cost is set, and the agent does not tell its cost".into());
        }
        self.errors.remove(&number);
        self.errors.extend(state.error.clone().map(|error| (number, error)));
        let exit = Exit::Code(i32::from(state.error.is_some()));
        self.last = (exit, state);
        // The tick before its end tells whether the time was up by then.
        self.events.extend([Event::Up(run), Event::Tick, Event::Exited(run, exit)]);
        Ok(())
    }

    /// When the loop's time is over.
    fn until(&self) -> Option<Instant> {
        Instant::now().checked_add(self.worker.ralph()?.time_left(self.clock.now())?)
    }

    /// The task, read afresh.
    fn task(&self) -> Result<Vec<u8>, String> {
        let Some(file) = &self.course.task_file else { return Ok(self.config.task.clone().into_bytes()) };
        let task = read_bounded(file, LIMIT)
            .map_err(|e| format!("cannot read spec file: {} ({e})", file.display()))?;
        if String::from_utf8_lossy(&task).trim().is_empty() {
            return Err(format!("the spec file is empty: {}", file.display()));
        }
        Ok(task)
    }

    fn judge(&mut self, run: Run) -> Result<()> {
        let (exit, state) = std::mem::replace(&mut self.last, (Exit::Unknown, AgentState::default()));
        let ralph = self.worker.ralph();
        let finished = Finished {
            iteration: ralph.map_or(0, |l| l.iteration),
            run: run.0,
            started: ralph.and_then(|l| l.iteration_started),
            ended: self.clock.now().wall,
            exit,
            end: self.worker.ended(),
            output: &state.output,
            done_pattern: None,
            pattern: None,
            session: None,
            transcript: None,
            api_error: None,
            until: self.until(),
            never_started: None,
            account: Some(state.account()),
        };
        // Nobody can kill it from outside.
        let never = AtomicBool::new(false);
        let ended: Iteration = finish(self.course.conclude(finished, &|_| {}, &never))?;
        self.course.write_down(&ended)?;
        let lost = || Verdict { trouble: Some("there is no verdict".into()), ..Verdict::default() };
        self.events.push_back(Event::Judged(run, ended.verdict.unwrap_or_else(lost)));
        Ok(())
    }

    fn result(&self, end: LoopEnd) -> RalphLoopResult {
        let (last, spent) = self
            .worker
            .ralph()
            .map_or_else(Default::default, |ralph| (ralph.iteration, ralph.spent(self.clock.now())));
        let ledger = (1..=last).filter_map(|n| self.course.read_iteration(n));
        let iterations: Vec<LoopIteration> =
            ledger.map(|it| LoopIteration::of(&it, self.errors.get(&it.iteration))).collect();
        let baseline = self.course.read_base().map(|base| base.checks).unwrap_or_default();
        RalphLoopResult {
            total_iterations: iterations.len(),
            iterations,
            total_cost: spent.cost as f64 / 1e6,
            total_duration: spent.time.as_secs_f64(),
            success: end.exit_code(true) == 0,
            stop_reason: end.word().to_owned(),
            worktree_path: String::new(),
            baseline: baseline.iter().map(CheckResult::from).collect(),
        }
    }
}
