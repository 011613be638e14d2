//! Arranges the stories of a list by their dependencies, and draws them for graphviz and mermaid.

use super::list::{Story, TaskList};
use super::selection::DependencyFault;
use crate::screen::printable;

/// The stories by their dependencies.
#[derive(Clone, Debug, PartialEq)]
pub struct DependencyGraph<'a> {
    /// Stories of one level can be worked on at once, as soon as the levels before it are done.
    pub levels: Vec<Vec<&'a Story>>,
    /// The stories of a cycle, and those that depend on one.
    pub cyclic: Vec<&'a Story>,
    /// Missing ids and a cycle.
    pub faults: Vec<DependencyFault>,
}

impl TaskList {
    /// Arranges the stories. Within a level they have the order of the file. A missing id counts as done.
    pub fn graph(&self) -> DependencyGraph<'_> {
        let stories = self.stories();
        let mut dependents: Vec<Vec<usize>> = vec![vec![]; stories.len()];
        let mut open: Vec<usize> = vec![0; stories.len()];
        for (needed, place) in self.edges() {
            dependents[needed].push(place);
            open[place] += 1;
        }
        let mut level: Vec<usize> = (0..stories.len()).filter(|place| open[*place] == 0).collect();
        let mut is_placed = vec![false; stories.len()];
        let mut levels = vec![];
        while !level.is_empty() {
            let mut next = vec![];
            for place in &level {
                is_placed[*place] = true;
                for dependent in &dependents[*place] {
                    open[*dependent] -= 1;
                    if open[*dependent] == 0 {
                        next.push(*dependent);
                    }
                }
            }
            next.sort_unstable();
            levels.push(level.iter().map(|place| &stories[*place]).collect());
            level = next;
        }
        let cyclic = stories.iter().zip(is_placed).filter(|(_, placed)| !placed).map(|(story, _)| story);
        DependencyGraph { levels, cyclic: cyclic.collect(), faults: self.dependency_faults() }
    }

    /// The places of each needed story and of the story that needs it.
    fn edges(&self) -> Vec<(usize, usize)> {
        let places = self.places();
        let of_story = |(place, story): (usize, &'_ Story)| {
            let needed: Vec<usize> =
                story.depends_on.iter().filter_map(|id| places.get(id.as_str()).copied()).collect();
            needed.into_iter().map(move |needed| (needed, place))
        };
        self.stories().iter().enumerate().flat_map(of_story).collect()
    }

    /// The graph in the language of graphviz.
    pub fn to_dot(&self) -> String {
        let mut text = "digraph tasks {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
        for story in self.stories() {
            let (id, title) = (dot_text(&story.id), dot_text(&story.title));
            let style = if story.review.passes { ", style=filled" } else { "" };
            text.push_str(&format!("  \"{id}\" [label=\"{id}\\n{title}\"{style}];\n"));
        }
        for (needed, place) in self.edges() {
            let (needed, story) = (&self.stories()[needed].id, &self.stories()[place].id);
            text.push_str(&format!("  \"{}\" -> \"{}\";\n", dot_text(needed), dot_text(story)));
        }
        text + "}\n"
    }

    /// The graph in the language of mermaid.
    pub fn to_mermaid(&self) -> String {
        let mut text = "graph LR\n".to_owned();
        for (place, story) in self.stories().iter().enumerate() {
            let (id, title) = (mermaid_text(&story.id), mermaid_text(&story.title));
            text.push_str(&format!("  s{place}[\"{id}: {title}\"]\n"));
        }
        for (needed, place) in self.edges() {
            text.push_str(&format!("  s{needed} --> s{place}\n"));
        }
        text
    }
}

fn dot_text(text: &str) -> String {
    one_line(text).replace('\\', "\\\\").replace('"', "\\\"")
}

/// The text of a quoted label in mermaid, which has entities in place of escapes.
fn mermaid_text(text: &str) -> String {
    let entity = |c: char| match c {
        '"' | '#' | '<' | '>' | '&' | ';' | '`' => format!("#{};", u32::from(c)),
        c => c.to_string(),
    };
    one_line(text).chars().map(entity).collect()
}

/// Joins lines, without control characters and those that reorder text.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect();
    printable(&words.join(" "))
}
