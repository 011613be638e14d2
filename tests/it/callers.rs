//! Processes that an agent leaves behind control no loop, whatever they do to their environment.

use crate::verified::{DONE, Desk};
use crate::world::SWARM;

/// A script outside of the tree that tries to approve, with the worker's variables changed by `env`, once the
/// process `parent` has ended.
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
    let own = "this request comes from a background process and could be from worker 'a', which may not";
    let cases = [
        ("SWARM_DIR=$SWARM_DIR/.", "worker 'a' may not approve its own changes"),
        ("-u SWARM_WORKER", own),
        ("-i HOME=$HOME SWARM_DIR=$SWARM_DIR PATH=$PATH", own),
    ];
    for (env, refused) in cases {
        let d = Desk::new();
        d.commit("check.sh", "exit 1\n");
        let turn = format!("echo 'exit 0' >check.sh; {}; kill -9 $PPID; sleep 600", orphan(&d, env, "$PPID"));
        // A process with the worker's name is ended before the second iteration.
        let gone = "until [ -e \"$D/said.end\" ] || [ -e \"$D/ended\" ]; do sleep 0.02; done";
        let agent = d.agent(&[&turn, &format!("{gone}; {DONE}")]);
        let is_ended = env.starts_with("SWARM_DIR");
        if is_ended {
            std::fs::write(d.path("ended"), "").unwrap();
        }
        d.run(&["--check", "sh check.sh", "-n", "2"], &agent).code(1);
        let said = d.read("said");
        assert!(said.contains(refused) || (is_ended && said.is_empty()), "{env}: {said}");
        d.w.swarm(&["why", "a"]).ok().says("FAIL  protected files were changed: check.sh");
    }
}

#[test]
fn an_orphan_of_a_check_or_a_filter_cannot_approve() {
    let env = "-i SWARM_DIR=\"$SWARM_DIR\" PATH=\"$PATH\"";
    for place in ["check", "filter"] {
        let d = Desk::new();
        let start = orphan(&d, env, "$$").replace("$SWARM_DIR", &d.w.swarm_dir().display().to_string());
        d.commit("check.sh", &format!("if [ -e go ]; then {start}; fi\nexit 1\n"));
        let filter = d.path("filter.sh");
        std::fs::write(&filter, format!("if [ -e go ]; then {start}; fi\ncat\n")).unwrap();
        let attribute =
            if place == "filter" { "echo 'a.x filter=f' >.gitattributes; touch a.x;" } else { "" };
        d.git(&["config", "filter.f.clean", &format!("sh '{}'", filter.display())]);
        let change = if place == "filter" { "echo 'exit 0' >check.sh" } else { "echo '# x' >>check.sh" };
        let gone = "until [ -e \"$D/said.end\" ]; do sleep 0.02; done";
        let agent =
            d.agent(&[&format!("{change}; {attribute} touch go; {DONE}"), &format!("rm go; {gone}; {DONE}")]);
        d.run(&["--check", "sh check.sh", "-n", "2"], &agent).code(1);
        let said = d.read("said");
        assert!(
            said.contains("could be from worker 'a', which may not approve its own changes"),
            "{place}: {said}"
        );
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
