//! Passes hooks to an agent that swarm starts, for that run only.
//!
//! Claude Code receives a settings file, Codex receives arguments; no file of the user is changed. Used by the daemon's
//! driver. Deliberately absent: hooks for sessions that a user starts, which are installed ([`super::install`]).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use swarm_state::hook::HookEvent::{
    self, Notification, PostToolUse, PreCompact, SessionStart, Stop, StopFailure, UserPromptSubmit,
};
use swarm_state::profiles::{HookStyle, Profile};
use swarm_state::quota::QuotaAccount;

use super::command::{TIMEOUT_SECONDS, command};
use super::merge::{set_timeout, with_hooks};
use super::status_line::{self, COMMAND_VARIABLE, MAX_CLAUDE_SETTINGS_BYTES};
use crate::error::{Error, Result};
use crate::store::{read_bounded, write_unsynced};

/// How often in a row a Stop hook may keep Claude Code going: more than any limited loop needs, and a limit for a
/// broken hook.
const BLOCK_CAP: (&str, &str) = ("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "200");

/// The events of an interactive Claude Code. Only the needed ones: an older release that does not support an event runs
/// no hook at all.
const CLAUDE_EVENTS: [HookEvent; 7] =
    [SessionStart, UserPromptSubmit, PostToolUse, Stop, StopFailure, PreCompact, Notification];

/// How many seconds longer than a request is held the agent waits for the hook that holds it.
const HOLD_MARGIN_SECONDS: u64 = 30;

/// The events of a one-shot Claude Code, whose result reports errors.
const CLAUDE_ONCE_EVENTS: [HookEvent; 5] = [SessionStart, UserPromptSubmit, PostToolUse, Stop, PreCompact];

pub(super) const CODEX_EVENTS: [HookEvent; 4] = [SessionStart, UserPromptSubmit, PostToolUse, Stop];

/// An agent's command line and environment, to which hooks are added.
pub struct Launch<'a> {
    /// The agent's profile.
    pub profile: &'a Profile,
    /// Its argv.
    pub argv: &'a mut Vec<String>,
    /// Its environment.
    pub env: &'a mut BTreeMap<String, String>,
    /// Its working directory.
    pub cwd: &'a Path,
    /// Whether it runs in a sandbox of swarm. The guard does not judge its tool calls there.
    pub sandboxed: bool,
}

/// The program that the hooks call.
#[derive(Clone, Copy, Debug)]
pub struct HookProgram<'a> {
    /// Its path.
    pub path: &'a Path,
    /// The agent cannot read a settings file of swarm, and gets its text as an argument.
    pub is_inline: bool,
}

/// The name of the settings file for Claude Code.
pub(crate) const SETTINGS_FILE: &str = "settings.json";

