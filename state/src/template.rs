//! The starter prompt of `swarm ralph init` and `swarm ralph template`.
//!
//! The text is the documented one, byte for byte, with a final newline. Deliberately absent: writing it to a file,
//! which the client does.

/// The starter prompt: how an agent picks a task, does it and verifies it.
pub const PROMPT_TEMPLATE: &str = "\
study specs/README.md
study CLAUDE.md and pick the most important incomplete task

IMPORTANT:

- do not assume anything is implemented - verify by reading code
- update IMPLEMENTATION_PLAN.md when the task is done
- if tests are missing, add them (choose unit/integration/property as appropriate, follow existing patterns)
- run tests after changes
- commit and push when you are done
";

#[cfg(test)]
mod tests {
    use super::PROMPT_TEMPLATE;

    #[test]
    fn the_template_is_ten_lines_and_ends_with_a_newline() {
        assert_eq!(PROMPT_TEMPLATE.lines().count(), 10);
        assert!(PROMPT_TEMPLATE.starts_with("study specs/README.md\n"));
        assert!(PROMPT_TEMPLATE.ends_with("\n- commit and push when you are done\n"));
    }
}
