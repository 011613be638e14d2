//! `swarm ralph tasks check`: report every problem of a list.

use serde_json::{Value, json};
use swarm_state::tasks::check::{TaskProblem, check};
use swarm_state::tasks::{ReviewOptions, TaskList};

use crate::cli::{PageFormat, TaskReviewArgs, TasksCheck};
use crate::client::context::ClientContext;
use crate::client::task_list_file::TaskListFile;
use crate::error::Error;
use crate::out::CommandResult;

pub(super) fn run(ctx: &ClientContext, args: &TasksCheck) -> CommandResult {
    let file = TaskListFile::of_args(&args.place);
    let TaskReviewArgs { skip_review, review_cap } = args.review;
    let (list, problems) = check(&file.read()?, ReviewOptions { skip_review, review_cap: review_cap.into() });
    match args.format {
        PageFormat::Json => ctx.out.json(&json!({
            "file": file.absolute()?,
            "valid": problems.is_empty(),
            "stories": list.as_ref().map(|list| list.stories().len()),
            "states": list.as_ref().map(states),
            "estimated_iterations": list.as_ref().map(|list| list.estimated_iterations(skip_review)),
            "problems": problems.iter().map(problem).collect::<Vec<_>>(),
        }))?,
        PageFormat::Text => {
            for problem in &problems {
                ctx.out.error(&Error::invalid(format!("{}: {}", file.shown(), problem.message)));
            }
            if list.as_ref().is_some_and(|list| !skip_review && !problems.is_empty() && list.is_unreviewed())
            {
                ctx.out.hint("for a loop without reviews: --skip-review");
            }
            if let Some(list) = list.filter(|_| problems.is_empty()) {
                ctx.out.line(&list.summary(skip_review))?;
            }
        }
    }
    Ok(u8::from(!problems.is_empty()))
}

fn states(list: &TaskList) -> Value {
    list.count_states().into_iter().map(|(state, count)| (state.to_owned(), json!(count))).collect()
}

fn problem(problem: &TaskProblem) -> Value {
    json!({
        "story": problem.story,
        "field": problem.field,
        "line": problem.place.map(|(line, _)| line),
        "column": problem.place.map(|(_, column)| column),
        "message": problem.message,
    })
}
