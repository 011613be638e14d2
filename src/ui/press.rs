//! The keys of `swarm ui`.
//!
//! [`hints`] are the keys that fit the selected worker, for the last line. A key that changes something runs the verb
//! of that name. Deliberately absent: the list of all keys, which is part of the help.

use chrono::TimeDelta;
use swarm_state::answer::AgentRequestKind;
use swarm_state::attention::Attention;
use swarm_state::model::Status;

use super::keys::{LineEdit, UiKey};
use super::model::{Panel, PromptKind, UiEffect, UiMode, UiModel, VerbOutput};
use super::panel;
use crate::client::worker::{is_loop, iteration};
use crate::protocol::WorkerView;
use crate::shell::join;

/// How long a request is on the screen before a key answers it: the key may have been meant for the one before.
const MIN_SHOWN: TimeDelta = TimeDelta::milliseconds(500);

/// How long a key does not answer the same request again: it may have been pressed twice.
const ANSWER_PAUSE: TimeDelta = TimeDelta::seconds(5);

/// The keys that make sense for the selected worker, the most important first.
pub(super) fn hints(model: &UiModel) -> Vec<(&'static str, &'static str)> {
    let mut hints = vec![];
    let selected = model.selected_worker();
    match selected.and_then(|worker| worker.requests.first()).map(|open| open.request.kind) {
        Some(AgentRequestKind::Permission) => hints.push(("y n a", "allow, deny, always")),
        Some(AgentRequestKind::Question) => hints.push(("a", "answer")),
        None => {}
    }
    if model.visible().iter().any(|(group, _)| *group == Attention::NeedsYou) {
        hints.push(("tab", "next that needs you"));
    }
    if let Some(worker) = selected {
        let (is_loop, status, has_pane) = (is_loop(worker), worker.status, worker.tmux.pane.is_some());
        let fitting = [
            (has_pane, ("enter", "attach")),
            (has_pane, ("m", "message")),
            (is_loop && status.is_live(), ("p", "pause")),
            (is_loop && matches!(status, Status::Paused | Status::Lost), ("r", "resume")),
            (status.is_finished(), ("R", "respawn")),
            (true, ("w", "why")),
            (is_loop, ("d", "diff")),
        ];
        hints.extend(fitting.into_iter().filter(|(fits, _)| *fits).map(|(_, hint)| hint));
    }
    hints.extend([("s", "spawn"), ("/", "filter"), (":", "verb"), ("q", "quit")]);
    hints
}

pub(super) fn press(model: &mut UiModel, key: &UiKey) -> Vec<UiEffect> {
    model.message = None;
    if *key == UiKey::Control('c') {
        return match model.mode {
            UiMode::List => vec![UiEffect::Quit],
            _ => leave_mode(model),
        };
    }
    match std::mem::replace(&mut model.mode, UiMode::List) {
        UiMode::List => in_list(model, key),
        // Any key leaves the page of keys.
        UiMode::Help => vec![],
        UiMode::Confirm { words, .. } => match key {
            UiKey::Char('y' | 'Y') => vec![run(model, words)],
            _ => vec![],
        },
        UiMode::Prompt(kind, line) => in_prompt(model, kind, line, key),
    }
}

fn leave_mode(model: &mut UiModel) -> Vec<UiEffect> {
    if matches!(model.mode, UiMode::Prompt(PromptKind::Filter, _)) {
        model.filter.clear();
    }
    model.mode = UiMode::List;
    vec![]
}

