//! The sandbox of a worker: the request, and which paths the processes in it can see and write.
//!
//! Pure: the edge (`src/sandbox.rs`) collects the facts, and turns the mounts into arguments. The agent in a sandbox
//! is treated as an intruder, so no rule here may follow a path that an agent could have made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::is_default;
use crate::network::AllowedHost;

/// A program that builds sandboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxKind {
    /// bubblewrap.
    Bwrap,
    /// Docker Sandbox.
    Docker,
}

crate::word_table!(pub SandboxKind, as_str, [(Bwrap, "bwrap"), (Docker, "docker")]);

/// The sandbox that the user requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxWish {
    /// The best one that can be built here, or none.
    Auto,
    /// bubblewrap, or an error.
    Bwrap,
    /// Docker Sandbox, or an error.
    Docker,
    /// None.
    None,
}

crate::word_table!(
    pub SandboxWish,
    as_str,
    of,
    [(Docker, "docker"), (Bwrap, "bwrap"), (None, "none"), (Auto, "auto")]
);

/// The network of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxNet {
    /// The network of the machine.
    #[default]
    On,
    /// Only the sandbox's own loopback.
    Off,
    /// The same, and the allowed hosts through a proxy of swarm.
    Allow,
}

crate::word_table!(pub SandboxNet, as_str, of, [(On, "on"), (Off, "off"), (Allow, "allow")]);

/// The sandbox that a worker was spawned with. All paths are absolute and without symbolic links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The kind of program that builds it.
    pub kind: SandboxKind,
    /// The program for that.
    pub program: PathBuf,
    /// Its network.
    #[serde(default, skip_serializing_if = "is_default")]
    pub net: SandboxNet,
    /// The hosts that it may reach with [`SandboxNet::Allow`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<AllowedHost>,
    /// Further paths that it may write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<PathBuf>,
    /// Further paths that it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readable: Vec<PathBuf>,
    /// Further paths that it may not see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<PathBuf>,
}

/// The access of the sandbox to one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// A directory that is empty and forgotten at the end.
    Empty,
    /// A file without content.
    Masked,
    /// As outside, without writing.
    ReadOnly,
    /// As outside.
    Writable,
    /// The directory outside that replaces it.
    Replaced(PathBuf),
    /// A symbolic link to this path.
    Link(PathBuf),
}

/// The repository of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GitPlace {
    /// There is none, and none can be made: a later git would trust the agent's files in it.
    #[default]
    Nowhere,
    /// `.git` is a directory of the tree.
    Main,
    /// The tree is a linked worktree.
    Linked {
        /// The folder of this worktree in the common directory.
        own: PathBuf,
        /// The common directory.
        common: PathBuf,
    },
}

/// Of a common directory, the entries that commits need. Of these, only directories can be written: a file is replaced
/// by a rename, which a mount forbids.
const GIT_WRITABLE: [&str; 5] = ["objects", "refs", "logs", "reftable", "lfs"];

/// The files of a common directory that only show its state. `packed-refs` has to be a mount: git could otherwise pack
/// branches into a file that is forgotten.
const GIT_READ_ONLY: [&str; 8] =
    ["config", "config.worktree", "packed-refs", "HEAD", "shallow", "hooks", "info", "worktrees"];

/// The entries of a main `.git` that can make a later git run a program, and how to create a missing one: a path that
/// ends in `/` is a directory, and `commondir` has to name the directory that it is in.
const MAIN_LOCKED: [(&str, &str); 5] =
    [("config", ""), ("config.worktree", ""), ("commondir", ".\n"), ("hooks/", ""), ("info/", "")];

/// The same for the folder of a linked worktree.
const LINKED_LOCKED: [(&str, &str); 3] = [("config.worktree", ""), ("commondir", ""), ("gitdir", "")];

/// A file or directory to create before the mounts, because only an existing path can be protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    /// Its path.
    pub path: PathBuf,
    /// The text of a file; `None` for a directory.
    pub text: Option<&'static str>,
    /// It is deleted after the run: other programs than git may not know it.
    pub is_temporary: bool,
}

