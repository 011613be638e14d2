//! Screens of the interface, drawn without a terminal.

use chrono::DateTime;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};
use swarm_state::host::HostName;

use super::keys::UiKey;
use super::model::{Panel, UiEffect, UiEvent, UiModel};
use super::{update, view};
use crate::client::testing;
use crate::protocol::{AgentRequestView, Report, WorkerHost, WorkerView};

/// The time of all tests.
pub(super) fn now() -> DateTime<chrono::FixedOffset> {
    DateTime::parse_from_rfc3339("2026-01-15T12:00:00+01:00").unwrap()
}

/// A worker that has its status since this time of the day.
pub(super) fn worker(name: &str, status: &str, since: &str, cause: Value, metadata: Value) -> WorkerView {
    let mut worker = testing::view(name, status, metadata);
    worker.cause = serde_json::from_value(cause).unwrap();
    worker.reason = worker.cause.as_ref().map(swarm_state::cause::Cause::text);
    worker.since = Some(format!("2026-01-15T{since}:00+01:00"));
    worker.started = "2026-01-15T11:00:00+01:00".into();
    if !worker.status.is_live() {
        (worker.pid, worker.tmux.pane) = (None, None);
    }
    worker
}

fn iteration(number: u64, max: u64, cost: f64) -> Value {
    json!({
        "ralph": true, "ralph_iteration": number, "max_iterations": max, "cost_usd": cost, "status": "running",
        "iteration_started": "2026-01-15T11:48:00+01:00"
    })
}

/// One open request.
pub(super) fn requests(id: &str, kind: &str, text: &str) -> Vec<AgentRequestView> {
    let open = json!([{"id": id, "kind": kind, "text": text, "since": "2026-01-15T11:57:00+01:00"}]);
    serde_json::from_value(open).unwrap()
}

/// Workers of each group.
pub(super) fn fleet() -> Vec<WorkerView> {
    let person = |text: &str| json!({"kind": "needs_person", "text": text});
    let limit =
        json!({"kind": "outage", "outage": "limit", "message": "limit", "until": null, "retry_seconds": 900});
    let ended = |reason: Value| json!({"kind": "stopped", "reason": reason});
    let mut fix = worker("fix", "running", "11:00", Value::Null, iteration(4, 25, 1.84));
    fix.context = Some(61);
    let mut api = worker("api", "waiting", "11:57", person("permission: Bash: rm -rf build/"), json!({}));
    api.requests = requests("1", "permission", "Bash: rm -rf build/\ncd /work && make");
    let mut docs = worker("docs", "waiting", "11:40", person("asks: Keep it? [yes | no]"), json!({}));
    docs.requests = requests("2", "question", "Keep it? [yes | no]");
    let mut seen = worker("old", "done", "10:00", ended(json!("complete")), json!({}));
    seen.seen = true;
    vec![
        api,
        docs,
        worker(
            "stuck",
            "paused",
            "11:59",
            json!({"kind": "paused", "by": "no_progress"}),
            iteration(9, 9, 0.4),
        ),
        worker("bad", "failed", "11:30", ended(json!({"exited": {"code": 1}})), json!({})),
        worker("gone", "lost", "11:20", json!({"kind": "lost"}), json!({})),
        fix,
        worker("parse", "running", "11:59", Value::Null, json!({})),
        worker("big", "waiting", "11:10", limit, iteration(2, 30, 0.4)),
        worker("mine", "paused", "11:50", json!({"kind": "paused", "by": "user"}), iteration(1, 5, 0.0)),
        worker("login", "done", "11:00", ended(json!("complete")), iteration(6, 30, 2.1)),
        worker("killed", "killed", "11:00", ended(json!("killed")), json!({})),
        seen,
        worker("wide-日本語-🦀\x1b[2J", "running", "11:00", Value::Null, json!({})),
    ]
}

/// The interface with all workers.
pub(super) fn model(columns: u16, rows: u16) -> UiModel {
    let mut model = UiModel::new(now(), (columns, rows), false);
    model.load = Some(1.4);
    send(&mut model, UiEvent::Workers(fleet()));
    model
}

pub(super) fn send(model: &mut UiModel, event: UiEvent) -> Vec<UiEffect> {
    let now = model.now;
    update::update(model, event, now)
}

pub(super) fn press(model: &mut UiModel, keys: &str) -> Vec<UiEffect> {
    keys.chars().flat_map(|key| send(model, UiEvent::Key(UiKey::Char(key)))).collect()
}

pub(super) fn report() -> Box<Report> {
    let lines = include_str!("../../tests/golden/calls.jsonl").lines();
    let answers = lines.map(|line| serde_json::from_str::<Value>(line).unwrap()["ok"].clone());
    let mut report: Report = answers.filter_map(|answer| serde_json::from_value(answer).ok()).next().unwrap();
    report.name = "fix".into();
    let first = report.iterations[0].clone();
    for (number, seconds) in [(2, 192.0), (3, 64.0)] {
        let mut next = first.clone();
        (next.iteration, next.seconds) = (number, seconds);
        report.iterations.push(next);
    }
    Box::new(report)
}

