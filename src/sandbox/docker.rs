//! Docker Sandbox: finds it, and runs commands in the sandbox of a project.
//!
//! [`swarm_state::docker`] has the arguments of each call. [`super::docker_setup`] creates a sandbox before a run.
//! swarm keeps a record of each sandbox: whether it runs, and the files of the project at the end of the last run. Used
//! by the daemon, by checks, and by [`super::tree_files`]. Deliberately absent: the agent's own process, which the
//! wrapper in the pane starts, and changes of the network, which the user makes.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use swarm_state::docker;
use swarm_state::screen::printable;
use swarm_state::tasks::marker::MARKER_FILE;
use tokio::runtime::{Handle, RuntimeFlavor};
use walkdir::{DirEntry, WalkDir};

use super::process::{find_program, run};
use crate::error::{Error, ErrorCode, Result};
use crate::files::write_unsynced;
use crate::paths::private_dir;

/// How long the list of sandboxes may take.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a short command in a sandbox may take, and its stop. A sandbox may have to start first.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long files need from the inside to the outside.
const SYNC_TIME: Duration = Duration::from_millis(2500);
/// The variable that replaces [`SYNC_TIME`], in milliseconds.
const SYNC_VARIABLE: &str = "SWARM_DOCKER_SYNC_MS";

const INSTALL: &str =
    "install Docker Desktop 4.58 or later and enable sandboxes in its settings, or use --sandbox bwrap";

/// The sandbox of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DockerSandbox {
    program: PathBuf,
    pub(crate) name: String,
    /// The directory that it is for.
    pub(crate) project: PathBuf,
    /// The directory of swarm's records of sandboxes.
    records: PathBuf,
    /// The environment of `docker`: that of the worker.
    #[serde(skip)]
    pub(crate) env: BTreeMap<String, String>,
    /// The variables that the user set for the worker.
    #[serde(skip)]
    given: Vec<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SandboxRecord {
    /// swarm has not stopped it since its last use.
    pub(super) is_running: bool,
    /// The files of the project at the end of the last run.
    pub(super) stamp: Option<String>,
}

/// Asks Docker Sandbox for its sandboxes, and returns the path of `docker`. Fails with [`ErrorCode::Sandbox`],
/// docker's message, and the fix as a hint.
pub(crate) fn detect() -> Result<PathBuf> {
    let refused = |why: &str| {
        let why = format!("no Docker sandbox can be built: {}", printable(why));
        Error::new(ErrorCode::Sandbox, why).hint(INSTALL)
    };
    let program = find_program("docker").ok_or_else(|| refused("docker is not installed"))?;
    let mut command = Command::new(&program);
    let output = run(command.args(docker::list_call()), Box::new(io::empty()), LIST_TIMEOUT)
        .map_err(|error| refused(&format!("docker sandbox ls: {error}")))?;
    if output.status.success() { Ok(program) } else { Err(refused(&first_line(&output.stderr))) }
}

fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("docker failed without a message").to_owned()
}

impl DockerSandbox {
    /// The sandbox of a project. Nothing is started. `env` is the environment of `docker`, and `given` has the names
    /// of the variables in it that checks get.
    pub(super) fn new(
        (program, records): (&Path, PathBuf),
        project: &Path,
        env: &BTreeMap<String, String>,
        given: &[String],
    ) -> Self {
        Self {
            program: program.to_owned(),
            name: docker::sandbox_name(project),
            project: project.to_owned(),
            records,
            env: env.clone(),
            given: given.to_vec(),
        }
    }

    fn argv(&self, call: Vec<String>) -> Vec<String> {
        [vec![self.program.to_string_lossy().into_owned()], call].concat()
    }

    /// The argv that runs the agent with these arguments.
    pub(crate) fn agent_argv(&self, arguments: &[String]) -> Vec<String> {
        self.argv(docker::run_call(&self.name, arguments))
    }

    /// The words in front of a check in `cwd` with the environment `env`. Fails with [`ErrorCode::Sandbox`] if `cwd`
    /// is not in the sandbox. `limit` ends the check inside too. Marks the sandbox as running, since the check
    /// starts it.
    pub(crate) fn check_argv(
        &self,
        cwd: &Path,
        env: &BTreeMap<String, String>,
        env_file: &Path,
    ) -> Result<Vec<String>> {
        if !cwd.starts_with(&self.project) {
            let message = format!("a Docker sandbox cannot run checks in '{}'", cwd.display());
            return Err(Error::new(ErrorCode::Sandbox, message).hint("use --sandbox bwrap"));
        }
        let is_inner = |(key, value): &(&String, &String)| {
            self.given.contains(key) || self.env.get(*key) != Some(*value)
        };
        // The format has one line for each variable.
        let inner = env.iter().filter(is_inner).filter(|(_, value)| !value.contains(['\n', '\r']));
        let lines: String = inner.map(|(key, value)| format!("{key}={value}\n")).collect();
        let file = env_file.to_string_lossy();
        if !lines.is_empty() {
            private_dir(env_file.parent().unwrap_or(env_file))?;
            let write = write_unsynced(env_file, lines.as_bytes());
            write.map_err(|e| Error::system("cannot write the variables of a check", e))?;
        }
        let file = (!lines.is_empty()).then_some(&*file);
        self.set_record(&SandboxRecord { is_running: true, ..self.record() })?;
        Ok(self.argv(docker::exec_call(&self.name, &cwd.to_string_lossy(), file)))
    }

