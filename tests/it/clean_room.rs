//! Clean checks and the red replay, and that no room leaves anything in the user's tree or repository.

use std::fs;

use serde_json::Value;

use crate::cheats::error;
use crate::verified::{DONE, Desk};
use crate::world::{is_alive, signal};

/// The parts of the user's repository that a checkout could change, without the snapshots.
pub(crate) fn repository(d: &Desk) -> String {
    let lines = |args: &[&str], wanted: fn(&&str) -> bool| -> Vec<String> {
        d.git(args).lines().filter(wanted).map(str::to_owned).collect()
    };
    let refs = lines(&["for-each-ref", "--format=%(refname)"], |line| !line.starts_with("refs/swarm/"));
    let trees = lines(&["worktree", "list", "--porcelain"], |line| line.starts_with("worktree "));
    let config = fs::read_to_string(d.w.work().join(".git/config")).unwrap();
    let names = fs::read_dir(d.w.work().join(".git")).unwrap().map(|entry| entry.unwrap().file_name());
    let is_new = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy();
        ["worktrees", "modules", "shallow", "packed-refs"].contains(&&*name) || name.ends_with(".lock")
    };
    format!("{refs:?} {trees:?} {config} {:?}", names.filter(is_new).collect::<Vec<_>>())
}

/// The layers of the last iteration that have a room or a canary, with their outcomes.
fn proofs(d: &Desk) -> Vec<String> {
    let report: Value = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
    let last = report["iterations"].as_array().unwrap().last().unwrap().clone();
    let list = last["verdict"]["proofs"].as_array().unwrap().clone();
    let word = |proof: &Value, key: &str| proof[key].as_str().unwrap_or_default().to_owned();
    let is_other = |proof: &&Value| !["survivors", "programs"].contains(&word(proof, "layer").as_str());
    let list = list.iter().filter(is_other);
    list.map(|proof| format!("{} {}", word(proof, "layer"), word(proof, "outcome"))).collect()
}

#[test]
fn an_ignored_file_does_not_make_a_clean_check_pass() {
    let d = Desk::new();
    d.commit(".gitignore", "*.log\n");
    let before = repository(&d);
    let agent =
        d.agent(&[&format!("echo 1 >ok.log; touch a; {DONE}"), &format!("touch ok; rm ok.log; {DONE}")]);
    let check = "cat ok.log || ls && test -e ok -o -e ok.log";
    let result = d.result(0, &["--check", check, "--clean-check", "-n", "3"], &agent);
    assert_eq!(d.turns(), 2, "{result}");
    let expected = "it fails in a fresh checkout, although it passes in the worker's directory";
    assert_eq!(error(&result, 1), format!("{check}: {expected}"));
    let prompt = d.prompt(2);
    assert!(prompt.contains(expected) && prompt.contains("(in a fresh checkout)"), "{prompt}");
    assert!(prompt.contains("cat: ok.log: No such file"), "{prompt}");
    assert_eq!(proofs(&d), ["clean_room holds"]);
    assert_eq!(repository(&d), before);
    assert!(!d.w.swarm_dir().join("ralph/a/room").exists());
}

#[test]
fn setup_command_prepares_the_checkout() {
    let d = Desk::new();
    d.commit(".gitignore", "dep\nnode_modules\n");
    fs::write(d.w.work().join("dep"), "1\n").unwrap();
    fs::create_dir(d.w.work().join("node_modules")).unwrap();
    let agent = d.agent(&[&format!("date +%N >ok; {DONE}")]);
    // With a setup, nothing is linked.
    let check = "test -e ok -a -e dep && { pwd; ls -a; } >>$D/ran";
    let check = check.replace("$D", &d.path("").display().to_string());
    let flags = ["--check", &check, "--clean-check", "-n", "1", "--setup"];
    let result = d.result(1, &[&flags[..], &["exit 3"]].concat(), &agent);
    assert_eq!(error(&result, 1), "the clean room could not be made: the setup command 'exit 3' failed");
    d.result(0, &[&flags[..], &["pwd >dep; chmod 500 . && mkdir x; mkdir -m 500 y"]].concat(), &agent);
    let ran = d.read("ran");
    assert_eq!(ran.matches("\ndep\n").count(), 4, "{ran}");
    assert_eq!(ran.matches("\nnode_modules\n").count(), 3, "{ran}");
    assert!(!d.w.swarm_dir().join("ralph/a/room").exists());
}

