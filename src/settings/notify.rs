//! `[notify]`: which states of workers are announced, and where. Only the user's own file may have this section.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use swarm_state::notify::{NotifyClass, NotifyRules, QUIET_FORM, QuietHours};

use super::read::{Fault, SettingEntry};
use super::{Key, set};

/// The delay without a setting, in seconds.
const DEFAULT_DELAY_SECONDS: u64 = 20;

/// `[notify]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotifySettings {
    /// The classes that are announced.
    pub classes: Option<Vec<NotifyClass>>,
    /// How long a state must hold, in seconds.
    pub delay: Option<u64>,
    /// The command that receives each notification.
    pub command: Option<Vec<String>>,
    /// Whether notifications appear on the desktop.
    pub desktop: Option<bool>,
    /// The URL of an ntfy topic.
    pub ntfy: Option<String>,
    /// The URL that receives each notification as JSON.
    pub webhook: Option<String>,
    /// The file with the secret of `ntfy` and `webhook`.
    pub secret_file: Option<PathBuf>,
    /// The time of day in which nothing is sent.
    pub quiet: Option<QuietHours>,
}

impl NotifySettings {
    /// The rules for the planner.
    pub fn rules(&self) -> NotifyRules {
        NotifyRules {
            classes: self.classes.clone().unwrap_or_else(|| NotifyClass::ALL.to_vec()),
            delay: Duration::from_secs(self.delay.unwrap_or(DEFAULT_DELAY_SECONDS)),
            quiet: self.quiet,
        }
    }
}

pub(super) const NOTIFY_KEYS: &[Key<NotifySettings>] = &[
    ("classes", "[\"needs_you\", \"ended\", \"fleet\"]", |to, entry| set(&mut to.classes, classes(entry))),
    ("delay", "\"20s\"", |to, entry| set(&mut to.delay, entry.duration_or_zero())),
    ("command", "", |to, entry| set(&mut to.command, entry.command())),
    ("desktop", "false", |to, entry| set(&mut to.desktop, entry.flag())),
    ("ntfy", "", |to, entry| {
        let url = url(entry)?;
        let topic = url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, topic)| topic);
        if topic.is_none_or(|topic| topic.trim_matches('/').is_empty()) {
            return Err(entry.must_be("the URL of a topic, as in \"https://ntfy.sh/TOPIC\""));
        }
        set(&mut to.ntfy, Ok(url))
    }),
    ("webhook", "", |to, entry| set(&mut to.webhook, url(entry))),
    ("secret_file", "", |to, entry| set(&mut to.secret_file, entry.path())),
    ("quiet", "", |to, entry| {
        let quiet = QuietHours::parse(&entry.text()?).ok_or_else(|| entry.must_be(QUIET_FORM));
        set(&mut to.quiet, quiet)
    }),
];

fn classes(entry: &SettingEntry<'_>) -> Result<Vec<NotifyClass>, Fault> {
    let class = |text: &String| NotifyClass::ALL.into_iter().find(|class| class.word() == text);
    let classes = entry.texts()?.iter().map(class).collect::<Option<Vec<_>>>();
    classes.ok_or_else(|| entry.must_be("a list of \"needs_you\", \"ended\" and \"fleet\""))
}

/// A URL that swarm may send to.
fn url(entry: &SettingEntry<'_>) -> Result<String, Fault> {
    let text = entry.text()?;
    let Some((scheme, rest)) =
        text.split_once("://").filter(|_| !text.contains(|c: char| c <= ' ' || c == '\x7f'))
    else {
        return Err(entry.must_be("a URL that starts with https://"));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(entry.fault("must not contain a user name or password; use 'notify.secret_file'"));
    }
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    match scheme {
        _ if host.is_empty() => Err(entry.must_be("a URL with a host")),
        "https" => Ok(text),
        "http" if is_loopback(host) => Ok(text),
        "http" => Err(entry.must_be("a URL that starts with https:// (http:// is only for this machine)")),
        _ => Err(entry.must_be("a URL that starts with https://")),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
