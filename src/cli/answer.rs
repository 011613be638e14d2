//! `swarm answer`

use clap::Args;
use swarm_state::model::WorkerName;

pub(super) const ANSWER_LONG: &str = "\
Answer a permission request or a question of an agent, without attaching.

yes allows the tool call, no denies it, and always also allows the similar calls that the agent's own dialog offers. \
Another text denies a permission with this text as the reason; it is the answer to a question. If the agent asks \
several questions at once, give one line for each. Without an answer, the open requests are shown with their ids.

The answer goes through the agent's hook; nothing is typed. This works for Claude Code in a window (not with -p). Its \
dialog stays open in the window, and the first answer counts. After 5 minutes only the dialog is left; the key hold of \
[agents.claude] in the settings changes this time. A worker cannot answer its own requests.

Put --request before NAME: all words after NAME are the answer.";

/// `swarm answer`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swarm answer api
  swarm answer api yes
  swarm answer api keep the build directory, delete only target/")]
pub struct AnswerArgs {
    /// Worker name
    pub name: WorkerName,
    /// Answer: yes, no, always, or a text
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ANSWER")]
    pub answer: Vec<String>,
    /// Answer only the request with this id
    #[arg(long, value_name = "ID")]
    pub request: Option<String>,
}
