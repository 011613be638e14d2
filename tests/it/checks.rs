//! Checks that misbehave: the loop survives them, their limit holds, and nothing of them is left.

use nix::sys::signal::Signal;

use crate::verified::{DONE, Desk};
use crate::world::{World, is_alive};

/// Starts processes of every kind that outlives its parents, and notes their numbers.
const FAMILY: &str = "trap '' TERM HUP
touch $D/pids
before=$(wc -l <$D/pids)
sleep 1000 & echo $! >>$D/pids
setsid sleep 1001 & echo $! >>$D/pids
(setsid sh -c 'trap \"\" TERM; sleep 1002 & echo $! >>$D/pids; echo $$ >>$D/pids; exec >/dev/null 2>&1; cd /; wait' &)
echo $$ >>$D/pids
until [ $(wc -l <$D/pids) -ge $((before + 5)) ]; do sleep 0.02; done
touch $D/there
";

/// The numbers of its processes.
fn pids(d: &Desk) -> Vec<u32> {
    d.read("pids").lines().filter_map(|pid| pid.parse().ok()).collect()
}

#[track_caller]
fn until_gone(w: &World, pids: &[u32]) {
    w.until("all processes of the check are gone", || pids.iter().all(|pid| !is_alive(*pid)).then_some(()));
}

/// A script outside of the tree that a check runs.
fn check(d: &Desk, text: &str) -> String {
    let path = d.path("check");
    std::fs::write(&path, format!("export D='{}'\n{text}", d.path("").display())).unwrap();
    format!("sh '{}'", path.display())
}

