use serde_json::{Value, json};

use super::*;
use crate::ui::keys::UiKey;
use crate::ui::model::{Row, UiMode};
use crate::ui::tests::{fleet, model, now, of_host, press, screen, send, worker};

/// The list as text: headings in brackets.
fn list(model: &UiModel) -> String {
    let text = |row: &Row| match row {
        Row::Head(group, count, true) => format!("[{} {count} hidden]", group.title()),
        Row::Head(group, count, false) => format!("[{} {count}]", group.title()),
        Row::Worker(_, worker) => worker.name.clone(),
    };
    model.rows().iter().map(text).collect::<Vec<_>>().join(" ")
}

fn later(model: &mut UiModel, milliseconds: i64) -> Vec<UiEffect> {
    let now = model.now + TimeDelta::milliseconds(milliseconds);
    update(model, UiEvent::Tick, now)
}

fn key(model: &mut UiModel, key: UiKey) -> Vec<UiEffect> {
    send(model, UiEvent::Key(key))
}

#[test]
fn workers_are_in_the_order_of_attention() {
    let mut model = model(100, 40);
    let shown = "[needs you 3] docs api stuck [failed or lost 2] bad gone \
        [working 3] fix parse wide-日本語-🦀\x1b[2J [parked 2] big mine [finished, unseen 1] login ";
    assert_eq!(list(&model), format!("{shown}[the rest 2 hidden]"));
    press(&mut model, " ");
    assert_eq!(list(&model), format!("{shown}[the rest 2] killed old"));
    press(&mut model, "/OLD");
    assert_eq!(list(&model), "[the rest 1] old");
    assert_eq!(model.selected.as_deref(), Some("old"));
    key(&mut model, UiKey::Esc);
    assert!(list(&model).starts_with(shown), "{}", list(&model));
}

#[test]
fn keys_move_the_selection() {
    let mut model = model(100, 40);
    for (pressed, selected) in [
        (UiKey::Char('j'), "api"),
        (UiKey::Tab, "stuck"),
        (UiKey::Tab, "docs"),
        (UiKey::BackTab, "stuck"),
        (UiKey::Down, "bad"),
        (UiKey::BackTab, "stuck"),
        (UiKey::Char('k'), "api"),
        (UiKey::Up, "docs"),
        (UiKey::Up, "docs"),
        (UiKey::Char('G'), "login"),
        (UiKey::Down, "login"),
        (UiKey::Char('g'), "docs"),
    ] {
        key(&mut model, pressed.clone());
        assert_eq!(model.selected.as_deref(), Some(selected), "{pressed:?}");
    }
    send(&mut model, UiEvent::Gone("docs".into()));
    assert_eq!(model.selected.as_deref(), Some("api"), "the next one takes its place");
    model.workers.clear();
    key(&mut model, UiKey::Tab);
    assert_eq!((model.selected, model.message.as_deref()), (None, Some("no worker needs you")));
}

#[test]
fn selected_finished_worker_counts_as_seen_after_one_second() {
    let mut model = model(100, 40);
    let is_seen = |effects: &[UiEffect]| effects.contains(&UiEffect::Seen("login".into()));
    press(&mut model, "G");
    assert!(!is_seen(&later(&mut model, 500)));
    assert!(is_seen(&later(&mut model, 600)));
    let mut login = model.workers["login"].clone();
    login.seen = true;
    send(&mut model, UiEvent::Worker(Box::new(login)));
    assert!(!is_seen(&later(&mut model, 5000)));
    assert!(list(&model).contains("[finished, unseen 1] login"));
    press(&mut model, "k");
    assert!(list(&model).ends_with("[the rest 3 hidden]"));
}

#[test]
fn worker_that_finishes_without_a_key_press_is_unseen() {
    let mut model = model(100, 40);
    model.selected = Some("fix".into());
    press(&mut model, "w");
    let mut fix = worker("fix", "done", "12:05", Value::Null, json!({}));
    fix.tmux.pane = None;
    send(&mut model, UiEvent::Worker(Box::new(fix)));
    let effects = later(&mut model, 600_000);
    assert!(!effects.iter().any(|effect| matches!(effect, UiEffect::Seen(_))), "{effects:?}");
    press(&mut model, "w");
    assert!(later(&mut model, 1000).contains(&UiEffect::Seen("fix".into())));
}

