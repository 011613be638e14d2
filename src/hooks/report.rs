//! Reports an event of a worker's agent to the daemon.
//!
//! Used by `swarm hook`. The agent waits while its hook runs, so the exchange has a short timeout. A daemon that does
//! not run, does not answer or has another version is not an error: the daemon also reads the screen. The daemon is
//! never started from here. Deliberately absent: the client's connection, which waits, retries and starts the daemon.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use swarm_state::hook::HookInput;

use crate::paths::Paths;
use crate::protocol::{
    Call, ClientHello, HookAnswer, HookNews, HookParams, MAX_LINE_BYTES, RELEASE, Request, Response, VERSION,
};
use crate::sandbox::is_inside;

/// The timeout of each read and write of the exchange.
const HOOK_ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

/// The worker that this process belongs to, by its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerPlace {
    /// The worker.
    pub name: String,
    /// The run.
    pub run: Option<u64>,
}

impl WorkerPlace {
    /// Reads the variables that mark a worker's processes; `None` outside a worker.
    pub fn of(var: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let text = |name: &str| var(name)?.into_string().ok().filter(|text| !text.is_empty());
        // A check is a process of swarm and not of the agent.
        if text("SWARM_CHECK").is_some() {
            return None;
        }
        Some(Self { name: text("SWARM_WORKER")?, run: text("SWARM_RUN").and_then(|run| run.parse().ok()) })
    }
}

/// Reports the event of a hook's input, if it is news. Returns the daemon's answer; `None` on any error.
pub(super) fn report_to_daemon(
    paths: &Paths,
    place: &WorkerPlace,
    input: &HookInput,
    news: Option<HookNews>,
) -> Option<HookAnswer> {
    // A sandbox shows only the socket for hooks.
    let socket = if is_inside(paths) { paths.hook_socket_in_sandbox() } else { paths.socket() };
    let params = HookParams {
        name: place.name.clone(),
        run: place.run,
        session: input.session.clone(),
        transcript: input.transcript.as_ref().and_then(|path| path.to_str()).map(ToOwned::to_owned),
        news: news?,
    };
    report(&socket, params)
}

/// Reports an event. Returns the daemon's answer; `None` on any error.
pub fn report(socket: &Path, params: HookParams) -> Option<HookAnswer> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(HOOK_ANSWER_TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(HOOK_ANSWER_TIMEOUT)).ok()?;
    stream.write_all(&lines(&Call::Hook(Box::new(params)))?).ok()?;
    let mut answers = BufReader::new(stream.take(MAX_LINE_BYTES as u64));
    let (mut hello, mut answer) = (String::new(), String::new());
    answers.read_line(&mut hello).ok()?;
    answers.read_line(&mut answer).ok()?;
    let response: Response = serde_json::from_str(&answer).ok()?;
    serde_json::from_value(response.ok?).ok()
}

/// Returns handshake and call, to be sent with one write.
fn lines(call: &Call) -> Option<Vec<u8>> {
    #[derive(serde::Deserialize)]
    struct CallParts {
        method: String,
        params: serde_json::Value,
    }
    let hello = ClientHello { swarm: VERSION, client: RELEASE.to_owned() };
    let named: CallParts = serde_json::from_value(serde_json::to_value(call).ok()?).ok()?;
    let request = Request { id: 1, method: named.method, params: named.params };
    let mut lines = serde_json::to_vec(&hello).ok()?;
    lines.push(b'\n');
    lines.extend(serde_json::to_vec(&request).ok()?);
    lines.push(b'\n');
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_is_found_by_its_variables_except_in_a_check() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs: Vec<(String, String)> =
                pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            WorkerPlace::of(move |name| {
                pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.into())
            })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("SWARM_WORKER", "a")]), Some(WorkerPlace { name: "a".into(), run: None }));
        let marks = [("SWARM_WORKER", "a"), ("SWARM_RUN", "7")];
        assert_eq!(of(&marks), Some(WorkerPlace { name: "a".into(), run: Some(7) }));
        assert_eq!(of(&[("SWARM_WORKER", "a"), ("SWARM_CHECK", "/x")]), None);
    }

    #[test]
    fn report_without_an_answering_daemon_returns_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let news = HookNews::TurnOver;
        let params = HookParams { name: "a".into(), run: None, session: None, transcript: None, news };
        assert_eq!(report(&socket, params.clone()), None);
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(report(&socket, params), None);
    }
}
