//! `swarm ralph tasks ls`: list the stories of a task list.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use swarm_state::tasks::{IterationMode, Story, TaskList};

use crate::cli::{Format, TasksLs};
use crate::client::context::ClientContext;
use crate::client::task_list_file::TaskListFile;
use crate::out::{CommandResult, table};

pub(super) fn run(ctx: &ClientContext, args: &TasksLs) -> CommandResult {
    let file = TaskListFile::of_args(&args.place);
    let list = file.list()?;
    let skip_review = args.skip_review || list.is_unreviewed();
    let ready = list.ready(skip_review);
    match args.format {
        Format::Json => ctx.out.json_list(&objects(&list, &ready))?,
        Format::Names => ctx.out.lines(&list.stories().iter().map(|story| &story.id).collect::<Vec<_>>())?,
        Format::Table if list.stories().is_empty() => {
            ctx.out.note(&format!("no stories in {}", file.shown()));
            ctx.out.hint("to add some: swarm ralph plan, or swarm ralph tasks import FILE");
        }
        Format::Table => {
            let head = ["ID", "STATE", "REVIEWS", "PRIORITY", "DEPENDS", "TITLE"];
            let rows: Vec<Vec<String>> = list.stories().iter().map(row).collect();
            ctx.out.lines(&table(&head, &rows, &[(5, 20), (4, 8), (0, 8)], ctx.out.width))?;
            ctx.out.note(&next(&list, ready.first(), skip_review));
        }
    }
    Ok(0)
}

fn row(story: &Story) -> Vec<String> {
    let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    vec![
        story.id.clone(),
        story.state_word().to_owned(),
        story.review.review_count.to_string(),
        story.priority.to_string(),
        or_none(story.depends_on.join(",")),
        story.title.clone(),
    ]
}

/// A priority as the file has it: mostly without a fraction.
fn priority(priority: f64) -> Value {
    if priority.fract() == 0.0 { json!(priority as i64) } else { json!(priority) }
}

fn next(list: &TaskList, first: Option<&(IterationMode, &Story)>, skip_review: bool) -> String {
    match first {
        Some((mode, story)) => format!("next: {mode} {}", story.id),
        None if list.is_done(skip_review) && skip_review => {
            "next: nothing; every story passes (without reviews)".to_owned()
        }
        None if list.is_done(skip_review) => "next: nothing; every story is done".to_owned(),
        None => format!("next: nothing; {}", list.blocked_because()),
    }
}

fn objects(list: &TaskList, ready: &[(IterationMode, &Story)]) -> Vec<Value> {
    let modes: BTreeMap<&str, IterationMode> =
        ready.iter().map(|(mode, story)| (story.id.as_str(), *mode)).collect();
    let first = ready.first().map(|(_, story)| story.id.as_str());
    let object = |story: &Story| {
        json!({
            "id": story.id,
            "title": story.title,
            "state": story.state_word(),
            "reviews": story.review.review_count,
            "priority": priority(story.priority),
            "depends_on": story.depends_on,
            "mode": modes.get(story.id.as_str()),
            "next": first == Some(story.id.as_str()),
        })
    };
    list.stories().iter().map(object).collect()
}