impl Launch<'_> {
    /// Adds the hooks, which call `program`. A settings file is written into `dir`. Fails if the user's own settings
    /// cannot be merged with swarm's. The launch is then unchanged, and the agent runs without hooks.
    pub fn pass(self, program: HookProgram<'_>, dir: &Path) -> Result<()> {
        match self.profile.hooks {
            HookStyle::Off => Ok(()),
            HookStyle::Claude => self.claude(program, dir),
            HookStyle::Codex => {
                let args = codex_args(program.path, &with_guard(&CODEX_EVENTS, !self.sandboxed));
                let at = self.profile.place_of_flags(self.argv);
                self.argv.splice(at..at, args);
                Ok(())
            }
        }
    }

    fn claude(mut self, program: HookProgram<'_>, dir: &Path) -> Result<()> {
        let argument = settings_argument(self.argv);
        // Claude Code uses only the last --settings, so the user's settings are merged into swarm's file.
        let theirs = match &argument {
            Some((_, value)) => read_settings(value, self.cwd)?,
            None => json!({}),
        };
        let once = self.profile.is_one_shot(self.argv);
        let events: &[HookEvent] = if once { &CLAUDE_ONCE_EVENTS } else { &CLAUDE_EVENTS };
        let mut events = with_guard(events, !self.sandboxed);
        let hold = self.profile.hold_seconds();
        // An agent without the file has no way to the daemon.
        if !once && hold > 0 && !program.is_inline {
            events.push(HookEvent::PermissionRequest);
        }
        let mut settings = with_hooks(&theirs, &events, program.path).map_err(|error| refused(error.0))?;
        set_timeout(&mut settings, HookEvent::PermissionRequest, hold.saturating_add(HOLD_MARGIN_SECONDS));
        if !once && !program.is_inline {
            self.set_status_line(&mut settings, program.path);
        }
        if self.sandboxed {
            // Its own sandbox cannot be built inside of another one.
            settings["sandbox"] = json!({ "enabled": false });
        }
        let value = if program.is_inline {
            settings.to_string()
        } else {
            let (file, bytes) = (dir.join(SETTINGS_FILE), settings.to_string());
            let written = write_unsynced(&file, bytes.as_bytes());
            written.map_err(|e| Error::system("cannot write the hooks down", e))?;
            file.to_string_lossy().into_owned()
        };
        // A --settings that remained would come after swarm's and replace it.
        while let Some((place, _)) = settings_argument(self.argv) {
            self.argv.drain(place);
        }
        let at = self.profile.place_of_program(self.argv);
        self.argv.splice(at..at, ["--settings".to_owned(), value]);
        self.env.entry(BLOCK_CAP.0.to_owned()).or_insert_with(|| BLOCK_CAP.1.to_owned());
        Ok(())
    }

    /// Passes swarm's status line, which reads the usage limits and shows the user's own.
    fn set_status_line(&mut self, settings: &mut Value, program: &Path) {
        let theirs = settings.get("statusLine").filter(|line| line.is_object()).cloned();
        if let Some(command) = theirs.as_ref().and_then(|line| line["command"].as_str()) {
            self.env.insert(COMMAND_VARIABLE.to_owned(), command.to_owned());
        }
        let account = QuotaAccount::of(self.profile.hooks, self.env);
        let files = status_line::files(Some(self.cwd), account.as_ref().map(|account| &*account.dir));
        // Its other keys, such as the padding, are the user's.
        let mut line = theirs.or_else(|| status_line::setting(&files)).unwrap_or_else(|| json!({}));
        line["type"] = "command".into();
        line["command"] = command(program, HookEvent::StatusLine).into();
        settings["statusLine"] = line;
    }
}

/// The events, with the one that the guard needs.
fn with_guard(events: &[HookEvent], guard: bool) -> Vec<HookEvent> {
    events.iter().copied().chain(guard.then_some(HookEvent::PreToolUse)).collect()
}

/// Finds the user's `--settings`: its position and its value.
fn settings_argument(argv: &[String]) -> Option<(std::ops::Range<usize>, String)> {
    let end = argv.iter().position(|arg| arg == "--").unwrap_or(argv.len());
    (0..end).rev().find_map(|at| match argv[at].strip_prefix("--settings")? {
        "" => Some((at..(at + 2).min(end), argv.get(at + 1).filter(|_| at + 1 < end)?.clone())),
        rest => Some((at..at + 1, rest.strip_prefix('=')?.to_owned())),
    })
}

/// Reads the value of `--settings`: the path of a file, or JSON text.
fn read_settings(value: &str, cwd: &Path) -> Result<Value> {
    let text = if value.trim_start().starts_with('{') {
        value.as_bytes().to_vec()
    } else {
        let path: PathBuf = cwd.join(value);
        read_bounded(&path, MAX_CLAUDE_SETTINGS_BYTES)
            .map_err(|error| refused(format!("{}: {error}", path.display())))?
    };
    serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))
}

fn refused(why: String) -> Error {
    Error::invalid(format!("its --settings cannot be joined with the hooks that swarm passes: {why}"))
}

/// A setting of Codex: near a usage limit, its question whether to change the model would stop an unattended loop.
const NO_MODEL_QUESTION: [&str; 2] = ["-c", "notice.hide_rate_limit_model_nudge=true"];

