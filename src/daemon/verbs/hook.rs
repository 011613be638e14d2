//! `hook`: a report from the hooks of a worker's own agent.

use std::time::Duration;

use swarm_state::answer::AgentRequest;
use swarm_state::cause::Cause;
use swarm_state::engine::{Event, HookSignal};
use swarm_state::model::{Run, WorkerName};
use swarm_state::notice::Entry;
use tokio::time::Instant;

use crate::daemon::run::hook_reports::HookRecord;
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::procs;
use crate::protocol::{HeldAnswer, HookAnswer, HookNews, HookParams};

/// How many warnings the hooks and the proxy of one run can cause.
const MAX_HOOK_WARNINGS: u32 = 100;

impl Supervisor {
    /// Accepts a hook's report. The hook is answered at once, whether its report counts or not.
    pub(crate) fn hook(&mut self, params: &HookParams, peer: Option<i32>) -> HookAnswer {
        let mut answer = None;
        let used = match &params.news {
            HookNews::Holds { request } => {
                answer = self.hold_request(params, request, peer);
                answer.is_some()
            }
            _ => self.accept_hook(params, peer).is_some(),
        };
        tracing::debug!(worker = %params.name, news = ?params.news, used, "a hook");
        let is_tool = used && matches!(params.news, HookNews::ToolUsed { .. });
        let slot = is_tool.then(|| self.find(&params.name).ok()).flatten();
        let max_context = slot.and_then(|(_, slot)| slot.engine.ralph()?.budgets.max_context);
        HookAnswer { used, max_context, answer }
    }

    fn accept_hook(&mut self, params: &HookParams, peer: Option<i32>) -> Option<()> {
        let (name, slot) = self.find(&params.name).ok()?;
        let run = present_run(slot, params.run)?;
        let dir = slot.driver.context.run_dir(run);
        let known = HookRecord::of(&dir);
        // On a busy machine the hook's process may have ended by now. Then the session identifies it.
        let is_known = || known.session.is_some() && known.session == params.session;
        if !is_from_below(slot, peer?).unwrap_or_else(is_known) {
            return None;
        }
        if let HookNews::HostRefused { host, private } = &params.news {
            let message = match private {
                None => {
                    format!("the sandbox refused the host {host}; to allow it: swarm allow {name} {host}")
                }
                Some(address) => {
                    format!("the sandbox refused the host {host}: {address} is in a private network")
                }
            };
            self.warn_of_hook(&name, run, message);
            return Some(());
        }
        let record = known.with(params)?;
        if record != known {
            record.keep(&dir);
        }
        if let HookNews::Limits { figures } = &params.news {
            self.note_figures(&name, figures);
            return Some(());
        }
        if params.news == HookNews::Prompt {
            slot.driver.context.prompts.send_modify(|count| *count += 1);
        }
        let warning = match &params.news {
            HookNews::Denied { what } => Some(format!("the guard stopped: {what}")),
            _ => None,
        };
        let one_shot = slot.spec.profile.is_one_shot(&slot.spec.cmd);
        if let Some(signal) = params.news.signal().filter(|signal| !one_shot || is_for_one_shot(signal)) {
            self.step(&name, Event::Hook(run, signal));
        }
        if let Some(warning) = warning {
            self.warn_of_hook(&name, run, warning);
        }
        Some(())
    }
}

impl Supervisor {
    /// Shows a warning about a run. An agent may not push the events of other workers out of the log.
    fn warn_of_hook(&mut self, name: &WorkerName, run: Run, message: String) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        if slot.hook_warnings.0 != run {
            slot.hook_warnings = (run, 0);
        }
        slot.hook_warnings.1 = slot.hook_warnings.1.saturating_add(1);
        match slot.hook_warnings.1 {
            0..MAX_HOOK_WARNINGS => self.notify(name, Entry::Warning { message }),
            MAX_HOOK_WARNINGS => {
                let message =
                    format!("{message}; further warnings of this kind in run {} are left out", run.0);
                self.notify(name, Entry::Warning { message });
            }
            _ => {}
        }
    }

    /// A hook holds a request, and asks for its answer. Returns `None` if it is not the worker's own agent.
    fn hold_request(
        &mut self,
        params: &HookParams,
        request: &AgentRequest,
        peer: Option<i32>,
    ) -> Option<HeldAnswer> {
        let (name, slot) = self.find(&params.name).ok()?;
        let run = present_run(slot, params.run)?;
        HookRecord::of(&slot.driver.context.run_dir(run)).with(params)?;
        if !is_from_below(slot, peer?)? {
            return None;
        }
        let slot = self.slots.get_mut(&name)?;
        let hold = Duration::from_secs(slot.spec.profile.hold_seconds());
        let needs_person = matches!(slot.engine.cause(), Some(Cause::NeedsPerson { .. }));
        let shows_input = slot.engine.is_ready();
        let (answer, is_news) = slot.requests.ask(request, hold, shows_input, Instant::now());
        let signal = match answer {
            HeldAnswer::Answered(_) if is_news => Some(HookSignal::Working),
            // A dialog that swarm does not recognize is a change of the screen, which ends the report of a question.
            HeldAnswer::Wait if is_news || !(needs_person || shows_input) => {
                Some(HookSignal::Asks(request.headline()))
            }
            HeldAnswer::Answered(_) | HeldAnswer::Wait | HeldAnswer::Over => None,
        };
        if let Some(signal) = signal {
            self.step(&name, Event::Hook(run, signal));
        }
        Some(answer)
    }
}

/// The live run, if the report is about it.
fn present_run(slot: &Slot, said: Option<u64>) -> Option<Run> {
    let run = slot.engine.run();
    (slot.engine.has_pane() && said.is_none_or(|said| said == run.0)).then_some(run)
}

/// Whether the process is in the worker's pane; `None` if the process has ended.
fn is_from_below(slot: &Slot, peer: i32) -> Option<bool> {
    let Some(pane) = slot.pane.as_ref().filter(|pane| pane.run == slot.engine.run()) else {
        return Some(false);
    };
    let line = procs::ancestors(peer);
    // The wrapper itself reports what its proxy refused.
    (!line.is_empty()).then(|| peer == pane.pid || line.contains(&pane.pid))
}

/// Whether a report counts for a command that does one task: such a command exits by itself after its turn.
fn is_for_one_shot(signal: &HookSignal) -> bool {
    match signal {
        HookSignal::TurnOver | HookSignal::Idle | HookSignal::ApiError(_) => false,
        HookSignal::Prompt | HookSignal::Working | HookSignal::ToolUsed(_) => true,
        HookSignal::ContextSpent | HookSignal::Asks(_) => true,
    }
}