impl GitPlace {
    /// The paths that processes in the sandbox may not change, with the text of those to create.
    pub fn placeholders(&self, tree: &Path) -> Vec<Placeholder> {
        let placeholder = |dir: &Path, (name, text): (&str, &'static str)| Placeholder {
            path: dir.join(name.trim_end_matches('/')),
            text: (!name.ends_with('/')).then_some(text),
            is_temporary: !text.is_empty(),
        };
        match self {
            Self::Nowhere => vec![Placeholder { is_temporary: true, ..placeholder(tree, (".git/", "")) }],
            Self::Main => MAIN_LOCKED.map(|row| placeholder(&tree.join(".git"), row)).to_vec(),
            Self::Linked { own, common } => {
                let mut all = LINKED_LOCKED.map(|row| placeholder(own, row)).to_vec();
                // git writes it only as a whole, so an empty file is like a missing one.
                all.push(placeholder(common, ("packed-refs", "")));
                all.extend(["objects/", "refs/", "logs/"].map(|dir| placeholder(common, (dir, ""))));
                all
            }
        }
    }

    /// The mounts. `exists` reports whether an optional entry exists.
    fn mounts(&self, tree: &Path, exists: &dyn Fn(&Path) -> bool, to: &mut Mounts) {
        let dot_git = tree.join(".git");
        match self {
            Self::Nowhere => to.insert(dot_git, Access::ReadOnly),
            Self::Main => {
                // Each is a mount of its own, so that none can be renamed.
                to.insert_all(
                    [dot_git.clone(), dot_git.join("objects"), dot_git.join("refs")],
                    &Access::Writable,
                );
                let worktrees = Some(dot_git.join("worktrees")).filter(|path| exists(path));
                to.insert_all(worktrees, &Access::ReadOnly);
                to.insert_all(locked(&dot_git, &MAIN_LOCKED), &Access::ReadOnly);
            }
            Self::Linked { own, common } => {
                to.insert(dot_git, Access::ReadOnly);
                // New files at its top are discarded, so none can mislead a git outside.
                to.insert(common.clone(), Access::Empty);
                for (names, access) in
                    [(&GIT_READ_ONLY[..], Access::ReadOnly), (&GIT_WRITABLE[..], Access::Writable)]
                {
                    let paths = names.iter().map(|name| common.join(name)).filter(|path| exists(path));
                    to.insert_all(paths, &access);
                }
                to.insert(own.clone(), Access::Writable);
                to.insert_all(locked(own, &LINKED_LOCKED), &Access::ReadOnly);
            }
        }
    }
}

fn locked(dir: &Path, rows: &[(&str, &str)]) -> impl Iterator<Item = PathBuf> {
    rows.iter().map(|(name, _)| dir.join(name.trim_end_matches('/')))
}

/// The facts that decide the mounts. All paths are absolute and without symbolic links, and exist.
#[derive(Clone, Debug, Default)]
pub struct SandboxFacts {
    /// The directory that the sandbox is for, with the whole repository's files.
    pub tree: PathBuf,
    /// Its repository.
    pub git: GitPlace,
    /// The home directory.
    pub home: PathBuf,
    /// swarm's directory.
    pub root: PathBuf,
    /// Directories that hold secrets or sockets.
    pub hidden: Vec<PathBuf>,
    /// Files that hold secrets, and sockets.
    pub masked: Vec<PathBuf>,
    /// Paths that stay visible in hidden directories.
    pub readable: Vec<PathBuf>,
    /// Paths that can be written.
    pub writable: Vec<PathBuf>,
    /// Paths in those that cannot be written.
    pub locked: Vec<PathBuf>,
    /// Directories that another one replaces: caches.
    pub replaced: Vec<(PathBuf, PathBuf)>,
    /// Symbolic links in hidden directories, with their targets.
    pub links: Vec<(PathBuf, PathBuf)>,
}

