//! A simulated machine: panes, agents with plans, a driver that is late, a daemon that crashes between any
//! two effects. Time is virtual and goes by half seconds.
//!
//! The truthful world reports everything once and in order, in the faulty one panes vanish, spawns fail,
//! reports come late, twice, out of order and about earlier runs, the tmux server dies and clocks jump. In
//! both every question of the engine is answered in the end: that is what the edge owes it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::seeded::Machine;
use super::*;
use crate::budget;
use crate::engine::{Edits, Presence, RELEASE_DELAY, Why};
use crate::model::{RestartSpec, RestartWhen};
use crate::notice::{PauseBy, StopReason};
use crate::reconcile::{PaneClaim, RunEvidence, finding, is_orphan};

/// The planned behavior of an agent.
#[derive(Clone, Debug)]
struct Plan {
    /// Milliseconds of work once it has its prompt; `None`: it goes silent and never ends by itself.
    work: Option<u64>,
    exit: Exit,
    chatty: bool,
    computing: bool,
    ignores_term: bool,
    /// How often force is needed.
    stubborn: u8,
    /// Milliseconds until its input box is there.
    ready: u64,
    /// Asks a question that nobody answers.
    asks: bool,
    done: bool,
}

impl Plan {
    fn simple(code: i32) -> Self {
        Self {
            work: Some(3000),
            exit: Exit::Code(code),
            chatty: true,
            computing: false,
            ignores_term: false,
            stubborn: 1,
            ready: 1000,
            asks: false,
            done: false,
        }
    }

    fn random(dice: &mut Dice) -> Self {
        let exits =
            [Exit::Code(0), Exit::Code(0), Exit::Code(0), Exit::Code(1), Exit::Signal(9), Exit::Unknown];
        let plan = Self {
            work: (!dice.one_in(4)).then(|| dice.below(20_000)),
            exit: exits[dice.below(6) as usize],
            chatty: !dice.one_in(3),
            computing: dice.one_in(4),
            ignores_term: dice.one_in(3),
            stubborn: 1 + dice.below(3) as u8,
            ready: dice.below(6000),
            asks: false,
            done: dice.one_in(40),
        };
        let asks = plan.ready.is_multiple_of(12);
        Self { asks, work: plan.work.filter(|_| !asks), ..plan }
    }
}

/// One agent that was started, and its pane.
#[derive(Clone, Debug)]
struct Agent {
    run: Run,
    iteration: u32,
    plan: Plan,
    server: u32,
    born: u64,
    prompted: Option<u64>,
    alive: bool,
    pane: bool,
    /// The exit that its wrapper recorded.
    exit: Option<Exit>,
    died: u64,
}

/// How the last try at a run ended, as the world itself saw it.
#[derive(Clone, Copy, Debug)]
struct LastTry {
    exit: Exit,
    at: u64,
    lived: u64,
}

/// The faults that may happen, each once in so many times; 0: never.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    spawn_fails: u64,
    pane_vanishes: u64,
    server_dies: u64,
    repeats: u64,
    lateness: u64,
    clock_jumps: u64,
    crashes: u64,
}

pub(super) const TRUTHFUL: Faults = Faults {
    spawn_fails: 0,
    pane_vanishes: 0,
    server_dies: 0,
    repeats: 0,
    lateness: 0,
    clock_jumps: 0,
    crashes: 0,
};
pub(super) const CRASHING: Faults = Faults { crashes: 12, ..TRUTHFUL };
pub(super) const FAULTY: Faults = Faults {
    spawn_fails: 8,
    pane_vanishes: 120,
    server_dies: 300,
    repeats: 3,
    lateness: 6000,
    clock_jumps: 200,
    crashes: 40,
};

/// The person's actions and their times (virtual milliseconds).
type Person = VecDeque<(u64, Event)>;

