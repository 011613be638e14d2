//! `swarm status`: show one worker, as text or JSON.

use chrono::Local;
use swarm_state::advice::next_step;
use swarm_state::docker::{network_command, sandbox_name};
use swarm_state::model::Status;
use swarm_state::notice::{HoldBy, counted};
use swarm_state::sandbox::{SandboxKind, SandboxNet};
use swarm_state::screen::printable;

use super::answer;
use crate::cli::{StatusArgs, StatusFormat};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::json;
use crate::client::verbs::status_tmux;
use crate::client::worker::{age, is_loop, iteration, local_time, reset, situation, story};
use crate::error::Error;
use crate::out::{Color, CommandResult, Out};
use crate::protocol::{Call, HeldView, Named, WorkerView};
use crate::shell::join;

pub(super) async fn run(ctx: &ClientContext, args: &StatusArgs) -> CommandResult {
    let Some(name) = &args.name else { return status_tmux::run(ctx).await };
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

/// The network of a sandbox in words.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::testing::view;

    #[test]
    fn the_page_says_what_there_is_and_nothing_else() {
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
}