#[test]
fn failed_setup_is_explained_in_the_next_prompt() {
    let setup = "test -e ok2 || { echo setup-trouble; exit 3; }";
    for gate in [&["--clean-check"][..], &["--final-check", "test -e ok2"]] {
        let d = Desk::new();
        let agent = d.agent(&[&format!("touch ok; {DONE}"), &format!("touch ok2; {DONE}")]);
        let flags = [&["--check", "test -e ok", "--setup", setup, "-n", "2"][..], gate].concat();
        d.result(0, &flags, &agent);
        let prompt = d.prompt(2);
        let why = format!("the setup command '{setup}' failed");
        assert!(prompt.contains(&why) && prompt.contains("\nsetup-trouble\n"), "{gate:?}: {prompt}");
        let rule = "The commands are run once more in a fresh checkout of your work, after running `";
        assert_eq!(d.prompt(1).contains(rule), gate.len() == 1, "{}", d.prompt(1));
    }
}

/// A monorepo: `app` uses the workspace `lib` through `node_modules`, and a tool in it, and a tool in `.venv`.
fn monorepo() -> Desk {
    let d = Desk::new();
    d.commit(".gitignore", "node_modules\n.venv\n");
    d.commit("packages/lib/add.sh", "echo 0\n");
    d.commit("packages/app/helper.sh", "sh ../../node_modules/@org/lib/add.sh 1 2\n");
    d.commit(
        "packages/app/test.sh",
        "test -e ../../.venv/bin/tool && sh ../../node_modules/tool/run && test \"$(sh helper.sh)\" = 3\n",
    );
    let modules = d.w.work().join("node_modules");
    fs::create_dir_all(modules.join("@org")).unwrap();
    fs::create_dir_all(modules.join("tool")).unwrap();
    fs::create_dir_all(d.w.work().join(".venv/bin")).unwrap();
    fs::write(modules.join("tool/run"), "exit 0\n").unwrap();
    fs::write(d.w.work().join(".venv/bin/tool"), "").unwrap();
    std::os::unix::fs::symlink("../../packages/lib", modules.join("@org/lib")).unwrap();
    d
}

#[test]
fn red_replay_accepts_only_changes_in_the_fix() {
    let d = monorepo();
    let app = d.w.work().join("packages/app");
    let lib = d.w.work().join("packages/lib").display().to_string();
    // In the subdirectory, without the setup that a fresh checkout would need otherwise.
    let agent = d.agent(&[
        &format!("echo 'echo 3' >helper.sh; {DONE}"),
        &format!(
            "git checkout -q helper.sh; echo 'echo $(($1 + $2))' >'{lib}/add.sh'; touch '{lib}/new'; {DONE}"
        ),
    ]);
    let top = d.w.work().display().to_string();
    let check = format!("cd '{top}/packages/app' && sh test.sh");
    let flags = [
        "--check",
        &check,
        "--cwd",
        "packages",
        "--fix",
        "lib/**",
        "--fix",
        "new/**",
        "--clean-check",
        "-n",
        "3",
    ];
    let agent_in_app: Vec<String> =
        [vec!["sh".into(), "-c".into(), format!("cd '{}' && exec \"$0\"", app.display())], agent].concat();
    let result = d.result(0, &flags, &agent_in_app);
    assert_eq!(d.turns(), 2, "{result}");
    assert_eq!(error(&result, 1), "no file of the fix was changed, but the checks pass now");
    assert_eq!(proofs(&d), ["clean_room holds", "red_replay holds"]);
    assert!(app.join("test.sh").exists() && d.w.work().join("node_modules/tool/run").exists());
}