struct World {
    dice: Dice,
    faults: Faults,
    now: u64,
    boot: u64,
    machine: Machine,
    saved: Worker,
    driver: VecDeque<Effect>,
    driver_free: u64,
    mail: Vec<(u64, Event)>,
    agents: Vec<Agent>,
    plans: VecDeque<Plan>,
    server: u32,
    person: Person,
    /// Half seconds of holds since the last release.
    held_for: u32,
    /// Effects so far; the daemon crashes before these.
    count: u64,
    crash_at: BTreeSet<u64>,
    failed_spawns: Vec<u32>,
    /// When the last spawn failed, if nothing was started since.
    failed_at: Option<u64>,
    /// Tries in a row that failed, by what the world saw.
    in_a_row: u32,
    lost: BTreeMap<u32, usize>,
    broken: Option<String>,
    trace: Vec<String>,
}

impl World {
    fn new(machine: Machine, seed: u64, faults: Faults) -> Self {
        let saved = machine.worker.clone();
        Self {
            dice: Dice(seed),
            faults,
            now: 1000,
            boot: 0,
            machine,
            saved,
            driver: VecDeque::new(),
            driver_free: 0,
            mail: vec![],
            agents: vec![],
            plans: VecDeque::new(),
            server: 1,
            person: [(0, Event::Start)].into(),
            held_for: 0,
            count: 0,
            crash_at: BTreeSet::new(),
            failed_spawns: vec![],
            failed_at: None,
            in_a_row: 0,
            lost: BTreeMap::new(),
            broken: None,
            trace: vec![],
        }
    }

    fn mono(&self) -> Now {
        at(self.now - self.boot)
    }

    fn happens(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.dice.one_in(one_in)
    }

    fn broke(&mut self, what: &str) {
        if self.broken.is_none() {
            let from = self.trace.len().saturating_sub(14);
            self.broken = Some(format!("{what} at {}ms\n  {}", self.now, self.trace[from..].join("\n  ")));
        }
    }

    // ---- the daemon ----

    fn step(&mut self, event: Event) {
        let before = phase_word(&self.machine.worker);
        let effects = self.machine.step(event.clone(), self.mono());
        let did = line(&effects, &self.machine.worker);
        if !effects.is_empty() {
            self.trace.push(format!("{}ms {before} + {event:?}: {did}", self.now));
        }
        if let (Event::ServerLost(_), Phase::Lost, Some(l)) =
            (&event, self.machine.worker.phase(), self.machine.worker.ralph())
        {
            *self.lost.entry(l.iteration).or_default() += usize::from(!effects.is_empty());
        }
        let snapshot = self.machine.worker.clone();
        for effect in effects {
            if self.crash_due() {
                return self.crash();
            }
            match effect {
                Effect::Persist => self.saved = snapshot.clone(),
                Effect::Notify(_) => {}
                Effect::Spawn(_)
                | Effect::Deliver(_)
                | Effect::Terminate(_)
                | Effect::ForceKill(_)
                | Effect::Probe(_)
                | Effect::Look(_)
                | Effect::Evaluate(_) => self.driver.push_back(effect),
            }
        }
        if self.machine.worker.is_stopped() && self.agents.iter().any(|a| a.alive || a.pane) {
            self.broke("stopped with a pane left");
        }
    }

    fn crash_due(&mut self) -> bool {
        self.count += 1;
        self.crash_at.remove(&self.count) || self.happens(self.faults.crashes)
    }

    /// The daemon dies: what it held in memory is gone. Its successor loads, looks and asks.
    fn crash(&mut self) {
        self.trace.push(format!("{}ms crash", self.now));
        self.driver.clear();
        self.mail.clear();
        self.now += self.dice.below(3) * 7000;
        self.agents_live();
        self.mail.clear();
        // A spawn that failed unseen by the disk is tried again, and counts as no try.
        if matches!(self.saved.phase(), Phase::Spawning { .. }) {
            self.failed_at = None;
        }
        let text = serde_json::to_string(&self.saved).unwrap();
        self.machine.worker = serde_json::from_str(&text).unwrap();
        self.machine.rebase(self.mono());
        let worker = self.machine.worker.clone();
        let strays = self
            .agents
            .iter()
            .any(|a| a.alive && is_orphan(PaneClaim { run: a.run, dead: false }, Some(&worker)));
        if strays {
            self.broke("an agent that nobody knows");
        }
        if *worker.phase() == Phase::Idle {
            return self.step(Event::Start);
        }
        let seen = self.evidence(worker.run());
        if let Some(event) = finding(&worker, seen) {
            self.step(event);
        }
    }