#[test]
fn nothing_is_drawn_again_without_a_change() {
    let mut model = model(100, 40);
    later(&mut model, 1000);
    model.is_changed = false;
    send(&mut model, UiEvent::Workers(fleet()));
    later(&mut model, 10_000);
    assert!(!model.is_changed);
    later(&mut model, 60_000);
    assert!(model.is_changed, "the ages in minutes have changed");
    model.is_changed = false;
    for event in [
        UiEvent::Page("other".into(), Panel::Screen, vec!["x".into()]),
        UiEvent::Gone("unknown".into()),
        UiEvent::Worker(Box::new(model.workers["fix"].clone())),
    ] {
        send(&mut model, event.clone());
        assert!(!model.is_changed, "{event:?}");
    }
    send(&mut model, UiEvent::Page("docs".into(), Panel::Screen, vec!["x".into()]));
    assert!(model.is_changed);
}

#[test]
fn each_key_runs_the_verb_of_its_name() {
    let ran = |words: &[&str]| UiEffect::Run(words.iter().map(|word| (*word).to_owned()).collect());
    for (selected, keys, effect) in [
        ("fix", "p", ran(&["ralph", "pause", "fix"])),
        ("mine", "r", ran(&["ralph", "resume", "mine"])),
        ("fix", "x", ran(&["interrupt", "fix"])),
        ("fix", "R", ran(&["respawn", "--detach", "fix"])),
        ("parse", "R", ran(&["respawn", "parse"])),
        ("fix", "Ky", ran(&["kill", "fix"])),
        ("fix", "mgo 'on' -v\n", ran(&["send", "fix", "go 'on' -v"])),
        ("fix", ":ls --tag 'a b'\n", ran(&["ls", "--tag", "a b"])),
        ("fix", ":swarm ls\n", ran(&["ls"])),
        ("fix", ":attach api\n", UiEffect::Attach("api".into())),
        ("fix", "\n", UiEffect::Attach("fix".into())),
        ("fix", "q", UiEffect::Quit),
    ] {
        let mut model = model(100, 40);
        model.selected = Some(selected.into());
        let press = |c| if c == '\n' { UiKey::Enter } else { UiKey::Char(c) };
        let effects: Vec<UiEffect> = keys.chars().flat_map(|c| key(&mut model, press(c))).collect();
        assert!(effects.contains(&effect), "{keys}: {effects:?}");
        assert_eq!(model.mode, UiMode::List, "{keys}");
    }
}

#[test]
fn keys_act_on_the_host_of_a_worker() {
    let mut model = model(100, 40);
    send(&mut model, of_host("gpu1", None, &["fix", "child"]));
    let parent = serde_json::from_value(json!("fix")).unwrap();
    model.workers.get_mut("gpu1/child").unwrap().parent = Some(parent);
    for (keys, effect) in [
        ("Ky", UiEffect::Run(["kill", "gpu1/fix"].map(str::to_owned).to_vec())),
        ("mgo\n", UiEffect::Run(["send", "gpu1/fix", "go"].map(str::to_owned).to_vec())),
        ("\n", UiEffect::Attach("gpu1/fix".into())),
    ] {
        model.selected = Some("gpu1/fix".into());
        let press = |c| if c == '\n' { UiKey::Enter } else { UiKey::Char(c) };
        let effects: Vec<UiEffect> = keys.chars().flat_map(|c| key(&mut model, press(c))).collect();
        assert!(effects.contains(&effect), "{keys}: {effects:?}");
    }
    // Another machine's worker of the same name has no children.
    for (name, children) in [("gpu1/fix", vec!["gpu1/child"]), ("fix", vec![])] {
        assert_eq!(model.children(&model.workers[name]), children);
    }
    model.selected = Some("gpu1/fix".into());
    later(&mut model, 0);
    let effects = later(&mut model, 200);
    assert_eq!(effects, [UiEffect::Load("gpu1/fix".into(), Panel::Screen, 40)]);
}

#[test]
fn canceled_and_invalid_keys_run_no_command() {
    for (selected, keys) in [("fix", "Kn"), ("fix", "K\n"), ("login", "Ky"), ("login", "\n"), ("fix", ":'\n")]
    {
        let mut model = model(100, 40);
        model.selected = Some(selected.into());
        let press = |c| if c == '\n' { UiKey::Enter } else { UiKey::Char(c) };
        let effects: Vec<UiEffect> = keys.chars().flat_map(|c| key(&mut model, press(c))).collect();
        let acts = |effect: &UiEffect| matches!(effect, UiEffect::Run(_) | UiEffect::Attach(_));
        assert!(!effects.iter().any(acts), "{keys}: {effects:?}");
    }
}

