//! The history of each story, from the records of a loop's iterations. For `report` and `why`.

use super::IterationMode;
use crate::ledger::Iteration;

/// A story that iterations worked on.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct StoryHistory {
    /// Its id.
    pub story: String,
    /// Its title.
    pub title: String,
    /// Its review status after the last of them; `passes` or `open` without one.
    pub state: &'static str,
    /// The iterations that reviewed it and approved it or requested changes.
    pub reviews: u64,
    /// All iterations that worked on it.
    pub iterations: u64,
}

/// The stories in the order in which iterations worked on them first.
pub fn story_histories(iterations: &[Iteration]) -> Vec<StoryHistory> {
    let mut found: Vec<StoryHistory> = vec![];
    let verdicts = iterations.iter().filter_map(|it| it.verdict.as_ref()?.tasks.as_ref());
    for tasks in verdicts {
        let turn = &tasks.turn;
        let at = found.iter().position(|row| row.story == turn.story).unwrap_or_else(|| {
            let (story, title) = (turn.story.clone(), turn.title.clone());
            found.push(StoryHistory { story, title, state: "open", reviews: 0, iterations: 0 });
            found.len() - 1
        });
        if let Some(row) = found.get_mut(at) {
            row.state = tasks.state();
            row.iterations += 1;
            // Only a review whose decision counts.
            row.reviews += u64::from(turn.mode == IterationMode::Review && tasks.is_changed);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gates::Verdict;
    use crate::tasks::ReviewStatus;
    use crate::tasks::gate::{TaskTurn, TaskVerdict};

    #[test]
    fn reviews_are_counted_for_each_story() {
        let iteration = |mode, story: &str, status, is_changed| {
            let turn = TaskTurn { mode, story: story.into(), title: story.to_lowercase() };
            let tasks = TaskVerdict { turn, status: Some(status), is_changed, ..TaskVerdict::default() };
            Iteration {
                verdict: Some(Verdict { tasks: Some(tasks.into()), ..Verdict::default() }),
                ..Iteration::default()
            }
        };
        use {IterationMode as Mode, ReviewStatus as Status};
        let rows = story_histories(&[
            Iteration::default(),
            iteration(Mode::Implement, "A", Status::NeedsReview, true),
            iteration(Mode::Review, "A", Status::NeedsReview, false),
            iteration(Mode::Review, "A", Status::ChangesRequested, true),
            iteration(Mode::ReviewFix, "A", Status::NeedsReview, true),
            iteration(Mode::Review, "A", Status::Approved, true),
            iteration(Mode::Implement, "B", Status::NeedsReview, true),
        ]);
        let row = |story: &str, state, reviews, iterations| StoryHistory {
            story: story.into(),
            title: story.to_lowercase(),
            state,
            reviews,
            iterations,
        };
        assert_eq!(rows, [row("A", "approved", 2, 5), row("B", "needs_review", 0, 1)]);
    }
}
