//! Holds the JSON of every verb to `tests/schema/swarm-json.schema.json`, and the page swarm-json(7) to the same file.

use std::collections::{BTreeMap, BTreeSet};

use clap::CommandFactory;
use serde_json::{Value, json};
use swarm::cli::Cli;
use swarm_state::ends::LoopEnd;

use crate::world::{Ran, World};

mod schema;

use schema::Schema;

fn file(name: &str) -> String {
    std::fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn schemas() -> Schema {
    Schema::new(&serde_json::from_str(&file("tests/schema/swarm-json.schema.json")).unwrap())
}

/// Each verb, and the definition of what it prints. A verb of `LINES` prints one object on each line.
const VERBS: [(&str, &str); 39] = [
    ("clean", "clean"),
    ("config show", "config_show"),
    ("daemon status", "daemon_status"),
    ("doctor", "doctor"),
    ("events", "event"),
    ("hooks status", "hooks_status"),
    ("host check", "host_check"),
    ("host ls", "host_ls"),
    ("kill", "kill"),
    ("logs", "logs"),
    ("loop", "loop"),
    ("ls", "ls"),
    ("peek", "peek"),
    ("quota", "quota"),
    ("ralph approve", "ralph_approve"),
    ("ralph archive", "ralph_archive"),
    ("ralph clean", "ralph_clean"),
    ("ralph diff", "ralph_diff"),
    ("ralph logs", "ralph_logs"),
    ("ralph ls", "ls"),
    ("ralph pause", "ralph_pause"),
    ("ralph restore", "ralph_restore"),
    ("ralph resume", "ralph_pause"),
    ("ralph set", "ralph_status"),
    ("ralph status", "ralph_status"),
    ("ralph tasks check", "tasks_check"),
    ("ralph tasks graph", "tasks_graph"),
    ("ralph tasks ls", "tasks_ls"),
    ("report", "report"),
    ("respawn", "worker"),
    ("send", "send"),
    ("session logs", "session_logs"),
    ("session ls", "session_ls"),
    ("session start", "session"),
    ("session status", "session"),
    ("spawn", "worker"),
    ("status", "worker"),
    ("wait", "wait"),
    ("why", "why"),
];

const LINES: [&str; 7] = ["clean", "events", "kill", "ralph pause", "ralph resume", "send", "wait"];

/// Verbs that print nothing that a program would read.
const WITHOUT_JSON: [&str; 30] = [
    "allow",
    "answer",
    "attach",
    "completions",
    "config check",
    "config edit",
    "daemon restart",
    "daemon run",
    "daemon start",
    "daemon stop",
    "daemon take-over",
    "demo",
    "eof",
    "fetch",
    "hold",
    "hooks install",
    "hooks uninstall",
    "host install",
    "interrupt",
    "notify test",
    "plugin install",
    "plugin uninstall",
    "ralph init",
    "ralph plan",
    "ralph tasks export",
    "ralph tasks import",
    "ralph template",
    "release",
    "session cancel",
    "ui",
];

/// Every verb, and whether it has `--format json`.
fn verbs() -> BTreeMap<String, bool> {
    fn add(command: &clap::Command, name: &str, found: &mut BTreeMap<String, bool>) {
        let children: Vec<_> = command.get_subcommands().filter(|c| !c.is_hide_set()).collect();
        if children.is_empty() {
            let has_json = |arg: &clap::Arg| arg.get_possible_values().iter().any(|v| v.get_name() == "json");
            found.insert(name.trim().to_owned(), command.get_arguments().any(has_json));
        }
        for child in children {
            add(child, &format!("{name} {}", child.get_name()), found);
        }
    }
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut found = BTreeMap::new();
    add(&root, "", &mut found);
    found
}

/// The verbs that were held to a schema.
struct Seen<'a> {
    world: &'a World,
    schemas: Schema,
    verbs: BTreeSet<&'static str>,
}

