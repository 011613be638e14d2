//! Daily work in a sandbox.

use super::{Row, SandboxCase};

/// Each script exits with 0 if it works. The second half of the name is for people.
const WORKS: &[Row] = &[
    ("edit", "echo two >>f && grep -q two f"),
    ("status", "git status --porcelain | grep -q ' M f'"),
    ("commit", "git commit -qam two && git log -1 --format=%s | grep -qx two"),
    ("amend", "git commit -q --amend -m 'two again'"),
    ("branch", "git branch b && git branch -d b"),
    (
        "switch-and-merge",
        "git switch -qc side && echo s >s && git add s && git commit -qm side && git switch -q - && git merge -q side",
    ),
    ("tag", "git tag -a -m t t1 && git tag -d t1"),
    ("stash", "echo x >>f && git stash -q && git stash pop -q && git checkout -q f"),
    ("rebase", "git rebase -q HEAD~1 && git cherry-pick HEAD~1 --no-commit; git reset -q --hard"),
    ("gc", "git gc -q"),
    ("fsck", "git fsck"),
    (
        "fetch-from-a-path",
        "git clone -q --bare . /tmp/o.git && git fetch -q /tmp/o.git HEAD:refs/heads/fetched",
    ),
    ("push-to-a-path", "git push -q /tmp/o.git HEAD:refs/heads/pushed"),
    ("identity-of-the-user", "env -u GIT_CONFIG_GLOBAL git config user.name | grep -qx Config"),
    (
        "build",
        "printf 'all: ; echo built >out\\n' >Makefile && { make -s || echo built >out; } && grep -q built out",
    ),
    ("compile", "echo 'int main(void) { return 0; }' >m.c && cc m.c -o m && ./m"),
    ("test", "perl -MTest::More -e 'ok(1); done_testing'"),
    ("script", "printf '#!/bin/sh\\nexit 3\\n' >x.sh && chmod +x x.sh; ./x.sh; [ $? = 3 ]"),
    ("symlinks", "ln -s f l && grep -q . l && readlink l"),
    ("hard-links", "ln f h && [ h -ef f ]"),
    (
        "ten-thousand-files",
        "mkdir many && cd many && perl -e 'for (1..10000) { open F, \">\", $_ or die; close F }' && [ $(ls | wc -l) = 10000 ] && cd .. && rm -r many",
    ),
    ("temporary-files", "f=$(mktemp) && echo x >$f && [ -O $f ] && echo x >/var/tmp/x"),
    ("shared-memory", "echo x >/dev/shm/x && grep -q x /dev/shm/x"),
    ("home", "echo x >~/.x && grep -q x ~/.x"),
    ("devices", "head -c 10 /dev/urandom >/dev/null && echo x >/dev/null && [ -c /dev/zero ]"),
    (
        "pty",
        "perl -MFcntl -e 'open P, \"+<\", \"/dev/ptmx\" or die; $n = pack(\"I\", 0); ioctl(P, 0x80045430, $n) or die; $u = pack(\"i\", 0); ioctl(P, 0x40045431, $u) or die; open T, \"+<\", \"/dev/pts/\" . unpack(\"I\", $n) or die; exit(!-t T)'",
    ),
    ("terminal", "[ -c /dev/tty ] && sh -c ': >/dev/tty'"),
    ("job-control", "bash -c 'set -m; sleep 30 & kill %1; wait %1; [ $? = 143 ]'"),
    ("signals", "sh -c 'trap \"exit 5\" TERM; kill $$; sleep 5'; [ $? = 5 ]"),
    ("processes", "ps -e >/dev/null && [ -d /proc/self/fd ]"),
    ("background", "(sleep 0.1; echo late >late) & wait; grep -q late late"),
    (
        "unix-socket",
        "perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Local => \"s.sock\", Listen => 1); exit(!IO::Socket::UNIX->new(Peer => \"s.sock\"))'",
    ),
    (
        "server-on-loopback",
        "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1:0\"); exit(!IO::Socket::INET->new(PeerAddr => \"127.0.0.1:\" . $s->sockport))'",
    ),
    ("names", "getent hosts localhost"),
    (
        "inotify",
        "perl -e '$nr = {x86_64 => 294, aarch64 => 26}->{`uname -m` =~ s/\\s//r} or exit 0; exit(syscall($nr, 0) < 0)'",
    ),
    ("fifo", "mkfifo p && (echo x >p &) && grep -q x p"),
    ("locks", "flock f true"),
    ("locale", "[ \"$(LC_ALL=C.UTF-8 perl -CS -e 'print chr 228')\" = 'ä' ]"),
    ("time-zone", "[ \"$(TZ=Europe/Berlin date -d '2026-01-01 00:00 UTC' +%H)\" = 01 ]"),
    (
        "python",
        "[ -x /usr/bin/python3 ] || exit 0; /usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'import sys, multiprocessing; multiprocessing.Lock()'",
    ),
    (
        "npm-cache",
        "grep -q seeded ~/.npm/_cacache/index && echo new >>~/.npm/_cacache/index && mkdir -p ~/.npm/_logs",
    ),
    ("npm", "command -v npm || exit 0; npm cache verify"),
    (
        "cargo-cache",
        "grep -q seeded ~/.cargo/registry/cache/x.crate && echo new >~/.cargo/registry/cache/y.crate && echo >~/.cargo/.package-cache",
    ),
    ("tool-in-home", "tool | grep -q 'from the home directory'"),
    (
        "agent-state",
        "echo x >~/.claude/history && mkdir -p ~/.claude/projects/x && echo '{}' >~/.claude/c && mv ~/.claude/c ~/.claude/.credentials.json",
    ),
    ("agent-settings", "grep -q '{' ~/.claude/settings.json"),
    ("agent-configuration", "grep -q userID ~/.claude.json && cp ~/.claude.json n && mv n ~/.claude.json"),
    ("agent-knows", "[ \"$IS_SANDBOX\" = 1 ] && [ -n \"$SWARM_SANDBOX\" ]"),
    ("further-path", "grep -q shared $OUT/shared/file && echo x >$OUT/extra/x"),
    (
        "swarm-hook",
        "echo '{\"session_id\":\"s\",\"hook_event_name\":\"Stop\"}' | $SWARM_DIR/bin/swarm hook stop",
    ),
    ("swarm-says-where-it-is", "$SWARM_DIR/bin/swarm ls 2>&1 | grep -q 'this is the sandbox of a worker'"),
];

