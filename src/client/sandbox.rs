//! The sandbox of a spawn, from the command line and the settings.
//!
//! Used by [`super::spawn_params`]. The client decides, because the sandbox is built for the user who runs it.

use std::path::{Path, PathBuf};

use swarm_state::sandbox::{SandboxSpec, SandboxWish};

use super::typed_path::absolute;
use crate::cli::SandboxArgs;
use crate::error::{Error, Result};
use crate::sandbox::choose;
use crate::settings::SandboxDefaults;

/// The sandbox, if there is one. Adds a warning if swarm chose to have none.
pub(super) fn sandbox(
    args: &SandboxArgs,
    defaults: &SandboxDefaults,
    has_task_list: bool,
    warnings: &mut Vec<String>,
) -> Result<Option<SandboxSpec>> {
    let usual = if has_task_list { SandboxWish::Auto } else { SandboxWish::None };
    let wish = args.sandbox.map(|wish| wish.0).or(defaults.kind).unwrap_or(usual);
    let choice = choose(wish)?;
    warnings.extend(choice.warning);
    let Some((kind, program)) = choice.program else { return Ok(None) };
    let typed = |paths: &[PathBuf]| paths.iter().map(|path| absolute(path)).collect::<Result<Vec<_>>>();
    let all = |typed: Vec<PathBuf>, set: &Option<Vec<PathBuf>>| {
        let set = set.iter().flatten().cloned();
        typed.into_iter().chain(set).map(|path| real(&path)).collect::<Result<Vec<_>>>()
    };
    Ok(Some(SandboxSpec {
        kind,
        program,
        net: args.net.map(|net| net.0).or(defaults.net).unwrap_or_default(),
        writable: all(typed(&args.sandbox_rw)?, &defaults.writable)?,
        readable: all(typed(&args.sandbox_ro)?, &defaults.readable)?,
        hidden: all(vec![], &defaults.hidden)?,
    }))
}

/// A path without symbolic links. It has to exist: only then it can be given, or hidden.
fn real(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .map_err(|e| Error::invalid(format!("cannot use '{}' in a sandbox: {e}", path.display())))
}
