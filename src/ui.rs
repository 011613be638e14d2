//! `swarm ui`: shows all workers by the attention that they need, and runs verbs for the selected one.
//!
//! `main` calls [`run`]. The interface is a client of the socket: it shows answers of requests that only read, and each
//! action is a command line of swarm itself ([`verbs`]). The state ([`model`]), its changes ([`update`], [`press`]) and
//! its picture ([`view`]) are pure. This file, [`terminal`], [`link`] and [`verbs`] are the edge.
//! Deliberately absent: anything that no verb can do, and all decisions about workers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::Local;
use nix::sys::signal::Signal;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Instant, sleep_until};

use crate::client::fleet::remote_places;
use crate::error::Result;
use crate::out::{CommandResult, Out};
use crate::paths::{Paths, own_program};
use crate::procs;
use crate::runtime::{CaughtSignals, block_on};
use crate::settings::Settings;

mod keys;
mod layout;
mod link;
mod list;
mod model;
mod panel;
mod press;
mod terminal;
mod update;
mod verbs;
mod view;

#[cfg(test)]
mod tests;

use link::DaemonLink;
use model::{LinkState, UiEffect, UiEvent, UiModel};
use terminal::UiTerminal;
use verbs::Verbs;

/// The least time between two frames.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);

/// The interval at which shown ages are updated.
const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// The delay of a load that is due soon.
const LOAD_TICK_INTERVAL: Duration = Duration::from_millis(150);

/// Runs the interface until the person quits, and returns the exit status. Fails if a terminal or, at the start, a
/// daemon is missing.
pub fn run(config: Option<PathBuf>, out: Out) -> CommandResult {
    Out::require_terminal("ui", "swarm ls, swarm why, or swarm events")?;
    Ok(block_on(run_loop(config, out))??)
}

/// The parts of the edge.
struct Ui {
    model: UiModel,
    terminal: UiTerminal,
    link: DaemonLink,
    verbs: Verbs,
    events: UnboundedReceiver<UiEvent>,
    /// The next frame is not drawn before.
    next_frame: Instant,
}

async fn run_loop(config: Option<PathBuf>, out: Out) -> Result<u8> {
    let (sender, events) = mpsc::unbounded_channel();
    // The first connection is made on the normal screen, where its errors and warnings stay.
    let paths = Paths::from_env()?;
    let settings = Settings::load(&paths.user_config(), Some(Path::new("swarm.toml")), config.as_deref())?;
    let remote = remote_places(&paths, settings);
    let link = DaemonLink::open(paths, remote, sender.clone()).await?;
    let verbs = Verbs::new(own_program()?, config, sender);
    let signals = [Signal::SIGWINCH, Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT];
    let mut signals = CaughtSignals::new(&signals)?;
    let terminal = UiTerminal::open()?;
    let model = UiModel::new(Local::now().fixed_offset(), terminal.size(), out.has_color());
    let mut ui = Ui { model, terminal, link, verbs, events, next_frame: Instant::now() };
    let mut next_tick = Instant::now() + TICK_INTERVAL;
    loop {
        ui.draw_if_due()?;
        let is_attached = ui.verbs.is_attached();
        let soon = if ui.model.load_at.is_some() { LOAD_TICK_INTERVAL } else { TICK_INTERVAL };
        let tick = next_tick.min(Instant::now() + soon);
        let handled = tokio::select! {
            Some(event) = ui.events.recv() => ui.handle(event).await?,
            keys = ui.terminal.keys(), if !is_attached => {
                let Some(keys) = keys else { return Ok(0) };
                let mut is_over = false;
                for key in keys {
                    is_over = is_over || ui.handle(UiEvent::Key(key)).await?;
                }
                is_over
            }
            message = ui.verbs.attach_end(), if is_attached => {
                ui.terminal.resume()?;
                ui.resize();
                ui.model.message = message;
                false
            }
            signal = signals.next() => match signal {
                Signal::SIGHUP | Signal::SIGTERM => return Ok(128 + signal as u8),
                Signal::SIGWINCH => {
                    ui.resize();
                    false
                }
                // Ctrl-C belongs to the program of an attached window.
                _ => false,
            },
            () = sleep_until(ui.next_frame), if ui.model.is_changed && !is_attached => false,
            () = sleep_until(tick), if !is_attached => {
                next_tick = Instant::now() + TICK_INTERVAL;
                ui.handle(UiEvent::Tick).await?
            }
        };
        if handled {
            return Ok(0);
        }
    }
}

impl Ui {
    fn draw_if_due(&mut self) -> Result<()> {
        if self.model.is_changed && !self.verbs.is_attached() && Instant::now() >= self.next_frame {
            self.model.is_changed = false;
            // The load alone draws nothing: it changes all the time.
            self.model.load = procs::load();
            self.terminal.draw(&self.model)?;
            // The first workers replace "connecting" at once.
            let is_up = self.model.link != LinkState::Connecting;
            self.next_frame = Instant::now() + if is_up { FRAME_INTERVAL } else { Duration::ZERO };
        }
        Ok(())
    }

    fn resize(&mut self) {
        let (columns, rows) = self.terminal.size();
        let effects =
            update::update(&mut self.model, UiEvent::Resized(columns, rows), Local::now().fixed_offset());
        debug_assert!(effects.is_empty() || self.model.load_at.is_none());
        effects.into_iter().for_each(|effect| self.link.ask(effect));
    }

    /// Gives the terminal to a program, and takes it back if the program does not start.
    fn lend_terminal(&mut self, start: impl FnOnce(&mut Verbs) -> Result<()>) -> Result<()> {
        self.terminal.suspend();
        if let Err(error) = start(&mut self.verbs) {
            self.terminal.resume()?;
            self.model.message = Some(error.message);
        }
        Ok(())
    }

    /// Changes the state by an event and carries out the effects. True at the end.
    async fn handle(&mut self, event: UiEvent) -> Result<bool> {
        for effect in update::update(&mut self.model, event, Local::now().fixed_offset()) {
            let columns = layout::areas(&self.model).panel.width.max(1);
            match effect {
                UiEffect::Quit => return Ok(true),
                UiEffect::Run(words) => self.verbs.run(&words, columns),
                UiEffect::Show(name, panel, words) => self.verbs.show(name, panel, &words, columns),
                UiEffect::Cancel => self.verbs.cancel(),
                UiEffect::Attach(name) => self.lend_terminal(|verbs| verbs.attach(&name))?,
                UiEffect::Edit(path) => self.lend_terminal(|verbs| verbs.edit(&path))?,
                UiEffect::Load(..) | UiEffect::LoadReport(_) | UiEffect::Seen(_) => self.link.ask(effect),
            }
        }
        Ok(false)
    }
}
