use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// 2026-11-30, in seconds since 1970.
const NOW: i64 = 1_796_000_000;

const HOUR: i64 = 3600;

fn figure(window: &str, used: u16, resets_in: i64) -> QuotaFigure {
    let minutes = if window == "five_hour" { 300 } else { 7 * 1440 };
    let resets_at = Some(NOW + resets_in);
    QuotaFigure { window: window.into(), minutes, used, resets_at, read_at: NOW }
}

fn account(figures: &[QuotaFigure]) -> AccountQuota {
    let mut account = AccountQuota::default();
    account.report("a", figures, NOW);
    account
}

#[test]
fn the_account_is_the_agent_with_its_directory() {
    let env = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    for (style, vars, title) in [
        (HookStyle::Claude, &[("HOME", "/h")][..], Some("claude account ~/.claude")),
        (
            HookStyle::Claude,
            &[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/h/work/")],
            Some("claude account ~/work"),
        ),
        (HookStyle::Claude, &[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "")], Some("claude account ~/.claude")),
        (
            HookStyle::Claude,
            &[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/other")],
            Some("claude account /other"),
        ),
        (HookStyle::Claude, &[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "relative")], None),
        (HookStyle::Codex, &[("HOME", "/h"), ("CODEX_HOME", "/h/.codex2")], Some("codex account ~/.codex2")),
        (HookStyle::Codex, &[("CLAUDE_CONFIG_DIR", "/h")], None),
        (HookStyle::Off, &[("HOME", "/h")], None),
    ] {
        let account = QuotaAccount::of(style, &env(vars));
        assert_eq!(account.map(|account| account.title(Some(Path::new("/h")))).as_deref(), title, "{vars:?}");
    }
}

/// A status line of a subscriber, with the fields that Claude Code 2.1 sends.
fn status_line() -> Value {
    json!({"session_id": "s", "model": {"id": "m", "display_name": "M"}, "exceeds_200k_tokens": false,
        "context_window": {"used_percentage": 12, "context_window_size": 200_000},
        "rate_limits": {
            "five_hour": {"used_percentage": 92.7, "resets_at": NOW + 2 * HOUR},
            "seven_day": {"used_percentage": 41, "resets_at": NOW + 100 * HOUR}}})
}

#[test]
fn the_limits_of_a_status_line_are_read() {
    let read = claude_limits(&status_line(), NOW);
    assert_eq!(read, [figure("five_hour", 92, 2 * HOUR), figure("seven_day", 41, 100 * HOUR)]);
    let titles: Vec<String> = read.iter().map(QuotaFigure::title).collect();
    assert_eq!(titles, ["5 hour limit", "7 day limit"]);
}

#[test]
fn fields_of_another_type_are_ignored() {
    for (limits, count) in [
        (json!(null), 0),
        (json!([]), 0),
        (json!("90"), 0),
        (json!({"five_hour": null, "seven_day": 7, "later": {"used_percentage": 99, "resets_at": NOW}}), 0),
        (json!({"five_hour": {"used_percentage": "92", "resets_at": NOW}}), 0),
        (json!({"five_hour": {"used_percentage": -1, "resets_at": NOW}}), 0),
        (json!({"five_hour": {"used_percentage": 5}, "seven_day": {"used_percentage": 1e300}}), 2),
    ] {
        assert_eq!(claude_limits(&json!({"rate_limits": limits}), NOW).len(), count, "{limits}");
    }
    for input in [json!(null), json!([1]), json!({"rate_limits": {}})] {
        assert_eq!(claude_limits(&input, NOW), []);
    }
}

#[test]
fn a_reset_is_read_as_seconds_milliseconds_and_text() {
    let at = |value: Value| {
        let limits = json!({"rate_limits": {"five_hour": {"used_percentage": 1, "resets_at": value}}});
        claude_limits(&limits, NOW)[0].resets_at
    };
    assert_eq!(at(json!(NOW)), Some(NOW));
    assert_eq!(at(json!(NOW * 1000)), Some(NOW));
    assert_eq!(at(json!("2026-11-30T08:53:20+01:00")), Some(1_796_025_200));
    assert_eq!(at(json!("soon")), None);
    assert_eq!(at(json!(-5)), None);
}

