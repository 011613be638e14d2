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
        end: None,
        output,
        done_pattern: None,
        pattern: None,
        session: None,
        transcript: None,
        api_error: None,
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
    let account = of(&env, false, &finished(&output, "2026-11-28T06:59:00Z")).0;
    assert_eq!(account.texts, ["<promise>DONE</promise>", "on I go"]);
    assert_eq!(account.usage, Some(Usage { input: 130, cached: 0, output: 1 }));
    assert_eq!((account.tool_calls, account.session.as_deref()), (Some(0), Some(ID)));
    env.insert("CODEX_HOME".into(), dir.path().join(".codex").to_string_lossy().into_owned());
    assert_eq!(of(&env, false, &finished(&output, "2026-11-28T06:59:00Z")).0.texts.len(), 2);
    env.insert("CODEX_HOME".into(), "/nowhere".into());
    assert!(of(&env, false, &finished(&output, "2026-11-28T06:59:00Z")).0.is_empty());
}

#[test]
fn the_earlier_turns_of_a_resumed_session_do_not_count() {
    let (_dir, env) = codex_home();
    let output = format!("session id: {ID}\n");
    let account = of(&env, false, &finished(&output, "2026-11-28T08:00:00Z")).0;
    assert_eq!(account.texts, ["on I go"]);
    assert_eq!(account.usage, Some(Usage { input: 30, cached: 0, output: 0 }));
    assert_eq!((account.tool_calls, account.session.as_deref()), (Some(0), Some(ID)));
}

#[test]
fn only_a_valid_session_id_is_looked_up() {
    for text in ["session id: ../../../../etc/passwd-00000000000000", "session id: ", "session id", "hello"] {
        assert_eq!(announced(text), None, "{text}");
    }
    assert_eq!(announced(&format!("  session id: {ID}  \nsession id: x")), Some(ID));
}

#[test]
fn transcript_from_a_hook_counts_only_in_the_clis_directory() {
    let (dir, env) = codex_home();
    let line = |hour: u32, id: u32, text: &str| {
        format!(
            r#"{{"type":"assistant","timestamp":"2026-11-28T{hour:02}:00:00Z","isSidechain":false,"sessionId":"s","message":{{"id":"m{id}","role":"assistant","usage":{{"input_tokens":10,"output_tokens":{id}}},"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let text = [line(7, 1, "<promise>DONE</promise>"), line(8, 2, "on I go")].join("\n");
    let kept = dir.path().join(".claude/projects/-p/s.jsonl");
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    let forged = dir.path().join("s.jsonl");
    for path in [&kept, &forged] {
        fs::write(path, &text).unwrap();
    }
    let of_path = |path: &Path| {
        let finished = Finished { transcript: Some(path.to_owned()), ..finished("", "2026-11-28T07:30:00Z") };
        of(&env, false, &finished).0
    };
    let account = of_path(&kept);
    assert_eq!(account.texts, ["on I go"]);
    assert_eq!(account.usage, Some(Usage { input: 10, cached: 0, output: 2 }));
    assert!(of_path(&forged).is_empty());
    assert!(of_path(&dir.path().join("none")).is_empty());
}

#[test]
fn empty_transcript_of_an_agent_ended_by_a_signal_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (there, gone) = (dir.path().join("s.jsonl"), dir.path().join("gone.jsonl"));
    fs::write(&there, "").unwrap();
    let of = |exit: Exit, path: &Path| {
        let base = finished("", "2026-11-28T07:30:00Z");
        was_cut_off(&Finished { exit, transcript: Some(path.to_owned()), ..base })
    };
    for exit in [Exit::Signal(15), Exit::Signal(9), Exit::Code(143)] {
        assert_eq!((of(exit, &there), of(exit, &gone)), (true, false), "{exit:?}");
    }
    for exit in [Exit::Code(0), Exit::Code(1)] {
        assert!(!of(exit, &there), "{exit:?}");
    }
}

#[test]
fn file_that_is_not_a_transcript_is_not_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let (pipe, sparse, good) = (dir.path().join("pipe"), dir.path().join("sparse"), dir.path().join("good"));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::File::create(&sparse).unwrap().set_len(MAX_TRANSCRIPT_LINE_BYTES * 1000).unwrap();
    fs::write(&good, "{}\n{}").unwrap();
    let lines = |path: &Path| {
        let mut count = 0;
        each_line(path, |_| count += 1).map(|()| count)
    };
    for (path, expected) in [(Path::new("/dev/zero"), None), (&pipe, None), (&sparse, None), (&good, Some(2))]
    {
        assert_eq!(lines(path), expected, "{}", path.display());
    }
}
