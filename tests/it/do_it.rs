//! Do-it loops: the checks before one, its state file, its contract, its two ends, and what can be asked for besides.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::turns::{Heard, Host};
use crate::world::{Ran, World};

const COMPLETE: &str = "<promise>COMPLETE</promise>";
const PAUSE: &str = "<promise>PAUSE</promise>";

/// A do-it project in a repository, on the branch `feature/cart`.
struct Shop {
    world: World,
    dir: PathBuf,
}

impl Shop {
    fn new() -> Self {
        let world = World::new();
        let dir = world.repo("shop").canonicalize().unwrap();
        let it = Self { world, dir };
        it.git(&["branch", "feature/cart"]);
        it.meta(&json!({"project_name": "Shop", "project_type": "software", "branch_name": "feature/cart"}));
        it.write(".do-it/specs/cart.md", "# Cart\nThe cart must hold things.\n");
        it.write(".do-it/changes/add-cart/tasks.md", "- [ ] the cart\n");
        it
    }

    fn git(&self, args: &[&str]) -> Ran {
        let mut git = self.world.command("git");
        git.current_dir(&self.dir).args(args);
        self.world.run(git).ok()
    }

    fn write(&self, sub: &str, text: &str) {
        let path = self.dir.join(sub);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn meta(&self, meta: &Value) {
        self.write(".do-it/specs/_meta.json", &meta.to_string());
    }

    fn host(&self, session: &str) -> Host<'_> {
        Host::new(&self.world, session).in_dir(&self.dir)
    }

    fn start(&self, args: &[&str]) -> Ran {
        self.host("s1").swarm_session(&[&["start", "--do-it"], args].concat())
    }

    fn state(&self) -> PathBuf {
        self.dir.join(".claude/do-it-ralph.local.md")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.state()).unwrap()
    }

    /// A refusal: all of these are said, and nothing was started.
    #[track_caller]
    fn refused(&self, args: &[&str], parts: &[&str]) {
        let ran = self.start(args).code(1);
        for part in parts {
            assert!(ran.err.contains(part), "no {part:?}: {}", ran.err);
        }
        assert!(!self.state().exists());
    }
}

#[test]
fn step_1_start_is_refused_with_missing_requirements_and_fixes() {
    let shop = Shop::new();
    let meta = fs::read_to_string(shop.dir.join(".do-it/specs/_meta.json")).unwrap();
    fs::remove_file(shop.dir.join(".do-it/specs/_meta.json")).unwrap();
    shop.refused(&[], &["_meta.json is missing", "to fix it: run /do-it:grill"]);
    for (text, part) in [
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        ("{}", "no project_name"),
        ("{}", "no project_type"),
    ] {
        shop.write(".do-it/specs/_meta.json", text);
        shop.refused(&[], &[part, "to fix it: "]);
    }
    shop.write(".do-it/specs/_meta.json", &meta);
    // Nothing to iterate over: what is archived is over.
    fs::remove_dir_all(shop.dir.join(".do-it/changes/add-cart")).unwrap();
    shop.write(".do-it/changes/archive/old/tasks.md", "- [ ] x\n");
    fs::remove_file(shop.dir.join(".do-it/specs/cart.md")).unwrap();
    shop.refused(&[], &["nothing to iterate over", ".do-it/changes/", "/do-it:grill"]);
    // Several at once.
    shop.meta(&json!({"project_name": "Shop", "project_type": "software", "branch_name": "other"}));
    shop.refused(
        &[],
        &[
            "nothing to iterate over",
            "the branch other does not exist",
            "git branch other",
            "--create-branch",
        ],
    );
}

#[test]
fn step_1_specs_without_changes_are_enough() {
    let shop = Shop::new();
    fs::remove_dir_all(shop.dir.join(".do-it/changes")).unwrap();
    shop.start(&[]).ok();
}

#[test]
fn step_1_missing_branch_is_created_only_with_approval() {
    let shop = Shop::new();
    shop.meta(&json!({"project_name": "Shop", "project_type": "software", "branch_name": "feature/new"}));
    shop.refused(&[], &["the branch feature/new does not exist"]);
    shop.start(&["--create-branch"]).ok();
    shop.git(&["rev-parse", "--verify", "refs/heads/feature/new"]);
    assert!(shop.text().contains("branch: \"feature/new\"\n"));
    // The user's tree stays on its own branch.
    assert_eq!(shop.git(&["branch", "--show-current"]).out, "main\n");
    let shop = Shop::new();
    shop.meta(&json!({"project_name": "Notes", "project_type": "generic"}));
    shop.start(&[]).ok();
    assert!(shop.text().contains("branch: \"\"\n"));
}