fn in_list(model: &mut UiModel, key: &UiKey) -> Vec<UiEffect> {
    match key {
        UiKey::Down | UiKey::Char('j') => select(model, model.cursor + 1),
        UiKey::Up | UiKey::Char('k') => select(model, model.cursor.saturating_sub(1)),
        UiKey::Char('g') | UiKey::Home => select(model, 0),
        UiKey::Char('G') | UiKey::End => select(model, usize::MAX),
        UiKey::Tab => select_needing(model, true),
        UiKey::BackTab => select_needing(model, false),
        UiKey::Char(' ') => model.shows_rest = !model.shows_rest,
        UiKey::Left => turn_page(model, false),
        UiKey::Right => turn_page(model, true),
        UiKey::PageUp => scroll(model, false),
        UiKey::PageDown => scroll(model, true),
        UiKey::Char('v') => show_panel(model, Panel::Screen),
        UiKey::Char('w') => show_panel(model, Panel::Why),
        UiKey::Char('l') => show_panel(model, Panel::Log),
        UiKey::Char('d') => show_panel(model, Panel::Diff),
        UiKey::Char('o') => show_panel(model, Panel::Report),
        UiKey::Char('?') => model.mode = UiMode::Help,
        UiKey::Char('/') => model.mode = prompt(PromptKind::Filter, &model.filter.clone()),
        UiKey::Char(':') => model.mode = prompt(PromptKind::Verb, ""),
        UiKey::Char('s') => {
            // At first, the command of the selected worker.
            let cmd = model.selected_worker().map_or("claude".to_owned(), |worker| join(&worker.cmd));
            let text = model.last_spawn.clone().unwrap_or_else(|| format!("-- {cmd}"));
            model.mode = prompt(PromptKind::Spawn, &text);
        }
        UiKey::Char('f') => freeze(model),
        UiKey::Esc => return escape(model),
        UiKey::Char('q') if model.is_zoomed => model.is_zoomed = false,
        UiKey::Char('q') => return vec![UiEffect::Quit],
        _ => return of_worker(model, key),
    }
    vec![]
}

fn of_worker(model: &mut UiModel, key: &UiKey) -> Vec<UiEffect> {
    let Some(worker) = model.selected_worker().cloned() else { return vec![] };
    let name = worker.name.as_str();
    let words = |verb: &[&str]| verb.iter().copied().chain([name]).map(str::to_owned).collect::<Vec<_>>();
    match key {
        UiKey::Enter if worker.tmux.pane.is_none() => {
            model.message = Some(format!("{name} has no window: it is {}", worker.status));
            vec![]
        }
        UiKey::Enter => vec![UiEffect::Attach(worker.name)],
        UiKey::Char('m') => {
            model.mode = prompt(PromptKind::Message(worker.name), "");
            vec![]
        }
        UiKey::Char(key @ ('y' | 'n' | 'a')) => answer(model, &worker, *key),
        UiKey::Char('e') => edit(model, &worker),
        UiKey::Char('p') => vec![run(model, words(&["ralph", "pause"]))],
        UiKey::Char('r') => vec![run(model, words(&["ralph", "resume"]))],
        UiKey::Char('x') => vec![run(model, words(&["interrupt"]))],
        UiKey::Char('R') if is_loop(&worker) => vec![run(model, words(&["respawn", "--detach"]))],
        UiKey::Char('R') => vec![run(model, words(&["respawn"]))],
        UiKey::Char('K') if worker.status.is_finished() => {
            model.message = Some(format!("{name} has finished already"));
            vec![]
        }
        UiKey::Char('K') => {
            let question = kill_question(&worker, &model.children(&worker));
            model.mode = UiMode::Confirm { question, words: words(&["kill"]) };
            vec![]
        }
        _ => vec![],
    }
}

/// Answers the oldest request of a worker, which is the one that its panel shows. Its id goes along: the request may
/// have been answered meanwhile, and another one may be open.
fn answer(model: &mut UiModel, worker: &WorkerView, key: char) -> Vec<UiEffect> {
    let name = &worker.name;
    let Some(open) = worker.requests.first() else {
        model.message = Some(format!("{name} holds no request open; m types an answer, Enter attaches"));
        return vec![];
    };
    let request = &open.request;
    let sent = model.answered_request.as_ref().filter(|(id, _)| *id == request.id);
    if sent.is_some_and(|(_, at)| model.now - *at < ANSWER_PAUSE) {
        model.message = Some("the answer was sent".to_owned());
        return vec![];
    }
    let since = model.shown_request.as_ref().filter(|(id, _)| *id == request.id).map(|(_, since)| *since);
    if since.is_none_or(|since| model.now - since < MIN_SHOWN) {
        if model.panel != Panel::Screen || !model.shows_panel() {
            show_panel(model, Panel::Screen);
        }
        model.message = Some(match panel::shows_request(model) {
            true => format!("read this request first, then press {key} again"),
            false => "the window is too small for the request; Enter attaches".to_owned(),
        });
        return vec![];
    }
    let word = match (request.kind, key) {
        (AgentRequestKind::Question, 'a') => {
            model.mode = prompt(PromptKind::Answer(name.clone(), request.id.clone()), "");
            return vec![];
        }
        (AgentRequestKind::Question, _) => {
            model.message = Some(format!("{name} asks a question; a answers it"));
            return vec![];
        }
        (AgentRequestKind::Permission, 'y') => "yes",
        (AgentRequestKind::Permission, 'n') => "no",
        (AgentRequestKind::Permission, _) => "always",
    };
    vec![run_answer(model, name, &request.id, word)]
}

