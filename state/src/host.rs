//! Remote hosts: their names, the argv of ssh, and the meaning of its failures.
//!
//! A host runs a daemon of its own. `~/.ssh/config` decides how it is reached; the options here only keep ssh from
//! asking questions, from waiting without limit and from accepting a host key. Deliberately absent: starting ssh.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::WorkerName;
use crate::words::single_quoted;

/// The word for this machine, where a host is expected.
pub const LOCAL: &str = "local";

/// The word for the host with the fewest live workers.
pub const ANY: &str = "any";

const MAX_NAME_CHARS: usize = 64;

/// How long ssh may take to connect, in seconds.
pub const CONNECT_TIMEOUT_SECONDS: u32 = 5;

/// How long the shared connection stays open after its last use, in seconds.
const PERSIST_SECONDS: u32 = 600;

/// The name of a host in the settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

impl HostName {
    /// Parses the name of a host: letters, digits, `.`, `_` and `-`, first a letter or digit.
    pub fn new(text: &str) -> Result<Self, String> {
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if starts_well && text.len() <= MAX_NAME_CHARS && text.chars().all(is_name_char) {
            Ok(Self(text.to_owned()))
        } else {
            let text = crate::screen::printable(text);
            Err(format!(
                "invalid host name '{text}': use 1 to {MAX_NAME_CHARS} letters, digits, '.', '_' and '-'"
            ))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for HostName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::new(text)
    }
}

crate::words::serde_text!(HostName, String, HostName::new, HostName::as_str);

/// How a host of the settings is reached, and who starts its workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSpec {
    /// The destination for ssh; `None` if this machine submits the jobs of a Slurm host.
    pub ssh: Option<String>,
    /// Each worker is a job of Slurm, with these further sbatch arguments. `None` for a host with a daemon of its own.
    pub slurm: Option<Vec<String>>,
}

/// Splits `HOST/NAME`. Without a slash, the worker is on this machine or the host of `--on`. The error is for a person.
pub fn split_worker(text: &str) -> Result<(Option<HostName>, WorkerName), String> {
    let (host, name) = match text.split_once('/') {
        // A text without the name of a host is the invalid name of a worker.
        Some((host, name)) => HostName::new(host).map_or((None, text), |host| (Some(host), name)),
        None => (None, text),
    };
    Ok((host, WorkerName::new(name).map_err(|e| e.to_string())?))
}

/// Whether a text can be the destination of ssh: `gpu1`, `me@gpu1.example.org` or `ssh://me@gpu1:2222`.
pub fn is_destination(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The options of every ssh. `control` is the path of the shared connection, with `%C`.
pub fn ssh_options(control: &str) -> Vec<String> {
    // A `%` in a directory would start a token of ssh.
    let (dir, file) = control.rsplit_once('/').unwrap_or(("", control));
    let control = format!("ControlPath={}/{file}", dir.replace('%', "%%"));
    let options = [
        "BatchMode=yes".to_owned(),
        // An unknown key is refused, whatever the configuration says.
        "StrictHostKeyChecking=yes".to_owned(),
        format!("ConnectTimeout={CONNECT_TIMEOUT_SECONDS}"),
        "ServerAliveInterval=5".to_owned(),
        "ServerAliveCountMax=3".to_owned(),
        "ControlMaster=auto".to_owned(),
        control,
        format!("ControlPersist={PERSIST_SECONDS}"),
        // These are for a person's own sessions.
        "ClearAllForwardings=yes".to_owned(),
        "RemoteCommand=none".to_owned(),
    ];
    options.into_iter().flat_map(|option| ["-o".to_owned(), option]).collect()
}

/// The line that runs swarm on a host. The shell of a command over ssh often lacks the directories in which swarm and
/// agents are installed. `command` must already be quoted for a shell.
pub fn remote_line(command: &str) -> String {
    let script = format!("PATH=\"$PATH:$HOME/.local/bin:$HOME/.cargo/bin\"; export PATH; exec {command}");
    // Single quotes have the same meaning in every shell that a login may have.
    format!("exec sh -c {}", single_quoted(&script))
}

/// The commands that can run on a host.
const VERBS: [&str; 26] = [
    "hold",
    "release",
    "quota",
    "fetch",
    "spawn",
    "loop",
    "ls",
    "status",
    "peek",
    "logs",
    "send",
    "answer",
    "allow",
    "interrupt",
    "eof",
    "attach",
    "wait",
    "events",
    "kill",
    "respawn",
    "clean",
    "why",
    "report",
    "ralph",
    "daemon",
    "doctor",
];

/// The verbs of `swarm ralph` that work on files of this machine.
const LOCAL_RALPH_VERBS: [&str; 5] = ["init", "plan", "archive", "template", "tasks"];

/// Adds the host to each command of swarm in a text for a person: without it, a pasted command would act on a worker of
/// the same name on this machine.
pub fn with_host(text: &str, host: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("swarm ") {
        let (before, command) = rest.split_at(at);
        let after = &command["swarm ".len()..];
        let is_word = !before.ends_with(|c: char| c.is_ascii_alphanumeric() || "-_/.".contains(c));
        let mut words = after.split(|c: char| !c.is_ascii_lowercase());
        let (verb, sub_verb) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let is_local = verb == "ralph" && LOCAL_RALPH_VERBS.contains(&sub_verb);
        out.push_str(before);
        out.push_str("swarm ");
        if is_word && VERBS.contains(&verb) && !is_local && !after.contains(" --on ") {
            out.push_str(&format!("--on {host} "));
        }
        rest = after;
    }
    out + rest
}

/// Why a command over ssh failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SshFault {
    /// The host's key is not in `known_hosts`.
    UnknownKey,
    /// The host has another key than before.
    ChangedKey,
    /// The host accepted none of the user's keys.
    Denied,
    /// The host did not answer in time, or the link is down.
    NoAnswer(String),
    /// The host runs, and has no swarm.
    NoSwarm,
    /// The host has a swarm that cannot be reached from another machine.
    OldSwarm,
    /// The host's swarm failed: its own message.
    Swarm(String),
    /// Another failure of ssh: its last line.
    Other(String),
}

