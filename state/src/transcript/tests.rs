//! Lines as the CLIs write them, reduced to what is read.

use proptest::prelude::*;

use super::*;

const CLAUDE_TRANSCRIPT: &str = r#"{"type":"queue-operation","operation":"enqueue","content":"<promise>DONE</promise>"}
{"isSidechain":false,"type":"user","message":{"role":"user","content":"say <promise>DONE</promise>"}}
{"isSidechain":false,"message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"I will run it"}],"usage":{"input_tokens":100,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":13}},"type":"assistant","sessionId":"s-1"}
{"isSidechain":false,"message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}],"usage":{"input_tokens":100,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":13}},"type":"assistant"}
{"isSidechain":true,"message":{"id":"m9","role":"assistant","content":[{"type":"text","text":"<promise>DONE</promise>"}]},"type":"assistant"}
{"isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"<promise>DONE</promise>"}]}}
{"isSidechain":false,"message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"All done."}],"usage":{"input_tokens":200,"output_tokens":12}},"type":"assistant"}
{"type":"cost-state","totalCostUSD":0.102248}
"#;

#[test]
fn claude_transcript_is_parsed() {
    let account = Account::of(CLAUDE_TRANSCRIPT);
    assert_eq!(account.texts, ["I will run it", "All done."]);
    assert_eq!(account.tool_calls, Some(1));
    assert_eq!(account.usage, Some(Usage { input: 305, cached: 7, output: 25 }), "each message once");
    assert_eq!(account.cost, Some(0.102_248));
    assert_eq!(account.session.as_deref(), Some("s-1"));
    assert_eq!(account.error, None);
}

#[test]
fn unreadable_numbers_count_as_not_reported() {
    let claude = |usage: &str, cost: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"m1","content":[],"usage":{{"input_tokens":5,"output_tokens":1}}}}}}
{{"type":"assistant","message":{{"id":"m2","content":[],"usage":{usage}}}}}
{{"type":"cost-state","totalCostUSD":0.5}}
{{"type":"cost-state","totalCostUSD":{cost}}}"#
        )
    };
    for absurd in ["99999999999999999999999", "-1000", "1.5", "\"7\""] {
        for usage in [
            format!(r#"{{"input_tokens":{absurd},"output_tokens":1}}"#),
            format!(r#"{{"input_tokens":1,"output_tokens":{absurd}}}"#),
            format!(r#"{{"input_tokens":1,"output_tokens":1,"cache_creation_input_tokens":{absurd}}}"#),
        ] {
            assert_eq!(Account::of(&claude(&usage, "0.6")).usage, None, "{usage}");
            let result = format!(r#"{{"type":"result","subtype":"success","usage":{usage}}}"#);
            assert_eq!(Account::of(&result).usage, None, "{result}");
        }
        let codex =
            format!(r#"{{"type":"turn.completed","usage":{{"input_tokens":{absurd},"output_tokens":7}}}}"#);
        assert_eq!(Account::of(&codex).usage, None, "{codex}");
        let step = format!(r#"{{"type":"step_finish","part":{{"tokens":{{"input":{absurd}}},"cost":-1}}}}"#);
        assert_eq!((Account::of(&step).usage, Account::of(&step).cost), (None, None), "{step}");
    }
    let fine = r#"{"input_tokens":1,"output_tokens":1,"cache_read_input_tokens":null}"#;
    assert_eq!(Account::of(&claude(fine, "0.6")).usage.map(Usage::total), Some(8));
    assert_eq!(Account::of(&claude(fine, "0.6")).cost, Some(0.6));
    assert_eq!(Account::of(&claude(fine, "0")).cost, Some(0.5), "a record of a tool does not lower the cost");
    for absurd in ["-1000", "\"1\""] {
        assert_eq!(Account::of(&claude(fine, absurd)).cost, None, "{absurd}");
    }
    // A sum that can be read makes good what could not be.
    let summed = format!(
        "{}\n{}",
        claude(r#"{"input_tokens":-1,"output_tokens":1}"#, "-1"),
        r#"{"type":"result","subtype":"success","total_cost_usd":0.7,"usage":{"input_tokens":10,"output_tokens":40}}"#
    );
    let account = Account::of(&summed);
    assert_eq!((account.usage.map(Usage::total), account.cost), (Some(50), Some(0.7)));
}

#[test]
fn claude_result_object_counts_no_tools() {
    let account = Account::of(
        r#"{"stop_reason":"end_turn","session_id":"s","total_cost_usd":0.1,"usage":{"input_tokens":10,"output_tokens":2},"is_error":false,"subtype":"success","result":"Done.","type":"result"}"#,
    );
    assert_eq!(account.texts, ["Done."]);
    assert_eq!(account.tool_calls, None, "the result does not tell");
    assert_eq!(account.usage.map(Usage::total), Some(12));
}

#[test]
fn usage_of_a_claude_stream_is_that_of_its_result() {
    let account = Account::of(
        r#"{"type":"system","subtype":"init","session_id":"s"}
{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":5,"output_tokens":1}},"session_id":"s"}
{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t"}],"usage":{"input_tokens":5,"output_tokens":1}},"session_id":"s"}
{"type":"assistant","parent_tool_use_id":"t","message":{"id":"m3","content":[{"type":"text","text":"sub"}]},"session_id":"s"}
{"type":"user","message":{"content":[{"type":"tool_result","content":"x"}]}}
{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"end"}],"usage":{"input_tokens":5,"output_tokens":1}},"session_id":"s"}
{"type":"result","subtype":"success","is_error":false,"result":"end","total_cost_usd":0.5,"usage":{"input_tokens":10,"output_tokens":40},"session_id":"s"}"#,
    );
    assert_eq!(account.texts, ["hi", "end"], "the result only repeats the last message");
    assert_eq!(account.tool_calls, Some(1));
    assert_eq!(account.usage, Some(Usage { input: 10, cached: 0, output: 40 }));
}

#[test]
fn an_array_on_one_line_is_read_as_its_lines() {
    let lines = [
        r#"{"type":"system","subtype":"init","session_id":"s"}"#,
        r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t"}]},"session_id":"s"}"#,
        r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"Fine.\n\nDONE"}]},"session_id":"s"}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"Fine.\n\nDONE","session_id":"s"}"#,
    ];
    let account = Account::of(&format!("[{}]", lines.join(",")));
    assert_eq!(account, Account::of(&lines.join("\n")));
    assert_eq!((account.last_text(), account.tool_calls), (Some("Fine.\n\nDONE"), Some(1)));
}

