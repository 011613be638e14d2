//! Paths as the guard compares them, and the files that an agent has no reason to change or to read.

/// Stands for text that is known only when the command runs, and may be empty.
pub(super) const UNKNOWN: char = '\u{e000}';

/// Stands for such text that is not empty.
pub(super) const SOME: char = '\u{e001}';

/// The surroundings of a command: directories are absolute and have no `/` at their end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardPlace {
    /// The directory that the command runs in.
    pub cwd: String,
    /// The directories of the project.
    pub project: Vec<String>,
    /// The home directory.
    pub home: String,
    /// swarm's own directories and files.
    pub swarm: Vec<String>,
    /// The directory below them with the code that other machines sent: repositories and worktrees, as in a project.
    pub sent_code: Option<String>,
    /// The worker that runs the command.
    pub worker: Option<String>,
}

/// A group of files that the guard protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protected {
    /// A disk or another device.
    Device,
    /// A file that a shell or the system runs at its start.
    Startup,
    /// git's configuration and hooks.
    GitFiles,
    SwarmFiles,
    System,
    /// Keys and passwords.
    Credential,
}

/// Devices that every command may write to.
const HARMLESS_DEVICES: [&str; 14] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/fd",
    "/dev/shm",
    "/dev/pts",
    "/dev/tcp",
    "/dev/udp",
];

/// Files in the home directory that are run at the start of a shell or a session.
const STARTUP_HOME: [&str; 17] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".xinitrc",
    ".xprofile",
    ".config/autostart",
    ".config/systemd",
    ".config/fish",
    ".ssh/rc",
    "Library/LaunchAgents",
];

const STARTUP_SYSTEM: [&str; 9] = [
    "/etc/cron",
    "/etc/anacrontab",
    "/var/spool/cron",
    "/var/spool/at",
    "/etc/profile",
    "/etc/bash.bashrc",
    "/etc/rc.",
    "/etc/init.d",
    "/etc/systemd",
];

const SYSTEM: [&str; 12] = [
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/boot",
    "/sys",
    "/proc",
    "/var/lib",
    "/var/log",
    "/var/spool",
];

const CREDENTIALS_HOME: [&str; 25] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".docker/config.json",
    ".kube/config",
    ".config/gh/hosts.yml",
    ".config/gcloud",
    ".config/op",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".vault-token",
    ".password-store",
    ".local/share/keyrings",
    ".terraform.d/credentials.tfrc.json",
];

const CREDENTIALS_SYSTEM: [&str; 5] =
    ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/var/run/secrets"];

/// Names of private keys in any directory.
const KEY_NAMES: [&str; 5] = ["id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", "id_ed25519_sk"];

/// An absolute path without `.` and `..`; `None` if it is empty or depends on a value or a directory that is not known.
pub(super) fn resolve(dir: Option<&str>, path: &str) -> Option<String> {
    if path.is_empty() || path.starts_with([UNKNOWN, SOME]) {
        return None;
    }
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", dir?) };
    let mut parts: Vec<&str> = vec![];
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

pub(super) fn is_below(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || dir == "/")
}

impl GuardPlace {
    /// The path in `path` when it lies in the home directory.
    fn in_home<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(self.home.as_str()).filter(|_| !self.home.is_empty())?.strip_prefix('/')
    }

    fn is_of_swarm(&self, path: &str) -> bool {
        let is_code = self.sent_code.as_ref().is_some_and(|dir| path != dir && is_below(path, dir));
        !is_code && self.swarm.iter().any(|dir| is_below(path, dir))
    }

    /// Whether a file can be deleted: it lies in the project, or is temporary or cached.
    pub(super) fn is_own(&self, path: &str) -> bool {
        let is_any = |dirs: &[&str]| dirs.iter().any(|dir| path != *dir && is_below(path, dir));
        let is_temporary = is_any(&["/tmp", "/var/tmp", "/dev/shm"]) && !is_below(path, &self.home);
        let is_cached = is_any(&[&format!("{}/.cache", self.home)]);
        let in_project = |dir: &String| is_any(&[dir]) && !is_below(path, &format!("{dir}/.git"));
        let is_kept = |dir: &String| is_below(dir, path);
        (is_temporary || is_cached || self.project.iter().any(in_project))
            && !self.is_of_swarm(path)
            && !self.project.iter().chain(&self.swarm).any(is_kept)
    }

    /// The group of a file that is to be written or deleted.
    pub(super) fn written(&self, path: &str) -> Option<Protected> {
        let is_any = |dirs: &[&str]| dirs.iter().any(|dir| is_below(path, dir));
        let in_home = self.in_home(path).unwrap_or_default();
        let is_marker = path.ends_with("/.ralph-active");
        let git = path.rsplit_once("/.git/").map_or("", |(_, rest)| rest);
        if is_marker || self.is_of_swarm(path) {
            Some(Protected::SwarmFiles)
        } else if git == "config"
            || git.ends_with("config.worktree")
            || is_below(git, "hooks")
            || ["gitconfig", ".gitconfig"].contains(&in_home)
            || is_below(in_home, ".config/git")
            || path == "/etc/gitconfig"
        {
            Some(Protected::GitFiles)
        } else if is_below(path, "/dev") {
            (!is_any(&HARMLESS_DEVICES) && path != "/dev").then_some(Protected::Device)
        } else if STARTUP_HOME.iter().any(|dir| is_below(in_home, dir))
            || STARTUP_SYSTEM.iter().any(|start| path.starts_with(start))
        {
            Some(Protected::Startup)
        } else if self.is_credential(path) || in_home.starts_with(".ssh/") {
            Some(Protected::Credential)
        } else if is_any(&SYSTEM) && !self.project.iter().any(|dir| is_below(path, dir)) {
            Some(Protected::System)
        } else {
            None
        }
    }

    pub(super) fn is_credential(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_public =
            name.ends_with(".pub") || ["known_hosts", "config", "authorized_keys"].contains(&name);
        let in_home = self.in_home(path).unwrap_or_default();
        let is_open = is_public && is_below(in_home, ".ssh") || in_home == ".aws/config";
        let is_environment = path.starts_with("/proc/") && name == "environ";
        let is_known = CREDENTIALS_HOME.iter().any(|file| is_below(in_home, file))
            || CREDENTIALS_SYSTEM.iter().any(|file| is_below(path, file));
        !is_open && (is_known || KEY_NAMES.contains(&name) || is_environment)
    }
}

/// The files that a patch of Codex changes.
pub(super) fn patched_files(patch: &str) -> Vec<String> {
    const HEADS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let file = |line: &str| HEADS.iter().find_map(|head| Some(line.strip_prefix(head)?.trim().to_owned()));
    patch.lines().filter_map(file).collect()
}
