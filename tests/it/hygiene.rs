//! Nothing is open to others, nothing is interpolated, and no escape of anybody's reaches the terminal.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::world::{Ran, SWARM, World};

/// Everything below a directory, and itself.
fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    for entry in fs::read_dir(dir).unwrap().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(walk(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn files_are_private_with_any_umask() {
    for swarm_dir in ["swarm".to_owned(), "d".repeat(90)] {
        let world = World::new().with_swarm_dir(&swarm_dir);
        let mut agent = world.agent("a");
        // A directory that is there already and open, as the predecessor left it.
        fs::create_dir(world.swarm_dir()).unwrap();
        fs::set_permissions(world.swarm_dir(), fs::Permissions::from_mode(0o755)).unwrap();
        let open = |args: Vec<String>| {
            let mut sh = world.command("sh");
            sh.args(["-c", "umask 000; exec \"$@\"", "sh", SWARM]).args(args);
            world.run(sh).ok()
        };
        let _ = open(world.loop_args("l", &agent, &["-d", "--env", "KEY=s3cr3t-xyz", "--record"]));
        agent.until_run(&world, 1);
        agent.tell("exit 1");
        agent.until_run(&world, 2);
        let spawn = ["spawn", "--name", "w", "--prompt", "x", "--prompt-via", "stdin", "--", "sleep", "600"];
        let _ = open(spawn.map(str::to_owned).to_vec());
        let paths = swarm::paths::Paths::new(world.swarm_dir());
        let sockets = [paths.socket(), paths.tmux_socket()];
        let seen =
            [walk(&world.swarm_dir()), sockets.to_vec(), vec![sockets[0].parent().unwrap().to_owned()]];
        let helper = paths.helper();
        for path in seen.concat() {
            let found = fs::symlink_metadata(&path).unwrap();
            let wanted = if found.is_dir() || path == helper { 0o700 } else { 0o600 };
            // tmux makes its socket executable.
            let extra = if found.file_type().is_socket() { 0o100 } else { 0 };
            assert_eq!(found.mode() & 0o777 & !extra, wanted, "{}: {:o}", path.display(), found.mode());
        }
        let with = walk(&world.swarm_dir()).into_iter().filter(|path| *path != helper).filter(|path| {
            fs::symlink_metadata(path).unwrap().is_file()
                && String::from_utf8_lossy(&fs::read(path).unwrap()).contains("s3cr3t")
        });
        let with: Vec<_> = with.map(|path| path.file_name().unwrap().to_owned()).collect();
        assert_eq!(with, ["l.json"], "the secret stands in one file");
        for args in [&["status", "l"][..], &["status", "l", "--format", "json"], &["ls", "--format", "json"]]
        {
            let ran = world.swarm(args).ok();
            assert!(!(ran.out + &ran.err).contains("s3cr3t"), "{args:?}");
        }
    }
}

#[test]
fn special_characters_in_paths_and_values_are_literal() {
    let world = World::new();
    let marker = |n: u32| world.path(format!("P{n}")).display().to_string();
    let (shell, format) = (|n| format!("$(touch {})", marker(n)), |n| format!("#(touch {})", marker(n)));
    let repo = world.repo(format!("re po {} #{{pane_id}}", "#(touch P)").as_str());
    let value = format!("(x) \"y\" {} `touch {}` {} ;%", shell(1), marker(2), format(3));
    let env = format!("A={value}");
    let tags = [format(4), shell(5), "#{pane_id}".to_owned()];
    let title = format!("printf '\\033]2;{}\\007\\033k{}\\033\\\\'", format(6), format(7));
    let script = format!("{title}; printf %s \"$A\" >got; pwd >where; read -r x; exec sleep 600");
    let cwd = repo.to_str().unwrap();
    let branch = "b$(touch${IFS}P8)#(touch)";
    let flags = ["--cwd", cwd, "--worktree", "--branch", branch, "--env", &env];
    let tags_flags: Vec<&str> = tags.iter().flat_map(|tag| ["--tag", tag.as_str()]).collect();
    let _ = world.spawn_sh("w", &[&flags[..], &tags_flags].concat(), &script).ok();
    let seen = world.status("w");
    let tree = PathBuf::from(seen["worktree"]["path"].as_str().unwrap());
    assert_eq!(seen["worktree"]["branch"], branch);
    world.until("it tells where it is", || {
        (fs::read_to_string(tree.join("where")).unwrap_or_default() == format!("{}\n", tree.display()))
            .then_some(())
    });
    assert_eq!(fs::read_to_string(tree.join("got")).unwrap(), value);
    for tag in &tags {
        assert_eq!(world.swarm(&["ls", "--tag", tag, "--format", "names"]).ok().out, "w\n");
        let _ = world.swarm(&["ls"]).ok().says(tag);
    }
    let _ = world.swarm(&["send", "w", &format(9)]).ok();
    let _ = world.swarm(&["peek", "w"]).ok().says(&format(9));
    let _ = world.swarm(&["kill", "w"]).ok();
    let left: Vec<_> = fs::read_dir(world.path("")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with('P')), "{left:?}");
    assert!(
        !walk(&tree)
            .iter()
            .chain(&walk(&repo))
            .any(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('P')))
    );
}