impl<'a> Seen<'a> {
    fn new(world: &'a World) -> Self {
        Self { world, schemas: schemas(), verbs: BTreeSet::new() }
    }

    /// Runs a verb with `--format json`, and insists that its objects are as described.
    #[track_caller]
    fn run(&mut self, verb: &'static str, args: &[&str], code: i32) -> Vec<Value> {
        let words: Vec<&str> =
            verb.split(' ').chain(["--format", "json"]).chain(args.iter().copied()).collect();
        let ran = self.world.swarm(&words).code(code);
        self.holds(verb, &ran)
    }

    #[track_caller]
    fn holds(&mut self, verb: &'static str, ran: &Ran) -> Vec<Value> {
        self.verbs.insert(verb);
        let name = VERBS.iter().find(|(known, _)| *known == verb).unwrap_or_else(|| panic!("{verb}")).1;
        let values: Vec<Value> = if LINES.contains(&verb) { json_lines(&ran.out) } else { vec![ran.json()] };
        let is_morning = verb == "report" && values[0].get("totals").is_some();
        let name = if is_morning { "morning" } else { name };
        let values = if verb == "why" && values[0].is_array() {
            values[0].as_array().unwrap().clone()
        } else {
            values
        };
        assert!(!values.is_empty(), "{verb} prints nothing: {ran:?}");
        for value in &values {
            assert_eq!(self.schemas.differs(name, value), None, "{verb}");
            let objects = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            assert!(objects.iter().all(|object| object["schema"] == 1), "{verb}: {value}");
            assert!(
                objects.iter().all(|object| object.as_object().unwrap().keys().next().unwrap() == "schema")
            );
        }
        values
    }
}

fn json_lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn every_verb_prints_the_described_objects() {
    let world = World::new();
    let repo = world.repo("repo").display().to_string();
    let mut seen = Seen::new(&world);

    let empty = [seen.run("ls", &[], 0), seen.run("ralph ls", &[], 0)].concat();
    assert_eq!(empty, [json!([]), json!([])]);
    let task = ["do it", "--cwd", &repo, "--no-promise", "--name"];
    let worked = [&task[..], &["good", "--worktree", "--check", "test -e x", "--", "touch", "x"]].concat();
    let good = seen.run("loop", &worked, 0);
    assert_eq!((&good[0]["name"], &good[0]["total_cost"]), (&"good".into(), &Value::Null));
    let stuck = [&task[..], &["stuck", "--no-progress", "1", "--check", "false", "--", "true"]].concat();
    let stuck = seen.run("loop", &stuck, 1);
    assert_eq!((&stuck[0]["status"], &stuck[0]["paused_by"]), (&"paused".into(), &"no_progress".into()));
    assert_eq!(stuck[0]["cause"], json!({"kind": "paused", "by": "no_progress", "detail": null}));
    let bad = [&task[..], &["bad", "--max-failures", "1", "--check", "false", "--", "false"]].concat();
    seen.run("loop", &bad, 1);
    seen.run("spawn", &["--name", "w", "--", "cat"], 0);
    seen.run("spawn", &["--name", "f", "--", "sh", "-c", "echo no; exit 3"], 0);
    world.until_status("f", "failed");

    verbs_that_change_nothing(&mut seen);
    seen.run("ralph set", &["stuck", "max_iterations=9", "max_time=1h"], 0);
    assert_eq!(seen.run("report", &["stuck"], 0)[0]["budgets"]["max_time"], 3600);
    seen.run("ralph restore", &["good", "1"], 0);
    seen.run("ralph approve", &["stuck"], 0);
    seen.run("ralph resume", &["stuck"], 0);
    seen.run("ralph pause", &["stuck"], 0);
    assert_eq!(seen.run("ralph pause", &["w"], 1)[0]["error"]["exit_status"], 1);
    seen.run("send", &["w", "hello"], 0);
    seen.run("wait", &["good", "f"], 1);
    assert_eq!(seen.run("wait", &["w", "--timeout", "0"], 5)[0]["error"]["code"], "timeout");
    let killed = seen.run("kill", &["w", "stuck", "nobody"], 2);
    assert_eq!((&killed[0]["error"], &killed[2]["error"]["code"]), (&Value::Null, &"not_found".into()));
    seen.run("respawn", &["w"], 0);
    seen.run("kill", &["--all"], 0);
    seen.run("ralph clean", &["--all"], 0);
    let cleaned = seen.run("clean", &["--all"], 1);
    assert_eq!(cleaned[2]["error"]["code"], "conflict", "its worktree has work");

    world.swarm(&["ralph", "init", "--tasks"]).ok();
    std::fs::write(world.work().join("ralph/prd.md"), "A shop").unwrap();
    assert_eq!(seen.run("ralph archive", &[], 0)[0]["stories"], Value::Null, "its list is not valid");

    task_lists(&mut seen);
    sessions(&mut seen);
    world.swarm(&["daemon", "stop"]).ok();
    damaged_events(&mut seen);
    assert_eq!(seen.run("daemon status", &[], 3)[0]["running"], false);

    let wanted: BTreeSet<String> =
        verbs().into_iter().filter(|(_, json)| *json).map(|(verb, _)| verb).collect();
    assert_eq!(seen.verbs.iter().map(|verb| (*verb).to_owned()).collect::<BTreeSet<_>>(), wanted);
}

