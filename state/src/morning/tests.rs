use proptest::prelude::*;

use super::*;
use crate::check_result::CheckResult;
use crate::gates::Verdict;
use crate::model::Exit;
use crate::notice::IterationExit;

fn at(text: &str) -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339(text).unwrap()
}

/// From 22:41 to 07:53 of the next day.
fn night() -> Period {
    Period { since: Some(at("2026-01-14T22:41:00+01:00")), until: at("2026-01-15T07:53:10+01:00") }
}

const EVENING: &str = "2026-01-14T20:00:00+01:00";
const MIDNIGHT: &str = "2026-01-15T00:00:00+01:00";

/// A worker that started and got its status before the night.
fn row(name: &str, status: Status, group: Attention) -> MorningRow {
    MorningRow {
        name: name.into(),
        status,
        group,
        why: String::new(),
        reason: None,
        cause: None,
        next: None,
        is_loop: false,
        iteration: None,
        max_iterations: None,
        iteration_started: None,
        started: EVENING.into(),
        status_since: Some(EVENING.into()),
        is_idle: false,
        is_seen: false,
        work: PeriodWork::default(),
        history: vec![],
        branch: None,
        unmerged: None,
    }
}

fn point(iteration: u32, seconds: f64, cost: Option<u64>) -> IterationPoint {
    IterationPoint { iteration, agent_seconds: seconds, cost, ..IterationPoint::default() }
}

#[test]
fn a_period_names_its_start_and_its_length() {
    for (since, until, text) in [
        ("2026-01-14T22:41:00+01:00", "2026-01-15T07:53:10+01:00", "since 22:41 yesterday, 9h 12m"),
        ("2026-01-15T07:00:00+01:00", "2026-01-15T07:53:10+01:00", "since 07:00, 53m 10s"),
        ("2026-01-15T07:53:00+01:00", "2026-01-15T07:53:10+01:00", "since 07:53, 10s"),
        ("2026-01-12T09:05:00+01:00", "2026-01-15T07:53:10+01:00", "since 09:05 on 2026-01-12, 2d 22h"),
        ("2026-01-13T08:00:00+01:00", "2026-01-15T07:53:10+01:00", "since 08:00 on 2026-01-13, 47h 53m"),
        // The clock was set back meanwhile.
        ("2026-01-15T08:00:00+01:00", "2026-01-15T07:53:10+01:00", "since 08:00, 0s"),
        // The night in which the summer time begins.
        ("2026-03-28T22:00:00+01:00", "2026-03-29T07:00:00+02:00", "since 22:00 yesterday, 8h 0m"),
    ] {
        assert_eq!(Period { since: Some(at(since)), until: at(until) }.text(), text);
    }
    assert_eq!(Period { since: None, until: at(MIDNIGHT) }.text(), "everything so far");
}

#[test]
fn a_period_has_the_times_since_its_start() {
    let is_in = |text| night().has(text);
    assert!(is_in(MIDNIGHT) && is_in("2026-01-14T22:41:00+01:00") && is_in("2026-01-14T21:41:00+00:00"));
    assert!(!is_in(EVENING) && !is_in("yesterday") && !is_in(""));
    let seconds = |from, to| night().seconds_of(at(from), at(to));
    assert_eq!(seconds(EVENING, MIDNIGHT), 79.0 * 60.0);
    assert_eq!(seconds(MIDNIGHT, "2026-01-15T00:00:02.500+01:00"), 2.5);
    assert_eq!(seconds(EVENING, EVENING), 0.0);
    assert_eq!(seconds(MIDNIGHT, EVENING), 0.0);
}

#[test]
fn iteration_point_counts_the_checks() {
    let check = |passed| CheckResult {
        name: "c".into(),
        passed,
        output: String::new(),
        seconds: 2.0,
        cut: false,
        tests: None,
    };
    let verdict = Verdict {
        checks: vec![check(true), check(false), check(true)],
        cost: Some(120_000),
        ..Verdict::default()
    };
    let it = Iteration {
        iteration: 3,
        ended: MIDNIGHT.into(),
        seconds: 9.0,
        end: Some(IterationExit::Exit(Exit::Code(3))),
        exit_code: Some(3),
        verdict: Some(verdict),
        ..Iteration::default()
    };
    let found = IterationPoint::of(&it);
    let wanted = IterationPoint {
        iteration: 3,
        ended: MIDNIGHT.into(),
        agent_seconds: 9.0,
        check_seconds: Some(6.0),
        failed: true,
        checks_passed: 2,
        checks_failed: 1,
        cost: Some(120_000),
    };
    assert_eq!(found, wanted);
    let mut work = PeriodWork::default();
    work.add(&found);
    work.add(&IterationPoint::of(&Iteration::default()));
    let wanted = PeriodWork {
        iterations: 2,
        failed: 1,
        agent_seconds: 9.0,
        check_seconds: 6.0,
        checks_passed: 2,
        checks_failed: 1,
        cost: Some(120_000),
    };
    assert_eq!(work, wanted);
}

