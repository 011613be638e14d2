//! `swarm fetch`: bring the branch of a worker on a host into the repository of the current directory.

use crate::cli::Fetch;
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::typed_path::current_dir;
use crate::error::Error;
use crate::out::CommandResult;
use crate::protocol::{Call, Named, WorkerView};
use crate::remote::code;

pub(super) async fn run(ctx: &ClientContext, args: &Fetch) -> CommandResult {
    let place = ctx.place()?;
    let Some(host) = place.host() else {
        let error = Error::usage("fetch is for a worker on a remote host");
        return Err(error.hint("name it as HOST/NAME").into());
    };
    if host.spec.ssh.is_none() {
        let error = Error::usage(format!("the jobs of {} work on directories of this machine", host.name));
        return Err(error.hint("the branch is in the worker's repository already").into());
    }
    let call = Call::Status(Named { name: args.name.to_string() });
    let worker: WorkerView = ctx.call(&call, QUICK_TIMEOUT).await?;
    let Some(worktree) = worker.worktree else {
        return Err(Error::invalid(format!("worker '{}' has no worktree", args.name)).into());
    };
    code::fetch(&place, host, &current_dir()?, &args.name, (&worktree.base_repo, &worktree.branch)).await?;
    ctx.out.line(&format!("fetched branch {} from {}", worktree.branch, host.name))?;
    Ok(0)
}