#[test]
fn the_last_command_line_of_a_spawn_can_be_edited() {
    let mut model = model(100, 40);
    let spawned = |effects: Vec<UiEffect>| match &effects[..] {
        [UiEffect::Run(words)] => words.join(" "),
        other => panic!("{other:?}"),
    };
    press(&mut model, "s");
    key(&mut model, UiKey::Control('u'));
    press(&mut model, "--name a -- sh -c 'x y'");
    assert_eq!(spawned(key(&mut model, UiKey::Enter)), "spawn --name a -- sh -c x y");
    press(&mut model, "s");
    key(&mut model, UiKey::Home);
    press(&mut model, "--ralph ");
    assert_eq!(spawned(key(&mut model, UiKey::Enter)), "spawn --detach --ralph --name a -- sh -c x y");
}

#[test]
fn kill_question_names_all_that_it_ends() {
    let mut model = model(100, 40);
    let mut child = worker("child", "running", "11:00", Value::Null, json!({}));
    child.parent = serde_json::from_value(json!("fix")).unwrap();
    send(&mut model, UiEvent::Worker(Box::new(child)));
    model.selected = Some("fix".into());
    press(&mut model, "K");
    let UiMode::Confirm { question, .. } = &model.mode else { panic!("{:?}", model.mode) };
    assert_eq!(question, "kill fix? ends claude (pid 42), loop at 4/25, workers child [y/N]");
}

#[test]
fn pages_are_loaded_once_the_selection_rests() {
    let mut model = model(100, 40);
    assert_eq!(later(&mut model, 200), [UiEffect::Load("docs".into(), Panel::Screen, 40)]);
    press(&mut model, "jj");
    assert_eq!(later(&mut model, 50), []);
    let stuck = || "stuck".to_owned();
    assert_eq!(
        later(&mut model, 100),
        [UiEffect::LoadReport(stuck()), UiEffect::Load(stuck(), Panel::Screen, 40)]
    );
    assert_eq!(press(&mut model, "w"), [UiEffect::Show(stuck(), Panel::Why, vec!["why".into(), stuck()])]);
    assert_eq!(press(&mut model, "w"), [], "it is on its way");
    model.selected = Some("parse".into());
    later(&mut model, 0);
    assert_eq!(press(&mut model, "d"), []);
    assert!(screen(&model).contains("only a loop has"));
    model.size = (50, 20);
    model.is_zoomed = false;
    press(&mut model, "j");
    assert_eq!(later(&mut model, 500), [], "nothing is loaded for a page that is not shown");
}

#[test]
fn lost_daemon_is_reported_and_the_workers_stay_listed() {
    let mut model = model(100, 40);
    send(&mut model, UiEvent::Down("the daemon does not answer".into()));
    let shown = screen(&model);
    assert!(
        shown.contains("✖ the daemon does not answer; swarm retries") && shown.contains("docs"),
        "{shown}"
    );
    send(&mut model, UiEvent::Workers(fleet()));
    assert!(screen(&model).contains("3 need you"));
    assert_eq!(model.now, now());
}

#[test]
fn a_verb_that_fails_shows_its_output_and_esc_ends_one_that_runs() {
    let mut model = model(100, 40);
    press(&mut model, ":x");
    key(&mut model, UiKey::Enter);
    assert_eq!(key(&mut model, UiKey::Esc), [UiEffect::Cancel]);
    press(&mut model, "v");
    for line in ["swarm: error: no \x1b[2Jsuch thing", "hint: swarm ls"] {
        send(&mut model, UiEvent::Printed(line.into()));
    }
    send(&mut model, UiEvent::Ended("✖ no such thing".into(), true));
    let shown = screen(&model);
    assert!(shown.contains("hint: swarm ls") && shown.contains("✖ no such thing"), "{shown}");
    key(&mut model, UiKey::Esc);
    assert_eq!(model.panel, Panel::Screen);
    for line in 0..2 * MAX_OUTPUT_LINES {
        send(&mut model, UiEvent::Printed(line.to_string()));
    }
    assert_eq!(model.output.lines.len(), MAX_OUTPUT_LINES);
}

/// The verbs that keys run for a worker whose panel has shown its request for this time.
fn answered(selected: &str, shown: i64, keys: &str) -> (Vec<String>, Option<String>) {
    let mut model = model(100, 40);
    model.selected = Some(selected.into());
    later(&mut model, 0);
    later(&mut model, shown);
    let press = |c| if c == '\n' { UiKey::Enter } else { UiKey::Char(c) };
    let effects: Vec<UiEffect> = keys.chars().flat_map(|c| key(&mut model, press(c))).collect();
    let verbs = effects.into_iter().filter_map(|effect| match effect {
        UiEffect::Run(words) => Some(words.join(" ")),
        _ => None,
    });
    (verbs.collect(), model.message)
}

