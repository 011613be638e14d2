//! `swarm status`: show one worker, as text or JSON, or count all workers for the status line of tmux.

use std::time::Duration;

use chrono::Local;
use swarm_state::advice::next_step;
use swarm_state::attention::Attention;
use swarm_state::docker::{network_command, sandbox_name};
use swarm_state::model::Status;
use swarm_state::notice::{HoldBy, counted};
use swarm_state::sandbox::{SandboxKind, SandboxNet};
use swarm_state::screen::printable;
use tokio::time::timeout;

use super::answer;
use crate::cli::{StatusArgs, StatusFormat};
use crate::client::connect::{self, QUICK_TIMEOUT};
use crate::client::context::ClientContext;
use crate::client::json;
use crate::client::worker::{age, is_loop, iteration, local_time, reset, situation, story};
use crate::error::{Error, Result};
use crate::out::{Color, CommandResult, Out};
use crate::protocol::{Call, Empty, HeldView, Listing, Named, WorkerView};
use crate::shell::join;

pub(super) async fn run(ctx: &ClientContext, args: &StatusArgs) -> CommandResult {
    let Some(name) = &args.name else { return print_counts(ctx).await };
    if args.format == StatusFormat::Tmux {
        return Err(Error::usage("--format tmux shows all workers and accepts no name").into());
    }
    let call = Call::Status(Named { name: name.to_string() });
    let worker = ctx.on_host(ctx.call(&call, QUICK_TIMEOUT).await?);
    match args.format {
        StatusFormat::Json => ctx.out.json(&json::worker(&worker))?,
        StatusFormat::Text | StatusFormat::Tmux => {
            ctx.out.lines(&page(&worker, ctx.out))?;
            next_step(&situation(&worker)).iter().for_each(|hint| ctx.out.hint(hint));
            ctx.report_seen(&worker.name, worker.status.is_finished()).await;
        }
    }
    Ok(if worker.status.is_live_or_paused() { 0 } else { 1 })
}

