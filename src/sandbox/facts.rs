//! Collects what exists for the mounts of a sandbox: the tree and its repository, the home directory, tools, caches.
//!
//! An earlier run may have changed everything in the tree. So no path that starts there is followed: the tree itself
//! has to be a real directory, and a repository outside of it has to name the tree as its own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use swarm_state::profiles::Profile;
use swarm_state::sandbox::{GitPlace, Placeholder, SandboxFacts};
use walkdir::WalkDir;

use super::worker::{SandboxedCommand, WorkerSandbox, sandbox_dir};
use crate::error::{Error, ErrorCode, Result};
use crate::paths::{home, private_dir, resolve};

/// Directories that hold homes, sockets or temporary files of others.
const HIDDEN_DIRS: [&str; 5] = ["/home", "/root", "/run", "/tmp", "/var/tmp"];

/// Files that only root can read.
const ROOT_SECRETS: [&str; 8] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/sudoers",
];

/// Paths in the home directory that tools need and that hold no secret.
const HOME_READABLE: [&str; 23] = [
    ".gitconfig",
    ".config/git",
    ".cargo/bin",
    ".cargo/env",
    ".rustup",
    ".nvm",
    ".fnm",
    ".volta",
    ".asdf",
    ".pyenv",
    ".rbenv",
    ".sdkman",
    ".deno/bin",
    ".bun/bin",
    ".local/bin",
    ".npm-global",
    ".local/lib",
    ".local/pipx",
    ".local/share/claude",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/uv",
];

/// The caches of package managers, and their parts with which a worker's own cache begins.
const CACHES: [(&str, &[&str]); 8] = [
    (".cache", &[]),
    (".npm", &["_cacache"]),
    (".cargo/registry", &["index", "cache"]),
    (".cargo/git", &["db"]),
    ("go/pkg", &[]),
    (".m2", &[]),
    (".gradle", &[]),
    (".bun/install/cache", &[]),
];

/// The largest cache that is copied.
const MAX_COPIED_BYTES: u64 = 1 << 30;

/// The facts for a sandbox, and more for its start.
pub(super) struct Collected {
    pub(super) facts: SandboxFacts,
    /// Files and directories to create before the mounts.
    pub(super) placeholders: Vec<Placeholder>,
    /// Files of which the agent gets a copy.
    pub(super) copies: Vec<PathBuf>,
}

pub(super) fn collect(sandbox: &WorkerSandbox, command: &SandboxedCommand<'_>) -> Result<Collected> {
    let typed_home = command.env.get("HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let typed_home = typed_home.map_or_else(home, Ok)?;
    let (home, tree) = (resolve(&typed_home), tree(command.tree, command.cwd)?);
    let hidden = HIDDEN_DIRS.iter().map(PathBuf::from).chain([home.clone(), sandbox.paths.root().to_owned()]);
    let mut facts = SandboxFacts {
        git: repository(&tree)?,
        tree,
        home: home.clone(),
        root: sandbox.paths.root().to_owned(),
        hidden: hidden.filter(|dir| dir.is_dir() && !dir.is_symlink()).collect(),
        ..SandboxFacts::default()
    };
    hide(&mut facts, sandbox, command);
    let mut view = View { typed_home, facts };
    view.show_tools(sandbox, command);
    let mut placeholders = view.show_state(command);
    let mut facts = view.facts;
    for (cache, parts) in CACHES {
        let own = sandbox_dir(&sandbox.paths).join(&sandbox.worker).join(cache);
        if !own.is_dir() {
            private_dir(&own)?;
            seed(&home.join(cache), &own, parts);
        }
        facts.replaced.push((home.join(cache), own));
    }
    // The settings of a project may name the command of its next worker.
    facts.locked.extend(Some(facts.tree.join("swarm.toml")).filter(|file| is_real(file)));
    facts.writable.extend(sandbox.spec.writable.iter().filter(|path| is_real(path)).cloned());
    placeholders.extend(facts.git.placeholders(&facts.tree));
    let copies = command.profile.map(|profile| copies(profile, &home, command.env)).unwrap_or_default();
    Ok(Collected { facts, placeholders, copies })
}

/// Adds what holds secrets and sockets outside of the directories that are always hidden.
fn hide(facts: &mut SandboxFacts, sandbox: &WorkerSandbox, command: &SandboxedCommand<'_>) {
    let env = |name: &str| command.env.get(name).map(PathBuf::from);
    let docker =
        command.env.get("DOCKER_HOST").and_then(|host| host.strip_prefix("unix://")).map(PathBuf::from);
    let tmux = env("TMUX_TMPDIR").map(|dir| dir.join(format!("tmux-{}", nix::unistd::getuid())));
    let sockets = [env("SSH_AUTH_SOCK"), docker, tmux, sandbox.tmux_socket.clone(), sandbox.hidden.clone()];
    let named = sockets.into_iter().flatten().chain(sandbox.spec.hidden.iter().cloned());
    let secrets = ROOT_SECRETS.iter().map(PathBuf::from).filter(|_| nix::unistd::geteuid().is_root());
    for path in named.chain(secrets).filter(|path| path.is_absolute()) {
        let path = resolve(&path);
        if path.is_dir() {
            facts.hidden.push(path);
        } else if path.symlink_metadata().is_ok() && !facts.hidden.iter().any(|dir| path.starts_with(dir)) {
            facts.masked.push(path);
        }
    }
}

/// Whether the path exists and contains no symbolic link.
fn is_real(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real == path)
}