#[test]
fn error_result_is_not_text_of_the_agent() {
    let account = Account::of(
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"API Error: <promise>DONE</promise>","total_cost_usd":0}"#,
    );
    assert!(account.texts.is_empty());
    let error = account.error.unwrap();
    assert_eq!(error.status, Some(429));
    assert!(error.message.starts_with("API Error"));
}

#[test]
fn error_before_later_text_of_the_agent_is_ignored() {
    let account = Account::of(
        r#"{"type":"assistant","isApiErrorMessage":true,"message":{"id":"a","content":[{"type":"text","text":"API Error: 529"}]}}
{"type":"assistant","message":{"id":"b","content":[{"type":"text","text":"on I go"}]}}"#,
    );
    assert_eq!((account.error, account.texts), (None, vec!["on I go".to_owned()]));
}

#[test]
fn codex_output_is_parsed() {
    let account = Account::of(
        r#"{"type":"thread.started","thread_id":"th"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"i1","type":"command_execution"}}
{"type":"item.completed","item":{"id":"i1","type":"command_execution","aggregated_output":"<promise>DONE</promise>","exit_code":0}}
{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":7}}"#,
    );
    assert_eq!((account.texts, account.tool_calls), (vec!["done".to_owned()], Some(1)));
    assert_eq!(account.usage, Some(Usage { input: 60, cached: 40, output: 7 }));
    assert_eq!((account.cost, account.session.as_deref()), (None, Some("th")));
    let failed = Account::of(r#"{"type":"turn.failed","error":{"message":"429 Too Many Requests"}}"#);
    assert_eq!(failed.error.unwrap().message, "429 Too Many Requests");
}

/// The record that Codex keeps: a turn with a tool, whose output shows the tag.
const ROLLOUT: &str = r#"{"timestamp":"2026-11-28T07:45:01.167Z","type":"session_meta","payload":{"id":"c-1","cwd":"/w","originator":"codex_exec"}}
{"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"<promise>DONE</promise>"}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"say <promise>DONE</promise>"}]}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","id":"m1","content":[{"type":"Text","text":"I will"}]}}}
{"type":"response_item","payload":{"type":"message","role":"assistant","id":"m1","content":[{"type":"output_text","text":"I will"}]}}
{"type":"response_item","payload":{"type":"function_call","id":"f1","name":"exec_command","call_id":"k1","arguments":"{}"}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"k1","aggregated_output":"<promise>DONE</promise>"}}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"k1","output":"Output:\n<promise>DONE</promise>\n"}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":11}}}}
{"type":"event_msg","payload":{"type":"token_count","info":null}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":210,"cached_input_tokens":40,"output_tokens":23}}}}
{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"I will"}}
"#;

