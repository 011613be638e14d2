//! The state of a list in a few words, for commands that show it.

use super::TaskList;
use crate::words::counted;

/// The words of [`super::Story::state_word`], the finished ones first.
const STATE_WORDS: [&str; 5] = ["approved", "done", "changes_requested", "needs_review", "open"];

impl TaskList {
    /// The number of stories in each state.
    pub fn count_states(&self) -> [(&'static str, usize); 5] {
        STATE_WORDS
            .map(|word| (word, self.stories().iter().filter(|story| story.state_word() == word).count()))
    }

    /// `3 stories: 1 approved, 2 open; about 6 iterations`
    pub fn summary(&self, skip_review: bool) -> String {
        let count = self.stories().len();
        let stories = if count == 1 { "1 story".to_owned() } else { format!("{count} stories") };
        let states: Vec<String> = self
            .count_states()
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(word, count)| format!("{count} {word}"))
            .collect();
        let states = if states.is_empty() { String::new() } else { format!(": {}", states.join(", ")) };
        match self.estimated_iterations(skip_review) {
            0 => format!("{stories}{states}; nothing is left to do"),
            iterations => format!("{stories}{states}; about {}", counted(iterations as u64, "iteration")),
        }
    }
}
