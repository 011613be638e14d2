//! Ways out of a sandbox that are closed.

use super::{Row, SandboxCase};

/// Each script exits with 0 only if it escaped. Those that write into a place that is only hidden end in `false`: their
/// traces are looked for outside.
const ESCAPES: &[Row] = &[
    ("write-into-home", "echo CANARY >>$REAL_HOME/.bashrc; echo CANARY >$REAL_HOME/canary; false"),
    ("write-outside", "echo CANARY >$OUT/canary; false"),
    ("read-ssh-key", "grep -q SECRET $REAL_HOME/.ssh/id_rsa"),
    ("read-npm-token", "grep -q SECRET $REAL_HOME/.npmrc"),
    ("read-through-proc-root", "grep -q SECRET /proc/1/root$REAL_HOME/.ssh/id_rsa"),
    ("read-through-proc-cwd", "grep -q SECRET /proc/1/cwd/../../home/.ssh/id_rsa"),
    ("read-hidden-directory", "grep -q SECRET $OUT/secrets/file"),
    ("symlink-to-secret", "ln -s $REAL_HOME/.ssh link; grep -q SECRET link/id_rsa"),
    ("hard-link-to-system", "ln /etc/passwd passwd"),
    ("kill-outside", "kill -9 $VICTIM"),
    ("ptrace-outside", PTRACE),
    ("proc-of-others", "test -e /proc/$VICTIM"),
    ("orphan", "setsid sh -c 'sleep 98765.$VICTIM &' & false"),
    ("git-config", "git config core.fsmonitor 'echo CANARY'"),
    (
        "git-config-by-rename",
        "d=$(git rev-parse --git-common-dir); cp $d/config $d/new; mv -f $d/new $d/config",
    ),
    ("git-hooks", "d=$(git rev-parse --git-common-dir); echo CANARY >$d/hooks/post-commit"),
    ("git-hooks-by-rename", "d=$(git rev-parse --git-common-dir); mv $d/hooks $d/old && mkdir $d/hooks"),
    ("git-info-attributes", "d=$(git rev-parse --git-common-dir); echo CANARY >$d/info/attributes"),
    ("git-worktree-config", "echo CANARY >$(git rev-parse --git-dir)/config.worktree"),
    (
        "git-worktree-config-by-rename",
        "d=$(git rev-parse --git-dir); echo >$d/x; mv -f $d/x $d/config.worktree",
    ),
    ("git-commondir", "d=$(git rev-parse --git-dir); rm -f $d/commondir; echo /tmp/evil >$d/commondir"),
    ("git-other-commondir", "echo CANARY >$(git rev-parse --git-common-dir)/commondir; false"),
    ("git-dir-by-rename", "d=$(git rev-parse --git-common-dir); mv $d $d.old"),
    ("dot-git", "rm -rf .git && mkdir .git"),
    ("dot-git-by-rename", "mv .git old"),
    ("tree-by-rename", "mv $PWD $PWD.old"),
    ("other-worktree", "echo CANARY >$OUT/other/f; false"),
    ("main-working-tree", "[ $PWD = $OUT/work ] || echo CANARY >$OUT/work/f; false"),
    ("swarm-settings", "echo CANARY >>swarm.toml"),
    ("control-socket", "test -e $SWARM_DIR/swarm.sock"),
    ("control-through-hooks", CONTROL),
    ("swarm-directory", "mkdir -p $SWARM_DIR/workers; echo CANARY >$SWARM_DIR/workers/canary.json; false"),
    (
        "swarm-records",
        "cat $SWARM_DIR/signing-key $SWARM_DIR/workers/[am].json $SWARM_DIR/runs/*/launch.json* | grep -q .",
    ),
    ("swarm-program", "echo CANARY >>$SWARM_DIR/bin/swarm"),
    ("tmux-socket", "test -e $SWARM_DIR/tmux.sock"),
    ("tmux-of-the-user", "find $OUT/tmux | grep -q default"),
    ("ssh-agent", "test -n \"$SSH_AUTH_SOCK\" || test -e $OUT/agent.sock"),
    ("docker-socket", "ls -A /run /var/run/ | grep -q sock"),
    ("user-sockets", "test -d /run/user || test -e /run/dbus"),
    ("unmount", "umount $REAL_HOME || umount -l /tmp || umount /proc/sys"),
    ("remount", "mount -o remount,rw /"),
    ("mount", "mount --bind / /mnt || mount -t tmpfs none /mnt"),
    ("nested-namespace", "unshare -Ur true"),
    ("nested-mount", "unshare -Urm sh -c 'umount -l $REAL_HOME && cat $REAL_HOME/.ssh/id_rsa'"),
    ("enter-namespace", "nsenter -t 1 -m true"),
    ("chroot", "chroot / true"),
    ("device-node", "mknod disk b 254 0 || mknod /dev/mem c 1 1"),
    ("devices", "ls /dev | grep -qE '^(mem|kmsg|kvm|sd|vd|nvme|loop|fuse|disk)'"),
    ("other-user", "perl -e '$> = 12345; exit($> != 12345)'"),
    ("capabilities", "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status"),
    ("new-privileges", "grep -q 'NoNewPrivs:.0' /proc/self/status"),
    ("kernel-settings", "echo '|/bin/false' >/proc/sys/kernel/core_pattern"),
    ("sysrq", "echo h >/proc/sysrq-trigger"),
    (
        "sys",
        "mkdir /sys/fs/cgroup/escape || mkdir /sys/fs/cgroup/*/escape || echo 1 >/sys/kernel/uevent_helper",
    ),
    ("system-files", "touch /etc/escape || touch /usr/bin/escape || touch /var/escape"),
    ("password-hashes", "grep -q : /etc/shadow"),
    (
        "type-into-terminal",
        "perl -e 'open(T, \"+<\", \"/dev/tty\") or exit 1; $c = \"x\"; exit(!ioctl(T, 0x5412, $c))'",
    ),
    ("keyring", KEYRING),
    ("agent-settings", "echo CANARY >>$REAL_HOME/.claude/settings.json"),
    ("agent-settings-by-rename", "cd $REAL_HOME/.claude; echo CANARY >n; mv -f n settings.json"),
    ("agent-plugins", "mkdir $REAL_HOME/.claude/plugins/canary"),
    ("agent-servers", "echo CANARY >$REAL_HOME/.claude.json; false"),
    ("cache-of-the-user", "echo CANARY >$REAL_HOME/.npm/_cacache/index; false"),
    ("read-only-path", "echo CANARY >$OUT/shared/file"),
    ("tool-of-the-user", "echo CANARY >>$REAL_HOME/.local/bin/tool"),
    (
        "start-up-file",
        "mkdir -p $REAL_HOME/.config/systemd/user && echo CANARY >$REAL_HOME/.config/systemd/user/c; false",
    ),
];

