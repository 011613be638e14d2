//! Processes that an agent leaves behind: they are ended or named before the checks run.

use serde_json::Value;

use crate::verified::{DONE, Desk};
use crate::world::SWARM;

/// Returns the outcome and the finding about leftover processes in the verdict of an iteration.
fn survivors(d: &Desk, iteration: usize) -> (String, String) {
    let report = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
    let proofs = report["iterations"][iteration - 1]["verdict"]["proofs"].clone();
    let is_ours = |proof: &&Value| proof["layer"] == "survivors";
    let proof = proofs.as_array().unwrap().iter().find(is_ours).unwrap_or_else(|| panic!("{report}")).clone();
    let text = |key: &str| proof[key].as_str().unwrap().to_owned();
    (text("outcome"), text("found"))
}

/// A script outside of the tree that records its pid and stays.
fn stayer(d: &Desk, head: &str) -> String {
    let (script, pid) = (d.path("stay.sh"), d.path("pid"));
    let text = format!("{head}\necho $$ >'{0}.new' && mv '{0}.new' '{0}'\nsleep 600\n:\n", pid.display());
    std::fs::write(&script, text).unwrap();
    format!("sh '{}'", script.display())
}

/// A shell command that waits until the script of [`stayer`] runs.
fn until_it_runs(d: &Desk) -> String {
    format!("until [ -e '{}' ]; do sleep 0.02; done", d.path("pid").display())
}

/// A check that passes if the script of [`stayer`] has ended.
fn has_ended(d: &Desk) -> String {
    // A zombie has ended too.
    format!("! grep -qs '^State:.[^ZX]' /proc/$(cat '{}')/status", d.path("pid").display())
}

#[test]
fn jobs_and_windows_in_swarms_tmux_are_ended_before_the_checks() {
    for (how, head) in
        [("run-shell -b", ""), ("new-window -d", ""), ("new-session -d -s x", "trap '' TERM HUP")]
    {
        let d = Desk::new();
        let stay = stayer(&d, head);
        let tmux = format!("tmux -S '{}' {how} \"{stay}\"", d.w.tmux_socket().display());
        let agent = d.agent(&[&format!("touch x; {tmux}; {}; {DONE}", until_it_runs(&d))]);
        d.run(&["--check", &has_ended(&d), "-n", "1"], &agent).ok();
        let (outcome, found) = survivors(&d, 1);
        assert_eq!(outcome, "holds", "{how}: {found}");
        let pid = d.read("pid");
        assert!(found.contains(" that the agent had left: "), "{how}: {found}");
        assert!(found.contains(&format!("sh ({})", pid.trim())), "{how}: {found}");
    }
}

#[test]
fn a_job_that_is_named_like_a_pane_is_ended() {
    let d = Desk::new();
    stayer(&d, "");
    let run = format!("cd '{}' && cp stay.sh __pane && exec sh __pane", d.path("").display());
    let tmux = format!("tmux -S '{}' run-shell -b \"{run}\"", d.w.tmux_socket().display());
    let agent = d.agent(&[&format!("touch x; {tmux}; {}; {DONE}", until_it_runs(&d))]);
    d.run(&["--check", &has_ended(&d), "-n", "1"], &agent).ok();
    assert!(survivors(&d, 1).1.starts_with("ended "), "{:?}", survivors(&d, 1));
}

#[test]
fn background_processes_end_with_the_agent() {
    for how in ["nohup", "setsid", "setsid -f"] {
        let d = Desk::new();
        let stay = stayer(&d, "");
        let start = format!("({how} {stay} >/dev/null 2>&1 &)");
        let agent = d.agent(&[&format!("touch x; {start}; {}; {DONE}", until_it_runs(&d))]);
        d.run(&["--check", &has_ended(&d), "-n", "1"], &agent).ok();
        let expected = ("holds".to_owned(), "no process of the agent was left".to_owned());
        assert_eq!(survivors(&d, 1), expected, "{how}");
    }
}

#[test]
fn processes_that_outlive_a_killed_wrapper_are_ended() {
    let d = Desk::new();
    let stay = stayer(&d, "trap '' TERM");
    // `$PPID` is the wrapper of the pane.
    let turn = format!(
        "touch x; (setsid {stay} >/dev/null 2>&1 &); {}; kill -9 $PPID; sleep 600",
        until_it_runs(&d)
    );
    let agent = d.agent(&[&turn, &format!("touch y; {DONE}")]);
    d.run(&["--check", &has_ended(&d), "-n", "3"], &agent).ok();
    let (outcome, found) = survivors(&d, 1);
    assert_eq!(outcome, "holds", "{found}");
    assert!(found.contains(&format!("sh ({})", d.read("pid").trim())), "{found}");
    assert_eq!(survivors(&d, 2).1, "no process of the agent was left");
}

