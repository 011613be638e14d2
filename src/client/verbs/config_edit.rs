//! `swarm config edit`: open a settings file in the user's editor, then check the settings.
//!
//! One of the few files that start a process. A file with an error stays as the user saved it.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use super::config_check;
use crate::cli::ConfigEdit;
use crate::client::context::ClientContext;
use crate::error::{Error, Result, failed};
use crate::out::CommandResult;
use crate::runtime::CaughtSignals;
use crate::settings::TEMPLATE;
use crate::shell::{editor_of_person, editor_words, quote_path};

pub(super) fn run(ctx: &ClientContext, args: &ConfigEdit) -> CommandResult {
    let editor = editor()?;
    let (path, flag) = match (&ctx.config, args.project) {
        (Some(_), true) => return Err(Error::usage("--project and --config each name a file to edit").into()),
        (Some(path), false) => (path.clone(), format!(" --config {}", quote_path(path))),
        (None, true) => (PathBuf::from("swarm.toml"), " --project".to_owned()),
        (None, false) => (ctx.place()?.user_config(), String::new()),
    };
    let created = create(&path).map_err(|e| failed("create", &path, e))?;
    let before = fs::read(&path).ok();
    if let Err(error) = edit(&editor, &path) {
        // An editor that did not start leaves no file behind.
        if created && fs::read_to_string(&path).is_ok_and(|text| text == TEMPLATE) {
            let _ = fs::canonicalize(&path).and_then(fs::remove_file);
        }
        return Err(error.into());
    }
    let is_same = fs::read(&path).ok() == before;
    ctx.out.note(match (is_same, created) {
        (false, _) => "your changes are saved",
        (true, true) => "the file was created and not changed",
        (true, false) => "nothing was changed",
    });
    let errors = config_check::check(ctx)?;
    if errors.iter().any(|(file, _)| *file == path) {
        ctx.out.hint(&format!("to correct the file: swarm config edit{flag}"));
    }
    Ok(u8::from(!errors.is_empty()))
}

/// Creates the file with the template, also as the target of a link. False if it exists.
fn create(path: &Path) -> io::Result<bool> {
    if path.exists() {
        return Ok(false);
    }
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    // Only through a link may there be a file by now.
    let mut file = OpenOptions::new().append(true).create(true).create_new(!path.is_symlink()).open(path)?;
    file.write_all(TEMPLATE.as_bytes()).map(|()| true)
}

/// The user's editor. The default, vi, needs a terminal.
fn editor() -> Result<String> {
    match editor_of_person() {
        Some(editor) => Ok(editor),
        None if io::stdin().is_terminal() => Ok("vi".to_owned()),
        None => Err(Error::invalid("cannot start an editor: this is not a terminal")
            .hint("set VISUAL or EDITOR to a program that needs no terminal")),
    }
}

fn edit(editor: &str, path: &Path) -> Result<()> {
    // Ctrl-C belongs to the editor.
    let _signals = CaughtSignals::new(&[Signal::SIGINT])?;
    let status = Command::new("sh").args(editor_words(editor, path)).status();
    let status = status.map_err(|e| Error::system("cannot run sh for the editor", e))?;
    if status.success() {
        return Ok(());
    }
    let message = format!("the editor '{editor}' failed ({status})");
    Err(Error::invalid(message).hint("set VISUAL or EDITOR to an editor"))
}
