//! Writes `iterations.log` without gaps or repetitions across a crash.
//!
//! Some log lines are written after the state was saved and some before. If the daemon dies in between, a line is
//! missing, which the next daemon adds at its start, or a line would be written twice, which it skips. Not here: the
//! text of the lines ([`swarm_state::notice`]).

use swarm_state::model::WorkerName;
use swarm_state::notice::Entry;

use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;

/// How much of a log is read at a start; only its last lines matter.
const MAX_LOG_TAIL_BYTES: u64 = 1 << 20;

/// Lines that occur once per iteration or loop.
const UNIQUE_LINES: [&str; 5] = ["[START]", "[END]", "[FAIL]", "[TIMEOUT]", "[DONE]"];

impl Supervisor {
    pub(crate) fn log_entry(&mut self, name: &WorkerName, entry: &Entry) {
        for line in entry.log_lines() {
            let Some(slot) = self.slots.get_mut(name).filter(|s| s.spec.ralph.is_some()) else { return };
            if is_repeated(&slot.saving.log_tail, &line) {
                continue;
            }
            slot.saving.log_tail.clear();
            slot.saving.unwritten_log.push(stamped(&line));
        }
        self.write_log(name);
    }

    /// Writes the waiting lines, but only while the state is saved: otherwise the next daemon would repeat the events
    /// and their lines. Lines that the disk refuses wait for the next try.
    pub(crate) fn write_log(&mut self, name: &WorkerName) {
        let Some(slot) = self.slots.get_mut(name).filter(|s| !s.saving.is_unsaved()) else { return };
        let mut lines = std::mem::take(&mut slot.saving.unwritten_log);
        let refused = lines.iter().position(|line| {
            let outcome = self.store.append_iteration_log(name, line);
            let waits = |error: &_| tracing::warn!(worker = %name, %error, "iterations.log waits");
            outcome.inspect_err(waits).is_err()
        });
        if let Some(first) = refused {
            slot.saving.unwritten_log = lines.split_off(first);
        }
    }

    /// Adds the lines that an earlier daemon did not write, and remembers those that it wrote.
    pub(crate) fn repair_log(&mut self, name: &WorkerName) {
        let ours = |s: &&Slot| s.spec.ralph.is_some() && s.origin.legacy.is_none();
        let Some(slot) = self.slots.get(name).filter(ours) else { return };
        let entries = slot.engine.due_entries();
        let paused = entries.iter().any(|entry| matches!(entry, Entry::Paused { .. }));
        let is_stopped = slot.engine.is_stopped();
        let mut lines = self.logged(name);
        if lines.is_empty() && is_stopped {
            // The files of a finished loop were deleted.
            return;
        }
        let mut missing = vec![];
        if end_stands(&lines) && !is_stopped {
            missing.extend(Entry::Resumed.log_lines().iter().map(|line| stamped(line)));
            lines.extend(Entry::Resumed.log_lines());
        }
        for entry in entries {
            for line in entry.log_lines() {
                let there = match entry {
                    Entry::Paused { .. } => pause_stands(&lines),
                    // An earlier end, before a resume, does not count.
                    Entry::LoopComplete { .. } | Entry::LoopFailed { .. } => end_stands(&lines),
                    _ => lines.iter().any(|known| mark(known) == mark(&line)),
                };
                if !there {
                    missing.push(stamped(&line));
                    lines.push(line);
                }
            }
        }
        if !paused && pause_stands(&lines) && !end_stands(&lines) {
            missing.push(stamped(&Entry::Resumed.log_lines().concat()));
        }
        let last_start = lines.iter().rposition(|line| line.starts_with("[START]")).unwrap_or(0);
        if let Some(slot) = self.slots.get_mut(name) {
            slot.saving.log_tail = lines.split_off(last_start);
            slot.saving.unwritten_log = missing;
        }
        self.write_log(name);
    }

    /// The lines of a log, without their times.
    fn logged(&self, name: &WorkerName) -> Vec<String> {
        let read = self.store.read_iteration_log(name, usize::MAX, MAX_LOG_TAIL_BYTES);
        let without_time = |line: String| line.split_once(' ').map(|(_, text)| text.to_owned());
        read.map(|tail| tail.lines.into_iter().filter_map(without_time).collect()).unwrap_or_default()
    }
}

fn stamped(line: &str) -> String {
    format!("{} {line}", crate::daemon::clock::local_now().format("%Y-%m-%dT%H:%M:%S"))
}

