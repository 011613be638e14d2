//! The built-in fake agent of `swarm demo`: what a coding agent does, without a key and in a second.
//!
//! `swarm __demo-agent` reads its prompt from standard input, takes the first open task of `TODO.md`, "works"
//! for a moment and ticks it off. Its second run fails, as real agents do. When nothing is left it prints
//! the marker that the demo's loop waits for. What it knows, it knows from files: each run is a fresh one.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

/// What the agent prints when no task is left.
pub const MARKER: &str = "ALL TASKS DONE";

/// The list it works through, in the current directory.
pub const TODO: &str = "TODO.md";

/// What `TODO.md` holds at first.
pub const TASKS: &str = "\
- [ ] write the parser
- [ ] test the parser
- [ ] document the parser
";

/// Where the second run notes that it has failed, so that the third does not.
const STUMBLED: &str = ".stumbled";

/// What one run does.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Turn {
    lines: Vec<String>,
    /// The new list; `None` leaves it as it is.
    todo: Option<String>,
    status: u8,
}

/// Runs the agent in the current directory.
pub fn main() -> u8 {
    let mut prompt = String::new();
    // A prompt that cannot be read is an empty one: the list says what to do.
    let _ = std::io::stdin().lock().read_to_string(&mut prompt);
    let todo = match std::fs::read_to_string(TODO) {
        Ok(todo) => todo,
        Err(e) => {
            say(&format!("cannot read {TODO}: {e}"));
            return 1;
        }
    };
    let turn = turn(&prompt, &todo, Path::new(STUMBLED).exists());
    for line in &turn.lines {
        say(line);
        std::thread::sleep(Duration::from_millis(350));
    }
    let noted = match &turn.todo {
        Some(todo) => std::fs::write(TODO, todo),
        None if turn.status != 0 => std::fs::write(STUMBLED, ""),
        None => Ok(()),
    };
    if noted.is_err() { 1 } else { turn.status }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// One run: the first open task, done; or a stumble; or the last word.
fn turn(prompt: &str, todo: &str, stumbled: bool) -> Turn {
    let mut lines = vec![format!("(fresh context; the prompt has {} lines)", prompt.lines().count())];
    let open: Vec<&str> = todo.lines().filter_map(|line| line.strip_prefix("- [ ] ")).collect();
    let done = todo.lines().count().saturating_sub(open.len());
    let Some(task) = open.first() else {
        lines.push(MARKER.to_owned());
        return Turn { lines, todo: None, status: 0 };
    };
    lines.push(format!("working on: {task}"));
    if done == 1 && !stumbled {
        lines.push("my API call failed; giving up".to_owned());
        return Turn { lines, todo: None, status: 1 };
    }
    lines.push(format!("done: {task}"));
    if open.len() == 1 {
        lines.push(MARKER.to_owned());
    }
    let todo = todo.replacen(&format!("- [ ] {task}"), &format!("- [x] {task}"), 1);
    Turn { lines, todo: Some(todo), status: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_runs_one_stumble_and_the_marker_last() {
        let mut todo = TASKS.to_owned();
        let mut stumbled = false;
        let mut statuses = vec![];
        for run in 1..=4 {
            let turn = turn("a\nb", &todo, stumbled);
            let marked = turn.lines.iter().any(|l| l == MARKER);
            assert_eq!(marked, run == 4, "{turn:?}");
            stumbled |= turn.status != 0;
            statuses.push(turn.status);
            todo = turn.todo.unwrap_or(todo);
        }
        assert_eq!(statuses, [0, 1, 0, 0]);
        assert!(!todo.contains("[ ]"), "{todo}");
    }

    #[test]
    fn any_list_is_taken() {
        for todo in ["", "\n\n", "- [x] a\n", "no list"] {
            assert_eq!(turn("", todo, false).lines.last().map(String::as_str), Some(MARKER));
        }
    }
}
