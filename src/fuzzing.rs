//! Properties that hold for any input, with one function for each kind of input.
//!
//! The fuzzer (`tests/fuzz/`, one target for each function) and the tests below run the same functions; inputs that
//! the fuzzer found are kept here. This is not part of the program or of its interface, and it uses no files or
//! processes.

use std::sync::LazyLock;

use serde_json::Value;
use swarm_state::format::{self, FORMAT};
use swarm_state::hook::HookInput;
use swarm_state::model::WorkerName;
use swarm_state::pattern::Pattern;
use swarm_state::profiles::{self, Profile};
use swarm_state::screen::{ScreenReader, printable, strip};
use swarm_state::session::{
    After, Book, Failure, LogLine, SessionFile, SessionId, Stop, StopAnswer, StopKey, decide,
};

use crate::daemon::server;
use crate::protocol::{ClientHello, DaemonHello, Response};
use crate::session::tail::{self, TailStart};

mod snapshot;

/// One reader for each known agent: compiling the patterns takes longer than many readings.
static READERS: LazyLock<Vec<ScreenReader>> = LazyLock::new(|| {
    let reader =
        |profile: &Profile| ScreenReader::new(profile, None, None).expect("a known profile compiles");
    profiles::table().iter().map(reader).collect()
});

/// A line of the protocol, from either side.
///
/// # Panics
/// When a line changes if it is parsed and written again.
pub fn protocol_line(line: &[u8]) {
    let (id, call) = server::parse_line(line);
    match call {
        Ok(call) => {
            let mut words = serde_json::to_value(&call).expect("a call is JSON");
            words["id"] = id.into();
            let again = serde_json::to_vec(&words).expect("JSON has a text");
            assert_eq!(server::parse_line(&again), (id, Ok(call)));
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
    let _ = serde_json::from_slice::<ClientHello>(line);
    let _ = serde_json::from_slice::<DaemonHello>(line);
    if let Ok(response) = serde_json::from_slice::<Response>(line) {
        let again = serde_json::to_vec(&response).expect("an answer is JSON");
        let again: Response = serde_json::from_slice(&again).expect("an answer can be read again");
        assert_eq!(again, response);
        if let Some(notice) = response.notice {
            for line in notice.entry.log_lines() {
                assert!(!line.is_empty());
            }
        }
    }
    if let Ok(text) = std::str::from_utf8(line)
        && let Ok(name) = WorkerName::new(text)
    {
        assert_eq!(name.as_str(), text);
    }
}

/// The output of tmux to a control client.
///
/// # Panics
/// See `tmux::fuzz`.
pub fn control_stream(bytes: &[u8]) {
    crate::tmux::fuzz::control_stream(bytes);
}

/// A screen. The first three bytes choose profile and size. Then follow pattern, prompt, the screen before the prompt
/// and the screen, separated by NUL.
///
/// # Panics
/// When the reading of a screen depends on its escapes, or changes if it is repeated.
pub fn screen(bytes: &[u8]) {
    let [profile, columns, rows, rest @ ..] = bytes else { return };
    let rest = String::from_utf8_lossy(rest);
    let mut parts = rest.splitn(4, '\0');
    let mut part = || parts.next().unwrap_or_default();
    let (pattern, prompt, before, text) = (part(), part(), part(), part());
    let markers = &READERS[usize::from(*profile) % READERS.len()];
    let pattern = Pattern::compile(pattern).ok();
    let prompt = (!prompt.is_empty()).then(|| prompt.to_owned());
    let mut reader = markers.looking_for(pattern, prompt);
    if !before.is_empty() {
        reader.set_baseline(before);
    }
    let size = (u16::from(*columns), u16::from(*rows));
    let reading = reader.read(text, size);
    assert_eq!(reading, reader.read(text, size));
    assert!(reading.blocked.is_none() || !reading.ready && !reading.working);
    let plain = strip(text);
    assert!(!plain.contains(|c: char| c.is_control() && c != '\n'));
    assert_eq!(strip(&plain), plain);
    assert_eq!(reader.read(&plain, size), reading);
    reader.done_in(text);
    assert!(!printable(text).contains(char::is_control));
}

/// A state file: a worker's record, a loop's state, the predecessor's list, or a file of the wrapper.
///
/// # Panics
/// When a file changes if it is parsed and written again.
pub fn state_file(bytes: &[u8]) {
    if let Ok(mut record) = format::parse_record(bytes) {
        let again = format::parse_record(&record.to_bytes().expect("a record can be written"));
        record.format = FORMAT;
        assert_eq!(again.as_ref(), Ok(&record));
        snapshot::walk(record.engine);
    }
    if let Ok(mut file) = format::parse_ralph(bytes) {
        let again = format::parse_ralph(&file.to_bytes().expect("a loop's state can be written"));
        file.format = FORMAT;
        assert_eq!(again.as_ref(), Ok(&file));
        if let Ok(edits) = format::edits(&file, &file) {
            assert!(edits.is_empty());
        }
    }
    let utc = |at: chrono::NaiveDateTime| at.and_utc().fixed_offset();
    for mut record in format::v0::parse_workers(bytes, &utc).into_iter().flatten().flatten() {
        let again = format::parse_record(&record.to_bytes().expect("a record can be written"));
        record.format = FORMAT;
        assert_eq!(again, Ok(record));
    }
    if let Ok(record) = serde_json::from_slice::<crate::wrapper::ExitRecord>(bytes) {
        crate::daemon::exit_of(&record).code();
    }
    if let Ok(engine) = serde_json::from_slice::<Value>(bytes) {
        snapshot::walk(engine);
    }
}

/// A stop in a session: the hook's input, the transcript, the state file and the book, separated by NUL. The first
/// byte chooses the other parameters.
///
/// # Panics
/// When a state file or a book changes if it is parsed and written again, or a stop counts more than once.
pub fn session_stop(bytes: &[u8]) {
    let [choice, rest @ ..] = bytes else { return };
    let mut parts = rest.splitn(4, |byte| *byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let (input, transcript, file, book) = (part(), part(), part(), part());
    let input = HookInput::parse(input).unwrap_or_default();
    let book = Book::parse(book);
    assert_eq!(Book::parse(&book.render()), book);
    let from =
        TailStart { mark: book.mark.as_ref(), began: None, last_message: input.last_message.as_deref() };
    let tail = tail::of_bytes(transcript, choice & 1 != 0, from);
    let Ok(mut file) = SessionFile::parse(file) else { return };
    assert_eq!(SessionFile::parse(&file.render()).as_ref().map(SessionFile::state), Ok(file.state()));
    let state = file.state().clone();
    let session = input.session.as_deref().and_then(|id| SessionId::new(id).ok());
    let stop = Stop {
        session: session.or_else(|| state.session().cloned()),
        is_sub_agent: choice & 2 != 0,
        background_tasks: input.background_tasks.unwrap_or(0),
        said: input.last_message.clone().or_else(|| Some(tail.texts.join("\n"))),
        tool_calls: Some(tail.tool_calls),
        is_cut: tail.is_cut,
        stop_hook_active: input.stop_hook_active,
        host_cap: (choice & 4 != 0).then_some(8),
        failure: input.error.clone().filter(|_| choice & 8 != 0).map(Failure::Reported),
        key: StopKey::of(input.turn.as_deref(), input.stop_hook_active, input.last_message.as_deref()),
        is_news: Some(tail.is_news),
        mark: Some(tail.mark),
        ..Stop::default()
    };
    let outcome = decide(&state, &book, &stop);
    let is_block = matches!(outcome.answer, StopAnswer::Block(_));
    if let After::Write(next) = outcome.after {
        assert!(
            next.iteration == state.iteration
                || is_block && next.iteration == state.iteration.saturating_add(1)
        );
        assert_eq!(next.body, state.body);
        file.set((*next).clone());
        assert_eq!(SessionFile::parse(&file.render()).as_ref().map(SessionFile::state), Ok(&*next));
    }
    assert_eq!(Book::parse(&outcome.book.render()), outcome.book);
    if let Some(line) = outcome.log {
        assert_eq!(LogLine::parse(line.render().trim_end()), Some(line));
    }
}

#[cfg(test)]
mod tests;
