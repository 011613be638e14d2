//! The variables in the environment of a worker's processes: which worker a process belongs to.
//!
//! All processes that an agent or a check starts have them, also those that left their session and lost their
//! parents. A process that clears its environment has none. [`crate::loops`] finds leftover processes by them, the
//! daemon the worker of a caller.

use std::path::{Path, PathBuf};

use crate::paths::Paths;
use crate::procs;

/// The variable with the worker's name.
pub(crate) const WORKER: &str = "SWARM_WORKER";

/// The variable with swarm's directory.
pub(crate) const ROOT: &str = "SWARM_DIR";

/// The variable with the workers that spawned a worker, separated by `:`.
pub(crate) const SPAWNED_BY: &str = "SWARM_SPAWNED_BY";

/// The worker of a process and the workers that spawned it, nearest first, if they belong to the directory `root`. A
/// process that removed or changed the directory's variable still counts.
pub(crate) fn workers(pid: i32, env: &[Vec<u8>], root: &Path) -> Vec<String> {
    let names = names(env);
    if names.is_empty() || !is_of(pid, env, root) { vec![] } else { names }
}

/// The worker of an environment and the workers that spawned it.
fn names(env: &[Vec<u8>]) -> Vec<String> {
    let both = [WORKER, SPAWNED_BY].map(|name| value(env, name));
    let names = both.iter().flatten().flat_map(|text| text.split(':'));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Whether the environment does not name another swarm's directory. The same directory can be written in many ways.
fn is_of(pid: i32, env: &[Vec<u8>], root: &Path) -> bool {
    let Some(dir) = value(env, ROOT).filter(|dir| !dir.is_empty()).map(PathBuf::from) else { return true };
    // A relative path starts from the directory of the process.
    let dir = if dir.is_absolute() { dir } else { procs::cwd(pid).unwrap_or_default().join(dir) };
    dir == root || Paths::new(dir).root() == root
}

fn value(env: &[Vec<u8>], name: &str) -> Option<String> {
    let line = env.iter().find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(lines: &[&str]) -> Vec<Vec<u8>> {
        lines.iter().map(|line| line.as_bytes().to_vec()).collect()
    }

    #[test]
    fn environment_names_the_worker_and_its_spawners() {
        assert_eq!(names(&env(&["A=b", "SWARM_WORKER=c", "SWARM_SPAWNED_BY=b:a"])), ["c", "b", "a"]);
        assert_eq!(names(&env(&["SWARM_WORKERS=c", "XSWARM_WORKER=d", ""])), [""; 0]);
    }

    #[test]
    fn any_spelling_of_the_swarm_directory_matches() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let link = root.join("link");
        std::os::unix::fs::symlink(&root, &link).unwrap();
        let of = |lines: &[&str]| workers(std::process::id() as i32, &env(lines), &root);
        let own = root.display();
        let spellings = [
            own.to_string(),
            format!("{own}/"),
            format!("{own}/link/."),
            link.display().to_string(),
            String::new(),
        ];
        for spelling in spellings {
            assert_eq!(of(&["SWARM_WORKER=a", &format!("SWARM_DIR={spelling}")]), ["a"], "{spelling}");
        }
        assert_eq!(of(&["SWARM_WORKER=a"]), ["a"]);
        assert_eq!(of(&["SWARM_WORKER=a", "SWARM_DIR=/elsewhere"]), [""; 0]);
    }
}
