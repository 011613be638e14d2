//! A profile: the facts about one agent CLI, and the commands that follow from it.

use serde::{Deserialize, Serialize};

use super::dialogs::Marker;
use super::sandbox::SandboxProfile;
use crate::model::{PromptVia, is_default};
use crate::outage::Wording;
use crate::transcript::{Account, Usage};
use crate::words::base_name;

/// The facts about one agent CLI that swarm uses. A field that is left out has the generic row's value.
/// [`Profile::default`] is empty and fits no agent; an unknown command has [`Profile::generic`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default = "Profile::generic")]
pub struct Profile {
    /// Its name in settings and messages.
    pub name: String,
    /// Base names of the command that mean this agent.
    pub commands: Vec<String>,
    /// Arguments that make the command run once without a screen of its own (`-p`, `exec`).
    pub one_shot: Vec<String>,
    /// The first of `one_shot` needs no further word.
    #[serde(skip_serializing_if = "is_default")]
    pub bare_one_shot: bool,
    /// The words of `one_shot` need the prompt as their value. If the prompt comes on standard input, a word
    /// without a value is left out.
    #[serde(skip_serializing_if = "is_default")]
    pub one_shot_takes_prompt: bool,
    /// The route for an interactive command. `auto` means: `stdin` in a loop, `paste` otherwise.
    pub interactive_via: PromptVia,
    /// The route for a one-shot command. `auto` means `stdin`.
    pub one_shot_via: PromptVia,
    /// The flag that precedes the prompt on the `arg` route, where one is needed.
    pub arg_flag: Option<String>,
    /// The flag that precedes the first prompt of a conversation, where the prompt is not a plain argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_flag: Option<String>,
    /// The command accepts `--` as the end of its options, so a prompt after it may begin with `-`. False for an
    /// unknown command: a script would see `--` as its argument.
    pub end_of_options: bool,
    /// The flag that names a new session, so that its transcript can be found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_flag: Option<String>,
    /// Flags with which the command chooses its session itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session_own: Vec<String>,
    /// Its transcript or its results report the cost of a session.
    #[serde(skip_serializing_if = "is_default")]
    pub tells_cost: bool,
    /// The price of a million input tokens, millionths of a US dollar: for a command that reports tokens and no cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_price: Option<u64>,
    /// The same for tokens that come from the cache; as `input_price` where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_price: Option<u64>,
    /// The same for tokens that the model writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_price: Option<u64>,
    /// Wordings of its outages, tried before [`crate::outage::common`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outage: Vec<Wording>,
    /// Arguments with which a one-shot command prints a record. Without them, the agent's messages and the output of
    /// its tools look alike. Empty if none are needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub record_args: Vec<String>,
    /// Options by which the user decides what the agent may do unattended, in the order to suggest them. Empty if none
    /// is needed or known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permission_flags: Vec<String>,
    /// The arguments with which it works without permission prompts; empty if none are needed or known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unattended_args: Vec<String>,
    /// The variable without which it refuses these arguments when root starts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_variable: Option<String>,
    /// Files in which the user may have decided the same: in the project, or below `~/`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permission_files: Vec<String>,
    /// How swarm passes hooks to it.
    #[serde(skip_serializing_if = "is_default")]
    pub hooks: HookStyle,
    /// Seconds that its hook holds a permission request or question for `swarm answer`; 0 for never, `None` for 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<u64>,
    /// Its needs in a sandbox.
    #[serde(flatten)]
    pub sandbox: SandboxProfile,
    /// The flag that names the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_flag: Option<String>,
    /// Patterns for a screen that shows the input box.
    pub ready: Vec<String>,
    /// The input box, with its text as the group `input`. Enter is pressed only while the box holds the typed text.
    /// Without a pattern, swarm uses the last row with an input mark.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<String>,
    /// A request that failed for good, as the CLI's own row directly above its input box shows it, with the error's
    /// text as the group `error`. Only the CLI can draw the mark of that row, so no answer of the agent's matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub error: Vec<String>,
    /// The agent hides its input box while it works.
    #[serde(skip_serializing_if = "is_default")]
    pub hides_input: bool,
    /// Milliseconds that a ready screen must last before typing: some agents replace their first screen by a dialog.
    #[serde(skip_serializing_if = "is_default")]
    pub settle_ms: u64,
    /// Patterns for a screen of a working agent.
    pub working: Vec<String>,
    /// Dialogs at start-up: the next run would show the same, so nothing is killed. [`super::common_startup`] holds for
    /// every agent, too.
    pub startup: Vec<Marker>,
    /// Dialogs during work: the inactivity rule holds. [`super::common_permission`] holds, too.
    pub permission: Vec<Marker>,
}

/// How swarm passes hooks to a CLI for one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookStyle {
    /// The CLI has no hooks; swarm relies on its screen.
    #[default]
    Off,
    /// Claude Code's settings file.
    Claude,
    /// Codex's settings as arguments.
    Codex,
}

/// The default of [`Profile::hold`], in seconds.
const DEFAULT_HOLD_SECONDS: u64 = 300;

