//! Checks whether agents survive a logout: systemd-logind may end them.
//!
//! Two settings decide, by where the tmux server lives. In the scope of a login session everything ends with
//! the session when `KillUserProcesses` is on. Below the user's own manager (`user@UID.service`) everything
//! ends with the last session unless lingering is enabled. logind.conf is read as logind reads it: the main
//! file, then drop-ins in the order of their names, `/etc` before `/run` before `/usr/lib`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::check::Check;

const CHECK_NAME: &str = "logout";

/// The configuration directories, highest precedence first.
const CONFIG_DIRS: [&str; 4] = ["etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd"];

/// The kind of cgroup that a process runs in, as far as logind is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// The scope of a login session.
    Session,
    /// The user's own service manager.
    Manager,
    /// Neither: a system service, a container.
    Elsewhere,
}

/// Checks the tmux server, or this process if there is none: a server that it starts runs in the same place.
pub(super) fn check(server: Option<i32>) -> Check {
    let pid = server.unwrap_or(0);
    let place = if pid > 0 { pid.to_string() } else { "self".to_owned() };
    let cgroup = fs::read_to_string(format!("/proc/{place}/cgroup")).unwrap_or_default();
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten().map(|user| user.name);
    look(Path::new("/"), &cgroup, user.as_deref().unwrap_or_default())
}

fn look(root: &Path, cgroup: &str, user: &str) -> Check {
    // This is how libsystemd finds out whether systemd runs.
    if !root.join("run/systemd/system").is_dir() {
        return Check::ok(CHECK_NAME, "no systemd here: agents survive a logout");
    }
    let home = home_of(cgroup);
    let kills = kills(&Login::read(root), user);
    let lingers = root.join("var/lib/systemd/linger").join(user).exists() && !user.is_empty();
    let linger = format!("loginctl enable-linger {user}");
    match (home, kills, lingers) {
        (Home::Elsewhere, ..) => Check::ok(CHECK_NAME, "agents do not run in a login session"),
        (Home::Manager, _, true) => Check::ok(CHECK_NAME, "agents survive a logout (lingering is enabled)"),
        (Home::Manager, _, false) => {
            let message = "agents end with your last session: they run below your service manager, which does \
                           not linger";
            Check::warn(CHECK_NAME, message, linger)
        }
        (Home::Session, Some(false), _) => {
            Check::ok(CHECK_NAME, "agents survive a logout (KillUserProcesses=no)")
        }
        (Home::Session, kills, _) => {
            let message = match kills {
                Some(_) => "agents end when you log out: KillUserProcesses=yes in logind.conf",
                None => "agents may end when you log out: logind.conf does not set KillUserProcesses",
            };
            let hint = format!(
                "{linger}, and run the daemon and its first spawn as a user service (man swarm-daemon); or set \
                 KillUserProcesses=no"
            );
            Check::warn(CHECK_NAME, message, hint)
        }
    }
}

/// Derives it from the path of the control group.
fn home_of(cgroup: &str) -> Home {
    let is_session = |part: &str| part.starts_with("session-") && part.ends_with(".scope");
    let mut home = Home::Elsewhere;
    for line in cgroup.lines() {
        let parts: Vec<&str> = line.split('/').collect();
        if parts.iter().any(|part| part.starts_with("user@") && part.ends_with(".service")) {
            return Home::Manager;
        }
        if parts.iter().any(|part| is_session(part)) {
            home = Home::Session;
        }
    }
    home
}

/// Whether logind ends this user's processes; `None` if no file sets it.
fn kills(login: &Login, user: &str) -> Option<bool> {
    let lists = |key: &str, or: &str| {
        let names = login.set.get(key).cloned().unwrap_or_else(|| or.to_owned());
        (names.split_whitespace().any(|name| name == user), names.trim().is_empty())
    };
    let (excluded, _) = lists("KillExcludeUsers", "root");
    let (only, all) = lists("KillOnlyUsers", "");
    if excluded || !(all || only) {
        return Some(false);
    }
    let text = login.set.get("KillUserProcesses").or(login.default.as_ref())?;
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
        _ => None,
    }
}

/// The `[Login]` section.
#[derive(Debug, Default)]
struct Login {
    set: BTreeMap<String, String>,
    /// The default of `KillUserProcesses` when logind was built, from the comment in the main file.
    default: Option<String>,
}