/// The tree: the given one, or the working tree that holds `cwd`.
pub(super) fn tree(given: Option<&Path>, cwd: &Path) -> Result<PathBuf> {
    let above = || cwd.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok());
    let tree = given.or_else(above).unwrap_or(cwd);
    if is_real(tree) && tree.is_dir() {
        return Ok(tree.to_owned());
    }
    let message =
        format!("a sandbox cannot be for '{}': it is reached through a symbolic link", tree.display());
    Err(Error::new(ErrorCode::Sandbox, message).hint("start the worker in the directory itself"))
}

/// The repository of a tree. Its `.git` counts only if the repository names the tree too.
pub(super) fn repository(tree: &Path) -> Result<GitPlace> {
    let dot_git = tree.join(".git");
    let refuse = |why: &str| {
        let message = format!("a sandbox cannot protect the repository of '{}': {why}", tree.display());
        Err(Error::new(ErrorCode::Sandbox, message).hint("use --worktree, or a clone"))
    };
    let Ok(found) = dot_git.symlink_metadata() else { return Ok(GitPlace::Nowhere) };
    if found.is_symlink() {
        return refuse("its .git is a symbolic link");
    }
    if found.is_dir() {
        // An earlier sandbox left it.
        if fs::read_dir(&dot_git).is_ok_and(|mut entries| entries.next().is_none()) {
            return Ok(GitPlace::Nowhere);
        }
        let config = fs::read_to_string(dot_git.join("config")).unwrap_or_default().to_lowercase();
        let is_set = |key: &str| config.lines().any(|line| line.trim_start().starts_with(key));
        if is_set("worktree") {
            return refuse("core.worktree is set");
        }
        let is_shared = fs::read_to_string(dot_git.join("commondir")).is_ok_and(|text| text != ".\n");
        let has_links = ["objects", "refs"].iter().any(|name| dot_git.join(name).is_symlink());
        return if is_shared || has_links {
            refuse("its .git refers to another one")
        } else {
            Ok(GitPlace::Main)
        };
    }
    let read = |file: PathBuf| fs::read_to_string(file).ok().map(|text| text.trim_end().to_owned());
    let own =
        read(dot_git.clone()).and_then(|text| Some(resolve(&tree.join(text.strip_prefix("gitdir: ")?))));
    let Some(own) = own.filter(|own| own.is_dir()) else { return refuse("its .git names no directory") };
    let names_tree = read(own.join("gitdir")).is_some_and(|named| Path::new(&named) == dot_git);
    let common =
        own.parent().and_then(Path::parent).filter(|dir| own.parent() == Some(&dir.join("worktrees")));
    let agrees = |common: &&Path| {
        read(own.join("commondir")).is_some_and(|named| resolve(&own.join(named)) == **common)
            && ["objects", "refs", "logs"].iter().all(|name| !common.join(name).is_symlink())
    };
    match common.filter(agrees) {
        Some(common) if names_tree => Ok(GitPlace::Linked { common: common.to_owned(), own }),
        Some(_) | None => refuse("it is not a worktree that git made"),
    }
}

/// Collects what stays visible in hidden directories.
struct View {
    /// The home directory as the environment names it.
    typed_home: PathBuf,
    facts: SandboxFacts,
}

impl View {
    /// Makes a path visible. An agent could change what starts in the tree, and a directory around the home directory
    /// would show it.
    fn show(&mut self, path: &Path) {
        let Ok(real) = path.canonicalize() else { return };
        let facts = &mut self.facts;
        let is_around = |inner: &Path| inner.starts_with(&real);
        if path.starts_with(&facts.tree)
            || real.starts_with(&facts.tree)
            || is_around(&facts.home)
            || is_around(&facts.root)
        {
            return;
        }
        let is_hidden = |path: &Path| facts.hidden.iter().any(|dir| path.starts_with(dir));
        if real != path && is_hidden(path) && !facts.readable.iter().any(|shown| path.starts_with(shown)) {
            facts.links.push((path.to_owned(), real.clone()));
        }
        if is_hidden(&real) {
            facts.readable.push(real);
        }
    }