    /// Honest evidence, with one truth of tmux: the exit of a dead pane is sometimes not known to it.
    fn evidence(&mut self, run: Run) -> RunEvidence {
        let vague = self.dice.one_in(2);
        let Some(agent) = self.agents.iter().find(|a| a.run == run) else {
            return RunEvidence { same_server: Some(true), ..RunEvidence::default() };
        };
        RunEvidence {
            alive: agent.alive,
            dead: (agent.pane && !agent.alive).then_some(agent.exit.filter(|_| !vague)),
            recorded: agent.exit,
            closed_under_it: agent.exit == Some(Exit::Lost),
            unstarted: false,
            started: true,
            same_server: Some(agent.server == self.server),
            unread: false,
        }
    }

    // ---- the world ----

    fn report(&mut self, event: Event) {
        let late = self.dice.below(self.faults.lateness);
        self.mail.push((self.now + 100 + late, event.clone()));
        if self.happens(self.faults.repeats) {
            let late = self.dice.below(4 * self.faults.lateness);
            self.mail.push((self.now + 100 + late, event));
        }
    }

    /// The driver carries out its next effect.
    fn drive(&mut self) {
        if self.driver_free > self.now {
            return;
        }
        let Some(effect) = self.driver.pop_front() else { return };
        if self.crash_due() {
            return self.crash();
        }
        self.driver_free = self.now + self.dice.below(2000);
        match effect {
            Effect::Persist | Effect::Notify(_) => {}
            Effect::Spawn(run) => self.spawn(run),
            Effect::Deliver(run) => {
                let now = self.now;
                let agent = self.agents.iter_mut().find(|a| a.run == run && a.alive);
                let taken = agent.map(|a| *a.prompted.get_or_insert(now)).is_some();
                let failed = || Event::PromptFailed(run, "no agent".into());
                self.report(if taken { Event::PromptSent(run) } else { failed() });
            }
            Effect::Terminate(run) => self.end(run, Exit::Signal(15), |plan| !plan.ignores_term),
            Effect::ForceKill(run) => self.end(run, Exit::Signal(9), |plan| {
                plan.stubborn -= 1;
                plan.stubborn == 0
            }),
            // Looks come every two seconds here as well.
            Effect::Look(_) => {}
            Effect::Probe(run) => {
                let busy = self.agents.iter().any(|a| a.run == run && a.alive && a.plan.computing);
                self.report(Event::Probed(run, busy));
            }
            Effect::Evaluate(run) => {
                let mut done = false;
                // The mark of a delivery that a daemon which died did not report.
                if self.saved.policy.paste && self.agents.iter().any(|a| a.run == run && a.prompted.is_some())
                {
                    self.report(Event::PromptSent(run));
                }
                for agent in self.agents.iter_mut().filter(|a| a.run == run) {
                    agent.pane = false;
                    done = agent.plan.done && agent.prompted.is_some();
                }
                self.report(Event::Evaluated(run, gates(done)));
            }
        }
    }