#[test]
fn the_limits_of_codex_are_read() {
    let limits = json!({"limit_id": "codex", "limit_name": null,
        "primary": {"used_percent": 42.0, "window_minutes": 300, "resets_at": NOW + HOUR},
        "secondary": {"used_percent": 7.9, "window_minutes": 10080, "resets_in_seconds": 60},
        "credits": null, "plan_type": "plus"});
    assert_eq!(codex_limits(&limits, NOW), [figure("five_hour", 42, HOUR), figure("seven_day", 7, 60)]);
    let other =
        json!({"primary": {"used_percent": 1, "window_minutes": 90, "resets_at": NOW}, "secondary": null});
    let read = codex_limits(&other, NOW);
    assert_eq!(
        (read.len(), read[0].window.as_str(), &*read[0].title()),
        (1, "90_minutes", "90 minute limit")
    );
    for odd in [
        json!(null),
        json!({"primary": {"used_percent": 1}}),
        json!({"primary": {"used_percent": 1, "window_minutes": 0}}),
        json!({"limit_id": "codex_other", "primary": {"used_percent": 100, "window_minutes": 300, "resets_at": NOW}}),
    ] {
        assert_eq!(codex_limits(&odd, NOW), [], "{odd}");
    }
}

#[test]
fn an_account_is_parked_at_the_limit_until_the_latest_reset() {
    let five = |used| figure("five_hour", used, HOUR);
    let seven = |used| figure("seven_day", used, 50 * HOUR);
    for (figures, park_at, until) in [
        (vec![five(92)], Some(90), Some(HOUR)),
        (vec![five(90)], Some(90), Some(HOUR)),
        (vec![five(89)], Some(90), None),
        (vec![five(100)], None, None),
        (vec![five(92), seven(95)], Some(90), Some(50 * HOUR)),
        (vec![five(92), seven(20)], Some(90), Some(HOUR)),
        (vec![QuotaFigure::reached(NOW + 60, NOW)], None, Some(60)),
        // A reset that has passed, or is too far away for its window.
        (vec![figure("five_hour", 99, -1)], Some(90), None),
        (vec![figure("five_hour", 99, 6 * HOUR)], Some(90), None),
        (vec![QuotaFigure { resets_at: None, ..five(99) }], Some(90), None),
    ] {
        let account = account(&figures);
        let found = account.parking(park_at, NOW).and_then(|figure| figure.resets_at);
        assert_eq!(found, until.map(|until| NOW + until), "{figures:?} {park_at:?}");
    }
}

#[test]
fn figures_end_at_their_reset_and_after_a_jump_of_the_clock() {
    let mut quota = account(&[figure("five_hour", 99, HOUR)]);
    for (now, parks) in [
        (NOW, true),
        (NOW + HOUR - 1, true),
        (NOW + HOUR, false),
        (NOW + 1000 * HOUR, false),
        // A clock that was set back: at most a window is left.
        (NOW - 3 * HOUR, true),
        (NOW - 5 * HOUR, false),
    ] {
        assert_eq!(quota.parking(Some(90), now).is_some(), parks, "{}", now - NOW);
    }
    assert!(!quota.expire(NOW) && quota.expire(NOW + HOUR) && quota.is_empty());
}

#[test]
fn the_newest_figure_counts_and_a_repeated_one_is_not_new() {
    let mut quota = account(&[figure("five_hour", 60, HOUR)]);
    let used = |quota: &AccountQuota| quota.figures["five_hour"].used;
    // Another session that has done nothing for a while.
    assert!(!quota.report("b", &[figure("five_hour", 20, HOUR)], NOW));
    assert!(quota.report("c", &[figure("five_hour", 70, HOUR)], NOW));
    assert!(!quota.report("a", &[figure("five_hour", 60, HOUR)], NOW), "repeated");
    assert_eq!(used(&quota), 70);
    // The first session has asked its API again: the account has more than before.
    assert!(quota.report("a", &[figure("five_hour", 30, HOUR)], NOW));
    assert_eq!(used(&quota), 30);
    // A later window replaces the earlier one, and never the other way round.
    assert!(quota.report("b", &[figure("five_hour", 1, 4 * HOUR)], NOW));
    assert!(!quota.report("a", &[figure("five_hour", 31, HOUR)], NOW));
    assert_eq!(used(&quota), 1);
}

