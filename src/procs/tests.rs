use std::process::{Child, Command};

use procfs::FromRead;

use super::*;

/// Ends its process however the test ends.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        signal_tree(self.0.id() as i32, Signal::SIGKILL);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shell with children; says when they are there.
fn family(script: &str) -> Guard {
    use std::io::Read;
    let mut child =
        Command::new("sh").args(["-c", script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut byte = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    Guard(child)
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(std::time::Instant::now() < until, "waited in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn process_tree_has_children_and_detached_sessions() {
    let family = family("sleep 1000 & setsid sh -c 'sleep 1001 & sleep 1002; :' & echo; wait");
    let root = family.0.id() as i32;
    wait_until("all five", || tree(root).iter().filter(|proc| proc.comm == "sleep").count() == 3);
    let members = tree(root);
    assert!(members.iter().all(|proc| proc.pid != root));
    let session = |pid| nix::unistd::getsid(pid).unwrap();
    let is_apart = |proc: &&Proc| session(Some(Pid::from_raw(proc.pid))) != session(None);
    let deepest = members.iter().find(is_apart).unwrap();
    assert!(ancestors(deepest.pid).contains(&root));
    assert!(ancestors(root).contains(&Pid::this().as_raw()));
    let hit = signal_tree(root, Signal::SIGKILL);
    assert!(hit.len() >= 3 && hit.iter().all(|proc| proc.pid != root), "{hit:?}");
    wait_until("nobody is left", || tree(root).is_empty());
}

#[test]
fn only_complete_variables_of_a_process_are_matched() {
    let with_two =
        "env -i SWARM_A=1 OTHER=SWARM_B=2 XSWARM_C=3 SWARM_D=a=SWARM_E \"$(command -v sleep)\" 1000";
    let family = family(&format!("echo; exec {with_two}"));
    let pid = family.0.id() as i32;
    wait_until("the program runs", || name(pid).as_deref() == Some("sleep"));
    assert_eq!(swarm_variables(pid), [&b"SWARM_A=1"[..], b"SWARM_D=a=SWARM_E"]);
}

#[test]
fn reused_pid_gets_no_signal() {
    let family = family("echo; exec sleep 1000");
    let pid = family.0.id() as i32;
    let real = Proc { pid, ppid: 0, start_time: start_time(pid).unwrap(), comm: "sh".into() };
    assert!(!signal_same(real.pid, real.start_time + 1, Signal::SIGKILL));
    assert!(is_alive(pid));
    assert!(!signal_same(1, real.start_time, Signal::SIGCONT));
    assert!(!signal_same(Pid::this().as_raw(), real.start_time, Signal::SIGCONT));
    assert!(signal_same(real.pid, real.start_time, Signal::SIGKILL));
    wait_until("it is dead", || !is_alive(pid));
    assert!(signal_tree(1, Signal::SIGCONT).is_empty() && signal_tree(-1, Signal::SIGCONT).is_empty());
}

#[test]
fn process_that_got_sigterm_may_start_children() {
    let dir = tempfile::tempdir().unwrap();
    let saved = dir.path().join("saved");
    for _ in 0..10 {
        let script = format!(
            "(trap 'sleep 0.02; mkdir {}; exit' TERM; sleep 1000 & echo; wait) & wait",
            saved.display()
        );
        let family = family(&script);
        let root = family.0.id() as i32;
        wait_until("all are there", || tree(root).iter().any(|proc| proc.comm == "sleep"));
        assert!(tree(root).iter().all(|proc| proc.start_time <= system::now().unwrap()));
        signal_tree(root, Signal::SIGTERM);
        wait_until("they have ended", || tree(root).is_empty());
        assert!(saved.is_dir(), "the agent was ended in the middle of its end");
        std::fs::remove_dir(&saved).unwrap();
    }
}

#[test]
fn cpu_time_of_a_process_is_measured() {
    let family = family("echo; while :; do :; done");
    wait_until("it worked", || cpu_seconds(family.0.id() as i32) > 0.05);
    assert_eq!(cpu_seconds(-1), 0.0);
}

#[tokio::test]
async fn wait_gone_returns_when_the_process_has_ended() {
    let mut family = family("echo; exec sleep 1000");
    let pid = family.0.id() as i32;
    let early = tokio::time::timeout(Duration::from_millis(20), wait_gone(pid)).await;
    assert!(early.is_err(), "it still lives");
    family.0.kill().unwrap();
    tokio::time::timeout(Duration::from_secs(20), wait_gone(pid)).await.unwrap();
    family.0.wait().unwrap();
    wait_gone(pid).await;
    wait_gone(0).await;
    wait_gone(-5).await;
}

#[test]
fn process_tree_of_an_ended_root_is_found_by_its_session() {
    let stat = |pid: i32, ppid, sid| {
        let line = format!("{pid} (a) b) S {ppid} 0 {sid}{}", " 0".repeat(46));
        Stat::from_read(line.as_bytes()).unwrap()
    };
    let all = vec![stat(1, 0, 1), stat(60, 1, 60), stat(51, 1, 50), stat(70, 51, 70), stat(71, 1, 70)];
    let picked: Vec<i32> = pick(50, all).iter().map(|stat| stat.pid).collect();
    assert_eq!(picked, [51, 70, 71]);
}