/// Why a directory cannot be the one that a sandbox is for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sandbox cannot be for '{}': {}", .0.display(), .1)]
pub struct UnfitTree(pub PathBuf, pub &'static str);

/// Refuses a tree that contains hidden directories: the home directory, or swarm's own, `root`.
pub fn check_tree(tree: &Path, home: &Path, root: &Path) -> Result<(), UnfitTree> {
    let unfit = |why| Err(UnfitTree(tree.to_owned(), why));
    if home.starts_with(tree) {
        return unfit("it contains the home directory");
    }
    if root == tree {
        return unfit("it is swarm's directory");
    }
    Ok(())
}

/// Paths and the access to them. A path comes after the directories that hold it, so that the deeper one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts(BTreeMap<PathBuf, Access>);

impl Mounts {
    /// The mounts for a sandbox; fails if the tree contains hidden directories. `exists`: whether a path exists.
    pub fn of(facts: &SandboxFacts, exists: &dyn Fn(&Path) -> bool) -> Result<Self, UnfitTree> {
        let tree = &facts.tree;
        check_tree(tree, &facts.home, &facts.root)?;
        let mut mounts = Self::default();
        mounts.insert_all(facts.hidden.iter().chain([&facts.home]).cloned(), &Access::Empty);
        mounts.insert_all(facts.readable.iter().cloned(), &Access::ReadOnly);
        for (path, source) in &facts.replaced {
            mounts.insert(path.clone(), Access::Replaced(source.clone()));
        }
        for (path, target) in &facts.links {
            mounts.insert(path.clone(), Access::Link(target.clone()));
        }
        mounts.insert_all(facts.writable.iter().chain([tree]).cloned(), &Access::Writable);
        facts.git.mounts(tree, exists, &mut mounts);
        mounts.insert_all(facts.locked.iter().cloned(), &Access::ReadOnly);
        mounts.insert_all(facts.masked.iter().cloned(), &Access::Masked);
        if !mounts.0.contains_key(&facts.root) {
            mounts.insert(facts.root.clone(), Access::Empty);
        }
        Ok(mounts)
    }

    /// Each path with its access, directories before their contents.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &Access)> {
        self.0.iter().map(|(path, access)| (path.as_path(), access))
    }

    fn insert(&mut self, path: PathBuf, access: Access) {
        self.0.insert(path, access);
    }

    fn insert_all(&mut self, paths: impl IntoIterator<Item = PathBuf>, access: &Access) {
        self.0.extend(paths.into_iter().map(|path| (path, access.clone())));
    }
}

/// Variables that lead to an agent, a bus or a server outside. They are removed.
const OUTSIDE_VARIABLES: [&str; 20] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "GNOME_KEYRING_CONTROL",
    "GPG_AGENT_INFO",
    "I3SOCK",
    "KRB5CCNAME",
    "SESSION_MANAGER",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SWAYSOCK",
    "TEMP",
    "TMP",
    "TMPDIR",
    "VSCODE_IPC_HOOK_CLI",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
];

/// The variable whose value is swarm's directory, in the environment of all processes in a sandbox.
pub const SANDBOX_VARIABLE: &str = "SWARM_SANDBOX";