/// Returns the arguments with Codex's hooks, and the flag without which Codex ignores them.
fn codex_args(program: &Path, events: &[HookEvent]) -> Vec<String> {
    let mut args = vec!["--dangerously-bypass-hook-trust".to_owned()];
    args.extend(NO_MODEL_QUESTION.map(str::to_owned));
    for &event in events {
        let Some(name) = event.setting() else { continue };
        let command = toml::Value::String(command(program, event));
        args.push("-c".to_owned());
        args.push(format!(
            "hooks.{name}=[{{hooks=[{{type=\"command\",command={command},timeout={TIMEOUT_SECONDS}}}]}}]"
        ));
    }
    args
}

#[cfg(test)]
mod tests {
    use swarm_state::profiles::{find, table};

    use super::*;

    fn passed(cmd: &[&str], dir: &Path) -> Result<(Vec<String>, BTreeMap<String, String>)> {
        let mut argv: Vec<String> = cmd.iter().map(ToString::to_string).collect();
        let profile = find(&table(), &argv);
        let mut env = BTreeMap::new();
        let launch = Launch { profile: &profile, argv: &mut argv, env: &mut env, cwd: dir, sandboxed: false };
        let program = HookProgram { path: Path::new("/opt/swarm"), is_inline: false };
        launch.pass(program, dir).map(|()| (argv, env))
    }

    fn settings(dir: &Path) -> Value {
        serde_json::from_slice(&std::fs::read(dir.join("settings.json")).unwrap()).unwrap()
    }

    #[test]
    fn claude_gets_a_settings_file_and_a_higher_block_cap() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json").display().to_string();
        let (argv, env) =
            passed(&["env", "A=1", "claude", "--model", "x", "--", "--settings"], dir.path()).unwrap();
        assert_eq!(argv, ["env", "A=1", "claude", "--settings", &file, "--model", "x", "--", "--settings"]);
        assert_eq!(env[BLOCK_CAP.0], "200");
        let hooks = settings(dir.path())["hooks"].clone();
        assert_eq!(hooks.as_object().unwrap().len(), CLAUDE_EVENTS.len() + 2);
        let said = hooks["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
        assert!(said.ends_with(" /opt/swarm stop"), "{said}");
        let held = &hooks["PermissionRequest"][0]["hooks"][0];
        assert_eq!((&held["timeout"], &hooks["Stop"][0]["hooks"][0]["timeout"]), (&json!(330), &json!(10)));
        passed(&["claude", "-p"], dir.path()).unwrap();
        assert_eq!(settings(dir.path())["hooks"].as_object().unwrap().len(), CLAUDE_ONCE_EVENTS.len() + 1);
    }

    #[test]
    fn users_status_line_keeps_its_keys_and_command() {
        let dir = tempfile::tempdir().unwrap();
        let (argv, env) = passed(&["claude"], dir.path()).unwrap();
        assert_eq!((argv.len(), env.contains_key(COMMAND_VARIABLE)), (3, false));
        let line = settings(dir.path())["statusLine"].clone();
        assert_eq!(line["type"], "command");
        assert!(line["command"].as_str().unwrap().ends_with(" /opt/swarm status-line"), "{line}");
        std::fs::create_dir(dir.path().join(".claude")).unwrap();
        let project = json!({"statusLine": {"type": "command", "command": "mine", "padding": 3}});
        std::fs::write(dir.path().join(".claude/settings.json"), project.to_string()).unwrap();
        passed(&["claude"], dir.path()).unwrap();
        assert_eq!(settings(dir.path())["statusLine"]["padding"], 3);
        let given = r#"{"statusLine":{"type":"command","command":"given","refreshInterval":5}}"#;
        let (_, env) = passed(&["claude", "--settings", given], dir.path()).unwrap();
        assert_eq!(env[COMMAND_VARIABLE], "given");
        let line = settings(dir.path())["statusLine"].clone();
        assert_eq!((&line["refreshInterval"], line.get("padding")), (&json!(5), None));
        // Without a terminal no status line is shown.
        passed(&["claude", "-p"], dir.path()).unwrap();
        assert_eq!(settings(dir.path()).get("statusLine"), None);
    }