#[test]
fn codex_record_of_a_session_is_parsed() {
    let account = Account::of(ROLLOUT);
    assert_eq!(account.texts, ["I will"], "no prompt and no tool's output");
    assert_eq!((account.tool_calls, account.cost, account.session.as_deref()), (Some(1), None, Some("c-1")));
    assert_eq!(account.usage, Some(Usage { input: 170, cached: 40, output: 23 }), "the running sum");
    assert_eq!(account.error, None);
}

#[test]
fn codex_record_of_a_failed_turn_is_parsed() {
    let failed = |info: &str| {
        let line = format!(
            r#"{{"type":"event_msg","payload":{{"type":"task_complete","error":{{"message":"no","codex_error_info":{info}}}}}}}"#
        );
        Account::of(&line).error.unwrap()
    };
    assert_eq!(failed(r#"{"response_too_many_failed_attempts":{"http_status_code":429}}"#).status, Some(429));
    assert_eq!(failed(r#"{"http_connection_failed":{"http_status_code":401}}"#).status, Some(401));
    assert_eq!(failed(r#""internal_server_error""#).status, Some(503));
    assert_eq!(failed(r#""other""#), ApiError { message: "no".into(), status: None });
}

#[test]
fn opencode_usage_is_the_sum_of_its_steps() {
    let account = Account::of(
        r#"{"type":"step_start","sessionID":"o"}
{"type":"tool_use","sessionID":"o","part":{"tool":"bash","callID":"c1","state":{"status":"completed","output":"x"}}}
{"type":"step_finish","sessionID":"o","part":{"tokens":{"input":10,"output":2,"reasoning":1,"cache":{"read":4,"write":3}},"cost":0.01,"reason":"tool-calls"}}
{"type":"text","sessionID":"o","part":{"text":"ready"}}
{"type":"step_finish","sessionID":"o","part":{"tokens":{"input":5,"output":5},"cost":0.02,"reason":"stop"}}"#,
    );
    assert_eq!(account.texts, ["ready"]);
    assert_eq!(account.usage, Some(Usage { input: 18, cached: 4, output: 8 }));
    assert!((account.cost.unwrap() - 0.03).abs() < 1e-9);
    assert_eq!(account.tool_calls, Some(1));
    let error =
        r#"{"type":"error","error":{"name":"APIError","data":{"statusCode":401,"message":"no key"}}}"#;
    assert_eq!(Account::of(error).error, Some(ApiError { message: "no key".into(), status: Some(401) }));
}

#[test]
fn gemini_object_and_stream_are_parsed() {
    let whole = "Loaded credentials.\n{\n  \"session_id\": \"g\",\n  \"response\": \"ok\",\n  \"stats\": {\n    \"models\": {\"m\": {\"tokens\": {\"prompt\": 9, \"cached\": 2, \"candidates\": 3}}},\n    \"tools\": {\"totalCalls\": 2}\n  }\n}\n";
    let account = Account::of(whole);
    assert_eq!((account.texts, account.tool_calls), (vec!["ok".to_owned()], Some(2)));
    assert_eq!(account.usage, Some(Usage { input: 7, cached: 2, output: 3 }));
    let stream = Account::of(
        r#"{"type":"init","session_id":"g"}
{"type":"message","role":"user","content":"say <promise>X</promise>"}
{"type":"message","role":"assistant","content":"<promise>","delta":true}
{"type":"message","role":"assistant","content":"X</promise>","delta":true}
{"type":"tool_use","tool_id":"a"}
{"type":"message","role":"assistant","content":"bye","delta":true}"#,
    );
    assert_eq!(stream.texts, ["<promise>X</promise>", "bye"]);
    assert_eq!(stream.tool_calls, Some(1));
}

#[test]
fn plain_output_gives_no_account() {
    assert!(Account::of("hello\n{not json\n{\"type\":\"unheard of\"}\n[1,2]\n").is_empty());
    assert_eq!(Account::of("hello").tool_calls, None, "unknown is not zero");
}

#[test]
fn torn_last_line_keeps_the_lines_before_it() {
    for cut in 0..CLAUDE_TRANSCRIPT.len() {
        let account = Account::of(&CLAUDE_TRANSCRIPT[..cut]);
        assert!(account.texts.len() <= 2);
        assert!(!account.texts.iter().any(|text| text.contains("DONE")));
    }
}

/// As Codex 0.171 and Claude Code 2.1 record them.
#[test]
fn the_last_usage_limits_are_read() {
    let codex = |used: f64| {
        format!(
            r#"{{"timestamp":"2026-11-30T06:48:32.280Z","type":"event_msg","payload":{{"type":"token_count","info":null,"rate_limits":{{"limit_id":"codex","limit_name":null,"primary":{{"used_percent":{used},"window_minutes":300,"resets_at":1796024307}},"secondary":null,"credits":null,"plan_type":null}}}}}}"#
        )
    };
    let without = r#"{"timestamp":"2026-11-30T06:49:00Z","type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":null}}"#;
    let account = Account::of(&[&*codex(10.0), &*codex(91.5), without].join("\n"));
    let read: Vec<_> =
        account.limits.iter().map(|limit| (&*limit.window, limit.used, limit.resets_at)).collect();
    assert_eq!(read, [("five_hour", 91, Some(1_796_024_307))]);
    assert_eq!(account.limits[0].read_at, 1_796_021_312);
    let claude = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":1796021768,"isUsingOverage":false,"unifiedWindows":{"five_hour":{"utilization":0.29,"resetsAt":1796021768,"status":"allowed"},"seven_day":{"utilization":1.02,"resetsAt":1796220845}}},"session_id":"s"}"#;
    let limits = Account::of(claude).limits;
    let read: Vec<_> = limits.iter().map(|limit| (&*limit.window, limit.used, limit.read_at)).collect();
    assert_eq!(read, [("five_hour", 29, 0), ("seven_day", 102, 0)]);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[a-z<>/{}]{0,12}".prop_map(Value::from),
        prop_oneof![
            Just("assistant"),
            Just("result"),
            Just("text"),
            Just("item.completed"),
            Just("tool_use"),
            Just("step_finish"),
            Just("turn.completed")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let key = prop_oneof![
            Just("type"),
            Just("message"),
            Just("content"),
            Just("usage"),
            Just("item"),
            Just("part"),
            Just("tokens"),
            Just("input_tokens"),
            Just("output_tokens"),
            Just("id"),
            Just("text"),
            Just("stats"),
            Just("models"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|fields| Value::from_iter(
                fields.into_iter().map(|(key, value)| (key.to_owned(), value))
            )),
        ]
    })
}

proptest! {
    #[test]
    fn any_lines_are_read_without_a_panic(values in prop::collection::vec(any_json(), 0..6), noise in "\\PC*") {
        let mut record: String = values.iter().map(|value| format!("{value}\n")).collect();
        record.push_str(&noise);
        drop(Account::of(&record));
    }
}
