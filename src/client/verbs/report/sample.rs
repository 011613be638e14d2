//! Sample views for the tests of the formats.

use chrono::DateTime;
use swarm_state::attention::Attention;
use swarm_state::model::Status;
use swarm_state::morning::{IterationPoint, Morning, MorningRow, Period, PeriodWork, UnmergedWork};

const EVENING: &str = "2026-01-14T20:00:00+01:00";
const MIDNIGHT: &str = "2026-01-15T00:00:00+01:00";

fn row(name: &str, status: Status, why: &str, next: Option<&str>) -> MorningRow {
    MorningRow {
        name: name.into(),
        status,
        group: Attention::of(status, None, false),
        why: why.into(),
        reason: Some(why.into()).filter(|why: &String| !why.is_empty()),
        cause: None,
        next: next.map(str::to_owned),
        is_loop: false,
        iteration: None,
        max_iterations: None,
        iteration_started: None,
        started: EVENING.into(),
        status_since: Some(MIDNIGHT.into()),
        is_idle: false,
        is_seen: false,
        work: PeriodWork::default(),
        history: vec![],
        branch: None,
        unmerged: None,
    }
}

/// A loop with `count` iterations of the night, which ends at iteration `last`.
fn looped(row: MorningRow, last: u32, count: u32) -> MorningRow {
    let mut row = MorningRow { is_loop: true, iteration: Some(last.into()), max_iterations: Some(20), ..row };
    for iteration in last - count + 1..=last {
        let point = IterationPoint {
            iteration,
            ended: MIDNIGHT.into(),
            agent_seconds: 100.0 * f64::from(iteration),
            check_seconds: Some(20.0),
            failed: iteration == 2,
            checks_passed: u64::from(iteration.min(3)),
            checks_failed: u64::from(3 - iteration.min(3)),
            cost: Some(150_000),
        };
        row.work.add(&point);
        row.history.push(point);
    }
    row
}

fn period() -> Period {
    let at = |text| DateTime::parse_from_rfc3339(text).unwrap();
    Period { since: Some(at("2026-01-14T22:41:00+01:00")), until: at("2026-01-15T07:53:10+01:00") }
}

/// A view with each group.
pub(super) fn night() -> Morning {
    let asks = "permission: Bash: rm -rf build && make clean all 2>&1 | tee build.log";
    let answer = "swarm answer api yes, no, always or a text; or: swarm attach api";
    let fix = row("fix", Status::Done, "all checks passed", Some("git -C /home/u/repo merge swarm/fix"));
    let rows = vec![
        looped(row("api", Status::Waiting, asks, Some(answer)), 4, 2),
        MorningRow {
            branch: Some("swarm/fix".into()),
            unmerged: Some(UnmergedWork { commits: 2, uncommitted: 0 }),
            ..looped(fix, 3, 3)
        },
        looped(
            row("docs", Status::Failed, "5 consecutive failures: exit status 1", Some("swarm why docs")),
            5,
            5,
        ),
        row("build", Status::Running, "", None),
        row("a-worker-with-a-rather-long-name-0001", Status::Retrying, "exit status 1", None),
        row("later", Status::Paused, "", Some("swarm ralph resume later")),
        MorningRow { status_since: None, group: Attention::Rest, ..row("old", Status::Done, "exited", None) },
    ];
    let rows = rows.into_iter().map(|row| match row.name.as_str() {
        "later" => MorningRow { group: Attention::Parked, ..row },
        _ => row,
    });
    Morning::new(period(), rows.collect(), vec!["gone".into()])
}

/// A view whose texts from outside are all `text`.
pub(super) fn with_texts(text: &str) -> Morning {
    let worker = MorningRow { branch: Some(text.into()), ..row(text, Status::Waiting, text, Some(text)) };
    Morning::new(period(), vec![looped(worker, 3, 3)], vec![text.into()])
}