#[test]
fn step_1_open_questions_of_pending_changes_are_refused() {
    let shop = Shop::new();
    shop.write(
        ".do-it/changes/add-cart/prd.md",
        "# PRD\n## Open questions\n- [ ] Which currency?\n- [x] Whose?\n",
    );
    shop.write(".do-it/changes/archive/old/prd.md", "## Open questions\n- [ ] Old?\n");
    shop.refused(
        &[],
        &["an open question in .do-it/changes/add-cart/prd.md: Which currency?", "answer it in"],
    );
    assert!(!shop.start(&[]).err.contains("Old?"));
    shop.write(".do-it/changes/add-cart/prd.md", "# PRD\n## Open questions\n- [x] Which currency? EUR\n");
    shop.start(&[]).ok();
}

#[test]
fn step_2_iteration_limit_is_the_argument_else_the_projects_else_20() {
    let meta = |max: Value| json!({"project_name": "Shop", "project_type": "generic", "max_iterations_default": max});
    for (project, args, wanted) in [
        (Value::Null, &[][..], 20),
        (json!(35), &[][..], 35),
        (json!(35), &["30"][..], 30),
        (json!(500), &["30"][..], 30),
        (json!(35), &["--max-iterations", "7"][..], 7),
        (json!(35), &["0"][..], 0),
        (json!(0), &[][..], 0),
        (json!(100), &[][..], 100),
    ] {
        let shop = Shop::new();
        shop.meta(&meta(project.clone()));
        let ran = shop.start(args).ok();
        assert!(shop.text().contains(&format!("\nmax_iterations: {wanted}\n")), "{project} {args:?}");
        assert_eq!(ran.err.contains("no iteration limit"), wanted == 0, "{}", ran.err);
    }
    let shop = Shop::new();
    for args in [&["101"][..], &["three"], &["3.5"]] {
        shop.refused(args, &["iterations"]);
    }
    for args in [&["-1"][..], &["--max-iterations", "101"], &["--max-iteration", "3"]] {
        assert_ne!(shop.start(args).code, Some(0), "{args:?}");
        assert!(!shop.state().exists());
    }
    for bad in [json!(101), json!(-3), json!("many"), json!([])] {
        shop.meta(&meta(bad));
        shop.refused(&[], &["max_iterations_default in .do-it/specs/_meta.json"]);
    }
}

#[test]
fn steps_3_and_4_contract_is_filled_in_and_state_file_is_documented() {
    let shop = Shop::new();
    let contract =
        "{PROJECT_NAME}|{PROJECT_TYPE}|{BRANCH_NAME}|{CWD}|{OTHER}|{{CWD}}\n---\nx: \"y\"\n---\n$(z) `q` \n";
    fs::write(shop.world.path("c.md"), contract).unwrap();
    let file = shop.world.path("c.md").display().to_string();
    shop.start(&["30", "--contract", &file]).ok();
    let cwd = shop.dir.display().to_string();
    let text = shop.text();
    let started = text.split("started_at: \"").nth(1).unwrap().split('"').next().unwrap();
    let wanted = format!(
        "---\nactive: true\niteration: 1\nmax_iterations: 30\ncompletion_promise: \"COMPLETE\"\npause_promise: \"PAUSE\"\n\
         started_at: \"{started}\"\nproject: \"Shop\"\nbranch: \"feature/cart\"\nsession_id: \"s1\"\n---\n\
         Shop|software|feature/cart|{cwd}|{{OTHER}}|{{{cwd}}}\n---\nx: \"y\"\n---\n$(z) `q` \n"
    );
    assert_eq!(text, wanted);
    assert!(started.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(started).is_ok(), "{started}");
    // A turn changes the counter alone, and feeds the contract as it stands.
    let body = wanted.split_once("session_id: \"s1\"\n---\n").unwrap().1;
    let heard = shop.host("s1").works().says("one");
    assert_eq!(heard.goes_on(), body);
    assert_eq!(shop.text(), wanted.replace("\niteration: 1\n", "\niteration: 2\n"));
    // git does not see it.
    assert!(!shop.git(&["status", "--porcelain"]).out.contains(".claude"));
}