#[test]
fn only_workers_with_news_have_a_line() {
    let idle = |row| MorningRow { is_idle: true, ..row };
    let worked = |row| MorningRow { work: PeriodWork { iterations: 1, ..PeriodWork::default() }, ..row };
    let changed = |row| MorningRow { status_since: Some(MIDNIGHT.into()), ..row };
    let unknown = |row| MorningRow { status_since: None, ..row };
    let (running, paused, done) = (Status::Running, Status::Paused, Status::Done);
    for (row, has_news) in [
        (row("a", Status::Waiting, Attention::NeedsYou), true),
        (row("a", Status::Failed, Attention::FailedOrLost), true),
        (row("a", running, Attention::Working), true),
        (idle(row("a", running, Attention::Working)), false),
        (changed(idle(row("a", running, Attention::Working))), true),
        (row("a", paused, Attention::Parked), false),
        (worked(row("a", paused, Attention::Parked)), true),
        (unknown(row("a", paused, Attention::Parked)), false),
        (row("a", done, Attention::FinishedUnseen), true),
        (row("a", done, Attention::Rest), false),
        (changed(row("a", Status::Killed, Attention::Rest)), true),
        (MorningRow { started: MIDNIGHT.into(), ..row("a", done, Attention::Rest) }, true),
    ] {
        assert_eq!(row.has_news(&night()), has_news, "{row:?}");
        assert!(row.has_news(&Period { since: None, ..night() }));
    }
}

#[test]
fn workers_are_sorted_by_attention_and_those_without_news_counted() {
    let rows = vec![
        row("a", Status::Done, Attention::FinishedUnseen),
        row("b", Status::Paused, Attention::Parked),
        row("c", Status::Failed, Attention::FailedOrLost),
        row("d", Status::Done, Attention::Rest),
        row("e", Status::Waiting, Attention::NeedsYou),
        row("f", Status::Done, Attention::Rest),
        row("g", Status::Waiting, Attention::NeedsYou),
    ];
    let removed = ["x", "y"].map(str::to_owned).to_vec();
    let view = Morning::new(night(), rows, removed);
    let groups: Vec<(Attention, Vec<&str>)> = view
        .groups()
        .map(|(group, rows)| (group, rows.iter().map(|row| row.name.as_str()).collect()))
        .collect();
    let wanted = [
        (Attention::NeedsYou, vec!["e", "g"]),
        (Attention::FailedOrLost, vec!["c"]),
        (Attention::FinishedUnseen, vec!["a"]),
    ];
    assert_eq!(groups, wanted);
    assert_eq!(view.remarks(), ["3 workers without news: 1 parked, 2 finished", "deleted: x, y"]);
    assert_eq!(view.headline(), "since 22:41 yesterday, 9h 12m: 4 workers, 0 iterations");
    let empty = Morning::new(Period { since: None, ..night() }, vec![], vec![]);
    assert_eq!(empty.headline(), "everything so far: 0 workers, 0 iterations");
    assert_eq!(empty.remarks(), Vec::<String>::new());
}

#[test]
fn loop_row_shows_the_iterations_of_the_period_and_the_current_one() {
    let mut worker = MorningRow {
        is_loop: true,
        iteration: Some(5),
        max_iterations: Some(9),
        ..row("a", Status::Running, Attention::Working)
    };
    assert_eq!((worker.iterations_text(), worker.cost_text()), ("5/9".into(), "-".into()));
    for (number, seconds, cost) in [(3, 10.0, None), (4, 20.0, Some(250_000))] {
        let point = IterationPoint { check_seconds: Some(1.0), ..point(number, seconds, cost) };
        worker.work.add(&point);
        worker.history.push(point);
    }
    worker.iteration_started = Some("2026-01-15T07:53:00+01:00".into());
    assert_eq!((worker.iterations_text(), worker.cost_text()), ("+2, 5/9".into(), "$0.25".into()));
    assert_eq!(worker.seconds(&night()), 42.0, "with the current iteration");
    worker.history.push(point(5, 0.0, None));
    assert_eq!(worker.seconds(&night()), 32.0, "its agent has ended");
    worker.work.iterations = 4;
    assert_eq!(worker.iterations_text(), "5/9", "all of them");
    worker.status = Status::Done;
    assert_eq!(worker.iterations_text(), "+4, 5/9");
    worker.work.iterations = 5;
    assert_eq!(worker.iterations_text(), "5/9");
    worker.max_iterations = None;
    assert_eq!(worker.iterations_text(), "5");
}