fn is_once(line: &str) -> bool {
    UNIQUE_LINES.iter().any(|word| line.starts_with(word))
}

/// Whether the end of the log has a line already. An iteration that did not count has an end, and starts again under
/// its number.
fn is_repeated(log_tail: &[String], line: &str) -> bool {
    let is_new_start = line.starts_with("[START]") && log_tail.iter().any(|known| known.starts_with("[END]"));
    is_once(line) && !is_new_start && log_tail.iter().any(|known| mark(known) == mark(line))
}

/// The part that identifies a line: `[START] iteration 5/` of `[START] iteration 5/100`.
fn mark(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').take(3).collect();
    let text = words.join(" ");
    text.find('/').map_or(text.as_str(), |at| &text[..=at]).to_owned()
}

/// Whether the loop's end in the log is later than all starts and resumes.
fn end_stands(lines: &[String]) -> bool {
    let is_end = |line: &&String| line.starts_with("[DONE] loop") || line.starts_with("[FAIL] loop");
    let last = lines.iter().rfind(|l| l.starts_with("[START]") || l.starts_with("[RESUME]") || is_end(l));
    last.as_ref().is_some_and(is_end)
}

/// Whether the last pause or resume in the log is a pause.
fn pause_stands(lines: &[String]) -> bool {
    let last = lines.iter().rfind(|l| l.starts_with("[PAUSE]") || l.starts_with("[RESUME]"));
    last.is_some_and(|line| line.starts_with("[PAUSE]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_are_distinguished_by_kind_and_iteration() {
        assert_eq!(mark("[START] iteration 5/100"), "[START] iteration 5/");
        assert_ne!(mark("[END] iteration 1 exit=0"), mark("[END] iteration 12 exit=0"));
        assert_ne!(mark("[END] iteration 1 exit=0"), mark("[FAIL] iteration 1 exit=0"));
        assert_eq!(mark("[DONE] loop complete after 3 iterations reason=x"), "[DONE] loop complete");
    }

    #[test]
    fn start_line_after_the_end_of_the_iteration_is_not_a_repetition() {
        let mut tail = lines(&["[START] iteration 2/34"]);
        assert!(is_repeated(&tail, "[START] iteration 2/34"));
        assert!(!is_repeated(&tail, "[END] iteration 2 exit=spawn-failed duration=0s"));
        tail.extend(lines(&[
            "[END] iteration 2 exit=spawn-failed duration=0s",
            "[FAIL] iteration 2 exit=spawn-failed attempt=1/5 backoff=1s",
        ]));
        assert!(is_repeated(&tail, "[FAIL] iteration 2 exit=spawn-failed attempt=1/5 backoff=1s"));
        assert!(!is_repeated(&tail, "[START] iteration 2/34"));
        assert!(!is_repeated(&[], "[FAIL] iteration 2 exit=9 attempt=2/5 backoff=2s"));
        assert!(!is_repeated(&lines(&["[PAUSE]"]), "[PAUSE]"));
    }

    fn lines(list: &[&str]) -> Vec<String> {
        list.iter().map(|&l| l.to_owned()).collect()
    }

    #[test]
    fn end_line_before_a_resume_or_start_does_not_count() {
        let end = "[DONE] loop complete after 3 iterations reason=max_iterations";
        let failed = "[FAIL] loop failed after 3 iterations reason=timeout";
        for (log, stands) in [
            (&[][..], false),
            (&["[START] iteration 3/3", "[END] iteration 3 exit=0"], false),
            (&["[START] iteration 3/3", "[FAIL] iteration 3 exit=1"], false),
            (&["[START] iteration 3/3", end], true),
            (&["[START] iteration 3/3", failed], true),
            (&[end, "[RESUME]"], false),
            (&[failed, "[START] iteration 4/9"], false),
            (&[end, "[RESUME]", "[START] iteration 4/4", failed], true),
        ] {
            assert_eq!(end_stands(&lines(log)), stands, "{log:?}");
        }
    }

    #[test]
    fn last_pause_or_resume_line_counts() {
        assert!(pause_stands(&lines(&[
            "[PAUSE]",
            "[RESUME]",
            "[PAUSE] reason=shutdown",
            "[END] iteration 1"
        ])));
        assert!(!pause_stands(&lines(&["[PAUSE]", "[RESUME]"])));
        assert!(!pause_stands(&[]));
    }
}
