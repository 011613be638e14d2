//! The texts of a session loop: for the agent at each stop, and for the user when a loop begins.
//!
//! The task or contract always goes unchanged at the end, so that nothing in it can be mistaken for swarm's own text.
//! Used by [`crate::session::decide()`] for the answer of a Stop hook, and by `swarm session start`.
//! Deliberately absent: the choice of the text.

use crate::promise::Promise;
use crate::session::book::PromiseFound;
use crate::session::preflight::Ready;
use crate::session::state::{SessionKind, SessionLoop};

/// The preface of each text of a `/ulw-loop`.
const ULTRAWORK: &str = "\
ULTRAWORK MODE

- Work at full strength on all of the task, not on a first version of it. Nothing is left for later, stubbed or cut down.
- Look before you change: read the code and the documents that the task touches until you know how they work.
- Plan the whole task as a list of steps that can each be checked, and keep that list up to date.
- Give parts that do not depend on each other to sub-agents, as many at once as make sense, and check what they bring.
- Prove each step: build it, run the tests, run the thing itself. What was not run does not work.
- When something fails, find its cause. Do not work around it, and do not weaken a test.
- Before you say that it is done, go through the task sentence by sentence and point at the proof for each.

";

/// The default contract of a do-it loop, with its placeholders.
pub fn built_in_contract() -> &'static str {
    include_str!("contract.md")
}

/// Fills in a contract's placeholders in one pass: values are not searched again, and other braces stay.
/// `cwd` is the absolute path of the project's root.
pub fn substitute(contract: &[u8], project: &Ready, cwd: &str) -> Vec<u8> {
    let values = [
        ("{PROJECT_NAME}", project.project_name.as_str()),
        ("{PROJECT_TYPE}", project.project_type.word()),
        ("{BRANCH_NAME}", project.branch_name.as_str()),
        ("{CWD}", cwd),
    ];
    let mut text = Vec::with_capacity(contract.len());
    let mut rest = contract;
    while let Some(first) = rest.first() {
        let (taken, length) = match values.iter().find(|(name, _)| rest.starts_with(name.as_bytes())) {
            Some((name, value)) => (value.as_bytes(), name.len()),
            None => (std::slice::from_ref(first), 1),
        };
        text.extend(taken);
        rest = rest.get(length..).unwrap_or_default();
    }
    text
}

/// Returns the text for the agent when the loop begins, or when it continues after a pause.
pub fn start_text(state: &SessionLoop) -> String {
    with_rules(state, || start_rules(state))
}

/// The contract, or the rules and the task.
fn with_rules(state: &SessionLoop, rules: impl Fn() -> String) -> String {
    let body = String::from_utf8_lossy(&state.body);
    match state.kind {
        SessionKind::DoIt => body.into_owned(),
        SessionKind::Ralph => rules() + &body,
        SessionKind::Ulw => ULTRAWORK.to_owned() + &rules() + &body,
    }
}

fn start_rules(state: &SessionLoop) -> String {
    let turns = match state.max_iterations {
        0 => "as often as it takes".to_owned(),
        1 => "in 1 turn".to_owned(),
        turns => format!("in up to {turns} turns"),
    };
    let mut text = format!(
        "You work in a loop: each time you want to stop, the task comes back to you, {turns}, until it is done.\n\n"
    );
    if let Some(promise) = &state.completion {
        let marker = promise.marker();
        text += &format!(
            "Strict requirements for the end, without exception:\n\
             - Only when the task is fully done, output exactly this: {marker}\n\
             - It must match to the letter: the same capitals, no white space or line break inside the tag, no variant, and \
             nothing in place of the tag. The word {} alone means nothing.\n\
             - If the task is not fully done, do not output it: not to get out of the loop, not because you are stuck, and \
             not as a quotation. The statement has to be true.\n\
             - A promise without work before it is rejected.\n\n",
            promise.token()
        );
    }
    text += &pause_rule(state);
    text + "The task:\n\n"
}

fn pause_rule(state: &SessionLoop) -> String {
    let rule = |promise: &Promise| {
        let marker = promise.marker();
        format!(
            "If a person has to decide before you can go on, say what about and output exactly {marker}.\n\n"
        )
    };
    state.pause.as_ref().map(rule).unwrap_or_default()
}

/// The answer of a second hook to a stop that the first hook has answered.
pub(super) const ANSWERED_TWICE: &str =
    "The loop goes on. (Another hook of swarm's has fed the task back to you for this stop.)";

/// Returns the text for the agent in place of its stop. `tool_calls` is the number of calls since the loop began.
pub fn block_text(state: &SessionLoop, found: PromiseFound, tool_calls: u64) -> String {
    with_rules(state, || reminder(state, found, tool_calls))
}

fn reminder(state: &SessionLoop, found: PromiseFound, tool_calls: u64) -> String {
    let Some(promise) = &state.completion else {
        return "You attempted to end the loop, but it goes on. Continue working on the original task below.\n\n\
                Original task:\n\n"
            .to_owned();
    };
    let marker = promise.marker();
    let rejected = |what: &str| {
        format!(
            "Promise detected, but {what}; you must actually complete the task before emitting the promise `{marker}`."
        )
    };
    let what = if found != PromiseFound::Rejected {
        format!("You attempted to end the loop, but you did not output the completion promise `{marker}`.")
    } else if tool_calls == 0 {
        rejected("no tool calls/work were performed")
    } else {
        let needed = state.min_tool_calls;
        rejected(&format!("too little work was performed (tool calls: {tool_calls}, needed: {needed})"))
    };
    format!(
        "{what} Continue working on the original task below. Only output the promise when the task is fully complete.\n\nOriginal task:\n\n"
    )
}

/// Returns the text for the user when a do-it loop begins or continues.
pub fn brief(state: &SessionLoop) -> String {
    let ceiling = match state.max_iterations {
        0 => "none: this loop has no limit".to_owned(),
        turns => turns.to_string(),
    };
    let marker = |promise: &Option<Promise>| promise.as_ref().map_or("(none)".to_owned(), Promise::marker);
    format!(
        "\
Ralph loop active — {}.
It runs in THIS session. After each turn, the Stop hook feeds the same contract
back and I work the next task. I stop automatically when:
  • every spec is satisfied → {}
  • a UI-first gate is reached → {} (then run /do-it:review)
  • the iteration ceiling is hit → {ceiling}
Cancel any time with /do-it:cancel-ralph (or delete .claude/do-it-ralph.local.md).
Watch progress in .do-it/progress.md. Context accumulates across iterations; for
very long runs, cancel, /clear, and re-run /do-it:ralph to reset.
",
        state.position(),
        marker(&state.completion),
        marker(&state.pause),
    )
}