    /// Shows the tools of the user, and what this run needs of swarm.
    fn show_tools(&mut self, sandbox: &WorkerSandbox, command: &SandboxedCommand<'_>) {
        let home = self.facts.home.clone();
        if self.typed_home != home && !self.facts.hidden.contains(&self.typed_home) {
            self.facts.links.push((self.typed_home.clone(), home.clone()));
        }
        for name in HOME_READABLE {
            self.show(&home.join(name));
        }
        let path = command.env.get("PATH").cloned().unwrap_or_default();
        for dir in std::env::split_paths(&path).filter(|dir| dir.is_absolute()) {
            self.show(&dir);
        }
        for file in ["/etc/resolv.conf", "/etc/localtime", "/etc/hosts"] {
            self.show(Path::new(file));
        }
        for path in command.origin.into_iter().chain(sandbox.spec.readable.iter().map(PathBuf::as_path)) {
            self.show(path);
        }
        for file in &sandbox.named {
            if sandbox.hidden.as_ref().is_some_and(|hidden| file.starts_with(hidden)) {
                continue;
            }
            self.show(file);
            // A program's other files are near the real one.
            if let Ok(real) = file.canonicalize()
                && real != *file
            {
                self.show(&package_of(&real));
            }
        }
        if let Some(Ok(GitPlace::Linked { common, .. })) = command.origin.map(repository) {
            self.show(&common.join("objects"));
        }
        // These are in swarm's directory, which is hidden and holds nothing that the agent could change.
        let helper_dir = sandbox.helper.parent().filter(|dir| *dir == sandbox.paths.helper_dir());
        let helper = helper_dir.unwrap_or(&sandbox.helper).to_owned();
        let hooks = sandbox.paths.hook_socket_dir();
        let own = [Some(helper), Some(hooks), command.settings.clone(), command.proxy.clone()];
        self.facts.readable.extend(own.into_iter().flatten().filter(|path| is_real(path)));
    }

    /// Shows the agent's own files, and returns what has to exist in them.
    fn show_state(&mut self, command: &SandboxedCommand<'_>) -> Vec<Placeholder> {
        let Some(profile) = command.profile else { return vec![] };
        let mut placeholders = vec![];
        let home = self.typed_home.clone();
        for path in profile.sandbox.state_readable.iter().filter_map(|text| expand(text, &home, command.env))
        {
            self.show(&path);
        }
        for dir in profile.sandbox.state_dirs.iter().filter_map(|text| expand(text, &home, command.env)) {
            // swarm reads the transcripts in it. If it cannot be made, the agent has none.
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
            let Ok(real) = dir.canonicalize() else { continue };
            if !real.is_dir() || self.facts.home.starts_with(&real) {
                continue;
            }
            if real != dir && dir.starts_with(&home) {
                self.facts.links.push((dir, real.clone()));
            }
            for name in &profile.sandbox.state_locked {
                let path = real.join(name.trim_end_matches('/'));
                let text = if name.ends_with(".json") { "{}\n" } else { "" };
                let text = (!name.ends_with('/')).then_some(text);
                placeholders.push(Placeholder { path: path.clone(), text, is_temporary: false });
                self.facts.locked.push(path);
            }
            self.facts.writable.push(real);
        }
        placeholders
    }
}

/// A path of a profile; `None` if its variable is not set.
fn expand(text: &str, home: &Path, env: &BTreeMap<String, String>) -> Option<PathBuf> {
    match text.strip_prefix('$') {
        Some(variable) => env.get(variable).map(PathBuf::from).filter(|path| path.is_absolute()),
        None => Some(home.join(text.strip_prefix("~/")?)),
    }
}

/// The files of which the agent gets a copy.
fn copies(profile: &Profile, home: &Path, env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let files = profile.sandbox.state_copies.iter().filter_map(|text| expand(text, home, env));
    files.map(|file| resolve(&file)).filter(|file| file.is_file()).collect()
}

/// Copies parts of a cache of the user, if they are not too large. A worker's own cache cannot harm the user's.
fn seed(from: &Path, to: &Path, parts: &[&str]) {
    let entries = || parts.iter().flat_map(|part| WalkDir::new(from.join(part)).into_iter().flatten());
    let size: u64 = entries().filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
    if size > MAX_COPIED_BYTES {
        return;
    }
    for entry in entries() {
        let Ok(place) = entry.path().strip_prefix(from) else { continue };
        // A cache may lack any of its files.
        let _ = match entry.file_type() {
            kind if kind.is_dir() => fs::create_dir_all(to.join(place)),
            kind if kind.is_file() => fs::copy(entry.path(), to.join(place)).map(drop),
            _ => Ok(()),
        };
    }
}

/// The directory with a program's other files: the outermost `node_modules`, the directory above `bin`, or its own.
fn package_of(program: &Path) -> PathBuf {
    let is_named = |dir: &Path, name: &str| dir.file_name().is_some_and(|found| found == name);
    let modules = program.ancestors().filter(|dir| is_named(dir, "node_modules"));
    let own = program.parent().unwrap_or(program);
    // `~/.local` has much more than one program.
    let above = own.parent().filter(|dir| is_named(own, "bin") && !is_named(dir, ".local"));
    modules.last().or(above).unwrap_or(own).to_owned()
}
