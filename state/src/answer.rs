//! Requests of an agent that its hook holds open, and a person's answers to them.
//!
//! Claude Code shows its dialog and runs the `PermissionRequest` hook at the same time, and uses the first answer. The
//! hook's process polls the daemon for an answer; nothing is ever typed into the dialog. Pure: the hook
//! (`src/hooks/hold.rs`) and the daemon (`src/daemon/verbs/hold.rs`) do the rest.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::screen::printable;

/// The tool through which Claude Code asks the user.
const QUESTION_TOOL: &str = "AskUserQuestion";
/// The maximum length of a request's text in characters. The rest is in the dialog.
const MAX_TEXT_CHARS: usize = 2000;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentRequestKind {
    /// For the permission to use a tool.
    Permission,
    /// A question.
    Question,
}

/// A request of an agent that waits for a person's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRequest {
    /// Identifies the request.
    pub id: String,
    /// Its kind.
    pub kind: AgentRequestKind,
    /// The exact request: the tool with its command or file, or the questions with their options, a line each.
    pub text: String,
    /// The number of questions; 0 for a permission.
    #[serde(default)]
    pub questions: usize,
}

impl AgentRequest {
    /// The request in one line.
    pub fn headline(&self) -> String {
        let first = self.text.lines().next().unwrap_or_default();
        let more = if self.text.lines().nth(1).is_some() { " …" } else { "" };
        match self.kind {
            AgentRequestKind::Permission => format!("permission: {first}{more}"),
            AgentRequestKind::Question => format!("asks: {first}{more}"),
        }
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestAnswer {
    /// Allow it this time.
    Yes,
    /// Deny it.
    No,
    /// Allow it, and the further permissions that the agent CLI suggests.
    Always,
    /// Deny a permission with this message; the answer to a question.
    Text(String),
}

impl RequestAnswer {
    /// The answer that a person typed.
    pub fn parse(text: &str) -> Self {
        match text {
            "yes" => Self::Yes,
            "no" => Self::No,
            "always" => Self::Always,
            _ => Self::Text(text.to_owned()),
        }
    }

    /// The words for a question, which has no other answers.
    fn words(&self) -> &str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Always => "always",
            Self::Text(text) => text,
        }
    }

    /// Why it does not answer a request; `None` if it does.
    pub fn unfit_for(&self, request: &AgentRequest) -> Option<String> {
        let lines = self.words().lines().count();
        match request.kind {
            _ if self.words().trim().is_empty() => Some("the answer is empty".to_owned()),
            AgentRequestKind::Question if request.questions > 1 && lines != request.questions => {
                Some(format!("the agent asks {} questions: give one line for each", request.questions))
            }
            AgentRequestKind::Question | AgentRequestKind::Permission => None,
        }
    }
}

/// The request in the input of a hook.
pub fn request(id: String, tool: &str, input: &Value) -> AgentRequest {
    let questions = questions(tool, input);
    let (kind, text) = if questions.is_empty() {
        (AgentRequestKind::Permission, permission_text(tool, input))
    } else {
        let lines: Vec<String> = questions.iter().map(|question| question_text(question)).collect();
        (AgentRequestKind::Question, lines.join("\n"))
    };
    let text = text.lines().map(printable).collect::<Vec<_>>().join("\n");
    let text = text.chars().take(MAX_TEXT_CHARS).collect();
    AgentRequest { id, kind, text, questions: questions.len() }
}

/// The output of the hook for an answer. `suggestions` are the rules that the agent CLI offers for "always".
pub fn hook_output(tool: &str, input: &Value, suggestions: Option<&Value>, answer: &RequestAnswer) -> Value {
    let questions = questions(tool, input);
    let mut decision = if questions.is_empty() {
        match answer {
            RequestAnswer::Yes | RequestAnswer::Always => json!({"behavior": "allow"}),
            RequestAnswer::No => json!({"behavior": "deny", "message": "The user denied this."}),
            RequestAnswer::Text(text) => json!({"behavior": "deny", "message": text}),
        }
    } else {
        // With one question, the whole text is its answer.
        let lines: Vec<&str> =
            if questions.len() == 1 { vec![answer.words()] } else { answer.words().lines().collect() };
        let answers = questions.iter().zip(lines);
        let answers: serde_json::Map<String, Value> = answers
            .filter_map(|(question, text)| Some((question["question"].as_str()?.to_owned(), text.into())))
            .collect();
        let mut input = input.clone();
        input["answers"] = answers.into();
        json!({"behavior": "allow", "updatedInput": input})
    };
    if let (RequestAnswer::Always, Some(rules)) = (answer, suggestions.filter(|_| questions.is_empty())) {
        decision["updatedPermissions"] = rules.clone();
    }
    json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})
}