#[test]
fn a_plain_worker_shows_how_long_it_ran_in_the_period() {
    let mut worker = row("a", Status::Running, Attention::Working);
    assert_eq!((worker.iterations_text().as_str(), worker.seconds(&night())), ("-", 33_130.0));
    worker.status = Status::Done;
    worker.status_since = Some(MIDNIGHT.into());
    assert_eq!(worker.seconds(&night()), 79.0 * 60.0);
    worker.started = "?".into();
    assert_eq!(worker.seconds(&night()), 0.0);
}

#[test]
fn unmerged_work_is_named() {
    for (commits, uncommitted, text) in [
        (0, 0, None),
        (1, 0, Some("1 commit to merge")),
        (0, 2, Some("2 uncommitted files")),
        (2, 1, Some("2 commits to merge, 1 uncommitted file")),
    ] {
        assert_eq!(UnmergedWork { commits, uncommitted }.text().as_deref(), text);
    }
    let why = "all checks passed".to_owned();
    let unmerged = Some(UnmergedWork { commits: 1, uncommitted: 0 });
    let mut worker = MorningRow { why, unmerged, ..row("a", Status::Done, Attention::FinishedUnseen) };
    assert_eq!(worker.result_text(), "all checks passed; 1 commit to merge");
    worker.why.clear();
    assert_eq!(worker.result_text(), "1 commit to merge");
}

#[test]
fn money_is_rounded_to_cents() {
    for (millionths, text) in [
        (0, "$0.00"),
        (2_500, "$0.0025"),
        (10_000, "$0.01"),
        (6_984_400, "$6.98"),
        (123_456_000_000, "$123456.00"),
    ] {
        assert_eq!(brief_dollars(millionths), text);
    }
}

#[test]
fn durations_have_two_units() {
    for (seconds, text) in [
        (0, "0s"),
        (3599, "59m 59s"),
        (3600, "1h 0m"),
        (172_799, "47h 59m"),
        (172_800, "2d 0h"),
        (360_000, "4d 4h"),
    ] {
        assert_eq!(brief_duration(seconds), text);
    }
}

proptest! {
    #[test]
    fn all_workers_are_counted_and_the_totals_are_the_sums(
        workers in prop::collection::vec((0_usize..6, any::<bool>(), 0_u64..4, prop::option::of(0_u64..9)), 0..20),
    ) {
        let rows: Vec<MorningRow> = workers
            .iter()
            .enumerate()
            .map(|(number, (group, is_idle, iterations, cost))| MorningRow {
                is_idle: *is_idle,
                work: PeriodWork { iterations: *iterations, cost: *cost, ..PeriodWork::default() },
                ..row(&format!("w{number}"), Status::Running, Attention::ALL[*group])
            })
            .collect();
        let view = Morning::new(night(), rows.clone(), vec![]);
        let mut names: Vec<&String> =
            view.rows.iter().map(|row| &row.name).chain(view.quiet.iter().map(|quiet| &quiet.name)).collect();
        names.sort();
        let mut wanted: Vec<&String> = rows.iter().map(|row| &row.name).collect();
        wanted.sort();
        prop_assert_eq!(names, wanted);
        prop_assert!(view.rows.is_sorted_by_key(|row| row.group));
        let totals = view.totals();
        // A worker without news has no iterations.
        prop_assert_eq!(totals.iterations, workers.iter().map(|worker| worker.2).sum::<u64>());
        let known: Vec<u64> = view.rows.iter().filter_map(|row| row.work.cost).collect();
        prop_assert_eq!(totals.cost, (!known.is_empty()).then(|| known.iter().sum()));
        let grouped: usize = view.groups().map(|(_, rows)| rows.len()).sum();
        prop_assert_eq!(grouped, view.rows.len());
    }
}