    fn spawn(&mut self, run: Run) {
        let iteration = self.saved.ralph().map_or(0, |l| l.iteration);
        if self.saved.run() != run {
            self.broke("a spawn whose run is not on disk");
        }
        if self.agents.iter().any(|a| a.alive || a.pane) {
            self.broke("two agents at once");
        }
        self.check_restart();
        self.failed_at = None;
        if self.happens(self.faults.spawn_fails) {
            self.failed_at = Some(self.now);
            self.failed_spawns.push(iteration);
            return self.report(Event::SpawnFailed(run, SpawnError::Other("no".into())));
        }
        let plan = self.plans.pop_front().unwrap_or_else(|| Plan::random(&mut self.dice));
        let prompted = (!self.saved.policy.paste).then_some(self.now);
        let (server, born) = (self.server, self.now);
        self.agents.push(Agent {
            run,
            iteration,
            plan,
            server,
            born,
            prompted,
            alive: true,
            pane: true,
            exit: None,
            died: 0,
        });
        self.report(Event::Up(run));
    }

    /// Checks that a restart waited long enough, that it followed a failure where only failures count, and that it does
    /// not exceed the maximum.
    fn check_restart(&mut self) {
        let last = self.agents.last().and_then(|agent| {
            // News of an end may be late, and a clock may jump before they come: what it could be taken for.
            let lived = self.now - agent.born;
            Some(LastTry { exit: agent.exit?, at: agent.died, lived })
        });
        let failed = self.failed_at.map(|at| LastTry { exit: Exit::Unknown, at, lived: 0 });
        let (Some(spec), Some(last)) = (self.saved.restarts().map(|r| r.spec), failed.or(last)) else {
            return;
        };
        // The engine may know less of a long life than the world: then it counts more, never less.
        let long = last.lived >= budget::PROVEN_RUN_TIME.as_millis() as u64;
        let before = if long { 0 } else { self.in_a_row };
        self.in_a_row = if last.exit.is_success() { 0 } else { before + 1 };
        let wait = match self.in_a_row {
            0 if spec.when == RestartWhen::OnFailure => return self.broke("started again after a good end"),
            0 => budget::RESTART_DELAY,
            n if n > spec.max_restarts => return self.broke("one restart too many"),
            n => budget::backoff(n),
        };
        if self.now < last.at + wait.as_millis() as u64 {
            self.broke("started again before its time");
        }
    }

    fn end(&mut self, run: Run, exit: Exit, gives_in: impl Fn(&mut Plan) -> bool) {
        let now = self.now;
        for i in 0..self.agents.len() {
            let agent = &mut self.agents[i];
            if agent.run == run && agent.alive && gives_in(&mut agent.plan) {
                (agent.alive, agent.exit, agent.died) = (false, Some(exit), now);
                self.report(Event::Exited(run, exit));
            }
        }
    }

    /// Agents work and end, panes vanish, the server dies.
    fn agents_live(&mut self) {
        let dies = self.happens(self.faults.server_dies);
        for i in 0..self.agents.len() {
            let vanishes = self.happens(self.faults.pane_vanishes);
            let now = self.now;
            let agent = &mut self.agents[i];
            if !agent.alive {
                // A dead pane goes with its server; the record of the exit stays.
                agent.pane &= !dies;
                continue;
            }
            let run = agent.run;
            let over = agent.prompted.zip(agent.plan.work).is_some_and(|(from, work)| now >= from + work);
            if dies || vanishes {
                (agent.alive, agent.pane, agent.exit) = (false, false, Some(Exit::Lost));
                agent.died = now;
                self.report(if dies { Event::ServerLost(run) } else { Event::PaneLost(run) });
            } else if over {
                (agent.alive, agent.exit, agent.died) = (false, Some(agent.plan.exit), now);
                let exit = agent.plan.exit;
                self.report(Event::Exited(run, exit));
            }
        }
        self.server += u32::from(dies);
    }

    /// Looks at the screen, as the daemon does.
    fn look(&mut self) {
        let run = self.machine.worker.run();
        let now = self.now;
        let Some(agent) = self.agents.iter().find(|a| a.run == run && a.alive) else { return };
        let ready = agent.prompted.is_none() && now >= agent.born + agent.plan.ready;
        let prints = agent.plan.chatty && agent.plan.work.is_some();
        let print = if prints { (now / 2000 % 250) as u8 } else { u8::from(ready) };
        let done = agent.plan.done && agent.prompted.is_some_and(|from| now > from + 1000);
        let asks = agent.plan.asks && agent.prompted.is_some();
        let blocked = asks.then(|| Blocked { startup: false, what: "may I?".into() });
        let reading = Reading { ready, done, blocked, printed: prints, ..screen(print) };
        self.step(Event::Screen(run, reading));
    }