fn run_answer(model: &mut UiModel, name: &str, id: &str, text: &str) -> UiEffect {
    model.answered_request = Some((id.to_owned(), model.now));
    run(model, ["answer", "--request", id, name, text].map(str::to_owned).to_vec())
}

/// Opens the prompt file of a loop. The report has its path.
fn edit(model: &mut UiModel, worker: &WorkerView) -> Vec<UiEffect> {
    if !is_loop(worker) {
        model.message = Some(format!("{} has no prompt file: it is not a loop", worker.name));
        return vec![];
    }
    if let Some(host) = &worker.host {
        model.message = Some(format!("the prompt file is on {}; attach or log in there", host.name));
        return vec![];
    }
    match &model.report {
        Some(report) => vec![UiEffect::Edit(report.prompt_file.clone())],
        None => {
            model.message = Some("the path of the prompt file is being loaded; press e again".to_owned());
            vec![UiEffect::LoadReport(worker.name.clone())]
        }
    }
}

/// Asks whether all loops of this machine pause, or go on if all of them are paused.
fn freeze(model: &mut UiModel) {
    let count = |is_meant: fn(Status) -> bool| {
        let own = model.workers.values().filter(|worker| worker.host.is_none());
        own.filter(|worker| is_loop(worker) && is_meant(worker.status)).count()
    };
    let (live, paused) = (count(Status::is_live), count(|status| status == Status::Paused));
    let (question, verb) = match (live, paused) {
        (0, 0) => {
            model.message = Some("no loop runs".to_owned());
            return;
        }
        (0, paused) => (format!("resume {}? [y/N]", loops(paused)), "resume"),
        (live, _) => (format!("pause {} after the current iteration? [y/N]", loops(live)), "pause"),
    };
    let words = ["ralph", verb, "--all"].map(str::to_owned).to_vec();
    model.mode = UiMode::Confirm { question, words };
}

fn loops(count: usize) -> String {
    if count == 1 { "1 loop".to_owned() } else { format!("all {count} loops") }
}

fn kill_question(worker: &WorkerView, children: &[&str]) -> String {
    let mut ends = match (worker.pid, is_loop(worker)) {
        (Some(pid), _) => format!("{} (pid {pid})", worker.cmd.first().map_or("agent", String::as_str)),
        (None, true) => "its loop".to_owned(),
        (None, false) => "its next run".to_owned(),
    };
    if is_loop(worker) {
        ends.push_str(&format!(", loop at {}", iteration(worker)));
    }
    if !children.is_empty() {
        ends.push_str(&format!(", workers {}", children.join(" ")));
    }
    format!("kill {}? ends {ends} [y/N]", worker.name)
}

fn in_prompt(model: &mut UiModel, kind: PromptKind, mut line: LineEdit, key: &UiKey) -> Vec<UiEffect> {
    match key {
        UiKey::Esc => {
            model.mode = UiMode::Prompt(kind, line);
            leave_mode(model)
        }
        UiKey::Enter => enter(model, kind, &line.text()),
        _ => {
            line.key(key);
            if kind == PromptKind::Filter {
                model.filter = line.text();
            }
            model.mode = UiMode::Prompt(kind, line);
            vec![]
        }
    }
}

