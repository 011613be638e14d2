//! bubblewrap: finds it, proves that it works, and builds its arguments.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use swarm_state::sandbox::{Access, Mounts, SandboxNet};

use super::inside::{INSIDE_ARGUMENT, PROXY_OPTION};
use super::process::{self, find_program};
use super::seccomp;
use super::worker::{SandboxedCommand, WorkerSandbox, sandbox_dir};
use crate::error::{Error, ErrorCode, Result};
use crate::files::write_unsynced;
use crate::paths::private_dir;

/// How long a sandbox that runs nothing may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The namespaces and rights of every sandbox. Its own user namespace keeps root from undoing a mount, and no further
/// one can be made inside.
const ISOLATION: [&str; 9] = [
    "--unshare-user",
    "--disable-userns",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
];

/// The system without its devices and processes. Root's `/proc/sys` could be written otherwise.
const SYSTEM: [&str; 17] = [
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--perms",
    "1777",
    "--tmpfs",
    "/dev/shm",
    "--proc",
    "/proc",
    "--ro-bind",
    "/proc/sys",
    "/proc/sys",
    "--ro-bind-try",
    "/proc/sysrq-trigger",
    "/proc/sysrq-trigger",
];

/// The directories for temporary files, which everybody may write.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Opens the files for bubblewrap, ignores the signals for the agent, and becomes bubblewrap. `$1` is the number of
/// files; file N has the descriptor 9 - N + 1.
const BWRAP_SCRIPT: &str = "trap '' HUP INT QUIT TERM TSTP; n=$1; shift; \
    if [ $n -ge 1 ]; then exec 9<\"$1\" || exit 126; shift; fi; \
    if [ $n -ge 2 ]; then exec 8<\"$1\" || exit 126; shift; fi; \
    if [ $n -ge 3 ]; then exec 7<\"$1\" || exit 126; shift; fi; \
    exec \"$@\"";

/// The descriptors for files, in the order of [`BWRAP_SCRIPT`].
const DESCRIPTORS: [&str; 3] = ["9", "8", "7"];

/// Runs a sandbox once and returns the path of bubblewrap. Fails with [`ErrorCode::Sandbox`], bubblewrap's message, and
/// the fix as a hint.
pub(crate) fn detect() -> Result<PathBuf> {
    let refused = |message: String| Error::new(ErrorCode::Sandbox, message);
    let program = find_program("bwrap").ok_or_else(|| {
        refused("no bubblewrap sandbox can be built: bwrap is not installed".into())
            .hint("apt install bubblewrap (dnf, pacman and apk have the same name)")
    })?;
    let mut words = vec![program.to_string_lossy().into_owned()];
    words.extend(ISOLATION.into_iter().chain(SYSTEM).map(str::to_owned));
    words.push("true".into());
    let why = match run(&words) {
        Ok(output) if output.status.success() => return Ok(program),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    let why = swarm_state::screen::printable(why.lines().next().unwrap_or("bwrap failed"));
    Err(refused(format!("no bubblewrap sandbox can be built: {why}")).hint(fix(&why)))
}

fn fix(why: &str) -> String {
    let value = |file: &str| std::fs::read_to_string(Path::new("/proc/sys").join(file)).unwrap_or_default();
    if why.contains("--disable-userns") {
        return "install bubblewrap 0.8 or later".into();
    }
    if value("kernel/apparmor_restrict_unprivileged_userns").trim() == "1" {
        return APPARMOR_FIX.into();
    }
    if value("kernel/unprivileged_userns_clone").trim() == "0" {
        return "allow user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1".into();
    }
    if value("user/max_user_namespaces").trim() == "0" {
        return "allow user namespaces: sudo sysctl -w user.max_user_namespaces=10000".into();
    }
    "in a container, allow user namespaces and mounts, or use --sandbox none".into()
}

/// The fix for Ubuntu, ready to paste.
const APPARMOR_FIX: &str = "\
allow user namespaces for every program until the next start: sudo sysctl -w \
kernel.apparmor_restrict_unprivileged_userns=0; or for bwrap, permanently: \
printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile bwrap /usr/bin/bwrap flags=(unconfined) {\\n  userns,\\n}\\n' \
| sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r /etc/apparmor.d/bwrap";

/// Runs a command to its end, at most [`PROBE_TIMEOUT`].
fn run(words: &[String]) -> std::io::Result<Output> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    process::run(Command::new(program).args(arguments), Box::new(std::io::empty()), PROBE_TIMEOUT)
}