    fn half_second(&mut self) {
        self.now += 500;
        if self.happens(self.faults.clock_jumps) {
            self.now += self.dice.below(3_600_000);
        }
        self.agents_live();
        self.drive();
        while let Some(i) = self.mail.iter().position(|(due, _)| *due <= self.now) {
            let (_, event) = self.mail.remove(i);
            self.step(event);
        }
        if self.happens(self.faults.repeats * 40) && !self.agents.is_empty() {
            let old = self.agents[self.dice.below(self.agents.len() as u64) as usize].clone();
            if old.run != self.machine.worker.run() {
                self.step(Event::Exited(old.run, old.exit.unwrap_or(Exit::Unknown)));
                self.step(Event::Up(old.run));
                self.step(Event::Evaluated(old.run, gates(true)));
            }
        }
        if self.machine.deadline().is_some_and(|due| due <= self.mono().mono) {
            self.step(Event::Tick);
        }
        if self.now % 2000 < 500 && self.machine.worker.wants_screen() {
            self.look();
        }
        while self.person.front().is_some_and(|(due, _)| *due <= self.now) {
            let Some((_, event)) = self.person.pop_front() else { break };
            self.step(event);
        }
        self.watch();
    }

    /// Rule 6, and one agent at most.
    fn watch(&mut self) {
        let worker = &self.machine.worker;
        let run = worker.run();
        let mail = |f: fn(&Event) -> bool| self.mail.iter().any(|(_, e)| about(e) == Some(run) && f(e));
        let ends: fn(&Event) -> bool =
            |e| matches!(e, Event::Exited(..) | Event::PaneLost(_) | Event::ServerLost(_));
        let ok = match worker.phase() {
            Phase::Spawning { .. } => {
                let comes = |e: &Event| matches!(e, Event::Up(_) | Event::SpawnFailed(..));
                self.driver.contains(&Effect::Spawn(run)) || mail(comes) || mail(ends)
            }
            Phase::Evaluating { .. } => {
                self.driver.contains(&Effect::Evaluate(run)) || mail(|e| matches!(e, Event::Evaluated(..)))
            }
            Phase::Starting { .. } | Phase::Running { .. } => {
                self.agents.iter().any(|a| a.run == run && a.alive) || mail(ends)
            }
            Phase::BackingOff { .. } if worker.is_held() => true,
            Phase::Prompting { .. } | Phase::Ending { .. } | Phase::BackingOff { .. } => {
                self.machine.deadline().is_some()
            }
            Phase::Idle => !self.person.is_empty(),
            Phase::Parked | Phase::Lost | Phase::Stopped { .. } => true,
        };
        if !ok {
            self.broke("a phase waits for nothing");
        }
        if self.agents.iter().filter(|a| a.alive).count() > 1 {
            self.broke("two agents at once");
        }
    }