    /// Whether the sandbox may run. If not, its next start reads the files outside.
    pub(super) fn is_running(&self) -> bool {
        self.record().is_running
    }

    /// Stops the sandbox, and everything that runs in it. The error has docker's message.
    pub(crate) fn stop(&self) -> Result<()> {
        self.call(docker::stop_call(&self.name), Box::new(io::empty()), CALL_TIMEOUT)?;
        self.set_record(&SandboxRecord { is_running: false, ..self.record() })
    }

    /// Waits until the files that were written inside are outside.
    pub(crate) async fn wait_for_sync(&self) {
        let set = std::env::var(SYNC_VARIABLE).ok().and_then(|text| text.parse().ok());
        tokio::time::sleep(set.map_or(SYNC_TIME, Duration::from_millis)).await;
    }

    /// Whether files were edited since the last run, or that is not known.
    pub(super) fn was_edited(&self) -> bool {
        let record = self.record();
        record.is_running && (record.stamp.is_none() || record.stamp != stamp_of(&self.project))
    }

    /// Records the files at the end of a run. If they are others at the next run, the sandbox has to read them again.
    pub(crate) fn note_files(&self) {
        let record = SandboxRecord { stamp: stamp_of(&self.project), ..self.record() };
        if let Err(error) = self.set_record(&record) {
            tracing::warn!(sandbox = self.name, %error, "the next run restarts its sandbox");
        }
    }

    /// Runs a script inside. The error has docker's message, or the script's.
    pub(super) fn script(&self, script: &str, arguments: &[&str], input: Option<Vec<u8>>) -> Result<String> {
        let call = docker::script_call(&self.name, input.is_some(), script, arguments);
        self.call(call, Box::new(Cursor::new(input.unwrap_or_default())), CALL_TIMEOUT)
    }

    /// Runs `docker`, and returns what it prints. Blocks.
    pub(super) fn call(
        &self,
        call: Vec<String>,
        input: Box<dyn Read + Send>,
        limit: Duration,
    ) -> Result<String> {
        let name = call.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
        let failed = |why: &str| {
            Error::new(ErrorCode::Sandbox, format!("docker {name}: {}", printable(why))).hint("swarm doctor")
        };
        let mut command = Command::new(&self.program);
        command.args(&call);
        if !self.env.is_empty() {
            command.env_clear().envs(&self.env);
        }
        let is_worker =
            Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        let run = || run(&mut command, input, limit);
        let output = if is_worker { tokio::task::block_in_place(run) } else { run() };
        let output = output.map_err(|error| failed(&error.to_string()))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(failed(&first_line(&output.stderr))),
        }
    }

    fn record_file(&self) -> PathBuf {
        self.records.join(format!("{}.json", self.name))
    }

    /// The record; that of an unknown sandbox if there is none.
    pub(super) fn record(&self) -> SandboxRecord {
        let read = std::fs::read(self.record_file()).ok().and_then(|text| serde_json::from_slice(&text).ok());
        read.unwrap_or(SandboxRecord { is_running: true, stamp: None })
    }

    pub(super) fn set_record(&self, record: &SandboxRecord) -> Result<()> {
        private_dir(&self.records)?;
        let text = serde_json::to_vec(record).unwrap_or_default();
        write_unsynced(&self.record_file(), &text)
            .map_err(|e| Error::system("cannot write the record of the sandbox", e))
    }
}

/// Files that swarm writes between two runs.
const OWN_FILES: [&str; 2] = [MARKER_FILE, ".swarm"];

/// Hashes the paths, sizes, times and modes of all files of a project, also of ignored ones and those of git. Another
/// text means that files were edited. `None` if they cannot be read.
fn stamp_of(project: &Path) -> Option<String> {
    let is_users = |entry: &DirEntry| !OWN_FILES.iter().any(|own| entry.path() == project.join(own));
    let mut hash = Sha256::new();
    for entry in WalkDir::new(project).sort_by_file_name().into_iter().filter_entry(is_users) {
        let entry = entry.ok()?;
        if entry.file_type().is_dir() {
            continue;
        }
        let data = entry.metadata().ok()?;
        let numbers = [data.len().cast_signed(), data.mtime(), data.mtime_nsec(), i64::from(data.mode())];
        hash.update(entry.path().as_os_str().as_encoded_bytes());
        writeln!(hash, "\0{numbers:?}").ok()?;
    }
    Some(crate::files::hex(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::stamp_of;

    #[test]
    fn every_edit_changes_the_stamp_of_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        fs::create_dir_all(file("sub")).unwrap();
        fs::write(file("sub/a"), "one").unwrap();
        let mut known = vec![stamp_of(dir.path()).unwrap()];
        assert_eq!(stamp_of(dir.path()).as_ref(), known.last());
        let edits: [&dyn Fn(); 4] = [
            &|| fs::write(file("sub/a"), "longer").unwrap(),
            &|| fs::write(file(".env"), "").unwrap(),
            &|| fs::rename(file(".env"), file("env")).unwrap(),
            &|| fs::remove_file(file("env")).unwrap(),
        ];
        for edit in edits.iter().take(3) {
            edit();
            let now = stamp_of(dir.path()).unwrap();
            assert!(!known.contains(&now));
            known.push(now);
        }
        edits[3]();
        assert_eq!(stamp_of(dir.path()).as_ref(), known.get(1));
        fs::write(file(".ralph-active"), "{}").unwrap();
        assert_eq!(stamp_of(dir.path()).as_ref(), known.get(1), "swarm's own file");
    }
}