const PTRACE: &str = r#"perl -e '$nr = {x86_64 => 101, aarch64 => 117}->{`uname -m` =~ s/\s//r} or exit 1;
    exit(syscall($nr, 16, $ENV{VICTIM} + 0, 0, 0) == -1)'"#;

const KEYRING: &str = r#"perl -e '$nr = {x86_64 => 250, aarch64 => 219}->{`uname -m` =~ s/\s//r} or exit 1;
    exit(syscall($nr, 0, -3, 0) == -1)'"#;

/// Tries to kill a worker through the socket for hooks.
const CONTROL: &str = r#"perl -MIO::Socket::UNIX -e '
    $s = IO::Socket::UNIX->new(Peer => "$ENV{SWARM_DIR}/hook-reports/swarm.sock") or exit 1;
    print $s qq({"swarm":1,"client":"me"}\n{"id":1,"method":"ls"}\n);
    <$s>; exit(<$s> !~ /"ok"/)'"#;

#[test]
fn sandbox_of_a_linked_worktree_cannot_be_escaped() {
    let Some(case) = SandboxCase::new() else { return };
    escapes(&case, "a", &["--worktree"]);
}

#[test]
fn sandbox_of_a_main_working_tree_cannot_be_escaped() {
    let Some(case) = SandboxCase::new() else { return };
    // Here, the place of the settings can be written, but nothing else is in it.
    escapes(&case, "m", &[]);
    let dot_git = case.world.work().join(".git");
    assert!(!dot_git.join("commondir").exists(), "it exists only while the sandbox does");
}

