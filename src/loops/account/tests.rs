use swarm_state::model::Exit;
use swarm_state::transcript::Usage;

use super::*;

const ID: &str = "01a2211d-57e5-73c3-ab6d-3afd360a4f65";

fn at(text: &str) -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339(text).unwrap()
}

/// Two turns of one session, an hour apart; the first promises.
fn record() -> String {
    let said = |hour: u32, text: &str| {
        format!(
            r#"{{"timestamp":"2026-11-28T{hour:02}:00:01.5Z","type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}}}}"#
        )
    };
    let sum = |hour: u32, tokens: u32| {
        format!(
            r#"{{"timestamp":"2026-11-28T{hour:02}:00:02Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{tokens},"output_tokens":1}}}}}}}}"#
        )
    };
    let head =
        format!(r#"{{"timestamp":"2026-11-28T07:00:00Z","type":"session_meta","payload":{{"id":"{ID}"}}}}"#);
    [head, said(7, "<promise>DONE</promise>"), sum(7, 100), said(8, "on I go"), sum(8, 130)].join("\n")
}

fn finished<'a>(output: &'a str, started: &str) -> Finished<'a> {
    Finished {
        iteration: 1,
        run: 1,
        started: Some(at(started)),
        ended: at("2026-11-28T09:00:00Z"),
        exit: Exit::Code(0),
        output,
        done_pattern: None,
        session: None,
        until: None,
        never_started: None,
        account: None,
    }
}

/// A home with the record of a Codex session in it.
fn codex_home() -> (tempfile::TempDir, BTreeMap<String, String>) {
    let dir = tempfile::tempdir().unwrap();
    let day = dir.path().join(".codex/sessions/2026/11/28");
    fs::create_dir_all(&day).unwrap();
    fs::write(day.join(format!("rollout-2026-11-28T07-00-00-{ID}.jsonl")), record()).unwrap();
    let env = BTreeMap::from([("HOME".to_owned(), dir.path().to_string_lossy().into_owned())]);
    (dir, env)
}

#[test]
fn a_codex_session_is_found_by_the_id_that_it_printed() {
    let (dir, mut env) = codex_home();
    let output = format!("OpenAI Codex\n--------\nsession id: {ID}\n--------\nuser\nsession id: 0\n");
    let account = of(&env, &finished(&output, "2026-11-28T06:59:00Z"));
    assert_eq!(account.texts, ["<promise>DONE</promise>", "on I go"]);
    assert_eq!(account.usage, Some(Usage { input: 130, cached: 0, output: 1 }));
    assert_eq!((account.tool_calls, account.session.as_deref()), (Some(0), Some(ID)));
    env.insert("CODEX_HOME".into(), dir.path().join(".codex").to_string_lossy().into_owned());
    assert_eq!(of(&env, &finished(&output, "2026-11-28T06:59:00Z")).texts.len(), 2);
    env.insert("CODEX_HOME".into(), "/nowhere".into());
    assert!(of(&env, &finished(&output, "2026-11-28T06:59:00Z")).is_empty());
}

#[test]
fn the_earlier_turns_of_a_resumed_session_do_not_count() {
    let (_dir, env) = codex_home();
    let output = format!("session id: {ID}\n");
    let account = of(&env, &finished(&output, "2026-11-28T08:00:00Z"));
    assert_eq!(account.texts, ["on I go"]);
    assert_eq!(account.usage, Some(Usage { input: 30, cached: 0, output: 0 }));
    assert_eq!((account.tool_calls, account.session.as_deref()), (Some(0), Some(ID)));
}

#[test]
fn nothing_but_an_id_is_looked_for() {
    for text in ["session id: ../../../../etc/passwd-00000000000000", "session id: ", "session id", "hello"] {
        assert_eq!(announced(text), None, "{text}");
    }
    assert_eq!(announced(&format!("  session id: {ID}  \nsession id: x")), Some(ID));
}
