//! `swarm config check`: report every error in the settings files.

use std::path::Path;

use crate::client::context::ClientContext;
use crate::out::CommandResult;
use crate::settings::Settings;

pub(super) fn run(ctx: &ClientContext) -> CommandResult {
    let user = ctx.paths()?.user_config();
    match Settings::load_all(&user, Some(Path::new("swarm.toml")), ctx.config.as_deref()) {
        Ok(settings) => {
            let lines: Vec<String> =
                settings.files.iter().map(|file| format!("{}: ok", file.display())).collect();
            ctx.out.lines(&lines)?;
            if lines.is_empty() {
                ctx.out.line("no settings files; to create one: swarm config edit")?;
            }
            Ok(0)
        }
        Err(errors) => {
            errors.iter().for_each(|error| ctx.out.error(error));
            Ok(1)
        }
    }
}