    #[test]
    fn agent_that_cannot_read_the_file_gets_its_text() {
        let dir = tempfile::tempdir().unwrap();
        let mut argv = ["claude", "-p", "x"].map(str::to_owned).to_vec();
        let (profile, mut env) = (find(&table(), &argv), BTreeMap::new());
        let launch =
            Launch { profile: &profile, argv: &mut argv, env: &mut env, cwd: dir.path(), sandboxed: true };
        let program = HookProgram { path: Path::new("/inner/swarm"), is_inline: true };
        launch.pass(program, dir.path()).unwrap();
        assert_eq!((&*argv[1], &argv[3..]), ("--settings", &["-p".to_owned(), "x".to_owned()][..]));
        let settings: Value = serde_json::from_str(&argv[2]).unwrap();
        let command = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
        assert!(command.ends_with(" /inner/swarm stop"), "{command}");
        assert!(!dir.path().join("settings.json").exists());
    }

    #[test]
    fn settings_that_the_user_passes_stay_and_come_first() {
        let dir = tempfile::tempdir().unwrap();
        let theirs = r#"{"env":{"A":"1"},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}],"Other":[1]}}"#;
        std::fs::write(dir.path().join("own.json"), theirs).unwrap();
        for cmd in [
            vec!["claude", "--settings", "own.json", "-c"],
            vec!["claude", "--settings=own.json", "-c"],
            vec!["claude", "--settings", theirs, "-c"],
        ] {
            let (argv, _) = passed(&cmd, dir.path()).unwrap();
            assert_eq!((argv.len(), &*argv[3]), (4, "-c"), "{argv:?}");
            let made = settings(dir.path());
            assert_eq!((&made["env"]["A"], &made["hooks"]["Other"]), (&json!("1"), &json!([1])));
            assert_eq!(made["hooks"]["Stop"][0]["hooks"][0]["command"], "mine");
            assert_eq!(made["hooks"]["Stop"].as_array().unwrap().len(), 2);
        }
        // Of several the last one counts, and none stays behind ours.
        let two = ["claude", "--settings", "{}", "-c", "--settings", "own.json"];
        let (argv, _) = passed(&two, dir.path()).unwrap();
        assert_eq!((argv.len(), argv.iter().filter(|arg| *arg == "--settings").count()), (4, 1), "{argv:?}");
        assert_eq!(settings(dir.path())["hooks"]["Stop"].as_array().unwrap().len(), 2);
        for broken in ["none.json", "{", r#"{"hooks":[]}"#, r#"{"hooks":{"Stop":{}}}"#] {
            let error = passed(&["claude", "--settings", broken], dir.path()).unwrap_err();
            assert!(error.message.starts_with("its --settings cannot be joined"), "{error}");
        }
    }

    #[test]
    fn codex_gets_hook_arguments_after_its_subcommand() {
        let dir = tempfile::tempdir().unwrap();
        let (argv, env) = passed(&["codex", "exec", "--json"], dir.path()).unwrap();
        assert_eq!((&*argv[1], &*argv[2], &*argv[3]), ("exec", "--dangerously-bypass-hook-trust", "-c"));
        assert_eq!(argv[4], NO_MODEL_QUESTION[1]);
        assert_eq!(
            (argv.last().unwrap().as_str(), argv.len(), env.len()),
            ("--json", 4 + 2 * (CODEX_EVENTS.len() + 2), 0)
        );
        let (argv, _) = passed(&["codex"], dir.path()).unwrap();
        assert_eq!(&*argv[1], "--dangerously-bypass-hook-trust");
        let value: toml::Table = argv[5].parse().unwrap();
        assert!(
            value["hooks"]["SessionStart"][0]["hooks"][0]["command"]
                .as_str()
                .unwrap()
                .ends_with("session-start")
        );
        let (argv, _) = passed(&["sh", "-c", "x"], dir.path()).unwrap();
        assert_eq!(argv, ["sh", "-c", "x"]);
    }
}