#[test]
fn daily_work_is_possible_in_a_linked_worktree() {
    works("a", &["--worktree"]);
}

#[test]
fn daily_work_is_possible_in_a_main_working_tree() {
    works("m", &[]);
}

fn works(name: &str, options: &[&str]) {
    let Some(case) = SandboxCase::new() else { return };
    assert!(WORKS.len() >= 25);
    let extra = case.world.path("extra");
    std::fs::create_dir(&extra).unwrap();
    let options = [options, &["--sandbox-rw", extra.to_str().unwrap()]].concat();
    let results = case.run(name, &options, WORKS);
    let failed: Vec<_> = results.iter().filter(|(_, (code, _))| *code != 0).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    // The work is there outside.
    let tree = case.tree(name, &options);
    let log = case.git(&["-C", tree.to_str().unwrap(), "log", "--format=%s"]);
    assert!(log.contains("two again") && log.contains("side"), "{log}");
    assert!(extra.join("x").exists());
    // Its state is kept, the home directory is forgotten.
    let home = |file: &str| std::fs::read_to_string(case.world.path("home").join(file)).unwrap_or_default();
    assert_eq!(
        (home(".claude/history"), home(".x"), home(".npm/_cacache/index")),
        ("x\n".into(), String::new(), "seeded\n".into())
    );
    case.world.swarm(&["clean", name, "--force-dirty"]).ok();
    assert!(!case.world.swarm_dir().join("sandbox").join(name).exists());
}