#[test]
fn red_replay_reports_other_changes_and_unproven_cases() {
    let d = Desk::new();
    d.commit("src/a", "0\n");
    let check = "grep -rqs 1 src other";
    let agent = d.agent(&[&format!("mkdir other; echo 1 >other/a; echo 1 >src/a; touch src/new; {DONE}")]);
    let result = d.result(1, &["--check", check, "--fix", "src/**", "-n", "1"], &agent);
    let expected = "the checks also pass with the old files of the fix, so another change made them pass";
    assert_eq!(error(&result, 1), expected);

    // Green before the first iteration.
    let d = Desk::new();
    d.commit("src/a", "1\n");
    let agent = d.agent(&[&format!("echo 1 >src/b; {DONE}")]);
    d.result(0, &["--check", "grep 1 src/a", "--fix", "src/**", "-n", "1"], &agent);
    assert_eq!(proofs(&d), ["red_replay unproven"]);

    // The checks need a file that git ignores, so that their failure in the replay proves nothing.
    let d = Desk::new();
    d.commit(".gitignore", "conf\n");
    d.commit("src/a", "0\n");
    fs::write(d.w.work().join("conf"), "").unwrap();
    let agent = d.agent(&[&format!("echo 1 >src/a; {DONE}")]);
    d.result(0, &["--check", "test -e conf && grep 1 src/a", "--fix", "src/**", "-n", "1"], &agent);
    assert_eq!(proofs(&d), ["red_replay unproven"]);

    // An editable install leads back to the worker's directory.
    let d = Desk::new();
    d.commit(".gitignore", ".venv\n");
    d.commit("src/a", "0\n");
    let site = d.w.work().join(".venv/lib/python3/site-packages");
    fs::create_dir_all(&site).unwrap();
    fs::write(site.join("__editable__.pth"), d.w.work().join("src").display().to_string()).unwrap();
    let agent = d.agent(&[&format!("echo 1 >src/a; {DONE}")]);
    let check = "grep 1 \"$(cat .venv/lib/python3/site-packages/__editable__.pth)/a\"";
    d.result(0, &["--check", check, "--fix", "src/**", "--clean-check", "-n", "1"], &agent);
    assert_eq!(proofs(&d), ["clean_room unproven", "red_replay unproven"]);
}

#[test]
fn checkout_gates_work_with_ignored_files_worktrees_and_no_commit() {
    // The ignored script is watched, and so it is in the checkout.
    let d = Desk::new();
    d.commit(".gitignore", "check.sh\n");
    fs::write(d.w.work().join("check.sh"), "test -e ok\n").unwrap();
    let agent = d.agent(&[&format!("touch ok; {DONE}")]);
    let all = ["--clean-check", "--fix", "*", "--final-check", "test -e ok -a ! -e nothing", "-n", "1"];
    d.result(0, &[&["--check", "sh check.sh"][..], &all].concat(), &agent);
    assert_eq!(proofs(&d), ["clean_room holds", "red_replay holds", "held_out holds"]);

    let d = Desk::new();
    d.commit("check.sh", "test -e ok\n");
    let agent = d.agent(&[&format!("touch ok; git add ok; git commit -qm ok; {DONE}")]);
    let history = "test \"$(git log -1 --format=%s)\" = ok && git rev-parse -q --verify swarm/a";
    let flags = ["--check", "sh check.sh", "--worktree", "--check", history];
    d.result(0, &[&flags[..], &all].concat(), &agent);
    assert_eq!(proofs(&d).len(), 4);

    let d = Desk::without_git();
    let mut git = d.w.command("git");
    git.args(["init", "-q"]);
    d.w.run(git).ok();
    d.w.write("check.sh", "test -e ok\n");
    let agent = d.agent(&[&format!("touch ok; {DONE}")]);
    d.result(0, &[&["--check", "sh check.sh"][..], &all].concat(), &agent);
    assert_eq!(proofs(&d), ["clean_room holds", "red_replay holds", "held_out holds"]);
}

/// The processes that a check has started.
pub(crate) fn check_processes(d: &Desk) -> Vec<String> {
    let mark = format!("SWARM_CHECK={}", d.w.swarm_dir().display());
    let is_ours = |pid: &String| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|env| {
            String::from_utf8_lossy(&env).contains(&mark) && is_alive(pid.parse().unwrap_or(0))
        })
    };
    let names = fs::read_dir("/proc").unwrap().flatten();
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(is_ours).collect()
}