fn verbs_that_change_nothing(seen: &mut Seen<'_>) {
    seen.world.write("swarm.toml", "[ralph]\nmax_iterations = 7\n");
    let without_name = [
        "ls",
        "ralph ls",
        "why",
        "report",
        "events",
        "doctor",
        "hooks status",
        "host ls",
        "daemon status",
        "config show",
        "quota",
    ];
    for verb in without_name {
        seen.run(verb, &[], if verb == "doctor" { seen.world.swarm(&["doctor"]).code.unwrap() } else { 0 });
    }
    seen.run("host check", &["local"], 0);
    for (name, code) in [("good", 1), ("stuck", 0), ("bad", 1), ("w", 0), ("f", 1)] {
        seen.run("status", &[name], code);
        seen.run("why", &[name], 0);
        seen.run("logs", &[name], 0);
        seen.run("peek", &[name], 0);
    }
    for name in ["good", "stuck", "bad"] {
        let report = seen.run("report", &[name], 0);
        assert_eq!((&report[0]["cost_usd"], &report[0]["tokens"]), (&Value::Null, &Value::Null));
        seen.run("ralph status", &[name], 0);
        seen.run("ralph logs", &[name], 0);
        seen.run("ralph diff", &[name], 0);
    }
}

fn task_lists(seen: &mut Seen<'_>) {
    let list = r#"{"project":"","branchName":"","description":"","userStories":[]}"#;
    std::fs::create_dir_all(seen.world.work().join("ralph")).unwrap();
    seen.world.write("ralph/tasks.json", list);
    seen.world.write("plan.md", "- [x] A-1: One\n- [ ] A-2: Two\n  - Depends on: A-1\n");
    assert_eq!(seen.run("ralph tasks ls", &[], 0), [json!([])]);
    seen.world.swarm(&["ralph", "tasks", "import", "plan.md"]).ok();
    let stories = seen.run("ralph tasks ls", &[], 0);
    assert_eq!((&stories[0][0]["state"], &stories[0][0]["mode"]), (&"approved".into(), &Value::Null));
    assert_eq!((&stories[0][1]["mode"], &stories[0][1]["next"]), (&"implement".into(), &true.into()));
    let graph = seen.run("ralph tasks graph", &[], 0);
    assert_eq!(graph[0]["levels"], json!([["A-1"], ["A-2"]]));
    let checked = seen.run("ralph tasks check", &[], 0);
    assert_eq!((&checked[0]["states"]["open"], &checked[0]["estimated_iterations"]), (&1.into(), &3.into()));
    seen.world.write("ralph/tasks.json", "{");
    assert_eq!(seen.run("ralph tasks check", &[], 1)[0]["problems"][0]["column"], 1);
}