#[test]
fn protection_stays_for_other_workers_in_the_same_checkout() {
    let Some(case) = SandboxCase::new() else { return };
    let world = &case.world;
    let wait =
        "touch in-a; until [ -e go ]; do sleep 0.05; done; rm -f .git/commondir; echo /evil >.git/commondir";
    let spawn = |name: &str, script: &str| {
        world.spawn(name, &["--sandbox", "bwrap"], &["/bin/sh", "-c", script]).ok();
    };
    spawn("a", &format!("{wait}; echo $? >tried"));
    world.until("the first worker runs", || world.work().join("in-a").exists().then_some(()));
    // Several start and end at the same time.
    std::thread::scope(|scope| {
        for name in ["b", "c", "d"] {
            scope.spawn(move || spawn(name, "true"));
        }
    });
    for name in ["b", "c", "d"] {
        assert_eq!(world.until_ended(name)["status"], "done", "{name}");
    }
    let placeholder = world.work().join(".git/commondir");
    assert!(placeholder.exists());
    std::fs::write(world.work().join("go"), "").unwrap();
    world.until_ended("a");
    assert_ne!(std::fs::read_to_string(world.work().join("tried")).unwrap().trim(), "0");
    assert!(!placeholder.exists(), "nobody uses it any more");
}

fn escapes(case: &SandboxCase, name: &str, options: &[&str]) {
    assert!(ESCAPES.len() >= 25);
    let before = case.outside(name);
    let results = case.run(name, options, ESCAPES);
    let escaped: Vec<_> = results.iter().filter(|(_, (code, _))| *code == 0).collect();
    assert!(escaped.is_empty(), "{escaped:#?}");
    let is_in_tree = |path: &std::path::Path| options.is_empty() && path.starts_with(case.world.work());
    let mut after = case.outside(name);
    after.retain(|path, _| !is_in_tree(path));
    let added = ["packed-refs", "plugins", "agents", "commands", "hooks", "skills", "settings.local.json"];
    for (path, text) in &after {
        let is_new = !before.contains_key(path) && !added.iter().any(|name| path.ends_with(name));
        assert!(
            !is_new || path.ends_with("shared/claude") || path.ends_with("n"),
            "{} is new",
            path.display()
        );
        assert!(
            !String::from_utf8_lossy(text).contains("CANARY") || path.ends_with("n"),
            "{}",
            path.display()
        );
    }
    for (path, text) in before.iter().filter(|(path, _)| !is_in_tree(path)) {
        assert_eq!(after.get(path), Some(text), "{} has changed", path.display());
    }
    let git = case.world.work().join(".git");
    let config = std::fs::read_to_string(git.join("config")).unwrap();
    assert!(!config.contains("fsmonitor") && !git.join("info/attributes").exists());
    assert!(nix::sys::signal::kill(nix::unistd::Pid::from_raw(case.victim.id() as i32), None).is_ok());
    // Other tests have such a process too.
    let orphan = format!("98765.{}", case.victim.id()).into_bytes();
    case.world.until("no process outlives its sandbox", || {
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        (!pids.any(|pid| swarm::procs::arguments(pid).get(1) == Some(&orphan))).then_some(())
    });
}

#[test]
fn sandbox_without_network_cannot_reach_outside_sockets() {
    let Some(case) = SandboxCase::new() else { return };
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let name = format!("swarm-it-{port}");
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name)
            .unwrap();
    let _abstract = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let tcp = format!(
        "perl -MIO::Socket::INET -e 'exit(!IO::Socket::INET->new(PeerAddr => \"127.0.0.1:{port}\"))'"
    );
    let unix = format!(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); exit(!connect(S, pack(\"S a*\", AF_UNIX, \"\\0{name}\")))'"
    );
    let own =
        "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1:0\");
        exit(!IO::Socket::INET->new(PeerAddr => \"127.0.0.1:\" . $s->sockport))'";
    let rows: Vec<Row> = vec![("tcp", tcp.leak()), ("abstract", unix.leak()), ("own-loopback", own)];
    let off = case.run("off", &["--worktree", "--net", "off"], &rows);
    assert_eq!(
        (off["tcp"].0 == 0, off["abstract"].0 == 0, off["own-loopback"].0),
        (false, false, 0),
        "{off:?}"
    );
    let on = case.run("on", &["--worktree"], &rows);
    assert!(on.values().all(|(code, _)| *code == 0), "{on:?}");
}