    /// Runs until it is over; a person resumes what is parked or lost after a while.
    fn run(&mut self, limit: u64) -> Result<(), String> {
        let (mut rests, mut steps) = (0, 0);
        while !self.machine.worker.is_stopped() && self.broken.is_none() {
            self.half_second();
            let paused = self.machine.worker.ralph().is_some_and(|l| l.paused.is_some());
            let resting = paused || *self.machine.worker.phase() == Phase::Lost;
            rests = if resting { rests + 1 } else { 0 };
            if self.machine.worker.is_held() {
                self.held_for += 1;
            }
            if self.held_for > 60 {
                self.held_for = 0;
                self.step(Event::Release);
            }
            if rests > 60 {
                self.step(Event::Resume);
            }
            steps += 1;
            if steps > 30_000 || self.now > limit {
                self.broke("it never ends");
            }
        }
        let done: Vec<u32> = self.agents.iter().map(|a| a.iteration).collect();
        if !done.is_sorted() {
            self.broke("iterations out of order");
        }
        let last = self.machine.worker.ralph().map_or(0, |l| l.iteration);
        let reason = self.machine.worker.phase().clone();
        let killed = reason == Phase::Stopped { reason: StopReason::Killed };
        for i in 1..=last {
            let agents = done.iter().filter(|d| **d == i).count();
            let failed = self.failed_spawns.contains(&i);
            if agents > 1 + self.lost.get(&i).copied().unwrap_or(0) {
                self.broke(&format!("iteration {i} ran {agents} times"));
            }
            if agents == 0 && !failed && !(killed && i == last) {
                self.broke(&format!("iteration {i} never ran"));
            }
        }
        let runs: Vec<Run> = self.agents.iter().map(|a| a.run).collect();
        if !runs.is_sorted_by(|a, b| a < b) {
            self.broke("a run was started twice");
        }
        if done.iter().any(|d| *d > last) {
            self.broke("an agent ran in an iteration that nobody counted");
        }
        self.broken.take().map_or(Ok(()), Err)
    }
}

/// Random agents and a random person in one world; the kill always comes in the end.
pub(super) fn random_world(
    machine: impl FnOnce(Worker) -> Machine,
    seed: u64,
    faults: Faults,
) -> Result<(), String> {
    let mut dice = Dice(seed ^ 0xfeed);
    let policy = if dice.one_in(2) { STDIN } else { PASTE };
    let max = 1 + dice.below(9) as u32;
    let worker = Worker::looping(policy, max, 5 + dice.below(20));
    let mut world = World::new(machine(worker), seed, faults);
    let mut time = 0;
    for _ in 0..dice.below(6) {
        time += dice.below(60_000);
        let event = match dice.below(8) {
            4 => Event::Hold,
            5 => Event::Release,
            6 => Event::Present(Presence::Typing),
            7 => Event::Present(Presence::Away(RELEASE_DELAY)),
            0 => Event::Pause(PauseBy::User),
            1 => Event::Pause(PauseBy::Shutdown),
            2 => Event::Resume,
            _ => {
                let max = 1 + dice.below(9) as u32;
                let question_timeout = Some(u64::from(max) * 30);
                let done_pattern = (dice.below(4) == 0).then_some(None);
                let max_iterations = Some(max);
                Event::Edited(Edits { max_iterations, question_timeout, done_pattern, ..Edits::default() })
            }
        };
        world.person.push_back((time, event));
    }
    if dice.one_in(2) {
        world.person.push_back((time + dice.below(30_000), Event::Kill));
        return world.run_killed().map_err(|text| format!("seed {seed}: {text}"));
    }
    world.run(u64::MAX).map_err(|text| format!("seed {seed}: {text}"))
}

impl World {
    /// The same with a kill: it must be over within two minutes (of a person's time) of it.
    fn run_killed(&mut self) -> Result<(), String> {
        while self.person.iter().any(|(_, e)| *e == Event::Kill)
            && !self.machine.worker.is_stopped()
            && self.broken.is_none()
        {
            self.half_second();
        }
        // A kill that a crash swallowed before it was written is given again, as a person would.
        for _ in 0..240 {
            if self.machine.worker.is_stopped() {
                break;
            }
            let doomed = |w: &Worker| match w.phase() {
                Phase::Spawning { doomed } => *doomed,
                Phase::Ending { why, .. } => *why == Why::Kill,
                Phase::Evaluating { why, .. } => *why == Some(Why::Kill),
                _ => false,
            };
            if self.faults.crashes > 0 && !doomed(&self.machine.worker) {
                self.step(Event::Kill);
            }
            self.half_second();
        }
        if !self.machine.worker.is_stopped() {
            self.broke("killed but not stopped");
        }
        self.run(u64::MAX)
    }
}

