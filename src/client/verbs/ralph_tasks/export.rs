//! `swarm ralph tasks export`: write a task list in the form of another program.

use crate::cli::{ExportFormat, TasksExport};
use crate::client::context::ClientContext;
use crate::client::task_list_file::TaskListFile;
use crate::error::Error;
use crate::out::CommandResult;

pub(super) fn run(ctx: &ClientContext, args: &TasksExport) -> CommandResult {
    let file = TaskListFile::of_args(&args.place);
    let list = file.list()?;
    let text = match args.format {
        ExportFormat::Markdown => list.to_markdown(),
        ExportFormat::Prd => list.to_prd(),
    };
    let Some(output) = &args.output else { return ctx.out.raw(&text).map(|()| 0) };
    if file.is_at(output) {
        let error = Error::invalid(format!("the export would overwrite the list in {}", file.shown()));
        return Err(error.hint("choose another file for --output").into());
    }
    std::fs::write(output, text)
        .map_err(|e| Error::system(format!("cannot write {}", output.display()), e))?;
    Ok(0)
}
