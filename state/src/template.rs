//! The files that `swarm ralph init` writes: a starter prompt and a list of tasks.
//!
//! `swarm ralph template` prints the prompt. The files of `swarm ralph init --tasks` are in [`tasks`]. Deliberately
//! absent: writing the files, which the client does.

pub mod tasks;

/// The text that the agent prints when no task is left. [`PROMPT_TEMPLATE`] ends with it.
pub const DONE_TEXT: &str = "All tasks complete";

/// The starter prompt: how an agent chooses a task, does it, verifies it and ends the loop. The done text shares a line
/// with other words: a line with it alone would count as part of the prompt when the agent prints it.
pub const PROMPT_TEMPLATE: &str = "\
Read TODO.md and choose the most important task that is not checked off.
Do this one task only.

- Do not assume that anything is implemented. Verify it by reading the code.
- If tests are missing, add them. Follow the existing patterns.
- Run the tests after your changes.
- When the task is done, check it off in TODO.md: change [ ] to [x].
- Commit your changes. Do not push.

When every task in TODO.md is checked off, print: All tasks complete
";

/// The starter list of tasks, which the prompt refers to.
pub const TODO_TEMPLATE: &str = "\
# Tasks

- [ ] Example: add a test for a function that has none
- [ ] Example: fix a misleading comment or error message
";

#[cfg(test)]
mod tests {
    use super::{DONE_TEXT, PROMPT_TEMPLATE, TODO_TEMPLATE};

    #[test]
    fn prompt_ends_with_the_done_text_within_a_line() {
        let last = PROMPT_TEMPLATE.strip_suffix('\n').and_then(|text| text.lines().last()).unwrap();
        assert!(last.ends_with(&format!("print: {DONE_TEXT}")), "{last}");
        assert!(PROMPT_TEMPLATE.lines().all(|line| line.trim() != DONE_TEXT && line.len() < 80));
    }

    #[test]
    fn prompt_names_no_file_except_the_list_of_tasks() {
        let words = PROMPT_TEMPLATE.split(|c: char| c.is_whitespace() || ",:".contains(c));
        let is_file = |word: &&str| word.contains('/') || word.trim_end_matches('.').contains('.');
        assert!(words.filter(is_file).all(|word| word == "TODO.md"));
    }

    #[test]
    fn list_has_two_open_tasks() {
        assert_eq!(TODO_TEMPLATE.lines().filter(|line| line.starts_with("- [ ] ")).count(), 2);
        assert!(TODO_TEMPLATE.ends_with('\n'));
    }
}