/// A plain worker that is started again, in one world with its random agents. They all end by themselves (no
/// silence ends a plain worker), so one that restarts on failure ends too; the others are killed.
pub(super) fn restarting_world(
    machine: impl FnOnce(Worker) -> Machine,
    seed: u64,
    faults: Faults,
) -> Result<(), String> {
    let mut dice = Dice(seed ^ 0xbeef);
    let policy = if dice.one_in(2) { STDIN } else { PASTE };
    let when = if dice.one_in(2) { RestartWhen::OnFailure } else { RestartWhen::Always };
    let spec = RestartSpec { when, max_restarts: dice.below(6) as u32 };
    let mut world = World::new(machine(Worker::restarting(policy, spec)), seed, faults);
    world.plans = (0..200)
        .map(|_| Plan { work: Some(dice.below(9000)), asks: false, ..Plan::random(&mut dice) })
        .collect();
    if when == RestartWhen::Always || dice.one_in(3) {
        world.person.push_back((dice.below(120_000), Event::Kill));
        return world.run_killed().map_err(|text| format!("seed {seed}: {text}"));
    }
    world.run(u64::MAX).map_err(|text| format!("seed {seed}: {text}"))
}

const WORLDS: u64 = 400;

#[test]
fn guarantees_hold_in_simulations_without_faults() {
    for seed in 0..WORLDS {
        random_world(Machine::true_one, seed, TRUTHFUL).unwrap();
    }
}

#[test]
fn guarantees_hold_in_simulations_with_daemon_crashes() {
    for seed in 0..WORLDS {
        random_world(Machine::true_one, seed, CRASHING).unwrap();
    }
}

#[test]
fn guarantees_hold_in_simulations_with_faults() {
    for seed in 0..WORLDS {
        random_world(Machine::true_one, seed, FAULTY).unwrap();
    }
}

#[test]
fn guarantees_hold_in_simulations_with_restarted_workers() {
    for seed in 0..WORLDS {
        for faults in [TRUTHFUL, CRASHING, FAULTY] {
            restarting_world(Machine::true_one, seed, faults).unwrap();
        }
    }
}

/// Known agents of a worker that restarts on failure: each runs once and in its turn, and the end is the same,
/// wherever the daemon crashes.
#[test]
fn daemon_crash_neither_uses_nor_adds_a_restart() {
    let spec = RestartSpec { when: RestartWhen::OnFailure, max_restarts: 3 };
    let world = |codes: &[i32], crash: &[u64]| {
        let mut world = World::new(Machine::true_one(Worker::restarting(STDIN, spec)), 7, TRUTHFUL);
        world.plans = codes.iter().map(|code| Plan::simple(*code)).collect();
        world.crash_at = crash.iter().copied().collect();
        world
    };
    let runs = |mut world: World, runs: usize, reason: &StopReason| {
        world.run(u64::MAX).unwrap();
        let end = Phase::Stopped { reason: reason.clone() };
        assert_eq!((world.agents.len(), world.machine.worker.phase()), (runs, &end), "{:#?}", world.trace);
        world.count
    };
    for (codes, reason) in
        [(vec![1, 3, 0], StopReason::Exited(Exit::Code(0))), (vec![1, 1, 1, 1], StopReason::GaveUp(3))]
    {
        let effects = runs(world(&codes, &[]), codes.len(), &reason);
        for crash in 1..=effects {
            runs(world(&codes, &[crash]), codes.len(), &reason);
            for again in 1..6 {
                runs(world(&codes, &[crash, crash + again]), codes.len(), &reason);
            }
        }
    }
}

/// A loop of known agents; the daemon crashes before the `crash`th effect (0: never).
fn known(codes: &[i32], policy: &Policy, crash: &[u64]) -> World {
    let worker = Worker::looping(policy.clone(), codes.len() as u32, 60);
    let mut world = World::new(Machine::true_one(worker), 7, TRUTHFUL);
    world.plans = codes.iter().map(|code| Plan::simple(*code)).collect();
    world.crash_at = crash.iter().copied().collect();
    world
}

