//! Docker Sandbox: the name of a sandbox, the arguments of each call of `docker`, and unsupported options.
//!
//! Pure: the edge (`src/sandbox/docker.rs`) runs the calls. The source is the ralph document, sections 3 and 4: create
//! a sandbox with the stock template, set it up once with `exec`, and run the agent in it with `run`. Its files are a
//! synchronized copy of the project. A file that is changed outside while the sandbox runs does not change inside.

use std::path::{Path, PathBuf};

use crate::caps::Caps;
use crate::network::AllowedHost;
use crate::profiles::Profile;
use crate::rooms::RoomGates;
use crate::sandbox::SandboxNet;
use crate::words::{single_quoted, words};

/// The home directory of the agent in each template.
const AGENT_HOME: &str = "/home/agent";

/// The directory in the user's home directory that keeps the agent's login.
pub const DOCKER_STATE_DIR: &str = ".dclaude_state";

/// The identity of commits if the user has none.
pub const DEFAULT_IDENTITY: (&str, &str) = ("Ralph Loop", "ralph@localhost");

/// The file in the agent's home directory with the mark of a complete setup.
const MARK_FILE: &str = ".swarm-setup";

/// swarm's program in a sandbox.
pub const INNER_PROGRAM: &str = "/home/agent/.swarm-bin/swarm";

/// Writes a file: `$1` is its path, `$2` its mode, `$3` its size, and its text is the standard input. The size detects
/// an input that was cut off.
pub const PUT_SCRIPT: &str = r#"set -e; d=${1%/*}; t="$d/.${1##*/}.$$.tmp"; mkdir -p -- "$d"
if cat >"$t" && [ "$(wc -c <"$t")" -eq "$3" ] && chmod "$2" "$t" && mv -f -- "$t" "$1"; then exit 0; fi
rm -f -- "$t"; exit 1"#;

/// Writes a file that must not exist: `$1` is its path, and its text is the standard input.
pub const CREATE_SCRIPT: &str = r#"set -eC; cat >"$1""#;

/// A directory of the machine that a sandbox gets under the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Its path.
    pub path: PathBuf,
    /// The sandbox may not change it.
    pub is_read_only: bool,
}

impl Workspace {
    /// A directory that the sandbox may change.
    pub fn writable(path: &Path) -> Self {
        Self { path: path.to_owned(), is_read_only: false }
    }

    fn argument(&self) -> String {
        format!("{}{}", self.path.display(), if self.is_read_only { ":ro" } else { "" })
    }
}

/// The name of the sandbox of a project: `ralph-` and its path, with `_` for each character other than an ASCII letter
/// or digit, `.`, `_` and `-`.
pub fn sandbox_name(project: &Path) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    format!("ralph-{}", project.to_string_lossy().chars().map(legal).collect::<String>())
}

/// The call that lists the sandboxes. It fails if Docker Sandbox cannot be used.
pub fn list_call() -> Vec<String> {
    words(&["sandbox", "ls"])
}

/// Whether the list has a sandbox. A name is a whole word in it.
pub fn is_listed(list: &str, name: &str) -> bool {
    list.lines().any(|line| line.split_whitespace().any(|word| word == name))
}

/// The call that creates a sandbox.
pub fn create_call(name: &str, template: &str, workspaces: &[Workspace]) -> Vec<String> {
    let mut call = words(&["sandbox", "create", "--name", name, template]);
    call.extend(workspaces.iter().map(Workspace::argument));
    call
}

/// The call that ends everything in a sandbox. Its next start reads the files outside again.
pub fn stop_call(name: &str) -> Vec<String> {
    words(&["sandbox", "stop", name])
}

/// The call that runs the agent. The template adds the program and its permissions.
pub fn run_call(name: &str, arguments: &[String]) -> Vec<String> {
    [words(&["sandbox", "run", name, "--"]), arguments.to_vec()].concat()
}

/// The call that runs a script with arguments. With `has_input`, it gets a standard input.
pub fn script_call(name: &str, has_input: bool, script: &str, arguments: &[&str]) -> Vec<String> {
    let mut call = words(&["sandbox", "exec"]);
    call.extend(has_input.then(|| "-i".to_owned()));
    call.extend(words(&[name, "sh", "-c", script]));
    if !arguments.is_empty() {
        call.extend(words(&[&["swarm"], arguments].concat()));
    }
    call
}

/// The words in front of a command that runs in a directory of a sandbox. `env_file` has its variables.
pub fn exec_call(name: &str, dir: &str, env_file: Option<&str>) -> Vec<String> {
    let mut call = words(&["sandbox", "exec", "-w", dir]);
    call.extend(env_file.into_iter().flat_map(|file| words(&["--env-file", file])));
    call.push(name.to_owned());
    call
}

/// The first call of the setup, as root: the agent's state in its home directory leads to that of the user.
pub fn link_call(name: &str, state_dir: &str, links: &[String]) -> Vec<String> {
    let places: Vec<String> = links.iter().map(|link| format!("{AGENT_HOME}/{link}")).collect();
    let places = places.join(" ");
    let mut script = format!("set -e\nSTATE_DIR={}\nrm -rf {places}\n", single_quoted(state_dir));
    for link in links {
        script.push_str(&format!("ln -s \"$STATE_DIR/{link}\" {AGENT_HOME}/{link}\n"));
    }
    script.push_str(&format!("chown -h agent:agent {places} 2>/dev/null || true\n"));
    words(&["sandbox", "exec", "-u", "root", name, "bash", "-c", &script])
}

