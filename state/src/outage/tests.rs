use proptest::prelude::*;

use super::*;

fn wall(text: &str) -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339(text).unwrap()
}

fn now() -> DateTime<FixedOffset> {
    wall("2026-11-28T12:00:00+01:00")
}

#[test]
fn reset_times_in_messages_are_parsed() {
    for (text, moment) in [
        ("You've hit your session limit · resets 8:20pm (Europe/Istanbul)", "2026-11-28T18:20:00+01:00"),
        ("resets 11:55am", "2026-11-28T11:55:00+01:00"),
        ("resets Nov 28 at 11:51", "2026-11-28T11:51:00+01:00"),
        ("resets 11:49am", "2026-11-29T11:49:00+01:00"),
        ("resets 8am", "2026-11-29T08:00:00+01:00"),
        ("resets 12:00am", "2026-11-29T00:00:00+01:00"),
        ("resets at 13:05", "2026-11-28T13:05:00+01:00"),
        ("weekly limit · resets Dec 3, 9am (UTC)", "2026-12-03T10:00:00+01:00"),
        ("resets Jan 2 at 9:30pm", "2027-01-02T21:30:00+01:00"),
        ("try again at 4:15 PM.", "2026-11-28T16:15:00+01:00"),
        ("try again in 5 minutes", "2026-11-28T12:05:00+01:00"),
        ("resets in 2 hours 5 minutes", "2026-11-28T14:05:00+01:00"),
        ("resets in 1h 30m", "2026-11-28T13:30:00+01:00"),
        ("Retry-After: 30", "2026-11-28T12:00:30+01:00"),
    ] {
        assert_eq!(reset_in(text, now()), Some(wall(moment)), "{text}");
    }
    let soon = now().timestamp() + 1200;
    let found = reset_in(&format!("Claude AI usage limit reached|{soon}"), now());
    assert_eq!(found, Some(wall("2026-11-28T12:20:00+01:00")));
    for text in [
        "resets 3 times",
        "limit",
        "resets 25:00",
        "resets 13pm",
        "resets 8pm (Nowhere/Atall)",
        "resets in 90 days",
        "|1000000000",
    ] {
        assert_eq!(reset_in(text, now()), None, "{text}");
    }
}

#[test]
fn outage_is_recognized_in_the_output_of_a_failed_agent() {
    for (text, kind) in [
        ("You've hit your session limit · resets 8:20pm (Europe/Istanbul)", OutageKind::Limit),
        ("You have reached your weekly limit.", OutageKind::Limit),
        ("Error: quota exceeded for this project", OutageKind::Limit),
        ("Claude Code has been disabled by your admin", OutageKind::Forbidden),
        ("Invalid API key · Fix external API key", OutageKind::Login),
        ("Invalid API key · Please run /login", OutageKind::Login),
        ("Incorrect API key provided: sk-x", OutageKind::Login),
        ("We're currently experiencing high demand, which may cause temporary errors.", OutageKind::Overload),
        ("Credit balance too low · Add funds", OutageKind::Login),
        ("API Error: 500 mock 500", OutageKind::Overload),
        ("API Error: Request rejected (429) · mock", OutageKind::Overload),
        ("Repeated 529 Overloaded errors. The API is at capacity", OutageKind::Overload),
        ("API Error: Connection refused — (ECONNREFUSED)", OutageKind::Overload),
        ("Can't reach the API server (EAI_AGAIN)", OutageKind::Overload),
    ] {
        let outage = Outage::of_output(&format!("work\n\n{text}\n"), &common(), now())
            .unwrap_or_else(|| panic!("{text}"));
        assert_eq!((outage.kind, outage.message.as_str()), (kind, text));
    }
    for text in [
        "test limits::are_hit ... FAILED",
        "error[E0425]: cannot find value",
        "assertion failed: left 429, right 430",
        "503 tests passed, 2 failed",
        "Traceback: rate of change",
        "the file has a limit of 20 lines",
        "",
    ] {
        assert_eq!(Outage::of_output(text, &common(), now()), None, "{text}");
    }
}

#[test]
fn only_the_last_lines_of_the_output_count() {
    let output = format!("You've hit your limit\n{}", "going on\n".repeat(REASON_LINES));
    assert_eq!(Outage::of_output(&output, &common(), now()), None);
}

#[test]
fn api_error_is_classified_by_status_and_text() {
    let of = |message: &str, status| {
        Outage::of_error(&ApiError { message: message.into(), status }, &common(), now())
            .map(|outage| outage.kind)
    };
    assert_eq!(of("whatever", Some(429)), Some(OutageKind::Overload));
    assert_eq!(of("You've hit your limit · resets 3pm", Some(429)), Some(OutageKind::Limit));
    assert_eq!(of("whatever", Some(401)), Some(OutageKind::Login));
    assert_eq!(of("prompt is too long", Some(400)), None);
    assert_eq!(of("error_max_turns", None), None);
    // A hook tells no status.
    assert_eq!(of("rate_limit: You've hit your limit · resets 3pm", None), Some(OutageKind::Limit));
    assert_eq!(of("rate_limit", None), Some(OutageKind::Overload));
    assert_eq!(of("server_error: API Error: 529 Overloaded", None), Some(OutageKind::Overload));
    assert_eq!(of("authentication_failed", None), Some(OutageKind::Login));
    assert_eq!(of("billing_error", None), Some(OutageKind::Login));
    assert_eq!(of("invalid_request: prompt is too long", None), None);
}

