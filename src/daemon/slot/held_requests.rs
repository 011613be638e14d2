//! The requests of a worker's agent that its hooks hold open: each hook asks for its answer again and again.
//!
//! Nothing of it is saved: the hooks ask the next daemon too. A request whose hook has not asked for a while is not
//! open any more. One whose dialog has gone from the screen was answered there, and its hook ends: Claude Code
//! shows one dialog at a time, the oldest first. An answer is kept for a while, because its hook may not have received
//! it. Used by the verbs `hook` and `answer`, and by the views.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use swarm_state::answer::{AgentRequest, RequestAnswer};
use tokio::time::Instant;

use crate::daemon::clock::local_now;
use crate::protocol::{AgentRequestView, HeldAnswer};

/// How long a hook may not have asked.
const HOOK_SILENCE_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_KEEP_TIME: Duration = Duration::from_secs(120);
/// How long the agent shows its input box before its oldest request counts as answered in the dialog. When the hook
/// starts, the dialog may not be on the screen yet.
const DIALOG_GONE_DELAY: Duration = Duration::from_secs(2);

struct HeldRequest {
    request: AgentRequest,
    since: DateTime<FixedOffset>,
    asked: Instant,
    /// The answer, and when it was given.
    answer: Option<(RequestAnswer, Instant)>,
    /// The hook has asked for the answer.
    is_taken: bool,
    first_asked: Instant,
}

/// The requests of one worker, oldest first.
#[derive(Default)]
pub(crate) struct HeldRequests {
    held: Vec<HeldRequest>,
    /// Since when the agent has shown its input box, while requests are held.
    gone_since: Option<Instant>,
}

impl HeldRequests {
    /// A hook asks for the answer to its request, which is held for `hold` at most. Returns the answer, and whether it
    /// is news: a new request, or an answer for the first time.
    pub(crate) fn ask(
        &mut self,
        request: &AgentRequest,
        hold: Duration,
        shows_input: bool,
        now: Instant,
    ) -> (HeldAnswer, bool) {
        self.held.retain(|held| held.is_kept(now));
        let Some(at) = self.held.iter().position(|held| held.request.id == request.id) else {
            let request = request.clone();
            self.held.push(HeldRequest {
                request,
                since: local_now(),
                asked: now,
                answer: None,
                is_taken: false,
                first_asked: now,
            });
            self.gone_since = None;
            return (HeldAnswer::Wait, true);
        };
        self.held[at].asked = now;
        if let Some((answer, _)) = self.held[at].answer.clone() {
            let is_first = !std::mem::replace(&mut self.held[at].is_taken, true);
            self.gone_since = None;
            return (HeldAnswer::Answered(answer), is_first);
        }
        if now.duration_since(self.held[at].first_asked) >= hold {
            self.held.remove(at);
            return (HeldAnswer::Over, false);
        }
        if !shows_input {
            self.gone_since = None;
        } else {
            let since = *self.gone_since.get_or_insert(now);
            let is_oldest = !self.held[..at].iter().any(|older| older.answer.is_none());
            if is_oldest && now.duration_since(since) >= DIALOG_GONE_DELAY {
                self.held.remove(at);
                self.gone_since = None;
                return (HeldAnswer::Over, false);
            }
        }
        (HeldAnswer::Wait, false)
    }

    /// Keeps the answer for the hook of the oldest open request, or of the one with this id. Returns that request;
    /// `None` if it is not open. `fits` decides whether the answer fits.
    pub(crate) fn answer<E>(
        &mut self,
        id: Option<&str>,
        answer: RequestAnswer,
        now: Instant,
        fits: impl FnOnce(&AgentRequest) -> Result<(), E>,
    ) -> Result<Option<AgentRequest>, E> {
        let is_meant = |held: &&mut HeldRequest| id.is_none_or(|id| held.request.id == id);
        let Some(held) = self.held.iter_mut().filter(|held| held.is_open(now)).find(is_meant) else {
            return Ok(None);
        };
        fits(&held.request)?;
        held.answer = Some((answer, now));
        Ok(Some(held.request.clone()))
    }

