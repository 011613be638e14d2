//! Creates and sets up the sandbox of a project before a run.
//!
//! The setup writes its mark inside as its last step. So a setup that failed is repeated, and one of a sandbox that
//! was deleted does not count for the next.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use swarm_state::docker::{
    self, DOCKER_STATE_DIR, INNER_PROGRAM, PUT_SCRIPT, SetupState, Workspace, is_static_linux_program,
};

use super::docker::{CALL_TIMEOUT, DockerSandbox, LIST_TIMEOUT, SandboxRecord};
use crate::error::{Error, ErrorCode, Result};
use crate::files::{if_exists, write_unsynced};
use crate::paths::private_dir;

/// How long the creation may take: it may download the template.
pub(crate) const CREATE_TIMEOUT: Duration = Duration::from_secs(900);
/// How much of a program is read to decide whether it runs inside.
const HEADER_BYTES: u64 = 64 << 10;
const SETUP_VERSION: u32 = 1;

/// The architecture of programs for the sandbox, as ELF files name it. A virtual machine has that of its host.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

#[derive(Clone, Debug)]
pub(crate) struct DockerSetup {
    /// The agent's name.
    pub(crate) template: String,
    /// The entries of the agent's home directory that are the user's.
    pub(crate) links: Vec<String>,
    pub(crate) home: PathBuf,
    /// The directories after the project.
    pub(crate) workspaces: Vec<Workspace>,
    /// The name and the address for commits.
    pub(crate) identity: (String, String),
    /// swarm's program.
    pub(crate) helper: PathBuf,
}

/// Whether swarm's program can run in a sandbox, for the agent's hooks.
pub(crate) fn hooks_run_inside(program: &Path) -> bool {
    let mut header = vec![];
    let read = File::open(program).and_then(|file| file.take(HEADER_BYTES).read_to_end(&mut header));
    read.is_ok() && is_static_linux_program(&header, MACHINE)
}

impl DockerSandbox {
    /// Makes the sandbox ready for a run: creates it, completes its setup, and restarts it if files were edited outside
    /// since the last run. Blocks, for minutes if the template has to be downloaded. Fails with
    /// [`ErrorCode::Sandbox`] and docker's message.
    pub(crate) fn open(&self, setup: &DockerSetup) -> Result<()> {
        let state_dir = setup.home.join(DOCKER_STATE_DIR);
        let mut workspaces = vec![Workspace::writable(&self.project)];
        if !setup.links.is_empty() {
            prepare_state(&state_dir, &setup.links)?;
            workspaces.push(Workspace::writable(&state_dir));
        }
        workspaces.extend(setup.workspaces.iter().cloned());
        let program = Some(&setup.helper).filter(|program| hooks_run_inside(program));
        let mark = docker::setup_mark(&workspaces, &setup_of(program.map(PathBuf::as_path)));
        let running = SandboxRecord { is_running: true, stamp: None };
        let list = self.call(docker::list_call(), Box::new(io::empty()), LIST_TIMEOUT)?;
        let state = if docker::is_listed(&list, &self.name) {
            if self.was_edited() {
                self.stop()?;
            }
            // The next call starts it.
            self.set_record(&running)?;
            let printed = self.call(docker::mark_call(&self.name), Box::new(io::empty()), CALL_TIMEOUT)?;
            SetupState::of(&printed, &mark)
        } else {
            let call = docker::create_call(&self.name, &setup.template, &workspaces);
            self.call(call, Box::new(io::empty()), CREATE_TIMEOUT)?;
            SetupState::Missing
        };
        match state {
            SetupState::Complete => {}
            SetupState::Missing => self.set_up(setup, &state_dir, program, &mark)?,
            SetupState::OtherWorkspaces => {
                let message = format!("the Docker sandbox '{}' has other directories", self.name);
                let hint = format!("to create it again: docker sandbox rm {}", self.name);
                return Err(Error::new(ErrorCode::Sandbox, message).hint(hint));
            }
        }
        self.set_record(&running)
    }

    fn set_up(
        &self,
        setup: &DockerSetup,
        state_dir: &Path,
        program: Option<&PathBuf>,
        mark: &str,
    ) -> Result<()> {
        let none = || Box::new(io::empty());
        if !setup.links.is_empty() {
            let call = docker::link_call(&self.name, &state_dir.to_string_lossy(), &setup.links);
            self.call(call, none(), CALL_TIMEOUT)?;
        }
        if let Some(program) = program {
            let failed = |e| Error::system("cannot copy swarm's program into the sandbox", e);
            let file = File::open(program).map_err(failed)?;
            let size = file.metadata().map_err(failed)?.len().to_string();
            let call = docker::script_call(&self.name, true, PUT_SCRIPT, &[INNER_PROGRAM, "755", &size]);
            self.call(call, Box::new(file), CALL_TIMEOUT)?;
        }
        let identity = (setup.identity.0.as_str(), setup.identity.1.as_str());
        self.call(docker::identity_call(&self.name, identity, mark), none(), CALL_TIMEOUT)?;
        Ok(())
    }
}