/// The words in front of a command that runs in a sandbox. Proves first that the sandbox can be built; fails
/// with [`ErrorCode::Sandbox`] and bubblewrap's message if not.
pub(super) fn argv(
    sandbox: &WorkerSandbox,
    mounts: &Mounts,
    command: &SandboxedCommand<'_>,
    copies: &[PathBuf],
) -> Result<Vec<String>> {
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| {
            Error::new(ErrorCode::Sandbox, format!("the path '{}' is not UTF-8", path.display()))
        })
    };
    let (mut files, mut words) = (vec![], vec![text(&sandbox.spec.program)?]);
    words.extend(ISOLATION.iter().chain(&SYSTEM).map(|word| (*word).to_owned()));
    if sandbox.spec.net != SandboxNet::On {
        words.push("--unshare-net".into());
    }
    for (path, access) in mounts.iter() {
        let at = text(path)?;
        words.extend(match access {
            Access::Empty if TEMPORARY.contains(&at.as_str()) => {
                vec!["--perms".into(), "1777".into(), "--tmpfs".into(), at]
            }
            Access::Empty => vec!["--tmpfs".into(), at],
            Access::Masked => vec!["--ro-bind".into(), "/dev/null".into(), at],
            Access::ReadOnly => vec!["--ro-bind".into(), at.clone(), at],
            Access::Writable => vec!["--bind".into(), at.clone(), at],
            Access::Replaced(source) => vec!["--bind".into(), text(source)?, at],
            Access::Link(target) => vec!["--symlink".into(), text(target)?, at],
        });
    }
    if let Some(filter) = seccomp::program() {
        let dir = sandbox_dir(&sandbox.paths);
        private_dir(&dir)?;
        // No worker has a name with a dot.
        let file = dir.join("seccomp.bpf");
        if std::fs::read(&file).ok().as_ref() != Some(&filter) {
            write_unsynced(&file, &filter).map_err(|e| Error::system("cannot write the filter", e))?;
        }
        words.extend(["--seccomp".into(), DESCRIPTORS[files.len()].into()]);
        files.push(text(&file)?);
    }
    for copied in copies {
        let Some(descriptor) = DESCRIPTORS.get(files.len()) else { break };
        words.extend(["--file".into(), (*descriptor).into(), text(copied)?]);
        files.push(text(copied)?);
    }
    words.extend(["--chdir".into(), text(command.cwd)?]);
    let mut argv: Vec<String> = ["/bin/sh", "-c", BWRAP_SCRIPT, "swarm-sandbox"].map(str::to_owned).to_vec();
    argv.push(files.len().to_string());
    argv.extend(files.into_iter().chain(words));
    prove(&argv)?;
    argv.extend([text(&sandbox.helper)?, INSIDE_ARGUMENT.into()]);
    if let Some(dir) = &command.proxy {
        argv.extend([PROXY_OPTION.into(), text(dir)?]);
    }
    Ok(argv)
}

/// Builds the sandbox once, so that a failure is not mistaken for one of the agent.
fn prove(argv: &[String]) -> Result<()> {
    let failed = |why: &str| {
        let why = swarm_state::screen::printable(why);
        Error::new(ErrorCode::Sandbox, format!("the sandbox cannot be built: {why}")).hint("swarm doctor")
    };
    let output = run(&[argv, &["true".to_owned()]].concat()).map_err(|error| failed(&error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim())),
    }
}