fn enter(model: &mut UiModel, kind: PromptKind, text: &str) -> Vec<UiEffect> {
    // Enter alone is an answer too.
    let may_be_empty = matches!(kind, PromptKind::Message(_));
    if text.trim().is_empty() && !may_be_empty || kind == PromptKind::Filter {
        return vec![];
    }
    if let PromptKind::Message(name) = kind {
        return vec![run(model, vec!["send".to_owned(), name, text.to_owned()])];
    }
    if let PromptKind::Answer(name, id) = kind {
        return vec![run_answer(model, &name, &id, text)];
    }
    let Some(mut words) = shlex::split(text) else {
        model.message = Some("a quote is not closed".to_owned());
        model.mode = prompt(kind, text);
        return vec![];
    };
    if kind == PromptKind::Spawn {
        model.last_spawn = Some(text.to_owned());
        let is_loop = words.iter().take_while(|word| *word != "--").any(|word| word == "--ralph");
        // Otherwise the verb follows the loop to its end.
        let verb = if is_loop { &["spawn", "--detach"][..] } else { &["spawn"] };
        words.splice(0..0, verb.iter().map(|word| (*word).to_owned()));
    } else if words.first().is_some_and(|word| word == "swarm") {
        words.remove(0);
    }
    match &words[..] {
        [] => vec![],
        [verb, name] if verb == "attach" => vec![UiEffect::Attach(name.clone())],
        [verb, ..] if verb == "ui" => {
            model.message = Some("this is swarm ui".to_owned());
            vec![]
        }
        _ => {
            if kind == PromptKind::Verb {
                show_panel(model, Panel::Output);
            }
            vec![run(model, words)]
        }
    }
}

/// Runs a verb; its output is on the page of that name.
fn run(model: &mut UiModel, words: Vec<String>) -> UiEffect {
    model.output = VerbOutput { title: join(&words), lines: vec![], is_running: true };
    UiEffect::Run(words)
}

fn prompt(kind: PromptKind, text: &str) -> UiMode {
    UiMode::Prompt(kind, LineEdit::new(text))
}

fn escape(model: &mut UiModel) -> Vec<UiEffect> {
    let is_running = model.output.is_running && model.panel == Panel::Output;
    if is_running {
        return vec![UiEffect::Cancel];
    }
    if model.panel == Panel::Output {
        model.is_zoomed = false;
        show_panel(model, Panel::Screen);
        model.is_zoomed = false;
    } else if model.is_zoomed {
        model.is_zoomed = false;
    } else {
        model.filter.clear();
    }
    vec![]
}

fn select(model: &mut UiModel, at: usize) {
    let visible = model.visible();
    let at = at.min(visible.len().saturating_sub(1));
    let name = visible.get(at).map(|(_, worker)| worker.name.clone());
    (model.cursor, model.selected) = (at, name);
}

/// Selects the next or the previous worker that needs a person, in a circle.
fn select_needing(model: &mut UiModel, is_forward: bool) {
    let visible = model.visible();
    let count = visible.len();
    let steps =
        (1..=count).map(|step| if is_forward { model.cursor + step } else { model.cursor + count - step });
    let mut places = steps.map(|at| at % count);
    match places.find(|at| visible[*at].0 == Attention::NeedsYou) {
        Some(at) => select(model, at),
        None => model.message = Some("no worker needs you".to_owned()),
    }
}

/// Shows a page; the key of the page that is shown gives it the whole window.
pub(super) fn show_panel(model: &mut UiModel, panel: Panel) {
    let is_shown = model.panel == panel && model.shows_panel();
    model.is_zoomed = if is_shown { !model.is_zoomed } else { model.is_zoomed || !model.is_wide() };
    if model.panel != panel {
        (model.panel, model.scroll) = (panel, None);
    }
    model.load_at = Some(model.now);
    model.is_changed = true;
}

fn turn_page(model: &mut UiModel, is_forward: bool) {
    let pages = Panel::OF_WORKER;
    let at = pages.iter().position(|page| *page == model.panel).unwrap_or(0);
    let next = if is_forward { at + 1 } else { at + pages.len() - 1 } % pages.len();
    show_panel(model, pages[next]);
}

/// Scrolls by half a window. [`super::view`] limits the position.
fn scroll(model: &mut UiModel, is_down: bool) {
    let step = usize::from(model.size.1 / 2).max(1);
    let from = model.scroll.unwrap_or_else(|| panel::first_line(model));
    let last = panel::last_first_line(model);
    model.scroll =
        Some(if is_down { from.saturating_add(step) } else { from.saturating_sub(step) }.min(last));
}