impl Login {
    fn read(root: &Path) -> Self {
        let mut login = Self::default();
        let main =
            CONFIG_DIRS.iter().map(|dir| root.join(dir).join("logind.conf")).find(|path| path.exists());
        let mut drop_ins: BTreeMap<String, PathBuf> = BTreeMap::new();
        for dir in CONFIG_DIRS {
            for entry in fs::read_dir(root.join(dir).join("logind.conf.d")).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.ends_with(".conf") {
                    drop_ins.entry(name).or_insert_with(|| entry.path());
                }
            }
        }
        for path in main.into_iter().chain(drop_ins.into_values()) {
            login.take(&fs::read_to_string(path).unwrap_or_default());
        }
        login
    }

    fn take(&mut self, text: &str) {
        let mut ours = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                ours = line == "[Login]";
            } else if let Some(commented) = line.strip_prefix("#KillUserProcesses=").filter(|_| ours) {
                self.default.get_or_insert_with(|| commented.trim().to_owned());
            } else if let Some((key, value)) =
                line.split_once('=').filter(|_| ours && !line.starts_with(['#', ';']))
            {
                self.set.insert(key.trim().to_owned(), value.trim().to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Level;
    use super::*;

    const SESSION: &str = "0::/user.slice/user-1000.slice/session-3.scope\n";
    const MANAGER: &str = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/swarm.service\n";

    /// A machine with these files.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("run/systemd/system")).unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[track_caller]
    fn judged(files: &[(&str, &str)], cgroup: &str, level: Level, says: &str) {
        let machine = machine(files);
        let check = look(machine.path(), cgroup, "ann");
        assert!(check.level == level && check.message.contains(says), "{check:?}");
        assert_eq!(check.hint.is_some(), level != Level::Ok, "a hint with each finding: {check:?}");
    }

    #[test]
    fn agents_survive_a_logout_only_if_logind_kills_no_processes() {
        let main = "etc/systemd/logind.conf";
        let on = "[Login]\nKillUserProcesses=yes\n";
        judged(&[(main, on)], SESSION, Level::Warn, "end when you log out");
        judged(&[(main, "[Login]\nKillUserProcesses=no\n")], SESSION, Level::Ok, "KillUserProcesses=no");
        judged(&[(main, "[Login]\n#KillUserProcesses=no\n")], SESSION, Level::Ok, "survive");
        judged(&[(main, "[Other]\nKillUserProcesses=no\n")], SESSION, Level::Warn, "may end");
        judged(&[], SESSION, Level::Warn, "may end");
        let excluded = [(main, "[Login]\nKillUserProcesses=yes\nKillExcludeUsers=root ann\n")];
        judged(&excluded, SESSION, Level::Ok, "survive");
        let others = [(main, "[Login]\nKillUserProcesses=yes\nKillOnlyUsers=bob\n")];
        judged(&others, SESSION, Level::Ok, "survive");
    }

    #[test]
    fn drop_ins_are_sorted_by_name_and_etc_overrides_run_and_usr() {
        let files = [
            ("etc/systemd/logind.conf", "[Login]\nKillUserProcesses=yes\n"),
            ("usr/lib/systemd/logind.conf.d/50-x.conf", "[Login]\nKillUserProcesses=yes\n"),
            ("etc/systemd/logind.conf.d/50-x.conf", "[Login]\nKillUserProcesses=no\n"),
            ("run/systemd/logind.conf.d/10-y.conf", "[Login]\nKillUserProcesses=yes\n"),
        ];
        judged(&files, SESSION, Level::Ok, "KillUserProcesses=no");
        let last =
            [&files[..], &[("run/systemd/logind.conf.d/90-z.conf", "[Login]\nKillUserProcesses = yes")]];
        judged(&last.concat(), SESSION, Level::Warn, "end when you log out");
    }

    #[test]
    fn agents_of_a_user_manager_survive_a_logout_if_the_user_lingers() {
        judged(&[], MANAGER, Level::Warn, "does not linger");
        judged(&[("var/lib/systemd/linger/ann", "")], MANAGER, Level::Ok, "lingering is enabled");
        judged(&[], "0::/system.slice/swarm.service\n", Level::Ok, "not run in a login session");
        let machine = tempfile::tempdir().unwrap();
        assert_eq!(look(machine.path(), SESSION, "ann").level, Level::Ok, "no systemd");
    }
}