/// Formats the page: name and status, then one field a line. Empty fields are left out.
fn page(worker: &WorkerView, out: Out) -> Vec<String> {
    let mut lines =
        vec![format!("{}: {}", worker.name, out.paint(color(worker.status), worker.status.as_str()))];
    let mut say = |key: &str, value: String| lines.push(format!("  {key:<10} {}", printable(&value)));
    worker.reason.iter().for_each(|reason| say("reason", reason.clone()));
    held(worker).into_iter().for_each(|text| say("held", text));
    reset(worker.cause.as_ref()).into_iter().for_each(|reset| say("goes on", reset));
    worker.requests.iter().flat_map(answer::lines).for_each(|line| say("request", line));
    if is_loop(worker) {
        say("iteration", iteration(worker));
    }
    if let Some((story, count)) = worker.tasks.as_ref().and_then(story) {
        say("story", story);
        say("stories", count);
    }
    worker.context.iter().for_each(|percent| say("context", format!("{percent}% used")));
    say("command", join(&worker.cmd));
    say("directory", worker.cwd.display().to_string());
    let tree = worker.worktree.iter();
    tree.for_each(|tree| say("worktree", format!("{} (branch {})", tree.path.display(), tree.branch)));
    worker.sandbox.iter().for_each(|kind| say("sandbox", format!("{}, {}", kind.as_str(), network(worker))));
    say("started", started(&worker.started));
    worker.pid.iter().for_each(|pid| say("pid", pid.to_string()));
    match (worker.signal, worker.exit_code) {
        _ if worker.ended.is_some() => say("ended", worker.ended.clone().unwrap_or_default()),
        (Some(signal), _) => say("ended by", format!("signal {signal}")),
        (None, Some(code)) => say("exit code", code.to_string()),
        (None, None) => {}
    }
    if worker.restarts > 0 {
        say("restarts", worker.restarts.to_string());
    }
    if let Some(restart) = &worker.restart {
        let (when, failures, max) = (restart.when.as_str(), restart.failures, restart.max_restarts);
        say("restart", format!("{when} (failed in a row: {failures}, at most {})", counted(max, "restart")));
    }
    if !worker.caps.of_run().is_empty() {
        say("caps", worker.caps.text(worker.caps_in_force.as_ref()));
    }
    if !worker.tags.is_empty() {
        say("tags", worker.tags.join(", "));
    }
    if !worker.env.is_empty() {
        say("env", worker.env.keys().cloned().collect::<Vec<_>>().join(", "));
    }
    let pane = worker.tmux.pane.as_deref().map(|p| format!(", pane {p}")).unwrap_or_default();
    let place = format!("{}:{}{pane}", worker.tmux.session, worker.tmux.window);
    say("tmux", format!("{place}, socket {}", worker.tmux.socket.display()));
    if !worker.screen.is_empty() {
        say("screen", String::new());
        lines.extend(worker.screen.iter().map(|line| format!("    | {}", printable(line))));
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

pub(super) fn color(status: Status) -> Color {
    match status {
        Status::Running | Status::Done => Color::Green,
        Status::Starting | Status::Killed => Color::Bold,
        Status::Waiting | Status::Retrying | Status::Paused | Status::Unreachable => Color::Yellow,
        Status::Failed | Status::Lost => Color::Red,
    }
}

fn held(worker: &WorkerView) -> Option<String> {
    let HeldView { by, since } = worker.held.as_ref()?;
    let how = match by {
        HoldBy::Typing => "a person types",
        HoldBy::Command => "swarm hold",
    };
    Some(format!("since {} ({how})", local_time(since)))
}

fn network(worker: &WorkerView) -> String {
    if let (Some(SandboxKind::Docker), Some(net)) = (worker.sandbox, worker.network) {
        let dir = worker.worktree.as_ref().map_or(&worker.cwd, |tree| &tree.path);
        let command = network_command(&sandbox_name(dir), net, &worker.allowed_hosts);
        return command.map_or_else(
            || "network as Docker gives it".to_owned(),
            |command| format!("network as Docker gives it, unless you ran: {command}"),
        );
    }
    let hosts: Vec<_> = worker.allowed_hosts.iter().map(ToString::to_string).collect();
    match worker.network {
        None => "network unknown".to_owned(),
        Some(SandboxNet::On) => "with the network of this machine".to_owned(),
        Some(SandboxNet::Off) => "without a network".to_owned(),
        Some(SandboxNet::Allow) if hosts.is_empty() => "network without allowed hosts".to_owned(),
        Some(SandboxNet::Allow) => format!("network only to {}", hosts.join(", ")),
    }
}

/// Formats a time as `2026-01-01 10:00:00 (3h ago)`, in local time.
fn started(text: &str) -> String {
    format!("{} ({} ago)", local_time(text), age(text, Local::now().fixed_offset()))
}

const STATUS_LINE_TIMEOUT: Duration = Duration::from_secs(2);

/// Prints one line for the status line of tmux, which asks every few seconds: starts no daemon, waits for at most two
/// seconds and always succeeds.
async fn print_counts(ctx: &ClientContext) -> CommandResult {
    let text = match timeout(STATUS_LINE_TIMEOUT, running_workers(ctx)).await {
        Ok(Ok(Some(listing))) => counts_line(&listing.workers),
        Ok(Ok(None)) => "no daemon".to_owned(),
        Ok(Err(_)) | Err(_) => "no answer from the daemon".to_owned(),
    };
    ctx.out.line(&text)?;
    Ok(0)
}

async fn running_workers(ctx: &ClientContext) -> Result<Option<Listing>> {
    let Some(mut client) = connect::connect_existing(&ctx.place()?).await? else { return Ok(None) };
    client.call(&Call::Ls(Empty {}), STATUS_LINE_TIMEOUT).await.map(Some)
}

fn counts_line(workers: &[WorkerView]) -> String {
    let count = |group: Attention, is_counted: fn(Status) -> bool| {
        let groups = workers.iter().filter(|view| is_counted(view.status));
        groups.filter(|view| Attention::of(view.status, view.cause.as_ref(), view.seen) == group).count()
    };
    let need = count(Attention::NeedsYou, |_| true);
    let parts = [
        (need, if need == 1 { "needs you" } else { "need you" }),
        (count(Attention::FailedOrLost, |status| status == Status::Failed), "failed"),
        (count(Attention::FailedOrLost, |status| status != Status::Failed), "lost"),
        (count(Attention::Working, |_| true), "working"),
        (count(Attention::Parked, |_| true), "parked"),
        (count(Attention::FinishedUnseen, |_| true), "done"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, group)| format!("{count} {group}")).collect();
    if parts.is_empty() { "no workers".to_owned() } else { parts.join(" · ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::testing::view;

    #[test]
    fn status_page_omits_absent_values() {
        let out = Out::plain();
        let text = page(&view("a", "running", json!({})), out).join("\n");
        assert!(
            text.starts_with("a: running\n  command    claude\n  directory  /work\n  started "),
            "{text}"
        );
        assert!(!text.contains("iteration") && !text.contains("exit"), "{text}");
        let mut worker =
            view("a", "waiting", json!({"ralph": true, "ralph_iteration": 2, "status": "running"}));
        worker.screen = vec!["Do you trust\x1b[2J?".into()];
        worker.context = Some(52);
        let text = page(&worker, out).join("\n");
        assert!(text.contains("\n  iteration  2\n  context    52% used\n"), "{text}");
        assert!(text.contains("\n    | Do you trust") && !text.contains('\x1b'), "{text}");
    }
    #[test]
    fn the_network_of_a_sandbox_is_named() {
        let mut worker = view("a", "running", json!({}));
        let hosts = swarm_state::network::parse_hosts("pypi").unwrap();
        for (net, hosts, expected) in [
            (None, &[][..], "network unknown"),
            (Some(SandboxNet::On), &[], "with the network of this machine"),
            (Some(SandboxNet::Off), &[], "without a network"),
            (Some(SandboxNet::Allow), &[], "network without allowed hosts"),
            (Some(SandboxNet::Allow), &hosts, "network only to pypi.org, files.pythonhosted.org"),
        ] {
            (worker.network, worker.allowed_hosts) = (net, hosts.to_vec());
            assert_eq!(network(&worker), expected);
        }
        (worker.sandbox, worker.network) = (Some(SandboxKind::Docker), Some(SandboxNet::Off));
        let command = "docker sandbox network proxy ralph-_work --policy deny";
        assert_eq!(network(&worker), format!("network as Docker gives it, unless you ran: {command}"));
    }

    #[test]
    fn summary_line_counts_each_group() {
        assert_eq!(counts_line(&[]), "no workers");
        let views = |all: &[&str]| all.iter().map(|status| view("a", status, json!({}))).collect::<Vec<_>>();
        assert_eq!(counts_line(&views(&["killed"])), "no workers");
        let all =
            ["done", "running", "waiting", "failed", "lost", "unreachable", "starting", "done", "paused"];
        let expected = "2 need you · 1 failed · 2 lost · 2 working · 2 done";
        assert_eq!(counts_line(&views(&all)), expected);
        assert_eq!(counts_line(&views(&["waiting"])), "1 needs you");
    }
}