/// The exit status with which ssh reports its own failures.
const SSH_FAILED: i32 = 255;

/// The exit status of a shell that did not find the command.
const COMMAND_NOT_FOUND: i32 = 127;

/// The exit status of an earlier swarm for a command that it does not have.
const USAGE: i32 = 2;

/// The meaning of an ssh that ended with this exit status (`None`: a signal) after printing `stderr`.
pub fn ssh_fault(code: Option<i32>, stderr: &str) -> SshFault {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let has = |text: &str| stderr.contains(text);
    let last = || crate::screen::printable(lines().next_back().unwrap_or("it printed no message"));
    if code == Some(COMMAND_NOT_FOUND) {
        return SshFault::NoSwarm;
    }
    if code == Some(USAGE) && has("unrecognized subcommand") {
        return SshFault::OldSwarm;
    }
    let own = lines().rev().find_map(|line| line.strip_prefix("swarm: error: "));
    if let Some(message) = own.filter(|_| code != Some(SSH_FAILED)) {
        return SshFault::Swarm(crate::screen::printable(message));
    }
    if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        return SshFault::ChangedKey;
    }
    if has("Host key verification failed") || has("host key is known") {
        return SshFault::UnknownKey;
    }
    if has("Permission denied") || has("Too many authentication failures") {
        return SshFault::Denied;
    }
    if code.is_some_and(|code| is_lost_share(code, stderr)) {
        return SshFault::NoAnswer("the connection was lost".to_owned());
    }
    let is_down = [
        "timed out",
        "Connection refused",
        "No route to host",
        "Network is unreachable",
        "Could not resolve",
        "closed by",
        "Connection reset",
        "not responding",
        "Broken pipe",
    ];
    if is_down.iter().any(|text| has(text)) {
        return SshFault::NoAnswer(last());
    }
    SshFault::Other(last())
}