fn runs_exactly(mut world: World, codes: &[i32]) -> u64 {
    world.run(u64::MAX).unwrap();
    let ralph = world.machine.worker.ralph().unwrap().clone();
    let failures = codes.iter().filter(|code| **code != 0).count();
    let phase = world.machine.worker.phase().clone();
    let reason = if failures < codes.len() { StopReason::MaxIterations } else { StopReason::AllFailed };
    assert_eq!(phase, Phase::Stopped { reason }, "{:#?}", world.trace);
    let done: Vec<u32> = world.agents.iter().map(|a| a.iteration).collect();
    assert_eq!(done, (1..=codes.len() as u32).collect::<Vec<_>>(), "{:#?}", world.trace);
    assert_eq!(ralph.total_failures as usize, failures, "{:#?}", world.trace);
    world.count
}

#[test]
fn loop_of_n_iterations_runs_n_times_at_every_crash_point() {
    for (codes, policy) in [(vec![0, 1, 0, 3, 0], STDIN), (vec![0, 1, 0], PASTE), (vec![1], STDIN)] {
        let effects = runs_exactly(known(&codes, &policy, &[]), &codes);
        assert!(effects > 6 * codes.len() as u64, "{effects} effects");
        for crash in 1..=effects {
            runs_exactly(known(&codes, &policy, &[crash]), &codes);
            // And once more while the successor is at its first effects.
            for again in 1..6 {
                runs_exactly(known(&codes, &policy, &[crash, crash + again]), &codes);
            }
        }
    }
}

#[test]
fn loop_of_100_iterations_runs_100_times() {
    let codes = [0; 100];
    runs_exactly(known(&codes, &STDIN, &[]), &codes);
}

/// A kill at every half second of a loop's life, with agents that ignore TERM and need force twice.
#[test]
fn kill_at_any_moment_ends_the_loop() {
    for policy in [STDIN, PASTE] {
        for moment in 0..120 {
            let mut world = known(&[0, 1, 1, 1], &policy, &[]);
            for plan in &mut world.plans {
                (plan.ignores_term, plan.stubborn) = (true, 2);
            }
            world.person.push_back((1000 + moment * 500, Event::Kill));
            world.run_killed().unwrap();
        }
    }
}

#[test]
fn hung_agents_are_ended_by_force_and_have_failed() {
    let mut world = known(&[0, 0], &PASTE, &[]);
    for plan in &mut world.plans {
        (plan.work, plan.ignores_term, plan.stubborn) = (None, true, 3);
    }
    world.run(400_000).unwrap();
    assert_eq!(world.agents.len(), 2);
    assert_eq!(world.machine.worker.ralph().map(|l| l.total_failures), Some(2));
    let end = Phase::Stopped { reason: StopReason::AllFailed };
    assert_eq!(*world.machine.worker.phase(), end);
}

/// After a reboot the clock starts anew: no wait may grow beyond its whole.
#[test]
fn reboot_extends_no_wait() {
    for moment in 0..120 {
        let mut world = known(&[0, 1, 0], &PASTE, &[]);
        for _ in 0..moment {
            world.half_second();
        }
        if world.machine.worker.is_stopped() {
            break;
        }
        world.now += 100_000_000;
        world.boot = world.now - 5000;
        for agent in &mut world.agents {
            if agent.alive {
                (agent.alive, agent.exit) = (false, Some(Exit::Lost));
            }
            agent.pane = false;
        }
        world.server += 1;
        world.crash();
        let limit = world.now + 120_000;
        if *world.machine.worker.phase() == Phase::Lost {
            // Its iteration is repeated by a person's word.
            let iteration = world.machine.worker.ralph().unwrap().iteration;
            world.lost.insert(iteration, 1);
            world.plans.push_front(Plan::simple(0));
        }
        world.run(limit).unwrap();
    }
}