/// Waits until the family is there.
#[track_caller]
fn until_there(d: &Desk) -> Vec<u32> {
    d.w.until("the check has its processes", || d.path("there").exists().then_some(()));
    let pids = pids(d);
    assert!(pids.len() >= 5 && pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    pids
}

#[test]
fn misbehaving_checks_do_not_break_the_loop() {
    let d = Desk::new();
    d.commit("code.txt", "");
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    let cases = [
        ("yes 0123456789abcde | head -c 200000000", true, "0123456789abcde"),
        ("kill -9 $PPID; sleep 1003", false, "ended by signal 9"),
        ("kill 0; sleep 1003", false, "ended by signal"),
        ("cat; echo no input", true, "no input"),
        ("kill -SEGV $$", false, "exit status 139"),
        ("cd / && rm -f /no/such/file; ls >/dev/null; echo away", true, "away"),
        ("test -e code.txt && echo here", true, "here"),
    ];
    let flags: Vec<&str> = cases.iter().flat_map(|case| ["--check", case.0]).chain(["-n", "1"]).collect();
    let result = d.result(1, &flags, &agent);
    let results = result["iterations"][0]["check_results"].as_array().unwrap();
    assert_eq!(results.len(), cases.len());
    for ((check, passed, output), found) in cases.iter().zip(results) {
        let said = found["output"].as_str().unwrap();
        assert!(found["name"] == *check && found["passed"] == *passed && said.contains(output), "{found}");
        assert!(said.chars().count() <= 2_000);
    }
    let printed = d.kept(1, "check-1.txt");
    assert!(printed.len() <= 8 << 20, "{}", printed.len());
    let part = "0123456789abcde\n";
    assert!(printed.starts_with(part) && printed.ends_with(part) && printed.contains(" bytes omitted]\n"));
    assert_eq!(d.kept(1, "check-7.txt"), "here\n", "all of it is kept");
}

#[test]
fn hanging_check_is_ended_with_its_processes_at_its_limit() {
    let d = Desk::new();
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    let hangs = check(&d, &format!("{FAMILY}sleep 1004"));
    let flags = ["--check", &hangs, "--check", "true", "--check-timeout", "3", "-n", "1"];
    let result = d.result(1, &flags, &agent);
    let checks = &result["iterations"][0]["check_results"];
    assert!(checks[0]["output"].as_str().unwrap().contains("Timeout after 3s"), "{checks}");
    assert_eq!((&checks[0]["passed"], &checks[1]["passed"]), (&false.into(), &true.into()));
    assert!(pids(&d).len() >= 10, "once at the base, once after the iteration");
    until_gone(&d.w, &pids(&d));
}

#[test]
fn processes_left_by_a_passed_check_are_ended() {
    let d = Desk::new();
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    let leaves = check(&d, FAMILY);
    let _ = d.run(&["--check", &leaves, "-n", "1"], &agent).ok();
    assert!(pids(&d).len() >= 10);
    until_gone(&d.w, &pids(&d));
}

#[test]
fn kill_ends_the_baseline_checks_and_their_processes() {
    let d = Desk::new();
    let agent = d.agent(&[DONE]);
    let hangs = check(&d, &format!("{FAMILY}sleep 1004"));
    let mut follower = d.w.follow(&d.words(&["--check", &hangs], &agent));
    let pids = until_there(&d);
    let _ = d.w.swarm(&["kill", "a"]).ok();
    until_gone(&d.w, &pids);
    assert_eq!(follower.wait(&d.w), 1);
    assert_eq!(d.turns(), 0, "no agent was started");
}

#[test]
fn kill_ends_the_checks_of_an_iteration_and_their_processes() {
    let d = Desk::new();
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    // At the base there is no x.
    let hangs = check(&d, &format!("test -e x || exit 1\n{FAMILY}sleep 1004"));
    let mut follower = d.w.follow(&d.words(&["--check", &hangs], &agent));
    let pids = until_there(&d);
    let _ = d.w.swarm(&["kill", "a"]).ok();
    until_gone(&d.w, &pids);
    assert_eq!(follower.wait(&d.w), 1);
    assert_eq!(d.turns(), 1);
}

/// A check that has started its family and hangs when it runs for the first time; the next time it passes, unless
/// one of that family is alive.
fn once(d: &Desk, first: &str) -> String {
    let text = format!(
        "{first}echo run >>$D/ran
if [ -e $D/there ]; then for pid in $(cat $D/pids); do grep '^State:.[^ZX]' /proc/$pid/status && exit 9; done; exit 0; fi
{FAMILY}sleep 1004"
    );
    check(d, &text)
}

#[test]
fn check_of_a_dead_daemon_is_ended_before_it_runs_again() {
    let d = Desk::new();
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    let check = once(&d, "test -e x || exit 1\n");
    let _ = d.w.swarm(&d.words(&["--check", &check, "-d"], &agent)).ok();
    let pids = until_there(&d);
    d.w.crash_daemon();
    d.w.start_daemon();
    until_gone(&d.w, &pids);
    let ended = d.w.until_status("a", "done");
    assert_eq!(d.read("ran"), "run\nrun\n", "{ended}");
    let report = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
    assert_eq!((&report["end"], d.turns()), (&"all_checks_passed".into(), 1));
    assert_eq!(report["iterations"].as_array().unwrap().len(), 1);
    let log = d.w.iterations_log("a");
    assert_eq!((log.matches("[END]").count(), log.matches("[DONE]").count()), (1, 1), "{log}");
}

#[test]
fn baseline_of_a_dead_daemon_is_ended_before_it_runs_again() {
    let d = Desk::new();
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    let check = once(&d, "");
    let _ = d.w.swarm(&d.words(&["--check", &check, "-d"], &agent)).ok();
    let pids = until_there(&d);
    d.w.crash_daemon();
    d.w.start_daemon();
    until_gone(&d.w, &pids);
    d.w.until_status("a", "done");
    let report = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
    assert_eq!(
        (&report["end"], &report["baseline"][0]["passed"]),
        (&"all_checks_passed".into(), &true.into())
    );
    assert_eq!((d.read("ran").lines().count(), d.turns()), (3, 1));
}

#[test]
fn kill_after_a_daemon_crash_during_a_check_leaves_no_process() {
    let d = Desk::new();
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    let hangs = check(&d, &format!("test -e x || exit 1\n{FAMILY}sleep 1004"));
    let _ = d.w.swarm(&d.words(&["--check", &hangs, "-d"], &agent)).ok();
    let mut all = until_there(&d);
    d.w.crash_daemon();
    let _ = d.w.swarm(&["kill", "a"]).ok();
    all.extend(pids(&d));
    until_gone(&d.w, &all);
    assert_eq!(d.w.status("a")["status"], "killed");
}

#[test]
fn daemon_stop_ends_running_checks() {
    let d = Desk::new();
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    let check = once(&d, "test -e x || exit 1\n");
    let _ = d.w.swarm(&d.words(&["--check", &check, "-d"], &agent)).ok();
    let pids = until_there(&d);
    let _ = d.w.swarm(&["daemon", "stop"]).ok();
    until_gone(&d.w, &pids);
}

#[test]
fn a_check_that_is_killed_from_outside_has_failed() {
    let d = Desk::new();
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    let check =
        check(&d, "test -e x || exit 1\necho $PPID >$D/parent.new; mv $D/parent.new $D/parent; sleep 1004");
    let mut follower = d.w.follow(&d.words(&["--check", &check, "-n", "1"], &agent));
    let parent = d.w.until("the check runs", || d.read("parent").trim().parse::<u32>().ok());
    crate::world::signal(parent, Signal::SIGKILL);
    assert_eq!(follower.wait(&d.w), 1);
}

#[test]
fn a_check_has_the_environment_of_the_agent_and_a_mark_and_cannot_approve() {
    let mut d = Desk::new();
    // Without it swarm would look at home.
    d.w.set("FROM_THE_CALLER", "yes");
    let sorted = "env | LC_ALL=C sort";
    let approve = format!("'{}' ralph approve a", crate::world::SWARM);
    let check = check(
        &d,
        &format!(
            "unset D; {sorted} >'{0}/check.env'; '{1}' ls >'{0}/ls'; {approve} >'{0}/approve' 2>&1; true",
            d.path("").display(),
            crate::world::SWARM
        ),
    );
    let agent = d.agent(&[&format!("{sorted} >\"$D/agent.env\"; touch x; {DONE}")]);
    d.run(&["--check", &check, "--env", "OWN=of the agent", "-n", "1"], &agent).ok();
    // The variables that a shell sets for itself, and the run: a check belongs to an iteration and not to a run.
    let of_shell = ["PWD=", "OLDPWD=", "SHLVL=", "_=", "SWARM_RUN="];
    let env = |name: &str| -> Vec<String> {
        let text = d.read(name);
        let lines = text.lines().filter(|line| !of_shell.iter().any(|own| line.starts_with(own)));
        lines.map(str::to_owned).collect()
    };
    let mark =
        format!("SWARM_CHECK={}", d.w.swarm_dir().join("ralph/a/iterations/0001/check-1.txt").display());
    let (of_check, of_agent) = (env("check.env"), env("agent.env"));
    let without: Vec<String> = of_check.iter().filter(|line| **line != mark).cloned().collect();
    assert_eq!((without.len() + 1, &without), (of_check.len(), &of_agent));
    for line in ["FROM_THE_CALLER=yes", "OWN=of the agent", "SWARM_WORKER=a"] {
        assert!(of_agent.iter().any(|own| own == line), "{line}: {of_agent:?}");
    }
    assert!(d.read("ls").contains("a "), "{}", d.read("ls"));
    assert!(d.read("approve").starts_with("swarm: error: worker 'a' may not approve its own changes\n"));
}
