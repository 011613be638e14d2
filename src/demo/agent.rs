//! The built-in fake agent of `swarm demo`. It needs no API key and takes a second.
//!
//! `swarm __demo-agent` reads its prompt from standard input, does the first open task of `TODO.md` and ticks it off.
//! Its second run fails, as real agents sometimes do. When no task is left it prints the marker that ends the demo's
//! loop. Each run has a fresh context: its only input are files.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

/// The line that the agent prints when no task is left.
pub const MARKER: &str = "ALL TASKS DONE";

/// The task list, in the current directory.
pub const TODO: &str = "TODO.md";

/// The initial content of `TODO.md`.
pub const TASKS: &str = "\
- [ ] write the parser
- [ ] test the parser
- [ ] document the parser
";

/// The file that the second run writes when it fails, so that the third one does not.
const FAILED_ONCE_FILE: &str = ".failed_before";

#[derive(Clone, Debug, PartialEq, Eq)]
struct DemoTurn {
    lines: Vec<String>,
    /// The new task list; `None` for no change.
    todo: Option<String>,
    status: u8,
}

/// Runs the agent in the current directory.
pub fn main() -> u8 {
    let mut prompt = String::new();
    // Without a prompt, the task list is enough.
    let _ = std::io::stdin().lock().read_to_string(&mut prompt);
    let todo = match std::fs::read_to_string(TODO) {
        Ok(todo) => todo,
        Err(e) => {
            say(&format!("cannot read {TODO}: {e}"));
            return 1;
        }
    };
    let turn = turn(&prompt, &todo, Path::new(FAILED_ONCE_FILE).exists());
    for line in &turn.lines {
        say(line);
        std::thread::sleep(Duration::from_millis(350));
    }
    let noted = match &turn.todo {
        Some(todo) => std::fs::write(TODO, todo),
        None if turn.status != 0 => std::fs::write(FAILED_ONCE_FILE, ""),
        None => Ok(()),
    };
    if noted.is_err() { 1 } else { turn.status }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Computes one run: it completes the first open task, fails, or prints the marker.
fn turn(prompt: &str, todo: &str, failed_before: bool) -> DemoTurn {
    let mut lines = vec![format!("(fresh context; the prompt has {} lines)", prompt.lines().count())];
    let open: Vec<&str> = todo.lines().filter_map(|line| line.strip_prefix("- [ ] ")).collect();
    let done = todo.lines().count().saturating_sub(open.len());
    let Some(task) = open.first() else {
        lines.push(MARKER.to_owned());
        return DemoTurn { lines, todo: None, status: 0 };
    };
    lines.push(format!("working on: {task}"));
    if done == 1 && !failed_before {
        lines.push("my API call failed; giving up".to_owned());
        return DemoTurn { lines, todo: None, status: 1 };
    }
    lines.push(format!("done: {task}"));
    if open.len() == 1 {
        lines.push(MARKER.to_owned());
    }
    let todo = todo.replacen(&format!("- [ ] {task}"), &format!("- [x] {task}"), 1);
    DemoTurn { lines, todo: Some(todo), status: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demo_has_four_runs_one_failure_and_the_marker_last() {
        let mut todo = TASKS.to_owned();
        let mut failed_before = false;
        let mut statuses = vec![];
        for run in 1..=4 {
            let turn = turn("a\nb", &todo, failed_before);
            let marked = turn.lines.iter().any(|l| l == MARKER);
            assert_eq!(marked, run == 4, "{turn:?}");
            failed_before |= turn.status != 0;
            statuses.push(turn.status);
            todo = turn.todo.unwrap_or(todo);
        }
        assert_eq!(statuses, [0, 1, 0, 0]);
        assert!(!todo.contains("[ ]"), "{todo}");
    }

    #[test]
    fn demo_agent_accepts_any_task_list() {
        for todo in ["", "\n\n", "- [x] a\n", "no list"] {
            assert_eq!(turn("", todo, false).lines.last().map(String::as_str), Some(MARKER));
        }
    }
}