#[test]
fn an_error_above_a_long_stack_trace_is_read() {
    let wordings = crate::profiles::find(&crate::profiles::table(), &["gemini".into()]).outages();
    let error =
        r#"Error when talking to Gemini API _ApiError: {"error":{"code":401,"status":"UNAUTHENTICATED"}}"#;
    let trace = "    at async Turn.run (file:///x/chunk.js:1:2) {\n".repeat(20);
    let output =
        format!("{error}\n{trace}  status: 401\n}}\nAn unexpected critical error occurred:[object Object]\n");
    let found = Outage::of_output(&output, &wordings, now()).unwrap();
    assert_eq!((found.kind, found.message.as_str()), (OutageKind::Login, error));
    let older = format!("{error}\n{}", "a line of the answer\n".repeat(20));
    assert_eq!(Outage::of_output(&older, &wordings, now()), None);
}

#[test]
fn api_error_on_the_screen_is_classified_by_the_status_in_its_text() {
    let wordings = crate::profiles::find(&crate::profiles::table(), &["gemini".into()]).outages();
    for (error, kind) in [
        (r#"[API Error: {"error":{"code":401,"message":"no","status":"X"}}]"#, Some(OutageKind::Login)),
        (
            r#"[API Error: {"error":{"message":"{\"error\": {\"code\": 503}}","status":"X"}}]"#,
            Some(OutageKind::Overload),
        ),
        ("[API Error: 403 no]", Some(OutageKind::Login)),
        ("[API Error: no (Status: 503)]", Some(OutageKind::Overload)),
        ("[API Error: no (Status: UNAUTHENTICATED)]", Some(OutageKind::Login)),
        (
            r#"[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}]"#,
            Some(OutageKind::Login),
        ),
        ("[API Error: 429 You have hit your usage limit, resets 22:47 (UTC)]", Some(OutageKind::Limit)),
        (r#"[API Error: {"error":{"code":400,"message":"The input has 401 tokens too many"}}]"#, None),
        ("[API Error: An unknown error occurred.]", None),
    ] {
        let found = Outage::of_shown(error, &wordings, now());
        assert_eq!(found.as_ref().map(|outage| outage.kind), kind, "{error}");
        assert_eq!(found.map_or(error.to_owned(), |outage| outage.message), error);
    }
}

#[test]
fn outage_waits_have_the_documented_lengths() {
    let outage = |kind, until: Option<&str>| Outage { kind, message: String::new(), until: until.map(wall) };
    let seconds = |outage: &Outage, n| outage.wait(n, now()).map(|wait| wait.as_secs());
    let known = outage(OutageKind::Limit, Some("2026-11-28T12:30:00+01:00"));
    assert_eq!(seconds(&known, 1), Some(1805));
    let passed = outage(OutageKind::Limit, Some("2026-11-28T11:30:00+01:00"));
    assert_eq!(seconds(&passed, 1), Some(300));
    let just_passed = outage(OutageKind::Limit, Some("2026-11-28T11:55:00+01:00"));
    assert_eq!((seconds(&just_passed, 1), seconds(&just_passed, 4)), (Some(5), Some(40)));
    let waits: Vec<_> = (1..=5).map(|n| seconds(&outage(OutageKind::Overload, None), n).unwrap()).collect();
    assert_eq!(waits, [5, 10, 20, 40, 80]);
    assert_eq!(seconds(&outage(OutageKind::Overload, None), MAX_OUTAGE_TRIES), Some(300));
    assert_eq!(seconds(&outage(OutageKind::Overload, None), MAX_OUTAGE_TRIES + 1), None);
    assert_eq!(seconds(&outage(OutageKind::Login, None), 2), Some(120));
    assert_eq!(seconds(&outage(OutageKind::Forbidden, None), 1), None);
}

#[test]
fn wait_grows_although_the_reset_is_always_near() {
    let soon = Outage {
        kind: OutageKind::Limit,
        message: String::new(),
        until: Some(wall("2026-11-28T12:00:01+01:00")),
    };
    assert_eq!(soon.wait(5, now()), Some(Duration::from_secs(80)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_text_is_read_without_a_panic(text in "(?s).{0,200}", seconds in 0_i64..4_000_000_000) {
        let wall = DateTime::from_timestamp(seconds, 0).unwrap().fixed_offset();
        if let Some(moment) = reset_in(&text, wall) {
            prop_assert!(moment > wall - reset::PASSED_TOLERANCE);
        }
        drop(Outage::of_output(&text, &common(), wall));
    }

    #[test]
    fn time_of_day_is_within_the_next_24_hours(hour in 0_u32..24, minute in 0_u32..60, seconds in 1_700_000_000_i64..1_900_000_000) {
        let wall = DateTime::from_timestamp(seconds, 0).unwrap().fixed_offset();
        for zone in ["", " (America/New_York)", " (Asia/Kolkata)"] {
            let moment = reset_in(&format!("resets {hour}:{minute:02}{zone}"), wall).unwrap();
            prop_assert!(moment > wall - reset::PASSED_TOLERANCE && moment - wall <= chrono::TimeDelta::hours(25), "{moment} {wall}");
        }
    }
}
