//! Holds a permission request or question of the agent open until a person answers it through swarm.
//!
//! The agent's own dialog is on the screen at the same time, and the first answer counts. Used by [`super::run`].
//! Deliberately absent: when to give up, which the daemon decides. Without a daemon, only the dialog is left.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use swarm_state::answer::{hook_output, request};
use swarm_state::hook::HookInput;

use super::report::{WorkerPlace, report_to_daemon};
use crate::paths::Paths;
use crate::protocol::{HeldAnswer, HookNews};

/// The pause between two questions to the daemon.
const ASK_INTERVAL: Duration = Duration::from_millis(200);
/// How long the daemon may be away: it may be restarting.
const MAX_ABSENCE: Duration = Duration::from_secs(10);

/// Waits for the answer. Returns the output of the hook; `None` leaves the request to the agent's dialog.
pub(super) fn hold(paths: &Paths, place: &WorkerPlace, input: &HookInput) -> Option<String> {
    let (tool, arguments) = (input.tool.as_deref()?, input.tool_input.as_ref()?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let request = request(format!("{now:x}-{}", std::process::id()), tool, arguments);
    let mut last_answer = Instant::now();
    while last_answer.elapsed() < MAX_ABSENCE {
        let news = HookNews::Holds { request: request.clone() };
        match report_to_daemon(paths, place, input, Some(news)) {
            None => {}
            Some(heard) => match heard.answer {
                Some(HeldAnswer::Wait) => last_answer = Instant::now(),
                Some(HeldAnswer::Answered(answer)) => {
                    let output = hook_output(tool, arguments, input.suggestions.as_ref(), &answer);
                    return Some(output.to_string());
                }
                // The daemon of another version does not know requests.
                Some(HeldAnswer::Over) | None => return None,
            },
        }
        std::thread::sleep(ASK_INTERVAL);
    }
    None
}