fn questions<'a>(tool: &str, input: &'a Value) -> Vec<&'a Value> {
    let listed = input["questions"].as_array().filter(|_| tool == QUESTION_TOOL);
    listed.into_iter().flatten().filter(|question| question["question"].is_string()).collect()
}

/// The tool, with the argument that describes the call: the first text of these names, or all arguments.
fn permission_text(tool: &str, input: &Value) -> String {
    const SHOWN: [&str; 7] = ["command", "file_path", "notebook_path", "path", "url", "pattern", "query"];
    let argument = SHOWN.iter().find_map(|name| input[name].as_str());
    argument.map_or_else(|| format!("{tool} {input}"), |argument| format!("{tool}: {argument}"))
}

fn question_text(question: &Value) -> String {
    let text = question["question"].as_str().unwrap_or_default().replace('\n', " ");
    let options = question["options"].as_array().into_iter().flatten();
    let labels: Vec<&str> = options.filter_map(|option| option["label"].as_str()).collect();
    if labels.is_empty() { text } else { format!("{text} [{}]", labels.join(" | ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(count: usize) -> Value {
        let question = |n| json!({"question": format!("Keep flag {n}?"), "options": [{"label": "keep"}, {"label": "drop"}]});
        json!({"questions": (1..=count).map(question).collect::<Vec<_>>()})
    }

    #[test]
    fn the_text_names_what_is_requested() {
        for (tool, input, kind, text) in [
            (
                "Bash",
                json!({"command": "rm -rf build/", "description": "x"}),
                AgentRequestKind::Permission,
                "Bash: rm -rf build/",
            ),
            (
                "Write",
                json!({"file_path": "/p/a", "content": "x"}),
                AgentRequestKind::Permission,
                "Write: /p/a",
            ),
            ("mcp__x", json!({"n": 1}), AgentRequestKind::Permission, r#"mcp__x {"n":1}"#),
            ("Bash", json!({"command": "a\u{1b}[2J\nb"}), AgentRequestKind::Permission, "Bash: a\nb"),
            (
                QUESTION_TOOL,
                flags(2),
                AgentRequestKind::Question,
                "Keep flag 1? [keep | drop]\nKeep flag 2? [keep | drop]",
            ),
            // A question without a text is a tool as any other.
            (QUESTION_TOOL, json!({}), AgentRequestKind::Permission, "AskUserQuestion {}"),
        ] {
            let request = request("1".into(), tool, &input);
            assert_eq!((request.kind, request.text.as_str()), (kind, text));
        }
    }

    #[test]
    fn an_answer_becomes_the_decision_of_the_hook() {
        let bash = json!({"command": "make"});
        let rules = json!([{"type": "addRules"}]);
        let decision = |tool: &str, input: &Value, rules: Option<&Value>, answer: &str| {
            hook_output(tool, input, rules, &RequestAnswer::parse(answer))["hookSpecificOutput"]["decision"]
                .clone()
        };
        for (answer, expected) in [
            ("yes", json!({"behavior": "allow"})),
            ("no", json!({"behavior": "deny", "message": "The user denied this."})),
            ("use make clean", json!({"behavior": "deny", "message": "use make clean"})),
            ("always", json!({"behavior": "allow", "updatedPermissions": [{"type": "addRules"}]})),
        ] {
            assert_eq!(decision("Bash", &bash, Some(&rules), answer), expected);
        }
        assert_eq!(decision("Bash", &bash, None, "always"), json!({"behavior": "allow"}));
        let one = decision(QUESTION_TOOL, &flags(1), None, "keep it\nfor now");
        assert_eq!(one["updatedInput"]["answers"], json!({"Keep flag 1?": "keep it\nfor now"}));
        let two = decision(QUESTION_TOOL, &flags(2), None, "keep\ndrop");
        assert_eq!(two["updatedInput"]["answers"], json!({"Keep flag 1?": "keep", "Keep flag 2?": "drop"}));
        assert_eq!(two["updatedInput"]["questions"], flags(2)["questions"]);
    }

    #[test]
    fn answer_must_match_the_number_of_questions() {
        let two = request("1".into(), QUESTION_TOOL, &flags(2));
        let bash = request("2".into(), "Bash", &json!({"command": "make"}));
        assert!(RequestAnswer::Text("a".into()).unfit_for(&two).unwrap().contains("2 questions"));
        assert_eq!(RequestAnswer::Text("a\nb".into()).unfit_for(&two), None);
        assert_eq!(RequestAnswer::Text("a\nb".into()).unfit_for(&bash), None);
        assert!(RequestAnswer::Text(" ".into()).unfit_for(&bash).is_some());
    }
}