#[test]
fn steps_3_and_4_built_in_contract_has_the_projects_settings() {
    let shop = Shop::new();
    shop.start(&[]).ok();
    let text = shop.text();
    for part in [
        "Shop",
        "feature/cart",
        COMPLETE,
        PAUSE,
        "review_mode",
        "safety_stops",
        "autonomy_level",
        "Decision needed",
        "progress.md",
    ] {
        assert!(text.contains(part), "no {part}");
    }
    assert!(!text.contains("{PROJECT") && !text.contains("{CWD}") && !text.contains("{BRANCH"));
    fs::remove_file(shop.state()).unwrap();
    shop.refused(&["--contract", "nowhere.md"], &["cannot read the contract", "nowhere.md"]);
}

#[test]
fn step_5_brief_is_printed_and_the_agent_gets_the_contract() {
    let shop = Shop::new();
    let ran = shop.start(&["30"]).ok();
    let brief = "\
Ralph loop active — iteration 1 of 30.
It runs in THIS session. After each turn, the Stop hook feeds the same contract
back and I work the next task. I stop automatically when:
  • every spec is satisfied → <promise>COMPLETE</promise>
  • a UI-first gate is reached → <promise>PAUSE</promise> (then run /do-it:review)
  • the iteration ceiling is hit → 30
Cancel any time with /do-it:cancel-ralph (or delete .claude/do-it-ralph.local.md).
Watch progress in .do-it/progress.md. Context accumulates across iterations; for
very long runs, cancel, /clear, and re-run /do-it:ralph to reset.
";
    assert!(ran.out.starts_with(brief), "{}", ran.out);
    fs::remove_file(shop.state()).unwrap();
    let heard = shop.host("s2").types("/do-it:ralph 30");
    let context = heard.context.unwrap();
    assert!(
        context.contains(brief.trim_end()) && context.contains("Contract of the loop: Shop"),
        "{context}"
    );
    assert!(shop.text().contains("session_id: \"s2\""));
}

#[test]
fn hook_returns_without_a_state_file_and_ends_at_the_iteration_limit() {
    let shop = Shop::new();
    let mut host = shop.host("s1");
    host.says("x").is_let();
    shop.start(&["2"]).ok();
    host.works().says("one").goes_on();
    host.works().says("two").ends("MAX_ITERATIONS_REACHED");
    assert!(!shop.state().exists());
}

#[test]
fn complete_and_pause_promises_end_the_loop_and_the_first_counts() {
    for (text, status) in [
        (COMPLETE.to_owned(), "PROMISE_ACCEPTED"),
        (format!("a gate: {PAUSE}"), "PAUSED"),
        (format!("{PAUSE} not {COMPLETE}"), "PAUSED"),
        (format!("{COMPLETE} not {PAUSE}"), "PROMISE_ACCEPTED"),
        (format!("<promise>OTHER</promise> {COMPLETE}"), "PROMISE_ACCEPTED"),
    ] {
        let shop = Shop::new();
        shop.start(&[]).ok();
        // No work is asked for: the contract is what judges it.
        shop.host("s1").says(&text).ends(status);
        assert!(!shop.state().exists(), "{text}");
    }
    let shop = Shop::new();
    shop.start(&[]).ok();
    let mut host = shop.host("s1");
    for text in ["COMPLETE", "<promise>complete</promise>", "<promise>COMPLETE </promise>", "`promise` PAUSE"]
    {
        host.says(text).goes_on();
    }
}

#[test]
fn unreadable_transcript_or_state_allows_the_stop_and_a_resume() {
    let shop = Shop::new();
    shop.start(&[]).ok();
    let mut host = shop.host("s1");
    host.works().says("one").goes_on();
    host.tells_last = false;
    host.transcript = shop.world.path("nowhere.jsonl");
    host.stop("").is_let();
    assert!(shop.text().contains("\nactive: true\niteration: 2\n"));
    let heard = host.types("/do-it:ralph");
    assert!(heard.context.is_some_and(|text| text.contains("iteration 2 of 20")), "it does not go on");
    host.works().says("two").goes_on();
    // Front matter that was damaged by hand: the hook bails, and keeps the file.
    let broken = shop.text().replace("max_iterations: 20", "max_iterations: twenty");
    fs::write(shop.state(), &broken).unwrap();
    host.says("three").is_let();
    assert_eq!(shop.text(), broken);
    host.swarm_session(&["status"]).code(1).warns("line 4");
}

