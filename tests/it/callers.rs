//! Processes that an agent leaves behind control no loop.

use crate::verified::{DONE, Desk};
use crate::world::SWARM;

/// A script outside of the tree that tries to approve, with the variables of `env`, once the process `parent` ended.
fn orphan(d: &Desk, env: &str, parent: &str) -> String {
    let (script, [said, there]) = (d.path("approve.sh"), ["said", "there"].map(|name| d.path(name)));
    let text = format!(
        "trap '' TERM; touch '{there}'; while kill -0 $1 2>/dev/null; do sleep 0.02; done\n\
         '{SWARM}' ralph approve a >'{said}' 2>&1\ntouch '{said}.end'\n",
        there = there.display(),
        said = said.display()
    );
    std::fs::write(&script, text).unwrap();
    format!(
        "(env {env} setsid sh '{}' {parent} </dev/null >/dev/null 2>&1 &); until [ -e '{}' ]; do sleep 0.02; done",
        script.display(),
        there.display()
    )
}

#[test]
fn an_orphan_cannot_approve() {
    let refused = "worker 'a' may not approve its own changes";
    for env in ["SWARM_DIR=$SWARM_DIR/.", "X=1"] {
        let d = Desk::new();
        d.commit("check.sh", "exit 1\n");
        let turn = format!("echo 'exit 0' >check.sh; {}; kill -9 $PPID; sleep 600", orphan(&d, env, "$PPID"));
        // A process with the worker's name is ended before the second iteration.
        let gone = "until [ -e \"$D/said.end\" ] || [ -e \"$D/ended\" ]; do sleep 0.02; done";
        let agent = d.agent(&[&turn, &format!("{gone}; {DONE}")]);
        std::fs::write(d.path("ended"), "").unwrap();
        d.run(&["--check", "sh check.sh", "-n", "2"], &agent).code(1);
        let said = d.read("said");
        assert!(said.contains(refused) || said.is_empty(), "{env}: {said}");
        d.w.swarm(&["why", "a"]).ok().says("FAIL  protected files were changed: check.sh");
    }
}

#[test]
fn a_caller_that_has_ended_cannot_approve() {
    let d = Desk::new();
    d.commit("check.sh", "exit 1\n");
    let socket = swarm::paths::Paths::new(d.w.swarm_dir()).socket();
    // The process that connected is gone when the request arrives.
    let text = format!(
        "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new('{}') or die; my $pid = $$;\n\
         exit if fork; select undef, undef, undef, 0.01 while kill 0, $pid; $s->autoflush;\n\
         print $s '{{\"swarm\":1,\"client\":\"x\"}}', \"\\n\", '{{\"id\":1,\"method\":\"ralph.approve\",\"params\":{{\"name\":\"a\"}}}}', \"\\n\";\n\
         while (<$s>) {{ print; last if /\"id\"/ }}",
        socket.display()
    );
    std::fs::write(d.path("ask.pl"), text).unwrap();
    let agent = d.agent(&[&format!(
        "echo 'exit 0' >check.sh; perl \"$D/ask.pl\" >\"$D/said\" 2>&1; until [ -s \"$D/said\" ]; do sleep 0.02; done; {DONE}"
    )]);
    d.run(&["--check", "sh check.sh", "-n", "1"], &agent).code(1);
    let said = d.read("said");
    assert!(said.contains("could be from worker 'a', which may not approve its own changes"), "{said}");
}