impl Profile {
    /// The row for an unknown command. A screen is ready if its last row starts with an input mark, as of a program at
    /// its prompt; not if the row looks like the chosen one of a list: with a number, or below an indented row.
    pub fn generic() -> Self {
        Self {
            name: "generic".into(),
            one_shot_via: PromptVia::Stdin,
            ready: [
                // Alone in its row, with a footer or a clock of at most four rows below it.
                r"^(?:❯|>|\$|>>>)(?:\n[^\n]*){0,4}\Z",
                // Without look-around, which takes a hundred times as long: the pattern lists the allowed rows.
                concat!(
                    r"(?:\A|^(?:[^ \u00a0\n][^\n]*|[ \u00a0]+(?:[^\S \u00a0\n][^\n]*)?)?\n)(?:❯|>|\$|>>>)[ \u00a0]",
                    r"[ \u00a0]*(?:[^ \u00a0\d\n][^\n]*|\d+(?:[^\d.)\n][^\n]*)?)?\Z",
                ),
            ]
            .map(str::to_owned)
            .to_vec(),
            ..Self::default()
        }
    }

    /// For how many seconds a request of the agent is held open for `swarm answer`.
    pub fn hold_seconds(&self) -> u64 {
        self.hold.unwrap_or(DEFAULT_HOLD_SECONDS)
    }

    /// True when the command runs once, without a screen of its own.
    pub fn is_one_shot(&self, cmd: &[String]) -> bool {
        let is = |arg: &str, word: &str| {
            arg == word
                || (word.starts_with("--") && arg.split_once('=').is_some_and(|(flag, _)| flag == word))
        };
        cmd.iter()
            .skip(program(cmd) + 1)
            .take_while(|arg| *arg != "--")
            .any(|arg| self.one_shot.iter().any(|word| is(arg, word)))
    }

    /// The route of the prompt for this command: the wanted one, or else the profile's. Never `Auto`.
    pub fn route(&self, cmd: &[String], wanted: PromptVia, is_loop: bool) -> PromptVia {
        let known = |via: PromptVia, auto: PromptVia| if via == PromptVia::Auto { auto } else { via };
        let own = if self.is_one_shot(cmd) {
            known(self.one_shot_via, PromptVia::Stdin)
        } else {
            known(self.interactive_via, if is_loop { PromptVia::Stdin } else { PromptVia::Paste })
        };
        known(wanted, own)
    }

    /// The command with the prompt as its argument, for the `arg` route. A prompt that begins with `-` must not be read
    /// as an option: it becomes `--flag=PROMPT` with a long flag; without a flag, `--` precedes it if the command is
    /// known to accept that.
    pub fn command_with_prompt(&self, cmd: &[String], prompt: &str) -> Vec<String> {
        let mut cmd = cmd.to_vec();
        let dashed = prompt.starts_with('-');
        if let Some(at) = self.word_without_prompt(&cmd) {
            let flag = self.arg_flag.as_ref().filter(|flag| flag.starts_with("--"));
            match flag.filter(|_| dashed) {
                Some(flag) => cmd[at] = format!("{flag}={prompt}"),
                None => cmd.insert(at + 1, prompt.to_owned()),
            }
            return cmd;
        }
        match &self.arg_flag {
            Some(flag) if dashed && flag.starts_with("--") => cmd.push(format!("{flag}={prompt}")),
            Some(flag) => cmd.extend([flag.clone(), prompt.to_owned()]),
            None => {
                if dashed && self.end_of_options && !cmd.iter().any(|arg| arg == "--") {
                    cmd.push("--".into());
                }
                cmd.push(prompt.to_owned());
            }
        }
        cmd
    }

    /// The command for a conversation in the user's terminal that begins with `prompt`; `None` if the command works on
    /// an argument and exits.
    pub fn command_for_chat(&self, cmd: &[String], prompt: &str) -> Option<Vec<String>> {
        let exits = self.arg_flag.as_ref().is_some_and(|flag| self.one_shot.contains(flag));
        if self.is_one_shot(cmd) || (exits && self.chat_flag.is_none()) {
            return None;
        }
        let flag = self.chat_flag.clone().or_else(|| self.arg_flag.clone());
        Some(Self { arg_flag: flag, one_shot: vec![], ..self.clone() }.command_with_prompt(cmd, prompt))
    }

    /// The command for the `stdin` route: a word that needs the prompt as its value and has none is a usage error,
    /// and a standard input that is not a terminal makes such a command run once without the word.
    pub fn command_for_stdin(&self, cmd: &[String]) -> Vec<String> {
        let mut cmd = cmd.to_vec();
        if let Some(at) = self.word_without_prompt(&cmd) {
            cmd.remove(at);
        }
        cmd
    }

    /// The place of a word that needs the prompt as its value and has no value.
    fn word_without_prompt(&self, cmd: &[String]) -> Option<usize> {
        let end = cmd.iter().position(|arg| arg == "--").unwrap_or(cmd.len());
        let at = (program(cmd) + 1..end).find(|at| self.one_shot.contains(&cmd[*at]))?;
        let has_value = cmd.get(at + 1).is_some_and(|next| !next.starts_with('-'));
        (self.one_shot_takes_prompt && !has_value).then_some(at)
    }

