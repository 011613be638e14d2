//! Converts a spawn for a remote host: directory, environment and prompt.
//!
//! The directory is one of the host, and the environment is that of a login there; only the variables of `--env` come
//! from this machine. Prompt files are read here and sent as text. Options that name other files of this machine are
//! refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use swarm_state::spec::Prompt;

use super::context::ClientContext;
use super::relay::HostFacts;
use super::spawn_params::named_env;
use super::typed_path::{absolute, current_dir};
use crate::cli::Spawn;
use crate::error::{Error, ErrorCode, Result};
use crate::paths;
use crate::protocol::SpawnParams;
use crate::remote::{Place, code, include, ssh};
use crate::shell::quote;

/// The parts of a spawn that depend on the host.
pub(super) struct HostSpawn {
    place: Place,
    /// The directory as typed.
    typed: PathBuf,
    /// The candidates on the host; relative ones are below the home directory there.
    candidates: Vec<PathBuf>,
    named: BTreeMap<String, String>,
    /// The directory of this machine whose commit the worktree gets, and its branch.
    code: Option<(PathBuf, String)>,
}

impl HostSpawn {
    /// Removes the directory from `args`, where it would be one of this machine. `None` for a spawn on this machine; an
    /// error for an option that is for this machine only.
    pub(super) fn take(ctx: &ClientContext, args: &mut Spawn) -> Result<Option<Self>> {
        let Some(place) = ctx.host.clone() else { return Ok(None) };
        let refused = [
            (
                args.worktree.worktree_dir.is_some(),
                "--worktree-dir",
                "omit it: the host chooses the directory",
            ),
            (args.tasks.ralph_dir.is_some(), "--ralph-dir", "start the loop on the host itself"),
            (args.gates.rooms.hidden.is_some(), "--hidden", "start the loop on the host itself"),
            (
                args.worker.tmux_socket.is_some(),
                "--tmux-socket",
                "omit it: the host has a tmux server of its own",
            ),
        ];
        if let Some((_, option, hint)) = refused.iter().find(|(is_set, _, _)| *is_set) {
            return Err(Error::usage(format!("{option} cannot be used with --on")).hint(*hint));
        }
        let typed = args.cwd.take().map_or_else(current_dir, Ok)?;
        let absolute = absolute(&typed)?;
        let code = match (args.worktree.worktree, &args.worker.name) {
            (false, _) => None,
            // The job sees the same directory.
            (true, _) if place.host().is_some_and(|host| host.spec.ssh.is_none()) => None,
            (true, None) => {
                let error = Error::usage("--worktree with --on needs a name for the branch");
                return Err(error.hint("--name NAME"));
            }
            (true, Some(name)) => {
                let branch = args.worktree.branch.clone().unwrap_or_else(|| format!("swarm/{name}"));
                args.worktree.branch = Some(branch.clone());
                Some((absolute.clone(), branch))
            }
        };
        let candidates = candidates(&absolute, paths::home().ok().as_deref());
        Ok(Some(Self { place, typed, candidates, named: named_env(&args.worker.env)?, code }))
    }

    /// Completes the parameters with the data of the host. Fails if the host cannot be reached or does not have the
    /// directory, or if a prompt file cannot be read.
    pub(super) async fn complete(self, ctx: &ClientContext, params: &mut SpawnParams) -> Result<()> {
        let Some(host) = self.place.host() else { return Ok(()) };
        if params.sandbox.is_some() {
            let error = Error::usage("a sandbox cannot be used with --on");
            return Err(error.hint("start the worker on the host itself, or use --sandbox none"));
        }
        let dirs: Vec<String> = self.candidates.iter().map(|dir| quote(&dir.to_string_lossy())).collect();
        let command = format!("swarm connect --facts {}", dirs.join(" "));
        let printed = ssh::output(&self.place, host, &command).await?;
        // A login may print lines of its own before it.
        let text = String::from_utf8_lossy(&printed);
        let facts: HostFacts = serde_json::from_str(text.lines().next_back().unwrap_or_default())
            .map_err(|_| host.silent("it printed no valid answer"))?;
        let pushed = match &self.code {
            Some((dir, branch)) => {
                let repo = code::push(&self.place, host, dir, branch).await?;
                let note = include::send(&self.place, host, dir, &repo, branch).await?;
                note.iter().for_each(|note| ctx.out.note(&format!("swarm: {note}")));
                Some(repo)
            }
            None => None,
        };
        let Some(directory) = pushed.or(facts.directory) else {
            let message = format!("host '{}': no such directory: {}", host.name, self.typed.display());
            return Err(Error::invalid(message).hint("name one of the host: --cwd DIR"));
        };
        params.cwd = directory;
        params.env = facts.env.into_iter().chain(self.named).collect();
        if let Some(ralph) = params.ralph.as_mut() {
            if ralph.task.is_none() {
                ralph.task = Some(text_of(&ralph.prompt_file)?);
            }
        } else if let Prompt::File(file) = &params.prompt {
            params.prompt = Prompt::Text(text_of(file)?);
        }
        Ok(())
    }
}

/// The directories to try on the host: below its home directory first, then the same path.
fn candidates(dir: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let below = home.and_then(|home| dir.strip_prefix(home).ok());
    let below =
        below.map(|rest| if rest.as_os_str().is_empty() { PathBuf::from(".") } else { rest.to_owned() });
    below.into_iter().chain([dir.to_owned()]).collect()
}

fn text_of(file: &Path) -> Result<String> {
    let cannot =
        |why: String| Error::new(ErrorCode::Invalid, format!("cannot send '{}': {why}", file.display()));
    let bytes = std::fs::read(file).map_err(|e| cannot(e.to_string()))?;
    String::from_utf8(bytes).map_err(|_| cannot("it is not valid UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_in_the_home_directory_is_tried_in_the_remote_home() {
        let home = Some(Path::new("/home/me"));
        let of = |dir: &str, home| {
            candidates(Path::new(dir), home).iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("/home/me/work/app", home), ["work/app", "/home/me/work/app"]);
        assert_eq!(of("/home/me", home), [".", "/home/me"]);
        assert_eq!(of("/srv/app", home), ["/srv/app"]);
        assert_eq!(of("/srv/app", None), ["/srv/app"]);
    }
}