fn sessions(seen: &mut Seen<'_>) {
    let id = ["--session-id", "s"];
    assert_eq!(seen.run("session status", &id, 1)[0]["active"], false);
    seen.run("session start", &[&id[..], &["do it"]].concat(), 0);
    assert_eq!(seen.run("session status", &id, 0)[0]["active"], true);
    seen.world.swarm(&["session", "cancel", "--session-id", "s"]).ok();
    seen.run("session status", &id, 1);
    seen.run("session ls", &[], 0);
    seen.run("session logs", &id, 0);
}

/// Starts and stops the daemon with an event log that cannot be read to its end.
fn damaged_events(seen: &mut Seen<'_>) {
    let log = seen.world.swarm_dir().join("events.jsonl");
    std::fs::write(&log, std::fs::read_to_string(&log).unwrap() + "{\n").unwrap();
    assert_eq!(seen.run("events", &[], 0).last().unwrap()["reason"], "damaged");
    seen.world.swarm(&["daemon", "stop"]).ok();
}

#[test]
fn verbs_without_json_are_listed() {
    let without: Vec<String> = verbs().into_iter().filter(|(_, json)| !json).map(|(verb, _)| verb).collect();
    assert_eq!(without.iter().filter(|verb| *verb != "hook").collect::<Vec<_>>(), WITHOUT_JSON);
    let page = file("man/swarm-json.7");
    assert!(page.contains(&format!("no \\fB\\-\\-format\\fR: {}.\n", WITHOUT_JSON.join(", "))));
}

#[test]
fn each_error_is_an_object_on_stdout_when_json_was_requested() {
    let world = World::new();
    let schemas = schemas();
    for (line, code, word, message) in [
        ("status nobody --json", 2, "not_found", "no worker named 'nobody'"),
        (
            "ls --format json --status never",
            2,
            "usage",
            "invalid value 'never' for '--status <STATUS>' [possible values: ",
        ),
        ("ls --nothing --json", 2, "usage", "unexpected argument '--nothing' found"),
        ("statsu --json", 2, "usage", "unrecognized subcommand 'statsu'"),
        ("pause x --json", 2, "usage", "unknown command 'pause'"),
        ("ralph diff --format=json", 2, "usage", "no worker given"),
        ("ralph status nobody --json", 2, "not_found", "no worker named 'nobody'"),
        (
            "loop task --json",
            2,
            "usage",
            "a loop needs at least one --check, the command that proves its work",
        ),
        ("events nobody --json", 2, "not_found", "no worker named 'nobody'"),
        ("attach nobody --json", 2, "usage", "unexpected argument '--format' found"),
    ] {
        let ran = world.swarm(&line.split(' ').collect::<Vec<_>>()).code(code).warns("swarm: error: ");
        let lines = json_lines(&ran.out);
        assert_eq!(lines.len(), 1, "{line}: {ran:?}");
        assert_eq!(schemas.differs("failure", &lines[0]), None);
        let error = &lines[0]["error"];
        assert_eq!((&error["code"], &error["exit_status"]), (&word.into(), &code.into()), "{line}");
        let said = error["message"].as_str().unwrap();
        assert!(said.starts_with(message) && !said.contains('\n'), "{line}: {said}");
    }
    let tip = world.swarm(&["statsu", "--json"]).code(2).json()["error"]["hint"].clone();
    assert_eq!(tip, "a similar subcommand exists: 'status'");
    assert_eq!(world.swarm(&["status", "nobody"]).code(2).out, "", "nothing without --format json");
}

