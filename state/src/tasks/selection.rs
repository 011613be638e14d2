//! Chooses the story and the mode of the next iteration (§6), and finds faults in the dependencies.
//!
//! The order is review-fix, review, implement, so that feedback is addressed before new work begins. Within a mode the
//! lower priority number comes first, then the order of the file.

use std::collections::BTreeMap;
use std::fmt;

use super::{IterationMode, ReviewStatus, Story, TaskList};

/// The work of the next iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Selection<'a> {
    /// Work on this story.
    Work(IterationMode, &'a Story),
    /// Nothing: every story is done.
    AllDone,
    /// Nothing: stories are left, but none can be selected.
    Blocked,
}

/// A fault of the dependencies between stories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DependencyFault {
    /// A story depends on one that does not exist.
    Missing {
        /// The story.
        story: String,
        /// The id that no story has.
        needs: String,
    },
    /// Stories depend on each other in a circle; the first id is repeated at the end.
    Cycle(Vec<String>),
}

impl DependencyFault {
    /// The story whose dependency is missing.
    pub(super) fn story(&self) -> Option<&str> {
        match self {
            Self::Missing { story, .. } => Some(story),
            Self::Cycle(_) => None,
        }
    }
}

impl fmt::Display for DependencyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { story, needs } => write!(f, "{story} depends on {needs}, which does not exist"),
            Self::Cycle(ids) => write!(f, "stories depend on each other: {}", ids.join(" → ")),
        }
    }
}

impl TaskList {
    /// The next work.
    pub fn select(&self, skip_review: bool) -> Selection<'_> {
        let ready = self.ready(skip_review);
        match ready.first() {
            Some((mode, story)) => Selection::Work(*mode, story),
            None if self.is_done(skip_review) => Selection::AllDone,
            None => Selection::Blocked,
        }
    }

    /// All work that can be done now, the most urgent first.
    pub fn ready(&self, skip_review: bool) -> Vec<(IterationMode, &Story)> {
        let by_id: BTreeMap<&str, &Story> =
            self.stories().iter().map(|story| (story.id.as_str(), story)).collect();
        let is_done = |id: &String| by_id.get(id.as_str()).is_some_and(|story| story.is_done(skip_review));
        let mode = |story: &Story| match story.review.review_status {
            _ if story.is_done(skip_review) => None,
            Some(ReviewStatus::ChangesRequested) if !skip_review => Some(IterationMode::ReviewFix),
            Some(ReviewStatus::NeedsReview) if !skip_review => Some(IterationMode::Review),
            // An approved story that does not pass breaks an invariant; nothing can be done about it here.
            Some(ReviewStatus::Approved) if !skip_review => None,
            _ if story.review.passes && !skip_review => None,
            _ => story.depends_on.iter().all(is_done).then_some(IterationMode::Implement),
        };
        let mut ready: Vec<_> =
            self.stories().iter().filter_map(|story| Some((mode(story)?, story))).collect();
        let urgency = |mode| match mode {
            IterationMode::ReviewFix => 0,
            IterationMode::Review => 1,
            IterationMode::Implement => 2,
        };
        ready.sort_by(|(a, one), (b, other)| {
            urgency(*a).cmp(&urgency(*b)).then(one.priority.total_cmp(&other.priority))
        });
        ready
    }

    /// The ids of the stories that must be done before this one.
    pub(crate) fn open_dependencies(&self, story: &Story, skip_review: bool) -> Vec<String> {
        let is_open = |id: &&String| !self.story(id).is_some_and(|needed| needed.is_done(skip_review));
        story.depends_on.iter().filter(is_open).cloned().collect()
    }

    /// Why no story can be selected although some are left: the faults of the dependencies, or the stories themselves.
    pub fn blocked_because(&self) -> String {
        let faults = self.dependency_faults();
        if faults.is_empty() {
            let open: Vec<&str> = self
                .stories()
                .iter()
                .filter(|story| !story.is_done(false))
                .map(|story| story.id.as_str())
                .collect();
            return format!(
                "no story can be worked on; passes and reviewStatus contradict each other in {}",
                open.join(", ")
            );
        }
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        format!("no story can be worked on: {}", faults.join("; "))
    }

    pub(super) fn places(&self) -> BTreeMap<&str, usize> {
        self.stories().iter().enumerate().map(|(place, story)| (story.id.as_str(), place)).collect()
    }

    /// All faults of the dependencies: missing ids in the order of the file, then one cycle.
    pub fn dependency_faults(&self) -> Vec<DependencyFault> {
        let places = self.places();
        let mut faults = vec![];
        let mut needs: Vec<Vec<usize>> = vec![vec![]; self.stories().len()];
        for (story, needs) in self.stories().iter().zip(&mut needs) {
            for id in &story.depends_on {
                match places.get(id.as_str()) {
                    Some(place) => needs.push(*place),
                    None => {
                        faults.push(DependencyFault::Missing { story: story.id.clone(), needs: id.clone() })
                    }
                }
            }
        }
        let cycle = cycle(&needs).into_iter().filter_map(|place| Some(self.stories().get(place)?.id.clone()));
        let cycle: Vec<String> = cycle.collect();
        faults.extend((!cycle.is_empty()).then_some(DependencyFault::Cycle(cycle)));
        faults
    }

    /// A rough number of iterations for the rest of the list: three for each open story (implement, review, and half a
    /// fix with its second review), one without reviews.
    pub fn estimated_iterations(&self, skip_review: bool) -> usize {
        let open = self.stories().iter().filter(|story| !story.is_done(skip_review));
        open.map(|story| match story.review.review_status {
            _ if skip_review => 1,
            None | Some(ReviewStatus::Approved) => 3,
            Some(ReviewStatus::NeedsReview) => 1,
            Some(ReviewStatus::ChangesRequested) => 2,
        })
        .sum()
    }
}

/// A cycle in a graph, its first node repeated at the end, or empty. Not recursive: chains may have thousands of nodes.
fn cycle(needs: &[Vec<usize>]) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        New,
        OnPath,
        Left,
    }
    let mut marks = vec![Visit::New; needs.len()];
    for start in 0..needs.len() {
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        if marks.get(start) != Some(&Visit::New) {
            continue;
        }
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            if let Some(mark) = marks.get_mut(node) {
                *mark = Visit::OnPath;
            }
            let Some(&child) = needs.get(node).and_then(|list| list.get(*next)) else {
                if let Some(mark) = marks.get_mut(node) {
                    *mark = Visit::Left;
                }
                path.pop();
                continue;
            };
            *next += 1;
            match marks.get(child) {
                Some(Visit::OnPath) => {
                    let nodes = path.iter().map(|(node, _)| *node).skip_while(|node| *node != child);
                    return nodes.chain([child]).collect();
                }
                Some(Visit::New) => path.push((child, 0)),
                Some(Visit::Left) | None => {}
            }
        }
    }
    vec![]
}
