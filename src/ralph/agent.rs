//! The agents of a library loop: anything that accepts a prompt, and an adapter for commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use swarm_state::transcript::{Account, ApiError};

use super::runtime::block_on;
use crate::checks::CheckPlan;
use crate::environ::misleads;
use crate::error::Result;
use crate::loops::CONTRACT_FILE;
use crate::shell;

/// The file of a command's output in its folder.
const COMMAND_OUTPUT_FILE: &str = "output.txt";

/// Practically no limit.
const MAX_RUN_TIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// Works on one iteration.
pub trait Agent {
    /// Works on the prompt and returns when done.
    fn run(&mut self, prompt: &str) -> AgentState;
}

impl<F: FnMut(&str) -> AgentState> Agent for F {
    fn run(&mut self, prompt: &str) -> AgentState {
        self(prompt)
    }
}

/// The result of an agent's work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentState {
    /// The number of tool calls; `None` if unknown: then a changed tree counts as work.
    pub steps: Option<u64>,
    /// US dollars; `None` if unknown.
    pub cost: Option<f64>,
    /// The agent's own text, and nothing else: the completion tag counts anywhere in it.
    pub text: String,
    /// The whole output, if the agent's own text cannot be separated from it. The completion tag must then be alone
    /// on its line, and must not come from the prompt.
    pub output: String,
    /// An error: the iteration fails, and the next one waits.
    pub error: Option<String>,
}

impl AgentState {
    /// The same, in the form of a transcript.
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

/// The data that a factory needs to make an agent.
#[derive(Clone, Copy, Debug)]
pub struct AgentContext<'a> {
    /// `agent` of the configuration.
    pub agent: &'a str,
    /// `model` of the configuration.
    pub model: Option<&'a str>,
    /// The iteration, from 1.
    pub iteration: u32,
    /// The working directory.
    pub cwd: &'a Path,
    /// The iteration's folder, outside the agent's tree.
    pub folder: &'a Path,
    /// The rest of the loop's time. An agent should end by then if it can; the loop ends after it in any case.
    pub time_left: Option<Duration>,
}

/// Makes a factory of agents that run this command in the loop's directory, with the prompt on standard input.
pub fn command<I, S>(argv: I) -> impl FnMut(&AgentContext<'_>) -> CommandAgent
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    let argv: Vec<String> = argv.into_iter().map(Into::into).collect();
    move |context| CommandAgent::new(argv.clone(), context)
}

/// An agent that is a command. Processes that it leaves behind are killed with it. Its time limit is the loop's.
///
/// Reads the JSON that Claude Code, Codex, opencode and Gemini print on request: text, tool calls, cost, errors. In
/// any other output, the agent's own text cannot be separated.
#[derive(Clone, Debug)]
pub struct CommandAgent {
    argv: Vec<String>,
    cwd: PathBuf,
    folder: PathBuf,
    limit: Duration,
}

impl CommandAgent {
    /// Makes the agent of an iteration.
    pub fn new(argv: Vec<String>, context: &AgentContext<'_>) -> Self {
        let (cwd, folder) = (context.cwd.to_owned(), context.folder.to_owned());
        Self { argv, cwd, folder, limit: context.time_left.unwrap_or(MAX_RUN_TIME).min(MAX_RUN_TIME) }
    }

    fn ran(&self, prompt: &str) -> Result<AgentState> {
        let trouble = |e| crate::error::Error::system("cannot keep the prompt", e);
        let (prompt_file, place) = (self.folder.join(CONTRACT_FILE), self.folder.join("agent"));
        crate::paths::private_dir(&place)?;
        crate::store::write_unsynced(&prompt_file, prompt.as_bytes()).map_err(trouble)?;
        let line = format!("exec {} < {}", shell::join(&self.argv), shell::quote_path(&prompt_file));
        let plan = CheckPlan {
            commands: std::slice::from_ref(&line),
            cwd: &self.cwd,
            env: &environment(),
            limit: self.limit,
            until: None,
            // The output is read whole.
            kept: u64::MAX,
            jobs: 1,
            stem: "check",
            folder: &place,
            on_step: &|_| {},
            sandbox: None,
        };
        // The command runs as a check does: in a process group of its own, with a time limit, and with its output in
        // a file.
        let results = block_on(plan.run())??;
        let kept = self.folder.join(COMMAND_OUTPUT_FILE);
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

/// The caller's environment, without variables that mislead or are not UTF-8.
pub(super) fn environment() -> BTreeMap<String, String> {
    let own = std::env::vars_os().filter(|(name, _)| !misleads(name));
    own.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
}
