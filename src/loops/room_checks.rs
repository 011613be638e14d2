//! Runs the checks of one iteration in a room: makes the room, prepares it, runs the setup and the checks.
//!
//! [`super::proofs`] decides which checks run, and what their results prove.

use std::path::PathBuf;

use swarm_state::gates::{CheckResult, TIME_OVER};
use swarm_state::ledger::Base;
use swarm_state::proof::Layer;
use tokio::time::Instant;

use super::room::Room;
use super::run::LoopRun;
use crate::checks::{CheckPlan, CheckSandbox, OnCheckStep, Step};
use crate::error::{Error, Result};

/// The beginning of the names of files for the held-out checks.
const HELD_OUT: &str = "held-out";

/// The gates of one iteration that need a room.
pub(super) struct RoomTrial<'a> {
    pub(super) loop_run: &'a LoopRun,
    pub(super) base: &'a Base,
    pub(super) iteration: u32,
    pub(super) snapshot: String,
    pub(super) head: Option<String>,
    pub(super) until: Option<Instant>,
    pub(super) on_step: OnCheckStep<'a>,
}

pub(super) struct NotRun {
    pub(super) why: String,
    /// The file with the output of a setup command that failed.
    pub(super) output: Option<PathBuf>,
}

impl From<Error> for NotRun {
    fn from(error: Error) -> Self {
        Self { why: error.message, output: None }
    }
}

pub(super) struct RoomResults {
    pub(super) checks: Vec<CheckResult>,
    pub(super) changed: Vec<String>,
    /// A linked folder that refers to the agent's tree.
    pub(super) leak: Option<String>,
}

impl RoomTrial<'_> {
    /// Makes a room, changes it with `prepare`, runs the setup and the checks in it, reports `step`, and removes it.
    pub(super) async fn checked(
        &self,
        (layer, step): (Layer, Option<&'static str>),
        commands: &[String],
        prepare: impl AsyncFnOnce(&mut Room) -> Result<()>,
    ) -> Result<RoomResults, NotRun> {
        let loop_run = self.loop_run;
        let tree = (self.head.as_deref(), self.snapshot.as_str());
        let settings = &self.base.checkout_settings;
        let mut room = Room::make(&loop_run.folder, &loop_run.cwd, tree, settings).await?;
        (self.on_step)(Step::Reached("room"));
        let results = self.checked_in(&mut room, layer, commands, prepare).await;
        if let (Ok(_), Some(step)) = (&results, step) {
            (self.on_step)(Step::Reached(step));
        }
        room.remove().await;
        results
    }

    async fn checked_in(
        &self,
        room: &mut Room,
        layer: Layer,
        commands: &[String],
        prepare: impl AsyncFnOnce(&mut Room) -> Result<()>,
    ) -> Result<RoomResults, NotRun> {
        if self.loop_run.gates.rooms.setup.is_empty() {
            room.link_dependencies().await?;
        }
        // The setup may build from the old files. The hidden files are none of its business.
        let prepare = if layer == Layer::RedReplay {
            prepare(room).await?;
            None
        } else {
            Some(prepare)
        };
        self.set_up(layer, room).await?;
        room.lay_watched(&self.loop_run.cwd, self.base.protected.clone()).await?;
        if let Some(prepare) = prepare {
            prepare(room).await?;
        }
        let shown = |number: usize, check: &str| shown(layer, number, check);
        let checks = self.run_in(room, commands, stem(layer), &shown).await?;
        let (changed, leak) = (room.changed().await?, room.leak());
        Ok(RoomResults { checks, changed, leak })
    }

    /// Runs the setup commands. The first one that fails is an error.
    async fn set_up(&self, layer: Layer, room: &Room) -> Result<(), NotRun> {
        let stem = format!("{}-setup", stem(layer));
        let setup = &self.loop_run.gates.rooms.setup;
        let results =
            self.run_in(room, setup, &stem, &|_, command| Some(format!("setup: {command}"))).await?;
        let Some(index) = results.iter().position(|result| !result.passed) else { return Ok(()) };
        let (name, output) = (&results[index].name, Some(self.output_file(&stem, index)));
        if results[index].cut {
            return Err(NotRun { why: TIME_OVER.to_owned(), output: None });
        }
        Err(NotRun { why: format!("the setup command '{name}' failed"), output })
    }

    /// The file with the output of a command in a room.
    pub(super) fn output_file(&self, stem: &str, index: usize) -> PathBuf {
        self.loop_run.iteration_dir(self.iteration).join(format!("{stem}-{}.txt", index + 1))
    }

    /// Runs commands in a room. `shown` is the name of a command for people, from its number and text.
    async fn run_in(
        &self,
        room: &Room,
        commands: &[String],
        stem: &str,
        shown: &(dyn Fn(usize, &str) -> Option<String> + Send + Sync),
    ) -> Result<Vec<CheckResult>> {
        let loop_run = self.loop_run;
        let moved: Vec<String> = commands.iter().map(|command| room.command(command)).collect();
        let name = |command: &str| {
            let index = moved.iter().position(|moved| moved == command)?;
            shown(index + 1, &commands[index])
        };
        let on_step = |step: Step<'_>| match step {
            Step::Started(command) => {
                if let Some(name) = name(command) {
                    (self.on_step)(Step::Started(&name));
                }
            }
            Step::Ended(result) => {
                if let Some(name) = name(&result.name) {
                    (self.on_step)(Step::Ended(&CheckResult { name, ..result.clone() }));
                }
            }
            Step::Reached(_) => {}
        };
        let folder = loop_run.make_iteration_dir(self.iteration)?;
        let origin = room.origins.first().map(PathBuf::as_path);
        let sandbox = loop_run.sandbox.as_deref().map(|sandbox| match stem.starts_with(HELD_OUT) {
            true => sandbox.for_held_out(commands),
            false => sandbox.clone(),
        });
        let plan = CheckPlan {
            cwd: &room.cwd,
            env: &room.environment(&loop_run.env),
            stem,
            sandbox: sandbox.as_ref().map(|sandbox| CheckSandbox { sandbox, tree: Some(&room.top), origin }),
            ..loop_run.check_plan(&moved, &folder, self.until, &on_step)
        };
        let mut results = plan.run().await?;
        for (result, command) in results.iter_mut().zip(commands) {
            result.name.clone_from(command);
        }
        Ok(results)
    }
}

/// The beginning of the names of the files with the output.
pub(super) fn stem(layer: Layer) -> &'static str {
    match layer {
        Layer::HeldOut => HELD_OUT,
        Layer::RedReplay => "replay",
        _ => "clean",
    }
}

/// The name of a check in notices, which the agent can read too. In a replay, a check that fails is good news.
fn shown(layer: Layer, number: usize, check: &str) -> Option<String> {
    match layer {
        Layer::HeldOut => Some(format!("held-out check {number}")),
        Layer::RedReplay => None,
        _ => Some(format!("{check} (clean room)")),
    }
}