    /// The open requests, oldest first.
    pub(crate) fn open(&self, now: Instant) -> Vec<AgentRequestView> {
        let open = self.held.iter().filter(|held| held.is_open(now));
        open.map(|held| AgentRequestView { request: held.request.clone(), since: held.since.to_rfc3339() })
            .collect()
    }
}

impl HeldRequest {
    fn is_kept(&self, now: Instant) -> bool {
        match &self.answer {
            Some((_, answered)) => now.duration_since(*answered) < ANSWER_KEEP_TIME,
            None => now.duration_since(self.asked) < HOOK_SILENCE_TIMEOUT,
        }
    }

    fn is_open(&self, now: Instant) -> bool {
        self.answer.is_none() && now.duration_since(self.asked) < HOOK_SILENCE_TIMEOUT
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOLD: Duration = Duration::from_secs(300);

    fn request(id: &str) -> AgentRequest {
        swarm_state::answer::request(id.into(), "Bash", &json!({"command": "make"}))
    }

    fn fits(_: &AgentRequest) -> Result<(), ()> {
        Ok(())
    }

    fn ids(requests: &HeldRequests, now: Instant) -> Vec<String> {
        requests.open(now).into_iter().map(|open| open.request.id).collect()
    }

    #[test]
    fn an_answer_reaches_its_hook_once() {
        let (mut requests, now) = (HeldRequests::default(), Instant::now());
        assert_eq!(requests.ask(&request("1"), HOLD, false, now), (HeldAnswer::Wait, true));
        assert_eq!(requests.ask(&request("2"), HOLD, false, now), (HeldAnswer::Wait, true));
        let answered = requests.answer(None, RequestAnswer::Yes, now, fits).unwrap();
        assert_eq!(answered.unwrap().id, "1");
        // The next answer is for the next request.
        assert_eq!(ids(&requests, now), ["2"]);
        assert!(requests.answer(Some("1"), RequestAnswer::No, now, fits).unwrap().is_none());
        let yes = HeldAnswer::Answered(RequestAnswer::Yes);
        // The hook was slow, and then did not receive the answer.
        let later = now + HOOK_SILENCE_TIMEOUT;
        assert_eq!(requests.ask(&request("1"), HOLD, false, later), (yes.clone(), true));
        assert_eq!(requests.ask(&request("1"), HOLD, false, later), (yes, false));
    }

    #[test]
    fn request_of_a_dead_hook_expires_and_an_invalid_answer_is_ignored() {
        let (mut requests, now) = (HeldRequests::default(), Instant::now());
        requests.ask(&request("1"), HOLD, false, now);
        assert!(requests.answer(None, RequestAnswer::No, now, |_| Err(())).is_err());
        assert_eq!(ids(&requests, now), ["1"]);
        let later = now + HOOK_SILENCE_TIMEOUT;
        assert!(ids(&requests, later).is_empty());
        assert!(requests.answer(None, RequestAnswer::Yes, later, fits).unwrap().is_none());
    }

    #[test]
    fn answer_in_the_dialog_releases_the_oldest_hook() {
        let (mut requests, now) = (HeldRequests::default(), Instant::now());
        let second = Duration::from_secs(1);
        for id in ["1", "2"] {
            requests.ask(&request(id), HOLD, false, now);
        }
        for (at, shows_input, first) in [
            (1, true, HeldAnswer::Wait),
            (2, false, HeldAnswer::Wait),
            (3, true, HeldAnswer::Wait),
            (4, true, HeldAnswer::Wait),
            (5, true, HeldAnswer::Over),
        ] {
            assert_eq!(requests.ask(&request("2"), HOLD, shows_input, now + at * second).0, HeldAnswer::Wait);
            assert_eq!(requests.ask(&request("1"), HOLD, shows_input, now + at * second).0, first, "{at}");
        }
        assert_eq!(ids(&requests, now + 5 * second), ["2"]);
    }

    #[test]
    fn a_request_is_held_for_a_limited_time() {
        let (mut requests, now) = (HeldRequests::default(), Instant::now());
        for second in 0..=300 {
            let now = now + Duration::from_secs(second);
            let expected = if second == 300 { HeldAnswer::Over } else { HeldAnswer::Wait };
            assert_eq!(requests.ask(&request("1"), HOLD, false, now).0, expected);
        }
    }
}