/// The last call of the setup: the identity of commits, and the mark of a complete setup.
pub fn identity_call(name: &str, (user, email): (&str, &str), mark: &str) -> Vec<String> {
    let script = format!(
        "set -e\ngit config --global user.email {}\ngit config --global user.name {}\nprintf '%s\\n' {} >{AGENT_HOME}/{MARK_FILE}\n",
        single_quoted(email),
        single_quoted(user),
        single_quoted(mark)
    );
    words(&["sandbox", "exec", name, "bash", "-c", &script])
}

/// The call that prints the mark of a setup, or nothing.
pub fn mark_call(name: &str) -> Vec<String> {
    script_call(name, false, &format!("cat {AGENT_HOME}/{MARK_FILE} 2>/dev/null || true"), &[])
}

/// The mark of a setup: the directories of the sandbox, and the setup. Another sandbox can have the same name.
pub fn setup_mark(workspaces: &[Workspace], setup: &str) -> String {
    let dirs: Vec<String> = workspaces.iter().map(Workspace::argument).collect();
    format!("{}\t{setup}", dirs.join(":").replace(['\t', '\n'], "_"))
}

/// The state of a setup, from the mark in the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupState {
    /// The setup is complete.
    Complete,
    /// The setup never ended, or another version made it.
    Missing,
    /// The sandbox has other directories.
    OtherWorkspaces,
}

impl SetupState {
    /// Compares the printed mark with the expected one.
    pub fn of(printed: &str, mark: &str) -> Self {
        let dirs = |mark: &str| mark.split('\t').next().map(str::to_owned);
        match printed.trim_end() {
            "" => Self::Missing,
            printed if printed == mark => Self::Complete,
            printed if dirs(printed) == dirs(mark) => Self::Missing,
            _ => Self::OtherWorkspaces,
        }
    }
}

/// The command that limits the network of a sandbox, for the user to run; `None` for a network without limits.
pub fn network_command(name: &str, net: SandboxNet, hosts: &[AllowedHost]) -> Option<String> {
    let allowed = match net {
        SandboxNet::On => return None,
        SandboxNet::Off => String::new(),
        SandboxNet::Allow => allow_options(hosts),
    };
    Some(format!("docker sandbox network proxy {name} --policy deny{allowed}"))
}

/// The command that allows further hosts.
pub fn allow_command(name: &str, hosts: &[AllowedHost]) -> String {
    format!("docker sandbox network proxy {name}{}", allow_options(hosts))
}

/// The options for the hosts. A shell would look for files that match a `*`.
fn allow_options(hosts: &[AllowedHost]) -> String {
    let word = |host: &AllowedHost| match host.to_string() {
        text if text.contains('*') => single_quoted(&text),
        text => text,
    };
    hosts.iter().map(|host| format!(" --allow-host {}", word(host))).collect()
}

/// The parts of a worker that decide whether Docker Sandbox can be its sandbox.
#[derive(Clone, Copy, Debug)]
pub struct DockerNeeds<'a> {
    /// The agent.
    pub profile: &'a Profile,
    /// Its command.
    pub cmd: &'a [String],
    /// The agent that reviews.
    pub reviewer: Option<&'a Profile>,
    /// The resource caps.
    pub caps: &'a Caps,
    /// The gates outside of the worker's directory.
    pub rooms: &'a RoomGates,
    /// Stories run at the same time.
    pub is_parallel: bool,
}

impl DockerNeeds<'_> {
    /// Why Docker Sandbox cannot be the sandbox: a sentence, and the next step.
    pub fn obstacle(&self) -> Option<(String, &'static str)> {
        let program = self.cmd.first().map(String::as_str).unwrap_or_default();
        let Some(template) = &self.profile.sandbox.docker_template else {
            return Some((format!("Docker Sandbox has no template for '{program}'"), USE_BWRAP));
        };
        if self.profile.place_of_program(self.cmd) != 1 {
            let why =
                format!("the command starts with '{program}': a Docker sandbox starts '{template}' itself");
            return Some((why, "give only the agent's program and its options after --"));
        }
        if self.reviewer.is_some_and(|reviewer| reviewer.sandbox.docker_template.as_ref() != Some(template)) {
            return Some((format!("the reviewer cannot run in a sandbox of '{template}'"), USE_BWRAP));
        }
        let gates = self.rooms;
        let options = [
            ("--memory", self.caps.memory.is_some()),
            ("--cpus", self.caps.cpu_percent.is_some()),
            ("--pids", self.caps.pids.is_some()),
            ("--final-check", !gates.final_checks.is_empty()),
            ("--hidden", gates.hidden.is_some()),
            ("--clean-check", gates.clean_check),
            ("--fix", !gates.fix.is_empty()),
            ("--jobs", self.is_parallel),
        ];
        let (option, _) = options.into_iter().find(|(_, is_set)| *is_set)?;
        Some((format!("{option} has no effect in a Docker sandbox"), USE_BWRAP))
    }
}

const USE_BWRAP: &str = "use --sandbox bwrap";

/// Whether a program is for Linux and needs no other file: an ELF file for `machine` (as in its header)
/// without an interpreter.
pub fn is_static_linux_program(elf: &[u8], machine: u16) -> bool {
    const INTERPRETER: u32 = 3;
    const HEADER_BYTES: usize = 56;
    let number = |at: usize, bytes: usize| {
        let found = elf.get(at..at.checked_add(bytes)?)?;
        Some(found.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let read = || {
        // 64 bits, little-endian.
        let is_known = elf.starts_with(b"\x7fELF\x02\x01") && number(18, 2)? == u64::from(machine);
        let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        let mut is_static = is_known && size >= HEADER_BYTES as u64 && count > 0;
        for index in 0..count {
            let at = usize::try_from(start.checked_add(index * size)?).ok()?;
            is_static &= number(at, 4)? != u64::from(INTERPRETER);
        }
        Some(is_static)
    };
    read().unwrap_or(false)
}

#[cfg(test)]
mod tests;
