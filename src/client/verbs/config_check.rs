//! `swarm config check`: report every error in the settings files.

use std::path::{Path, PathBuf};

use crate::client::context::ClientContext;
use crate::error::Error;
use crate::out::{CommandResult, Failure};
use crate::settings::Settings;

pub(super) fn run(ctx: &ClientContext) -> CommandResult {
    Ok(u8::from(!check(ctx)?.is_empty()))
}

/// Prints the files, or their errors. Returns the errors and their files.
pub(super) fn check(ctx: &ClientContext) -> Result<Vec<(PathBuf, Error)>, Failure> {
    let user = ctx.place()?.user_config();
    let settings = match Settings::load_all(&user, Some(Path::new("swarm.toml")), ctx.config.as_deref()) {
        Ok(settings) => settings,
        Err(errors) => {
            errors.iter().for_each(|(_, error)| ctx.out.error(error));
            return Ok(errors);
        }
    };
    let lines: Vec<String> = settings.files.iter().map(|file| format!("{}: ok", file.display())).collect();
    ctx.out.lines(&lines)?;
    if lines.is_empty() {
        ctx.out.line("no settings files; to create one: swarm config edit")?;
    }
    Ok(vec![])
}
