//! Who works in a loop of the library: anything that takes a prompt, and an adapter for commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use swarm_state::transcript::{Account, ApiError};

use super::race::finish;
use crate::checks::Plan;
use crate::environ::misleads;
use crate::error::Result;
use crate::shell;

/// The file of an iteration's prompt in its folder.
pub(super) const CONTRACT: &str = "contract.md";

/// The file of what a command printed, likewise.
const OUTPUT: &str = "output.txt";

/// As good as no limit.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Somebody who does one iteration's work.
pub trait Agent {
    /// Works on the prompt until it is done with it.
    fn run(&mut self, prompt: &str) -> AgentState;
}

impl<F: FnMut(&str) -> AgentState> Agent for F {
    fn run(&mut self, prompt: &str) -> AgentState {
        self(prompt)
    }
}

/// What an agent says of its work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentState {
    /// Tools it called; `None` where they cannot be counted: a changed tree then counts as work.
    pub steps: Option<u64>,
    /// US dollars; `None` where nobody knows.
    pub cost: Option<f64>,
    /// What the agent itself said, and nothing else: the completion tag counts wherever it stands in it.
    pub text: String,
    /// Everything that was printed, where the agent's own words cannot be told apart. The completion tag then
    /// has to stand alone on its line, and not to come from the prompt.
    pub output: String,
    /// What went wrong: the iteration is a failure, and the next one waits.
    pub error: Option<String>,
}

impl AgentState {
    /// The same, as a transcript has it.
    pub(super) fn account(&self) -> Account {
        let message = |text: &String| ApiError { message: text.clone(), status: None };
        Account {
            texts: if self.text.is_empty() { vec![] } else { vec![self.text.clone()] },
            tool_calls: self.steps,
            cost: self.cost,
            error: self.error.as_ref().map(message),
            ..Account::default()
        }
    }
}

/// What an agent is made for.
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    /// `agent` of the configuration.
    pub agent: &'a str,
    /// `model` of the configuration.
    pub model: Option<&'a str>,
    /// The iteration, from 1.
    pub iteration: u32,
    /// Where it works.
    pub cwd: &'a Path,
    /// The iteration's own folder, outside of the agent's tree.
    pub folder: &'a Path,
    /// What is left of the loop's time. An agent that can be ended should be, then; the loop ends after it in any case.
    pub time_left: Option<Duration>,
}

/// A factory of agents that run this command in the loop's directory, with the prompt on standard input.
pub fn command<I, S>(argv: I) -> impl FnMut(&Seat<'_>) -> CommandAgent
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    let argv: Vec<String> = argv.into_iter().map(Into::into).collect();
    move |seat| CommandAgent::new(argv.clone(), seat)
}

/// An agent that is a command. What it leaves running is ended with it; the loop's time is its limit.
///
/// The JSON that Claude Code, Codex, opencode and Gemini print on demand is read: words, tool calls, cost, errors.
/// Of any other output nobody can say which words are the agent's own.
#[derive(Clone, Debug)]
pub struct CommandAgent {
    argv: Vec<String>,
    cwd: PathBuf,
    folder: PathBuf,
    limit: Duration,
}

impl CommandAgent {
    /// The command, for an iteration.
    pub fn new(argv: Vec<String>, seat: &Seat<'_>) -> Self {
        let (cwd, folder) = (seat.cwd.to_owned(), seat.folder.to_owned());
        Self { argv, cwd, folder, limit: seat.time_left.unwrap_or(YEAR).min(YEAR) }
    }

    fn ran(&self, prompt: &str) -> Result<AgentState> {
        let trouble = |e| crate::error::Error::system("cannot keep the prompt", e);
        let (prompt_file, place) = (self.folder.join(CONTRACT), self.folder.join("agent"));
        crate::paths::private_dir(&place)?;
        crate::store::write_unsynced(&prompt_file, prompt.as_bytes()).map_err(trouble)?;
        let line = format!("exec {} < {}", shell::join(&self.argv), shell::quote_path(&prompt_file));
        let plan = Plan {
            commands: std::slice::from_ref(&line),
            cwd: &self.cwd,
            env: &environment(),
            limit: self.limit,
            until: None,
            // It is read whole.
            kept: u64::MAX,
            jobs: 1,
            folder: &place,
            told: &|_| {},
        };
        // A command with its prompt is run as a check is: a group of its own, a limit, and all of its output in a file.
        let results = finish(plan.run())??;
        let kept = self.folder.join(OUTPUT);
        std::fs::rename(place.join("check-1.txt"), &kept).map_err(trouble)?;
        let _ = std::fs::remove_dir(&place);
        let bytes = crate::store::read_bounded(&kept, 1 << 30).map_err(trouble)?;
        let output = String::from_utf8_lossy(&bytes).into_owned();
        let account = Account::of(&output);
        let failed = results.first().filter(|result| !result.passed);
        let error = failed.map(|result| result.output.lines().last().unwrap_or("it failed").to_owned());
        Ok(AgentState {
            steps: account.tool_calls,
            cost: account.cost,
            text: account.texts.join("\n"),
            output,
            error: account.error.map(|error| error.message).or(error),
        })
    }
}

impl Agent for CommandAgent {
    fn run(&mut self, prompt: &str) -> AgentState {
        self.ran(prompt)
            .unwrap_or_else(|error| AgentState { error: Some(error.to_string()), ..AgentState::default() })
    }
}

/// The caller's environment, less what misleads and what is no text.
pub(super) fn environment() -> BTreeMap<String, String> {
    let own = std::env::vars_os().filter(|(name, _)| !misleads(name));
    own.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
}
