//! The channels: where a notification goes, and how each channel shows it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use swarm_state::model::Status;
use swarm_state::notify::{Notification, NotifyClass};

use super::post::{self, Post};
use super::program::Program;
use crate::error::{Error, ErrorCode, Result};
use crate::settings::NotifySettings;

const NOTIFY_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// A program, which receives the JSON on its standard input.
    Command(Vec<String>),
    Desktop,
    /// A topic of ntfy.
    Ntfy {
        url: String,
        /// The file with its access token.
        secret: Option<PathBuf>,
    },
    /// A server that receives the JSON.
    Webhook {
        url: String,
        /// The file with the key that signs the body.
        secret: Option<PathBuf>,
    },
}

impl Channel {
    pub(crate) fn of(settings: &NotifySettings) -> Vec<Self> {
        let secret = || settings.secret_file.clone();
        let command = settings.command.clone().map(Self::Command);
        let desktop = settings.desktop.unwrap_or(false).then_some(Self::Desktop);
        let ntfy = settings.ntfy.clone().map(|url| Self::Ntfy { url, secret: secret() });
        let webhook = settings.webhook.clone().map(|url| Self::Webhook { url, secret: secret() });
        [command, desktop, ntfy, webhook].into_iter().flatten().collect()
    }

    /// Its key in `[notify]`.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::Desktop => "desktop",
            Self::Ntfy { .. } => "ntfy",
            Self::Webhook { .. } => "webhook",
        }
    }

    /// Sends a message, and returns what the receiver answered. The error has the next step as a hint.
    pub(crate) async fn send(&self, message: &Notification) -> Result<String> {
        match self {
            Self::Command(argv) => command(argv, message).await,
            Self::Desktop => desktop(message).await,
            Self::Ntfy { url, secret } => {
                let priority = if message.class == NotifyClass::NeedsYou { "high" } else { "default" };
                let mut headers = vec![
                    "Content-Type: text/plain; charset=utf-8".to_owned(),
                    format!("Title: {}", message.title()),
                    format!("Priority: {priority}"),
                ];
                let token = read_secret(secret.as_deref())?;
                headers.extend(token.map(|token| format!("Authorization: Bearer {token}")));
                let body = if message.body().is_empty() { message.title() } else { message.body() };
                Post { url, headers, body }.send().await
            }
            Self::Webhook { url, secret } => {
                let body = json(message)?;
                let mut headers = vec!["Content-Type: application/json".to_owned()];
                if let Some(key) = read_secret(secret.as_deref())? {
                    headers.push(format!("X-Swarm-Signature: sha256={}", post::signature(&key, &body)));
                }
                Post { url, headers, body }.send().await
            }
        }
    }
}

fn json(message: &Notification) -> Result<String> {
    serde_json::to_string(message)
        .map_err(|error| Error::system("cannot write a notification as JSON", error))
}

async fn command(argv: &[String], message: &Notification) -> Result<String> {
    let input = format!("{}\n", json(message)?);
    let program = Program { argv, input: &input, limit: NOTIFY_TIMEOUT };
    let ended = program.run().await?;
    if ended.status.success() {
        return Ok(format!("{} exited with 0", argv[0]));
    }
    let printed = if ended.stderr.is_empty() { String::new() } else { format!(": {}", ended.stderr) };
    Err(Error::new(ErrorCode::System, format!("{} failed ({}){printed}", argv[0], ended.status))
        .hint("the JSON is on its standard input; run the command by hand"))
}

/// Shows a message on the desktop. The title and the text contain no markup.
async fn desktop(message: &Notification) -> Result<String> {
    let urgency = match (message.class, message.status) {
        (NotifyClass::NeedsYou, _) => "critical",
        (_, Some(Status::Failed | Status::Lost)) => "normal",
        _ => "low",
    };
    let urgency = format!("--urgency={urgency}");
    let (title, body) = (message.title(), message.body());
    let argv = ["notify-send", "--app-name=swarm", &urgency, "--", &title, &body].map(str::to_owned);
    let ended = Program { argv: &argv, input: "", limit: NOTIFY_TIMEOUT }.run().await.map_err(|error| {
        if error.code == ErrorCode::NotFound {
            return error.hint("install it, for example: apt install libnotify-bin");
        }
        error
    })?;
    if ended.status.success() {
        return Ok("notify-send showed it".to_owned());
    }
    Err(Error::new(ErrorCode::System, format!("notify-send failed ({}): {}", ended.status, ended.stderr))
        .hint("the daemon needs the session of a desktop: start it there, with swarm daemon restart"))
}

/// Reads the secret: one line in a file that only the user can read.
fn read_secret(file: Option<&Path>) -> Result<Option<String>> {
    use std::os::unix::fs::MetadataExt;
    const MAX_SECRET_BYTES: u64 = 4096;
    let Some(file) = file else { return Ok(None) };
    let shown = file.display();
    let failed = |error: &dyn std::fmt::Display| {
        Error::new(ErrorCode::System, format!("the secret file '{shown}' cannot be used: {error}"))
            .hint(format!("write the secret into it, then: chmod 600 {}", crate::shell::quote_path(file)))
    };
    let found = std::fs::metadata(file).map_err(|error| failed(&error))?;
    if found.mode() & 0o077 != 0 {
        return Err(failed(&"others can read it"));
    }
    let bytes = crate::files::read_bounded(file, MAX_SECRET_BYTES).map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    if text.is_empty() || text.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER) {
        return Err(failed(&"it must contain one line of text"));
    }
    Ok(Some(text))
}
