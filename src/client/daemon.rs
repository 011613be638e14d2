//! `swarm daemon start|stop|restart|status`. (`daemon run` is the daemon itself; `main` calls it.)

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

use super::connect::{self, Client, Probe, QUICK};
use super::{Ctx, Ended, Failure};
use crate::cli::{DaemonStatus, PageFormat};
use crate::error::{Error, ErrorCode, Result};
use crate::paths::Paths;
use crate::protocol::{Call, DaemonHello, DaemonStopped, DaemonView, Empty};

/// How long a daemon may take, the connection included, to say that it ends.
const ANSWER: Duration = Duration::from_secs(15);

/// How long a daemon may take to go away after it said it would.
const GONE: Duration = Duration::from_secs(20);

pub(super) async fn start(ctx: &Ctx) -> Ended {
    let (client, started) = connect::connect_or_start(&ctx.paths()?).await?;
    say_started(ctx, client, if started { "daemon started" } else { "daemon already running" }).await
}

async fn say_started(ctx: &Ctx, mut client: Client, how: &str) -> Ended {
    let view: DaemonView = client.call(&Call::DaemonStatus(Empty {}), QUICK).await?;
    ctx.out.line(&format!("{how} (pid {})", view.pid))?;
    say_paused(ctx, &view.paused_by_shutdown)?;
    Ok(0)
}

/// Which loops a shutdown paused, and how each goes on.
fn say_paused(ctx: &Ctx, paused: &[String]) -> Result<(), Failure> {
    if paused.is_empty() {
        return Ok(());
    }
    let loops =
        if paused.len() == 1 { "1 loop is".to_owned() } else { format!("{} loops are", paused.len()) };
    ctx.out.line(&format!("{loops} paused by the shutdown; to go on:"))?;
    let lines: Vec<String> = paused.iter().map(|name| format!("  swarm ralph resume {name}")).collect();
    ctx.out.lines(&lines)
}

pub(super) async fn stop(ctx: &Ctx) -> Ended {
    let paths = ctx.paths()?;
    let deadline = Instant::now() + ANSWER;
    let Some(mut client) = connect::connect_existing(&paths).await? else {
        ctx.out.line("daemon not running")?;
        return Ok(0);
    };
    let stopped: DaemonStopped = end(&paths, &mut client, &Call::DaemonStop(Empty {}), deadline).await?;
    gone(&paths, client).await?;
    ctx.out.line("daemon stopped")?;
    stopped.warnings.iter().for_each(|warning| ctx.out.warn(warning));
    if stopped.agents > 0 {
        let agents =
            if stopped.agents == 1 { "1 agent goes".into() } else { format!("{} agents go", stopped.agents) };
        ctx.out.line(&format!("{agents} on in tmux; end them with swarm kill"))?;
    }
    say_paused(ctx, &stopped.paused)?;
    Ok(0)
}

pub(super) async fn restart(ctx: &Ctx) -> Ended {
    let paths = ctx.paths()?;
    let deadline = Instant::now() + ANSWER;
    match connect::probe(&paths).await? {
        Probe::Ready(mut client) => {
            let Empty {} = end(&paths, &mut client, &Call::DaemonHandover(Empty {}), deadline).await?;
            gone(&paths, client).await?;
        }
        Probe::WrongVersion(daemon) => end_other_version(ctx, &paths, &daemon).await?,
        Probe::Nobody => {}
    }
    // A follower may have started it before us; it is a new one all the same.
    let client = connect::connect(&paths).await?;
    say_started(ctx, client, "daemon started").await
}

/// Asks a daemon to end; of one that hangs, says what is left to do.
async fn end<T: DeserializeOwned>(
    paths: &Paths,
    client: &mut Client,
    call: &Call,
    deadline: Instant,
) -> Result<T> {
    let pid = client.daemon.pid;
    let answer = client.call(call, deadline.saturating_duration_since(Instant::now())).await;
    answer.map_err(|error| match error.code {
        ErrorCode::Timeout => error.hint(connect::last_resort(&paths.daemon_log(), pid)),
        _ => error,
    })
}

/// A daemon that speaks another protocol cannot be asked for a handover. A SIGTERM ends every version of
/// it in order; it pauses the loops, and the new daemon says which.
async fn end_other_version(ctx: &Ctx, paths: &Paths, daemon: &DaemonHello) -> Result<()> {
    let Some(pid) = process(daemon.pid) else { return Err(connect::wrong_version(daemon)) };
    ctx.out
        .warn(&format!("the daemon of swarm {} is ended by a signal, which pauses its loops", daemon.daemon));
    kill(pid, nix::sys::signal::Signal::SIGTERM)
        .map_err(|e| Error::system(format!("cannot end the daemon (pid {pid})"), e))?;
    wait_gone(paths, daemon.pid, Instant::now() + GONE).await
}

/// Waits until the daemon has hung up, left its socket and ended.
async fn gone(paths: &Paths, client: Client) -> Result<()> {
    let deadline = Instant::now() + GONE;
    let pid = client.daemon.pid;
    let _ = timeout_at(deadline, client.hang_up()).await;
    wait_gone(paths, pid, deadline).await
}

async fn wait_gone(paths: &Paths, pid: u32, deadline: Instant) -> Result<()> {
    loop {
        let left = !matches!(connect::probe(paths).await, Ok(Probe::Ready(c)) if c.daemon.pid == pid);
        if left && !alive(pid) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let message = format!("the daemon (pid {pid}) has not ended after {} s", GONE.as_secs());
            let hint = connect::last_resort(&paths.daemon_log(), pid);
            return Err(Error::new(ErrorCode::Timeout, message).hint(hint));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn process(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().filter(|pid| *pid > 1).map(Pid::from_raw)
}

fn alive(pid: u32) -> bool {
    process(pid).is_some_and(|pid| kill(pid, None) != Err(Errno::ESRCH))
}

pub(super) async fn status(ctx: &Ctx, args: &DaemonStatus) -> Ended {
    let Some(mut client) = connect::connect_existing(&ctx.paths()?).await? else {
        match args.format {
            PageFormat::Json => ctx.out.line("null")?,
            PageFormat::Text => ctx.out.line("daemon not running")?,
        }
        return Ok(3);
    };
    let view: DaemonView = client.call(&Call::DaemonStatus(Empty {}), QUICK).await?;
    match args.format {
        PageFormat::Json => ctx.out.json(&view)?,
        PageFormat::Text => {
            ctx.out.lines(&page(&view))?;
            say_paused(ctx, &view.paused_by_shutdown)?;
        }
    }
    Ok(0)
}

fn page(view: &DaemonView) -> Vec<String> {
    vec![
        format!("daemon running (pid {})", view.pid),
        format!("  version    {} (protocol {})", view.version, view.protocol),
        format!("  started    {}", view.started),
        format!("  directory  {}", view.swarm_dir.display()),
        format!("  socket     {}", view.socket.display()),
        format!("  tmux       {}", view.tmux.as_deref().unwrap_or("not asked yet")),
        format!("  workers    {} live, {} in all", view.live, view.workers),
    ]
}