/// Whether an ssh that ended with this exit status used a shared connection, which ended under it. Such an ssh prints
/// nothing if its command had started. The host may be in order: another ssh makes a new connection.
pub fn is_lost_share(code: i32, stderr: &str) -> bool {
    let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
    let is_of_share = |line: &str| {
        ["mux_client", "control master", "Control socket"].iter().any(|text| line.contains(text))
    };
    code == SSH_FAILED && last.is_none_or(is_of_share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_closed_shared_connection_are_recognized() {
        for (code, stderr, wanted) in [
            (255, "", true),
            (255, "mux_client_request_session: read from master failed: Broken pipe\r\n", true),
            (255, "Welcome\nFailed to connect to new control master\r\n", true),
            (255, "Control socket connect(/h/ssh/x): Connection refused\r\n", true),
            (1, "", false),
            (255, "me@gpu1: Permission denied (publickey).\r\n", false),
            (
                255,
                "ControlSocket /h/ssh/x already exists, disabling multiplexing\r\nConnection reset\r\n",
                false,
            ),
        ] {
            assert_eq!(is_lost_share(code, stderr), wanted, "{stderr}");
        }
    }

    #[test]
    fn host_and_worker_are_split_at_the_slash() {
        for (text, host, name) in
            [("fix", None, "fix"), ("gpu1/fix", Some("gpu1"), "fix"), ("a.b-c/x_y", Some("a.b-c"), "x_y")]
        {
            let (found, worker) = split_worker(text).unwrap();
            assert_eq!((found.as_ref().map(HostName::as_str), worker.as_str()), (host, name), "{text}");
        }
        for wrong in ["", "/", "gpu1/", "/fix", "a/b/c", "-x/fix", ".x/fix", "a b/fix", "gpu1/-fix", "gpü/x"]
        {
            assert!(split_worker(wrong).is_err(), "{wrong}");
        }
        assert!(HostName::new(&"x".repeat(64)).is_ok() && HostName::new(&"x".repeat(65)).is_err());
        assert!(HostName::new("a\x1b[2J").unwrap_err().to_string().chars().all(|c| !c.is_control()));
    }

    #[test]
    fn destination_cannot_be_an_option() {
        for (text, wanted) in [
            ("gpu1", true),
            ("me@gpu1", true),
            ("ssh://me@[::1]:2222", true),
            ("", false),
            ("-oProxyCommand=x", false),
            ("a b", false),
            ("a\n", false),
        ] {
            assert_eq!(is_destination(text), wanted, "{text}");
        }
    }

    #[test]
    fn ssh_options_disable_prompts_and_unknown_host_keys() {
        let options = ssh_options("/h%me/.swarm/ssh/%C");
        for wanted in [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ConnectTimeout=5",
            "ControlPath=/h%%me/.swarm/ssh/%C",
        ] {
            assert!(options.iter().any(|option| option == wanted), "{wanted}: {options:?}");
        }
        assert!(options.iter().step_by(2).all(|flag| flag == "-o"));
    }

    #[test]
    fn commands_in_advice_name_the_host() {
        for (text, wanted) in [
            ("swarm kill x", "swarm --on gpu1 kill x"),
            ("retry: swarm ls; swarm why x", "retry: swarm --on gpu1 ls; swarm --on gpu1 why x"),
            ("`swarm ralph resume x`", "`swarm --on gpu1 ralph resume x`"),
            ("to write one: swarm ralph init", "to write one: swarm ralph init"),
            ("swarm host check gpu1", "swarm host check gpu1"),
            ("swarm daemon restart --on gpu1 now", "swarm daemon restart --on gpu1 now"),
            ("this is swarm 0.1.0", "this is swarm 0.1.0"),
            ("myswarm kill x, ~/.swarm kill", "myswarm kill x, ~/.swarm kill"),
            ("swarm", "swarm"),
        ] {
            assert_eq!(with_host(text, "gpu1"), wanted);
        }
    }

    #[test]
    fn remote_command_is_quoted_for_any_login_shell() {
        let line = remote_line("swarm attach 'a b'");
        assert!(
            line.starts_with("exec sh -c 'PATH=") && line.ends_with(r"exec swarm attach '\''a b'\'''"),
            "{line}"
        );
    }

    #[test]
    fn failures_of_ssh_are_recognized() {
        use SshFault::*;
        let down = |text: &str| NoAnswer(text.to_owned());
        for (code, stderr, wanted) in [
            (127, "sh: 1: exec: swarm: not found\n", NoSwarm),
            (2, "error: unrecognized subcommand 'connect'\n", OldSwarm),
            (
                3,
                "Welcome\nswarm: error: the daemon did not start: x\nhint: y\n",
                Swarm("the daemon did not start: x".into()),
            ),
            (
                255,
                "No ED25519 host key is known for [127.0.0.1]:2 and you have requested strict checking.\r\nHost key verification failed.\r\n",
                UnknownKey,
            ),
            (
                255,
                "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n",
                ChangedKey,
            ),
            (255, "me@gpu1: Permission denied (publickey).\r\n", Denied),
            (
                255,
                "ssh: connect to host gpu1 port 22: Connection refused\r\n",
                down("ssh: connect to host gpu1 port 22: Connection refused"),
            ),
            (
                255,
                "ssh: Could not resolve hostname gpu1: Name or service not known\r\n",
                down("ssh: Could not resolve hostname gpu1: Name or service not known"),
            ),
            (255, "Timeout, server gpu1 not responding.\r\n", down("Timeout, server gpu1 not responding.")),
            (255, "", down("the connection was lost")),
            (1, "odd\x1b[2J\n", Other("odd[2J".into())),
        ] {
            let found = ssh_fault(Some(code), stderr);
            match (&found, &wanted) {
                (Other(found), Other(_)) => assert!(!found.contains('\x1b'), "{stderr}"),
                _ => assert_eq!(found, wanted, "{stderr}"),
            }
        }
        assert_eq!(ssh_fault(None, ""), Other("it printed no message".into()));
    }
}