#[test]
fn an_orphan_of_a_git_filter_is_ended() {
    let d = Desk::new();
    let stay = stayer(&d, "");
    let (filter, go) = (d.path("filter.sh"), d.path("go"));
    let start = format!("[ -e '{}' ] && (setsid {stay} </dev/null >/dev/null 2>&1 &)", go.display());
    std::fs::write(
        &filter,
        format!("{start}\nif [ -e '{}' ]; then {}; fi\ncat\n", go.display(), until_it_runs(&d)),
    )
    .unwrap();
    d.git(&["config", "filter.f.clean", &format!("sh '{}'", filter.display())]);
    let agent = d.agent(&[&format!(
        "echo '*.x filter=f' >.gitattributes; touch '{}'; touch a.x; {DONE}",
        go.display()
    )]);
    d.run(&["--check", &has_ended(&d), "-n", "1"], &agent).ok();
    let (outcome, found) = survivors(&d, 1);
    assert_eq!(outcome, "holds", "{found}");
    assert!(found.contains("that the agent had left: "), "{found}");
}

#[test]
fn processes_of_a_person_stay_and_only_those_in_swarms_tmux_are_named() {
    let d = Desk::new();
    let stay = stayer(&d, "");
    let mut server = d.w.command("sh");
    server.args(["-c", &format!("setsid {stay} </dev/null >/dev/null 2>&1 &")]);
    d.w.run(server).ok();
    d.w.until("the process runs", || d.path("pid").exists().then_some(()));
    let agent = d.agent(&[&format!("date +%N >x; {DONE}")]);
    let is_alive = format!("kill -0 $(cat '{}')", d.path("pid").display());
    d.run(&["--check", &is_alive, "-n", "1"], &agent).ok();
    assert_eq!(survivors(&d, 1).1, "no process of the agent was left");
    // A window that a person opens while attached.
    let mut window = d.w.command("tmux");
    window.arg("-S").arg(d.w.tmux_socket()).args(["new-session", "-d", "-s", "mine"]);
    d.w.run(window).ok();
    d.run(&["--check", &is_alive, "--name", "b", "-n", "1"], &agent);
    d.run(&["--replace", "--check", &is_alive, "-n", "1"], &agent).ok();
    let (outcome, found) = survivors(&d, 1);
    assert_eq!(outcome, "unproven", "{found}");
    assert!(found.starts_with("running during the checks: "), "{found}");
    assert!(found.ends_with(" in swarm's tmux server"), "{found}");
    let pid: i32 = d.read("pid").trim().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
}

#[test]
fn a_worker_that_the_agent_spawned_is_named() {
    let d = Desk::new();
    let stay = stayer(&d, "");
    let spawn = format!("'{SWARM}' spawn --name b -- {stay} >&2");
    let agent = d.agent(&[&format!("touch x; {spawn}; {}; {DONE}", until_it_runs(&d))]);
    let is_alive = format!("kill -0 $(cat '{}')", d.path("pid").display());
    d.run(&["--check", &is_alive, "-n", "1"], &agent).ok();
    let expected = "running during the checks: worker 'b', which the agent spawned";
    assert_eq!(survivors(&d, 1), ("unproven".to_owned(), expected.to_owned()));
}

#[test]
fn a_job_that_starts_during_the_checks_fails_the_iteration() {
    let d = Desk::new();
    let stay = stayer(&d, "");
    let job =
        format!("tmux -S '{}' run-shell -b \"{stay}\"; {}", d.w.tmux_socket().display(), until_it_runs(&d));
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    d.run(&["--check", &format!("if [ -e x ]; then {job}; fi"), "-n", "1"], &agent).code(1);
    let (outcome, found) = survivors(&d, 1);
    assert_eq!((outcome.as_str(), found.as_str()), ("holds", "no process of the agent was left"));
    let why = d.w.swarm(&["why", "a"]).ok().says("FAIL  processes of the agent ran during the checks: ");
    assert!(why.out.contains(&format!("sh ({})", d.read("pid").trim())), "{}", why.out);
}