/// Changes an environment to that of a sandbox. `root` is swarm's directory.
pub fn change_environment(env: &mut BTreeMap<String, String>, root: &Path) {
    for name in OUTSIDE_VARIABLES {
        env.remove(name);
    }
    env.insert(SANDBOX_VARIABLE.to_owned(), root.to_string_lossy().into_owned());
    // Claude Code asks for the first, Gemini CLI starts a sandbox of its own without the second.
    for (name, value) in [("IS_SANDBOX", "1"), ("GEMINI_SANDBOX", "false")] {
        env.insert(name.to_owned(), value.to_owned());
    }
    // The keys to sign with are not in the sandbox, and git could not store packed branches.
    let settings = [
        ("commit.gpgSign", "false"),
        ("tag.gpgSign", "false"),
        ("gc.packRefs", "false"),
        // The reflogs of other worktrees cannot be written.
        ("gc.reflogExpire", "never"),
        ("gc.reflogExpireUnreachable", "never"),
    ];
    if !env.contains_key("GIT_CONFIG_COUNT") {
        env.insert("GIT_CONFIG_COUNT".into(), settings.len().to_string());
        for (number, (key, value)) in settings.into_iter().enumerate() {
            env.insert(format!("GIT_CONFIG_KEY_{number}"), key.into());
            env.insert(format!("GIT_CONFIG_VALUE_{number}"), value.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(tree: &str, git: GitPlace) -> SandboxFacts {
        SandboxFacts {
            tree: tree.into(),
            git,
            home: "/home/u".into(),
            root: "/home/u/.swarm".into(),
            hidden: ["/home", "/run", "/tmp", "/home/u/.swarm"].map(PathBuf::from).to_vec(),
            ..SandboxFacts::default()
        }
    }

    fn rows(facts: &SandboxFacts) -> Vec<String> {
        let mounts = Mounts::of(facts, &|path| !path.ends_with("reftable")).unwrap();
        mounts.iter().map(|(path, access)| format!("{} {access:?}", path.display())).collect()
    }

    #[test]
    fn a_linked_worktree_writes_only_what_commits_need() {
        let git = GitPlace::Linked { own: "/src/r/.git/worktrees/a".into(), common: "/src/r/.git".into() };
        assert_eq!(
            rows(&facts("/src/r-worktrees/a", git)),
            [
                "/home Empty",
                "/home/u Empty",
                "/home/u/.swarm Empty",
                "/run Empty",
                "/src/r/.git Empty",
                "/src/r/.git/HEAD ReadOnly",
                "/src/r/.git/config ReadOnly",
                "/src/r/.git/config.worktree ReadOnly",
                "/src/r/.git/hooks ReadOnly",
                "/src/r/.git/info ReadOnly",
                "/src/r/.git/lfs Writable",
                "/src/r/.git/logs Writable",
                "/src/r/.git/objects Writable",
                "/src/r/.git/packed-refs ReadOnly",
                "/src/r/.git/refs Writable",
                "/src/r/.git/shallow ReadOnly",
                "/src/r/.git/worktrees ReadOnly",
                "/src/r/.git/worktrees/a Writable",
                "/src/r/.git/worktrees/a/commondir ReadOnly",
                "/src/r/.git/worktrees/a/config.worktree ReadOnly",
                "/src/r/.git/worktrees/a/gitdir ReadOnly",
                "/src/r-worktrees/a Writable",
                "/src/r-worktrees/a/.git ReadOnly",
                "/tmp Empty",
            ]
        );
    }

    #[test]
    fn a_main_working_tree_keeps_its_settings_and_hooks() {
        let rows = rows(&facts("/src/r", GitPlace::Main));
        let git: Vec<&String> = rows.iter().filter(|row| row.starts_with("/src/r/.git")).collect();
        assert_eq!(
            git,
            [
                "/src/r/.git Writable",
                "/src/r/.git/commondir ReadOnly",
                "/src/r/.git/config ReadOnly",
                "/src/r/.git/config.worktree ReadOnly",
                "/src/r/.git/hooks ReadOnly",
                "/src/r/.git/info ReadOnly",
                "/src/r/.git/objects Writable",
                "/src/r/.git/refs Writable",
                "/src/r/.git/worktrees ReadOnly",
            ]
        );
        let place = |git: &GitPlace| {
            let made = git.placeholders(Path::new("/src/r"));
            let made = made.iter().filter(|made| made.is_temporary);
            made.map(|made| (made.path.display().to_string(), made.text)).collect::<Vec<_>>()
        };
        assert_eq!(place(&GitPlace::Main), [("/src/r/.git/commondir".to_owned(), Some(".\n"))]);
        assert_eq!(place(&GitPlace::Nowhere), [("/src/r/.git".to_owned(), None)]);
    }

    #[test]
    fn deeper_path_decides_and_locked_paths_stay_read_only() {
        let facts = SandboxFacts {
            readable: vec!["/home/u/.local/bin".into(), "/home/u/.swarm/bin".into()],
            writable: vec!["/home/u/.claude".into()],
            locked: vec!["/home/u/.claude/settings.json".into()],
            replaced: vec![("/home/u/.npm".into(), "/home/u/.swarm/sandbox/a/.npm".into())],
            masked: vec!["/etc/shadow".into()],
            ..facts("/home/u/src/r", GitPlace::Nowhere)
        };
        assert_eq!(
            rows(&facts),
            [
                "/etc/shadow Masked",
                "/home Empty",
                "/home/u Empty",
                "/home/u/.claude Writable",
                "/home/u/.claude/settings.json ReadOnly",
                "/home/u/.local/bin ReadOnly",
                "/home/u/.npm Replaced(\"/home/u/.swarm/sandbox/a/.npm\")",
                "/home/u/.swarm Empty",
                "/home/u/.swarm/bin ReadOnly",
                "/home/u/src/r Writable",
                "/home/u/src/r/.git ReadOnly",
                "/run Empty",
                "/tmp Empty",
            ]
        );
    }

    #[test]
    fn a_tree_around_the_home_directory_is_refused() {
        for tree in ["/", "/home", "/home/u", "/home/u/.swarm"] {
            assert!(Mounts::of(&facts(tree, GitPlace::Nowhere), &|_| true).is_err(), "{tree}");
        }
    }

    #[test]
    fn sandbox_removes_only_dangerous_variables() {
        let own = ["SSH_AUTH_SOCK", "TMPDIR", "PATH", "ANTHROPIC_API_KEY"];
        let mut env: BTreeMap<String, String> = own.map(|name| (name.to_owned(), "x".to_owned())).into();
        change_environment(&mut env, Path::new("/s"));
        assert!(!env.contains_key("SSH_AUTH_SOCK") && !env.contains_key("TMPDIR"));
        assert_eq!((&*env["PATH"], &*env["ANTHROPIC_API_KEY"], &*env["SWARM_SANDBOX"]), ("x", "x", "/s"));
        assert_eq!((&*env["GIT_CONFIG_COUNT"], &*env["GIT_CONFIG_KEY_2"]), ("5", "gc.packRefs"));
    }
}