    /// Whether a cost limit can be enforced: the agent reports its cost, or its tokens have prices.
    pub fn knows_cost(&self) -> bool {
        self.tells_cost || self.price(Usage::default()).is_some()
    }

    /// The cost of an iteration, millionths of a US dollar: as the command reports it, or computed from its tokens.
    pub fn cost(&self, account: &Account) -> Option<u64> {
        // An invalid amount counts as not reported.
        let cost = account.cost.filter(|dollars| dollars.is_finite() && *dollars >= 0.0);
        cost.map(|dollars| (dollars * 1e6).round() as u64).or_else(|| self.price(account.usage?))
    }

    /// Returns the cost of tokens, rounded up; `None` without the prices of reading and writing.
    fn price(&self, usage: Usage) -> Option<u64> {
        let (input, output) = (self.input_price?, self.output_price?);
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let cached = of(usage.cached, self.cached_price.unwrap_or(input));
        let sum = of(usage.input, input).saturating_add(of(usage.output, output)).saturating_add(cached);
        Some(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// The wordings of its outages: its own first.
    pub fn outages(&self) -> Vec<Wording> {
        self.outage.iter().cloned().chain(crate::outage::common()).collect()
    }

    /// Whether the command can get a session id: its CLI accepts one, and the command does not choose its session.
    pub fn takes_session(&self, cmd: &[String]) -> bool {
        let chooses = |arg: &String| {
            let flag = arg.split_once('=').map_or(arg.as_str(), |(flag, _)| flag);
            self.session_own.iter().any(|own| own == flag) || self.session_flag.as_deref() == Some(flag)
        };
        self.session_flag.is_some() && !cmd.iter().any(chooses)
    }

    /// Whether the agent may wait for a permission, as far as the arguments show.
    pub fn lacks_permissions(&self, cmd: &[String]) -> bool {
        let is = |arg: &str, flag: &str| {
            let rest = arg.strip_prefix(flag);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('=') || flag.len() == 2)
        };
        let decides = |arg: &String| self.permission_flags.iter().any(|flag| is(arg, flag));
        !self.permission_flags.is_empty() && !cmd.iter().skip(program(cmd) + 1).any(decides)
    }

    /// Whether the command leaves a record, as far as its arguments decide that.
    pub fn leaves_record(&self, cmd: &[String]) -> bool {
        let args = &self.record_args;
        let joined = args.join("=");
        args.is_empty() || cmd.windows(args.len()).any(|words| words == args) || cmd.contains(&joined)
    }

    /// Whether a record on the screen of this command can only be the output of its tools: the command shows its own
    /// messages as text.
    pub fn shows_text(&self, cmd: &[String], via: PromptVia) -> bool {
        // The output of an unknown command is unknown, and so is that of one that runs like a one-shot command.
        match self.is_one_shot(cmd) {
            true => !self.leaves_record(cmd),
            false => !self.one_shot.is_empty() && via == PromptVia::Paste,
        }
    }

    /// The one-shot command that reads its task from standard input; empty if there is none.
    pub fn loop_command(&self) -> Vec<String> {
        match (self.commands.first(), self.one_shot.first()) {
            (Some(command), Some(word)) if self.one_shot_via == PromptVia::Stdin && self.bare_one_shot => {
                [command, word].into_iter().chain(&self.record_args).cloned().collect()
            }
            _ => vec![],
        }
    }

    /// The command with a model, directly after its program and its subcommand; `None` if the profile has no
    /// option for a model.
    pub fn command_with_model(&self, cmd: &[String], model: &str) -> Option<Vec<String>> {
        let flag = self.model_flag.as_ref()?;
        Some(inserted(cmd, self.place_of_flags(cmd), [flag.clone(), model.to_owned()]))
    }

    /// The command with the arguments for work without permission prompts.
    pub fn command_unattended(&self, cmd: &[String]) -> Vec<String> {
        inserted(cmd, self.place_of_flags(cmd), self.unattended_args.iter().cloned())
    }

    /// The command with a session id directly after the program, if it accepts one.
    pub fn command_with_session(&self, cmd: &[String], id: &str) -> Vec<String> {
        let flag = self.session_flag.clone().filter(|_| self.takes_session(cmd));
        let flag = flag.into_iter().flat_map(|flag| [flag, id.to_owned()]);
        inserted(cmd, self.place_of_program(cmd), flag)
    }
}

fn inserted(cmd: &[String], at: usize, words: impl IntoIterator<Item = String>) -> Vec<String> {
    let (before, after) = cmd.split_at(at);
    before.iter().cloned().chain(words).chain(after.iter().cloned()).collect()
}

/// The index of the program's word: after `env`, its options and its assignments.
pub(super) fn program(cmd: &[String]) -> usize {
    let mut at = 0;
    while cmd.get(at).is_some_and(|word| base_name(word) == "env") {
        at += 1;
        while let Some(word) = cmd.get(at) {
            match word.as_str() {
                "-u" | "--unset" | "-C" | "--chdir" => at += 2,
                word if word.starts_with('-') || word.contains('=') => at += 1,
                _ => break,
            }
        }
    }
    at
}