#[test]
fn checkout_is_removed_after_a_daemon_crash_at_any_point() {
    let points = [
        "room:1",
        "room:2",
        "room:3",
        "clean_room:1",
        "red_replay:1",
        "held_out:1",
        "concluded:1",
        "running",
    ];
    for point in points {
        let mut d = Desk::new();
        d.commit("src/a", "0\n");
        fs::create_dir(d.path("vault")).unwrap();
        fs::write(d.path("vault/h.sh"), "echo $$ >>$PIDS; test ! -e $STOP || sleep 600; grep 1 src/a\n")
            .unwrap();
        let (pids, stop) = (d.path("pids"), d.path("stop"));
        let before = (repository(&d), d.git(&["status", "--porcelain"]));
        d.w.set("PIDS", pids.display().to_string());
        d.w.set("STOP", stop.display().to_string());
        if point == "running" {
            fs::write(&stop, "").unwrap();
        } else {
            d.w.set("SWARM_CRASH_AT", point);
        }
        let first = d.w.start_daemon();
        d.w.unset("SWARM_CRASH_AT");
        let vault = d.path("vault").display().to_string();
        let agent = d.agent(&[&format!("echo 1 >src/a; git commit -qam 1; {DONE}")]);
        let flags = ["--check", "grep 1 src/a", "--clean-check", "--fix", "src/**", "-n", "1", "-d"];
        let held_out = ["--final-check", "sh h.sh", "--hidden", &vault];
        let _ = d.run(&[&flags[..], &held_out].concat(), &agent);
        if point == "running" {
            d.w.until("the held-out check runs", || (!d.read("pids").is_empty()).then_some(()));
            fs::remove_file(&stop).unwrap();
            signal(first, nix::sys::signal::Signal::SIGKILL);
        }
        d.w.until(&format!("the daemon dies at {point}"), || (!is_alive(first)).then_some(()));
        d.w.start_daemon();
        d.w.until_status("a", "done");
        assert_eq!(proofs(&d), ["clean_room holds", "red_replay holds", "held_out holds"], "{point}");
        assert!(!d.w.swarm_dir().join("ralph/a/room").exists(), "{point}");
        assert_eq!(check_processes(&d), Vec::<String>::new(), "{point}");
        assert_eq!((repository(&d), d.git(&["status", "--porcelain"])), before, "{point}");
    }
}

#[test]
fn checkout_is_removed_after_a_kill_and_at_the_time_limit() {
    for (limit, end) in [(&["--max-time", "3"][..], "failed"), (&[], "killed")] {
        let mut d = Desk::new();
        d.w.set("PIDS", d.path("pids").display().to_string());
        let agent = d.agent(&[&format!("touch ok; {DONE}")]);
        let hangs = "echo $$ >>$PIDS; setsid sleep 600 & sleep 600";
        let flags = ["--check", "test -e ok", "--final-check", hangs, "--final-tries", "1", "-n", "2", "-d"];
        d.run(&[&flags[..], limit].concat(), &agent).ok();
        d.w.until("the held-out check runs", || (!d.read("pids").is_empty()).then_some(()));
        if end == "killed" {
            d.w.swarm(&["kill", "a"]).ok();
        }
        d.w.until_status("a", end);
        let room = d.w.swarm_dir().join("ralph/a/room");
        // After a kill, nobody waits for the removal.
        let is_gone = || fs::read_dir(&room).is_ok_and(|mut list| list.next().is_none()) || !room.exists();
        d.w.until("the room is gone", || is_gone().then_some(()));
        assert_eq!(check_processes(&d), Vec::<String>::new(), "{end}");
        if end == "failed" {
            let remark = "the held-out check did not end: the loop's time was over";
            d.w.swarm(&["report", "a"]).ok().says(remark);
            // It was no try.
            assert_ne!(d.w.ralph_state("a")["reason"], "held_out");
        }
    }
}