/// The screen as text.
pub(super) fn screen(model: &UiModel) -> String {
    let mut terminal = Terminal::new(TestBackend::new(model.size.0, model.size.1)).unwrap();
    terminal.draw(|frame| view::draw(model, frame)).unwrap();
    terminal.backend().to_string()
}

fn page(model: &mut UiModel, panel: Panel, text: &str) {
    let name = model.selected.clone().unwrap();
    send(model, UiEvent::Page(name, panel, text.lines().map(str::to_owned).collect()));
}

/// The list, each page, the keys, a question and a lost daemon.
fn all_screens(columns: u16, rows: u16) -> String {
    let mut model = model(columns, rows);
    let mut screens = vec![("list", screen(&model))];
    press(&mut model, " ");
    screens.push(("with the rest", screen(&model)));
    model.selected = Some("api".into());
    send(&mut model, UiEvent::Tick);
    press(&mut model, "v");
    page(&mut model, Panel::Screen, "Do you want to proceed?\n❯ 1. Yes");
    screens.push(("request", screen(&model)));
    press(&mut model, "v");
    model.selected = Some("fix".into());
    send(&mut model, UiEvent::Tick);
    send(&mut model, UiEvent::Report(report()));
    for (key, panel, text) in [
        ("w", Panel::Why, "fix: running\nnext: swarm attach fix"),
        (
            "v",
            Panel::Screen,
            "● Bash(make lint)\n  src/a.rs:14 unused \x1b[31mimport\x1b[0m\n日本語 \u{202e}abc\x07",
        ),
        ("l", Panel::Log, "one\ntwo"),
        ("d", Panel::Diff, "@@ -1 +1 @@\n-old\n+new"),
        ("o", Panel::Report, "# fix"),
    ] {
        press(&mut model, key);
        page(&mut model, panel, text);
        screens.push((panel.title(), screen(&model)));
    }
    press(&mut model, "K");
    screens.push(("question", screen(&model)));
    press(&mut model, "n?");
    screens.push(("keys", screen(&model)));
    press(&mut model, "?mhello");
    screens.push(("message", screen(&model)));
    send(&mut model, UiEvent::Key(UiKey::Esc));
    send(&mut model, UiEvent::Down("the daemon does not answer".into()));
    screens.push(("no daemon", screen(&model)));
    screens.iter().map(|(title, screen)| format!("== {title}\n{screen}\n")).collect()
}

#[test]
fn screens_at_80x24() {
    insta::assert_snapshot!(all_screens(80, 24));
}

#[test]
fn screens_at_120x40() {
    insta::assert_snapshot!(all_screens(120, 40));
}

#[test]
fn screens_at_50x20() {
    insta::assert_snapshot!(all_screens(50, 20));
}

#[test]
fn screens_at_20x5() {
    insta::assert_snapshot!(all_screens(20, 5));
}

#[test]
fn every_size_is_drawn_without_control_characters() {
    for columns in [1, 2, 7, 19, 38, 71, 72, 73, 200] {
        for rows in [1, 2, 3, 5, 60] {
            let screens = all_screens(columns, rows);
            assert!(!screens.contains(|c: char| c.is_control() && c != '\n'), "{columns}x{rows}");
        }
    }
}

#[test]
fn nothing_depends_on_color() {
    let plain = model(100, 30);
    let mut colored = plain.clone();
    colored.has_color = true;
    assert_eq!(screen(&plain), screen(&colored));
}

/// Workers of a remote host, as [`super::link`] sends them.
pub(super) fn of_host(host: &str, silent_for: Option<&str>, names: &[&str]) -> UiEvent {
    let host = HostName::new(host).unwrap();
    let silent_for = silent_for.map(str::to_owned);
    let remote = |name: &&str| {
        let mut worker = worker(name, "running", "11:00", Value::Null, json!({}));
        worker.host = Some(WorkerHost { name: host.clone(), silent_for: silent_for.clone() });
        if let Some(silent_for) = &silent_for {
            worker.status = swarm_state::model::Status::Unreachable;
            worker.reason = Some(silent_for.clone());
        }
        super::link::qualified(worker)
    };
    UiEvent::Host(host.clone(), names.iter().map(remote).collect(), silent_for.clone())
}

#[test]
fn workers_of_remote_hosts_have_a_column_of_hosts() {
    let mut model = UiModel::new(now(), (80, 12), false);
    let own = vec![worker("fix", "running", "11:00", Value::Null, json!({}))];
    send(&mut model, UiEvent::Workers(own));
    send(&mut model, of_host("gpu1", None, &["fix", "long-name"]));
    send(&mut model, of_host("gpu22", Some("unreachable for 4m"), &["far"]));
    insta::assert_snapshot!(screen(&model));
    // The rows of the other machines stay.
    send(&mut model, UiEvent::Workers(vec![]));
    send(&mut model, of_host("gpu22", None, &[]));
    assert_eq!(model.workers.keys().collect::<Vec<_>>(), ["gpu1/fix", "gpu1/long-name"]);
    assert!(!screen(&model).contains("unreachable"), "{}", screen(&model));
}