#[test]
fn golden_objects_are_as_described() {
    let schemas = schemas();
    let mut seen = BTreeSet::new();
    for line in file("tests/golden/json.jsonl").lines() {
        let golden: Value = serde_json::from_str(line).unwrap();
        let name = golden["object"].as_str().unwrap();
        assert_eq!(schemas.differs(name, &golden["json"]), None, "{line}");
        seen.insert(name.to_owned());
    }
    assert_eq!(seen, ["event", "morning", "ralph_status", "report", "worker"].map(str::to_owned).into());
}

#[test]
fn golden_notifications_are_as_described_and_are_read() {
    let schemas = schemas();
    for line in file("tests/golden/notifications.jsonl").lines() {
        let golden: Value = serde_json::from_str(line).unwrap();
        assert_eq!(schemas.differs("notification", &golden), None, "{line}");
        let message: swarm_state::notify::Notification = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), line);
    }
}

/// The fields or words of a definition.
fn names(definition: &Value) -> BTreeSet<String> {
    let words = definition["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let kinds = definition["oneOf"].as_array().into_iter().flatten().chain([definition]);
    let fields = kinds.filter_map(|kind| kind["properties"].as_object()).flat_map(|fields| fields.keys());
    fields.map(String::as_str).filter(|field| *field != "schema").chain(words).map(str::to_owned).collect()
}

/// The fields or words of each section of the page.
fn page_sections() -> BTreeMap<String, BTreeSet<String>> {
    let page = file("man/swarm-json.7").replace("\\-", "-");
    let section = |text: &str| {
        let mut lines = text.lines();
        let title = lines.next().unwrap_or_default().trim_matches('"').to_owned();
        let mut names = BTreeSet::new();
        let mut is_term = false;
        for line in lines.take_while(|line| !line.starts_with(".SH")) {
            if let Some(common) = line.strip_prefix("Common fields: ") {
                names.extend(common.trim_end_matches('.').split(", ").map(str::to_owned));
            }
            names.extend(line.strip_prefix(".B ").filter(|_| is_term).map(str::to_owned));
            is_term = line == ".TP";
        }
        (title, names)
    };
    page.split("\n.SS ").skip(1).map(section).collect()
}

#[test]
fn page_and_schema_have_the_same_fields() {
    let schemas = schemas();
    let titled = |definition: &Value| (definition["title"].as_str().unwrap().to_owned(), names(definition));
    let wanted: BTreeMap<_, _> = schemas.definitions().values().map(titled).collect();
    assert_eq!(wanted.len(), schemas.definitions().len(), "each definition has a title of its own");
    let sections = page_sections();
    for (title, names) in &wanted {
        assert_eq!(sections.get(title), Some(names), "man/swarm-json.7: .SS {title}");
    }
    assert_eq!(sections.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    let page = file("man/swarm-json.7");
    let common = page.split(".SH COMMON FIELDS\n").nth(1).unwrap().split("\n.SH ").next().unwrap();
    let common: BTreeSet<String> =
        common.lines().filter_map(|line| line.strip_prefix(".B ")).map(str::to_owned).collect();
    let used = page.lines().filter_map(|line| line.strip_prefix("Common fields: "));
    let used = used.flat_map(|line| line.trim_end_matches('.').split(", ")).map(str::to_owned);
    assert_eq!(used.collect::<BTreeSet<_>>(), common);
}

#[test]
fn schema_words_match_the_code() {
    let schemas = schemas();
    let words = |name: &str| names(&schemas.definitions()[name]);
    assert_eq!(words("loop_end"), LoopEnd::ALL.map(|end| end.word().to_owned()).into());
    let ls = Cli::command();
    let ls = ls.find_subcommand("ls").unwrap();
    let status = ls.get_arguments().find(|arg| arg.get_id() == "status").unwrap().get_possible_values();
    let groups = ["all", "live", "finished"];
    let status = status.iter().map(|value| value.get_name()).filter(|word| !groups.contains(word));
    assert_eq!(words("status"), status.map(str::to_owned).collect());
}