#[test]
fn loop_is_canceled_by_a_command_and_by_deleting_the_file() {
    let shop = Shop::new();
    shop.start(&[]).ok();
    let mut host = shop.host("s1");
    host.works().says("one").goes_on();
    assert!(host.types("/do-it:cancel-ralph").goes_on().contains("cancelled"));
    host.says("two").is_let();
    shop.start(&[]).ok();
    fs::remove_file(shop.state()).unwrap();
    host.says("three").is_let();
}

#[test]
fn project_has_one_loop_for_all_sessions() {
    let shop = Shop::new();
    shop.start(&[]).ok();
    shop.host("s2").says("x").is_let();
    let ran = shop.host("s2").swarm_session(&["start", "--do-it"]).code(1);
    let ran = ran.warns("session s1 has a loop here already").warns("--session-id s1");
    drop(ran);
    // A state file without a session id belongs to the first session that stops there, also of two at once.
    fs::write(shop.state(), shop.text().replace("session_id: \"s1\"\n", "")).unwrap();
    let (a, b) = (shop.host("a"), shop.host("b"));
    let children =
        [(&a, a.input("Stop", "x")), (&b, b.input("Stop", "x"))].map(|(h, input)| h.begin("stop", &input));
    let heard = children.map(|child| Heard::of(child.wait_with_output().unwrap().into()));
    assert_eq!(heard.iter().filter(|heard| heard.block.is_some()).count(), 1, "{heard:?}");
    assert!(shop.text().contains("\niteration: 2\n"), "{}", shop.text());
}

#[test]
fn hardening_progress_of_another_branch_is_archived() {
    let shop = Shop::new();
    shop.write(".do-it/progress.md", "done so far\n");
    shop.start(&["--archive-on-branch-change"]).ok();
    assert!(!shop.dir.join(".do-it/archive").exists());
    fs::remove_file(shop.state()).unwrap();
    shop.meta(&json!({"project_name": "Shop", "project_type": "software", "branch_name": "main"}));
    shop.start(&["--archive-on-branch-change"]).ok().warns("feature/cart");
    let kept: Vec<_> =
        fs::read_dir(shop.dir.join(".do-it/archive")).unwrap().flatten().map(|e| e.path()).collect();
    let [kept] = kept.as_slice() else { panic!("{kept:?}") };
    let name = kept.file_name().unwrap().to_str().unwrap();
    assert!(name.ends_with("-feature-cart") && name.len() == "2026-01-01-feature-cart".len(), "{name}");
    assert_eq!(fs::read_to_string(kept.join("progress.md")).unwrap(), "done so far\n");
    assert!(kept.join("add-cart/tasks.md").exists());
    // Off unless asked for.
    fs::remove_file(shop.state()).unwrap();
    shop.meta(&json!({"project_name": "Shop", "project_type": "software", "branch_name": "feature/cart"}));
    shop.start(&[]).ok();
    assert_eq!(fs::read_dir(shop.dir.join(".do-it/archive")).unwrap().count(), 1);
}

#[test]
fn hardening_iterations_without_a_diff_pause_the_loop_with_a_note() {
    let shop = Shop::new();
    shop.git(&["add", "-A"]);
    shop.git(&["commit", "-q", "-m", "all"]);
    shop.start(&["--no-diff-limit", "2"]).ok();
    let mut host = shop.host("s1");
    host.works().says("one").goes_on();
    host.works().says("two").ends("PAUSED");
    let progress = fs::read_to_string(shop.dir.join(".do-it/progress.md")).unwrap();
    assert!(progress.contains("No progress") && progress.contains("2 iterations"), "{progress}");
    assert!(shop.text().contains("active: false\niteration: 2\n"));
    host.types("/do-it:ralph").context.unwrap();
    assert!(shop.text().contains("active: true\niteration: 2\n"));
}