#[test]
fn lifted_park_ends_at_its_reset_and_a_later_limit_parks_again() {
    let mut quota = account(&[figure("five_hour", 99, HOUR)]);
    assert_eq!(quota.lift(Some(100), NOW), None);
    assert_eq!(quota.lift(Some(90), NOW), Some(NOW + HOUR));
    assert_eq!(quota.parking(Some(90), NOW), None);
    let later = figure("seven_day", 91, 9 * HOUR);
    quota.report("a", std::slice::from_ref(&later), NOW);
    assert_eq!(quota.parking(Some(90), NOW), Some(&later));
    quota.expire(NOW + HOUR);
    assert_eq!(quota.lifted_until, None);
}

#[test]
fn the_limit_of_a_model_is_not_that_of_the_account() {
    for (kind, message, is_account) in [
        (OutageKind::Limit, "You've hit your session limit · resets 3pm", true),
        (OutageKind::Limit, "You've hit your Opus limit · resets 3pm", false),
        (OutageKind::Overload, "overloaded", false),
    ] {
        let outage = Outage { kind, message: message.into(), until: None };
        assert_eq!(is_account_limit(&outage), is_account, "{message}");
    }
}

#[test]
fn park_reason_names_the_account_and_the_limit() {
    let wall = DateTime::from_timestamp(NOW, 0).unwrap().fixed_offset();
    let park = Park::of("claude account ~/.claude".into(), &figure("five_hour", 92, HOUR), wall).unwrap();
    assert_eq!(park.reason(), "claude account ~/.claude used 92 % of its 5 hour limit");
    assert_eq!(park.until.timestamp(), NOW + HOUR);
}

/// Any JSON, also with the names that the readers look for.
fn value() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        Just("five_hour"),
        Just("seven_day"),
        Just("used_percentage"),
        Just("resets_at"),
        Just("rate_limits"),
        Just("primary"),
        Just("used_percent"),
        Just("window_minutes"),
        Just("resets_in_seconds"),
        Just("limit_id"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z0-9:T-]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..6).prop_map(|pairs| {
                pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Value>()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn random_input_does_not_panic(input in value(), now in any::<i64>()) {
        let _ = (claude_limits(&input, now), codex_limits(&input, now));
    }

    /// Whatever is reported, and whatever the clock does: a park ends, and soon enough.
    #[test]
    fn no_park_lasts_longer_than_its_window(
        reports in proptest::collection::vec((0_u16..120, any::<Option<i32>>(), any::<i16>()), 0..8),
        park_at in proptest::option::of(1_u8..=100),
        jump in any::<i32>(),
    ) {
        let mut quota = AccountQuota::default();
        for (n, (used, resets, shift)) in reports.into_iter().enumerate() {
            let at = NOW + i64::from(shift);
            let resets_at = resets.map(|resets| NOW + i64::from(resets));
            let figure = QuotaFigure { resets_at, read_at: at, ..figure("five_hour", used, 0) };
            quota.report(&format!("w{}", n % 3), &[figure], at);
        }
        let now = NOW + i64::from(jump);
        if let Some(figure) = quota.parking(park_at, now) {
            let left = figure.resets_at.unwrap() - now;
            prop_assert!(left > 0 && left <= 5 * HOUR + CLOCK_TOLERANCE_SECONDS);
            prop_assert!(figure.used >= u16::from(park_at.unwrap()));
            prop_assert_eq!(quota.parking(park_at, now + left), None);
        }
        prop_assert!(quota.clone().lift(park_at, now).is_some() == quota.parking(park_at, now).is_some());
        quota.lift(park_at, now);
        prop_assert_eq!(quota.parking(park_at, now), None);
    }
}