/// Escapes with a name, a title and a colour in them, and a character that turns text around.
const ODD: &str = "\x1b]0;title\x07\x1b[2J\u{9b}31m\u{202e}x";

/// Insists that what was said holds nothing that a terminal obeys.
#[track_caller]
fn harmless(ran: Ran, what: &dyn std::fmt::Debug) {
    let bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!ran.out.contains(bad) && !ran.err.contains(bad), "{what:?}: {:?} {:?}", ran.out, ran.err);
}

#[test]
fn no_escape_in_a_name_or_a_path_reaches_the_terminal() {
    let world = World::new();
    let dir = world.path(format!("work/d{ODD}"));
    fs::create_dir(&dir).unwrap();
    let cwd = dir.to_str().unwrap();
    let pattern = format!("({ODD}");
    let spawn = ["spawn", "--name", "x"];
    for args in [
        &["status", ODD][..],
        &[ODD],
        &["send", ODD, "x"],
        &["ls", "--tag", ODD],
        &["ls", ODD],
        &["-c", ODD, "ls"],
        &["completions", ODD],
        &["ralph", "clean", ODD],
        &["ralph", "set", "w", ODD],
        &[&spawn[..], &["--", ODD]].concat(),
        &[&spawn[..], &["--cwd", ODD, "--", "sh"]].concat(),
        &[&spawn[..], &["--worktree", "--cwd", cwd, "--", "sh"]].concat(),
        &[&spawn[..], &["--prompt-file", ODD, "--", "sh"]].concat(),
        &[&spawn[..], &["--ralph", "--prompt-file", ODD, "-n", "1", "--", "sh"]].concat(),
        &[&spawn[..], &["--env", ODD, "--", "sh"]].concat(),
        &[&spawn[..], &["--size", ODD, "--", "sh"]].concat(),
        &[&spawn[..], &["--done-pattern", &pattern, "--", "sh"]].concat(),
    ] {
        harmless(world.swarm(args), &args);
    }
    world.write("swarm.toml", "\"\\u001b[2J\\u009b\" = 1\n");
    harmless(world.spawn("x", &[], &["sh"]).code(1), &"settings");
}

#[test]
fn no_escape_of_a_worker_reaches_the_terminal() {
    let world = World::new();
    let dir = world.path(format!("work/d{ODD}"));
    fs::create_dir(&dir).unwrap();
    let cwd = dir.to_str().unwrap();
    // The agent's output is shown with its characters that reverse text, so this output has none.
    let printed = ODD.replace('\u{202e}', "");
    let script = format!(
        "printf '%s\\n' \"$0\"; echo ready; cp /bin/sleep './s\x1b[2Jl'; './s\x1b[2Jl' 600 & wait; : '{ODD}'"
    );
    let script = ["sh", "-c", &script, &printed];
    let _ = world.spawn("w", &["--cwd", cwd, "--tag", ODD, "--env", "A=\x1b[2J"], &script).ok();
    let pattern = format!("never{}", ODD.replace('[', "\\["));
    world.write("p", &format!("go {ODD}\n"));
    let flags = ["--ralph", "--prompt-file", "p", "-n", "2", "-d", "--cwd", cwd, "--done-pattern", &pattern];
    let _ = world.spawn("l", &flags, &script).ok();
    for name in ["w", "l"] {
        let ready = || world.swarm(&["peek", name]).out.contains("ready").then_some(());
        world.until("it printed", ready);
    }
    fs::write(world.swarm_dir().join(format!("workers/{ODD}.json")), "{").unwrap();
    fs::write(world.swarm_dir().join("workers/bad.json"), format!("{{\"format\":1,\"{ODD}\":")).unwrap();
    harmless(world.swarm(&["daemon", "restart"]).ok(), &"restart");
    for args in [
        &["ls"][..],
        &["status", "w"],
        &["status", "l"],
        &["ralph", "ls"],
        &["ralph", "status", "l"],
        &["peek", "w"],
        &["kill", "w"],
        &["kill", "l"],
        &["logs", "w"],
        &["logs", "l", "--history"],
        &["ralph", "logs", "l"],
        &["daemon", "status"],
        &["ls"],
    ] {
        harmless(world.swarm(args), &args);
    }
}
