//! `swarm ralph tasks graph`: show the dependencies between stories.

use serde_json::{Value, json};
use swarm_state::tasks::Story;
use swarm_state::tasks::graph::DependencyGraph;
use swarm_state::tasks::selection::DependencyFault;

use crate::cli::{GraphFormat, TasksGraph};
use crate::client::context::ClientContext;
use crate::client::task_list_file::TaskListFile;
use crate::out::{CommandResult, table};

pub(super) fn run(ctx: &ClientContext, args: &TasksGraph) -> CommandResult {
    let file = TaskListFile::of_args(&args.place);
    let list = file.list()?;
    let graph = list.graph();
    match args.format {
        GraphFormat::Dot => ctx.out.raw(&list.to_dot())?,
        GraphFormat::Mermaid => ctx.out.raw(&list.to_mermaid())?,
        GraphFormat::Json => ctx.out.json(&object(&graph))?,
        GraphFormat::Text if list.stories().is_empty() => {
            ctx.out.note(&format!("no stories in {}", file.shown()));
        }
        GraphFormat::Text => ctx.out.lines(&table(
            &["LEVEL", "ID", "STATE", "DEPENDS", "TITLE"],
            &rows(&graph),
            &[(4, 20), (3, 8), (1, 8)],
            ctx.out.width,
        ))?,
    }
    for fault in &graph.faults {
        ctx.out.warn(&format!("{}: {fault}", file.shown()));
    }
    Ok(0)
}

/// The level is in the first row of its stories only.
fn rows(graph: &DependencyGraph<'_>) -> Vec<Vec<String>> {
    let row = |level: &str, story: &Story| {
        let needs = if story.depends_on.is_empty() { "-".to_owned() } else { story.depends_on.join(",") };
        vec![level.to_owned(), story.id.clone(), story.state_word().to_owned(), needs, story.title.clone()]
    };
    let levels = (1..).zip(&graph.levels).map(|(number, level): (u32, _)| (number.to_string(), level));
    let groups = levels.chain([("cycle".to_owned(), &graph.cyclic)]);
    let group = |(label, stories): (String, &Vec<&Story>)| {
        let of_place = |place| if place == 0 { label.clone() } else { String::new() };
        stories.iter().enumerate().map(|(place, story)| row(&of_place(place), story)).collect::<Vec<_>>()
    };
    groups.flat_map(group).collect()
}

fn object(graph: &DependencyGraph<'_>) -> Value {
    let ids = |stories: &[&Story]| stories.iter().map(|story| story.id.clone()).collect::<Vec<_>>();
    let edges: Vec<Value> = graph
        .levels
        .iter()
        .flatten()
        .chain(&graph.cyclic)
        .flat_map(|story| story.depends_on.iter().map(|needs| json!({"story": story.id, "needs": needs})))
        .collect();
    let missing = |fault: &DependencyFault| match fault {
        DependencyFault::Missing { story, needs } => Some(json!({"story": story, "needs": needs})),
        DependencyFault::Cycle(_) => None,
    };
    json!({
        "levels": graph.levels.iter().map(|level| ids(level)).collect::<Vec<_>>(),
        "cyclic": ids(&graph.cyclic),
        "edges": edges,
        "missing": graph.faults.iter().filter_map(missing).collect::<Vec<_>>(),
    })
}