#[test]
fn keys_answer_the_request_that_was_shown() {
    for (selected, keys, verb) in [
        ("api", "y", "answer --request 1 api yes"),
        ("api", "n", "answer --request 1 api no"),
        ("api", "a", "answer --request 1 api always"),
        ("docs", "akeep it\n", "answer --request 2 docs keep it"),
    ] {
        assert_eq!(answered(selected, 600, keys), (vec![verb.to_owned()], None), "{keys}");
        let (verbs, message) = answered(selected, 400, &keys[..1]);
        assert_eq!(verbs, [""; 0]);
        assert_eq!(message, Some(format!("read this request first, then press {} again", &keys[..1])));
    }
    assert_eq!(answered("docs", 600, "y"), (vec![], Some("docs asks a question; a answers it".to_owned())));
    let none = "fix holds no request open; m types an answer, Enter attaches".to_owned();
    assert_eq!(answered("fix", 600, "a"), (vec![], Some(none)));
}

#[test]
fn a_request_is_answered_once_unless_the_answer_fails() {
    let mut model = model(100, 40);
    (model.selected, model.panel) = (Some("api".into()), Panel::Screen);
    later(&mut model, 0);
    let runs = |model: &mut UiModel| {
        later(model, 600);
        press(model, "y").iter().any(|effect| matches!(effect, UiEffect::Run(_)))
    };
    assert!(runs(&mut model) && !runs(&mut model));
    assert_eq!(model.message.as_deref(), Some("the answer was sent"));
    send(&mut model, UiEvent::Ended(String::new(), false));
    assert!(!runs(&mut model), "the list may still have the request");
    later(&mut model, 6000);
    assert!(runs(&mut model) && !runs(&mut model), "a request that stays open can be answered");
    send(&mut model, UiEvent::Ended("no daemon".into(), true));
    assert!(runs(&mut model), "after a failure the key works again");
}

#[test]
fn a_request_that_is_not_on_the_screen_is_shown_and_not_answered() {
    for (columns, panel) in [(50, Panel::Screen), (100, Panel::Why)] {
        let mut model = model(columns, 40);
        (model.selected, model.panel) = (Some("api".into()), panel);
        later(&mut model, 900);
        let effects = press(&mut model, "y");
        assert!(!effects.iter().any(|effect| matches!(effect, UiEffect::Run(_))), "{effects:?}");
        assert!(screen(&model).contains("permission: Bash: rm -rf build/"));
        // A request that follows it is not answered by the same key.
        later(&mut model, 900);
        let mut next = model.workers["api"].clone();
        next.requests = crate::ui::tests::requests("3", "permission", "Bash: make");
        send(&mut model, UiEvent::Worker(Box::new(next)));
        press(&mut model, "y");
        assert!(model.message.as_ref().is_some_and(|message| message.contains("read this request")));
        later(&mut model, 900);
        let effects = press(&mut model, "y");
        let verb = ["answer", "--request", "3", "api", "yes"].map(str::to_owned).to_vec();
        assert!(effects.contains(&UiEffect::Run(verb)), "{effects:?}");
    }
}

#[test]
fn freeze_pauses_all_loops_and_then_resumes_them() {
    let mut model = model(100, 40);
    let verb = |effects: Vec<UiEffect>| match effects.first() {
        Some(UiEffect::Run(words)) => words.join(" "),
        other => panic!("{other:?}"),
    };
    press(&mut model, "f");
    let UiMode::Confirm { question, .. } = &model.mode else { panic!("{:?}", model.mode) };
    assert_eq!(question, "pause all 2 loops after the current iteration? [y/N]");
    assert_eq!(verb(press(&mut model, "y")), "ralph pause --all");
    model.workers.retain(|name, _| name == "mine");
    press(&mut model, "f");
    let UiMode::Confirm { question, .. } = &model.mode else { panic!("{:?}", model.mode) };
    assert_eq!(question, "resume 1 loop? [y/N]");
    assert_eq!(verb(press(&mut model, "y")), "ralph resume --all");
    model.workers.clear();
    press(&mut model, "f");
    assert_eq!(model.message.as_deref(), Some("no loop runs"));
}

#[test]
fn the_prompt_of_a_loop_is_edited_once_its_path_is_known() {
    let mut model = model(100, 40);
    model.selected = Some("fix".into());
    assert!(press(&mut model, "e").contains(&UiEffect::LoadReport("fix".into())));
    let report = crate::ui::tests::report();
    let path = report.prompt_file.clone();
    send(&mut model, UiEvent::Report(report));
    assert!(press(&mut model, "e").contains(&UiEffect::Edit(path)));
    model.selected = Some("parse".into());
    later(&mut model, 0);
    press(&mut model, "e");
    assert_eq!(model.message.as_deref(), Some("parse has no prompt file: it is not a loop"));
}
