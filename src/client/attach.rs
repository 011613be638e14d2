//! `swarm attach`: a worker's window in this terminal.
//!
//! tmux gets the terminal; when the person has left, the window goes back to the size it had. This is one
//! of the few places that start a process; what tmux is told is worded in [`crate::tmux`].

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use super::connect::QUICK;
use super::{Ctx, Ended};
use crate::cli::Attach;
use crate::error::Error;
use crate::protocol::{AttachView, Call, Named};
use crate::tmux::{Attach as Plan, Options, Socket, Tmux};

pub(super) async fn run(ctx: &Ctx, args: &Attach) -> Ended {
    let call = Call::Attach(Named { name: args.name.to_string() });
    let view: AttachView = ctx.connect().await?.call(&call, QUICK).await?;
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let hint = format!("to look without one: swarm peek {0}, or swarm logs {0} --follow", args.name);
        return Err(Error::invalid("attach needs a terminal").hint(hint).into());
    }
    let options = Options {
        socket: Socket::Path(view.socket),
        config: ctx.paths()?.tmux_conf(),
        source: None,
        session: view.session,
    };
    let plan = Tmux::new(options).attach_argv(&view.window, view.size, args.read_only);
    // With these caught, a closed terminal ends tmux's client and not us: the size is still restored.
    let caught = [SignalKind::hangup(), SignalKind::terminate(), SignalKind::interrupt(), SignalKind::quit()];
    let _caught: Vec<_> = caught.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    let status = command(&plan.argv).status().await;
    for argv in &plan.after {
        // A window that is gone by now needs no size.
        let _ = command(argv).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().await;
    }
    let status = status.map_err(|e| Error::system("cannot run tmux", e).hint("apt-get install tmux"))?;
    let signalled = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signalled).unwrap_or(1);
    Ok(u8::try_from(code).unwrap_or(1))
}

/// From inside another tmux too: ours is another server, so nothing can loop.
fn command(argv: &[OsString]) -> Command {
    Plan::command(argv).into()
}
