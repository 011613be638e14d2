//! A path that a user typed means the same file after a directory it passed through was renamed.

use std::fs;
use std::path::PathBuf;

use crate::world::{Ran, SWARM, World};

/// `work/repo` with a prompt, a spec and a loop directory, and `work/repo/sub` to type from.
struct Project {
    world: World,
    repo: PathBuf,
}

impl Project {
    fn new() -> Self {
        let world = World::new();
        let repo = world.repo("work/repo").canonicalize().unwrap();
        fs::create_dir_all(repo.join("sub")).unwrap();
        fs::create_dir_all(repo.join("ralph")).unwrap();
        for file in ["PROMPT.md", "SPEC.md", "ralph/prompt.md"] {
            fs::write(repo.join(file), "go\n").unwrap();
        }
        Self { world, repo }
    }

    /// Runs swarm in `repo/sub`.
    #[track_caller]
    fn run_in_sub(&self, args: &[&str]) -> Ran {
        let mut swarm = self.world.command(SWARM);
        swarm.current_dir(self.repo.join("sub")).args(args);
        self.world.run(swarm).ok()
    }

    /// Renames the directory that was typed from.
    fn rename_sub(&self) {
        fs::rename(self.repo.join("sub"), self.repo.join("renamed")).unwrap();
    }
}

/// An agent that works until `repo/go` exists, then reports the prompt it was given.
const AGENT: [&str; 4] = ["--", "sh", "-c", "until [ -e go ]; do sleep 0.05; done; cat"];

#[test]
fn loop_reads_its_prompt_after_the_starting_directory_was_renamed() {
    for prompt in [["--prompt-file", "../PROMPT.md"], ["--prompt-file", "../ralph/prompt.md"]] {
        let project = Project::new();
        let flags = ["spawn", "--name", "w", "--ralph", "-n", "3", "-d", "--cwd", ".."];
        let _ = project.run_in_sub(&[&flags[..], &prompt, &AGENT].concat());
        project.rename_sub();
        fs::write(project.repo.join("go"), "").unwrap();
        let world = &project.world;
        world.until_status("w", "done");
        let log = world.iterations_log("w");
        assert_eq!(log.matches(" exit=0 ").count(), 3, "{prompt:?}: {log}");
        assert_eq!(world.status("w")["cwd"], project.repo.to_str().unwrap());
        // The same again, from a record.
        let _ = world.swarm(&["respawn", "w", "-d"]).ok();
        world.until_status("w", "done");
        assert_eq!(world.iterations_log("w").matches(" exit=0 ").count(), 3, "{prompt:?}");
    }
}

#[test]
fn stored_paths_do_not_contain_the_starting_directory() {
    let project = Project::new();
    let (world, repo) = (&project.world, &project.repo);
    fs::write(repo.join("settings.toml"), "[ralph]\nprompt_file = \"sub/../PROMPT.md\"\n").unwrap();
    std::os::unix::fs::symlink("PROMPT.md", repo.join("current.md")).unwrap();
    let spawn = |name: &str, flags: &[&str]| {
        let head = ["spawn", "--name", name, "--ralph", "-n", "1", "-d", "--cwd", ".."];
        let _ = project.run_in_sub(&[&head[..], flags, &["--", "true"]].concat());
    };
    let prompt_of = |name: &str| world.ralph_state(name)["prompt_file"].as_str().unwrap().to_owned();
    let at = |file: &str| repo.join(file).to_str().unwrap().to_owned();
    spawn("link", &["--prompt-file", "../current.md"]);
    assert_eq!(
        prompt_of("link"),
        at("current.md"),
        "a link in the last place may be pointed elsewhere later"
    );
    let head = ["-c", "../settings.toml", "spawn", "--name", "set", "--ralph", "-n", "1", "-d"];
    let _ = project.run_in_sub(&[&head[..], &["--", "true"]].concat());
    assert_eq!(prompt_of("set"), at("PROMPT.md"));
    let head = ["loop", "--spec", "../SPEC.md", "--name", "spec", "--cwd", "..", "-d", "--check", "true"];
    let _ = project.run_in_sub(&[&head[..], &["--", "true"]].concat());
    assert_eq!(prompt_of("spec"), at("SPEC.md"));
    let tree = ["--prompt-file", "../PROMPT.md", "--worktree", "--worktree-dir", "../../trees/t"];
    spawn("tree", &tree);
    let record = fs::read_to_string(world.swarm_dir().join("workers/tree.json")).unwrap();
    assert!(!record.contains(".."), "{record}");
    // A protected file that is typed with a link or through another directory is one of the worker's directory.
    std::os::unix::fs::symlink(repo, world.path("work/link")).unwrap();
    for glob in [at("sub/../tests/**"), world.path("work/link/tests/**").display().to_string()] {
        let flags = ["--prompt-file", "../PROMPT.md", "--check", "true", "--replace", "--protect", &glob];
        spawn("guard", &flags);
    }
}