/// The version of a setup, with that of the program that was copied.
fn setup_of(program: Option<&Path>) -> String {
    let found = program.and_then(|program| program.metadata().ok());
    let program = found.map(|data| format!(" {} {}", data.len(), data.mtime())).unwrap_or_default();
    format!("{SETUP_VERSION}{program}")
}

/// Creates what is missing of the agents' state. An empty file would be an error of the agent.
fn prepare_state(dir: &Path, links: &[String]) -> Result<()> {
    private_dir(dir)?;
    for link in links {
        let path = dir.join(link);
        let failed = |e: io::Error| Error::system(format!("cannot prepare '{}'", path.display()), e);
        if !link.ends_with(".json") {
            private_dir(&path)?;
            continue;
        }
        let text = if_exists(fs::read(&path)).map_err(failed)?.unwrap_or_default();
        if serde_json::from_slice::<serde_json::Value>(&text).is_ok() {
            continue;
        }
        if !text.trim_ascii().is_empty() {
            let stamp = chrono::Utc::now().format("%Y%m%dT%H%M%S%3f");
            fs::rename(&path, dir.join(format!("{link}.corrupt-{stamp}"))).map_err(failed)?;
        }
        write_unsynced(&path, b"{}\n").map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program of one segment of this kind.
    fn elf(kind: u8) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&MACHINE.to_le_bytes());
        (bytes[32], bytes[54], bytes[56], bytes[64]) = (64, 56, 1, kind);
        bytes
    }

    #[test]
    fn a_static_program_is_copied_and_a_new_one_replaces_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["project", "home", "state"] {
            fs::create_dir(path(name)).unwrap();
        }
        let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/fake-docker.pl");
        let variables =
            [("PATH", std::env::var("PATH").unwrap()), ("FAKE_DOCKER", path("state").display().to_string())];
        let env: BTreeMap<String, String> = variables.map(|(name, value)| (name.to_owned(), value)).into();
        let docker = DockerSandbox::new((&stand_in, path("records")), &path("project"), &env, &[]);
        let setup = DockerSetup {
            template: "claude".into(),
            links: vec![],
            home: path("home"),
            workspaces: vec![],
            identity: ("A 'B'".into(), "a@b".into()),
            helper: path("swarm"),
        };
        let inner = path("state/homes").join(&docker.name);
        // With an interpreter, the program needs files that the sandbox may not have.
        for (kind, is_copied) in [(3, false), (1, true), (6, true)] {
            fs::write(&setup.helper, [&elf(kind)[..], &vec![0; usize::from(kind)]].concat()).unwrap();
            docker.open(&setup).unwrap();
            let copy = inner.join(".swarm-bin/swarm");
            assert_eq!(copy.exists(), is_copied, "{kind}");
            if is_copied {
                assert_eq!(fs::read(&copy).unwrap(), fs::read(&setup.helper).unwrap());
                assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o755);
            }
        }
        assert!(fs::read_to_string(inner.join(".gitconfig")).unwrap().contains("name = A 'B'"));
        // Without entries of its own, the agent has no state outside.
        assert!(!path("home/.dclaude_state").exists());
        let other = DockerSetup { workspaces: vec![Workspace::writable(&path("home"))], ..setup };
        let error = docker.open(&other).unwrap_err();
        assert_eq!(error.message, format!("the Docker sandbox '{}' has other directories", docker.name));
        assert_eq!(error.hint, Some(format!("to create it again: docker sandbox rm {}", docker.name)));
    }

    #[test]
    fn a_state_file_is_replaced_only_if_it_is_not_json() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let links = [".claude".to_owned(), ".claude.json".to_owned()];
        let file = state.join(".claude.json");
        let kept = || fs::read_dir(&state).unwrap().count();
        for (text, wanted, count) in [
            (None, "{}\n", 2),
            (Some("{\"a\":1}"), "{\"a\":1}", 2),
            (Some(""), "{}\n", 2),
            (Some("{\"a\":"), "{}\n", 3),
        ] {
            if let Some(text) = text {
                fs::write(&file, text).unwrap();
            }
            prepare_state(&state, &links).unwrap();
            assert_eq!((&*fs::read_to_string(&file).unwrap(), kept()), (wanted, count), "{text:?}");
        }
    }
}
