//! A report in words.

use swarm_state::advice::{Situation, next_step};
use swarm_state::cause::Cause;
use swarm_state::gates::Verdict;
use swarm_state::notice::{IterationExit, StopReason};

use super::*;

/// The word for how it ended, or why it has not.
pub(super) fn end_word(report: &Report) -> &'static str {
    match (report.end, report.status) {
        (Some(end), _) => end.word(),
        (None, LoopStatus::Paused) => "paused",
        (None, LoopStatus::Running | LoopStatus::Stopped | LoopStatus::Failed) => "running",
    }
}

/// `3 iterations, 2m 5s, $0.12`
fn used(report: &Report) -> String {
    let count = counted(report.iterations.len() as u64, "iteration");
    let mut text = format!("{count}, {}", duration(report.seconds as u64, " "));
    if report.cost > 0.0 {
        text += &format!(", {}", dollars((report.cost * 1e6).round() as u64));
    }
    if report.tokens > 0 {
        text += &format!(", {}", counted(report.tokens, "token"));
    }
    text
}

/// What `swarm loop` says at its end.
pub(super) fn result(report: &Report) -> Vec<String> {
    let mut lines = vec![format!("{}: {} ({})", report.name, end_word(report), used(report))];
    match report.iterations.last() {
        Some(last) => lines.extend(gates(last)),
        // Nothing else says why.
        None => {
            let why = before_first(report).or_else(|| report.reason.as_deref().map(printable));
            lines.extend(why.map(|why| format!("  FAIL  {why}")));
        }
    }
    lines.extend(worktree(report));
    lines
}

/// The gates of an iteration, one a line.
fn gates(it: &Iteration) -> Vec<String> {
    let Some(verdict) = &it.verdict else { return vec![] };
    let mut lines = vec![];
    for check in &verdict.checks {
        let excused = verdict.excused.contains(&check.name);
        let word = if excused && !check.passed { "FAIL (it failed before, and may)" } else { outcome(check) };
        lines.push(format!("  {word}  {}", printable(&check.name)));
    }
    lines.extend(verdict.other_remarks().iter().map(|remark| format!("  FAIL  {}", printable(remark))));
    if verdict.promise.is_some_and(swarm_state::promise::Claim::holds) {
        let seen = verdict.promise_seen.map(|source| format!(" (promise seen in: {})", source.word()));
        lines.push(format!("  PASS  the promise was given{}", seen.unwrap_or_default()));
    }
    if verdict.done_pattern == Some(true) {
        lines.push("  PASS  the done pattern appeared".into());
    }
    lines.extend(it.warnings.iter().map(|warning| format!("  warning: {}", printable(warning))));
    lines
}

/// How a check came out, in a word or a few.
fn outcome(check: &swarm_state::gates::CheckResult) -> &'static str {
    match (check.passed, check.cut) {
        (true, _) => "PASS",
        (false, true) => "FAIL (the loop's time was over)",
        (false, false) => "FAIL",
    }
}

/// Whether every gate held, however the agent ended.
fn is_complete(it: &Iteration) -> bool {
    it.verdict.as_ref().is_some_and(Verdict::is_complete)
}

/// How an iteration ended, in one line.
fn ending(it: &Iteration) -> String {
    let verb = if it.has_failed() && !is_complete(it) { "failed" } else { "ended" };
    let took = duration(it.seconds as u64, " ");
    let why = it.trouble().or_else(|| it.end.map(|_| it.reason.clone()));
    let why = why.map(|why| format!(": {}", printable(&why))).unwrap_or_default();
    format!("iteration {} {verb} after {took}{why}", it.iteration)
}

/// What the agent of an iteration that did not do well printed last.
fn last_output(report: &Report, it: &Iteration) -> Vec<String> {
    if it.last_lines.is_empty() || it.trouble().is_none() || is_complete(it) {
        return vec![];
    }
    let mut lines = vec![format!("the agent's last output (full log: swarm logs {}):", report.name)];
    lines.extend(it.last_lines.iter().map(|line| format!("  | {}", printable(line))));
    lines
}

/// Whether the base line took all of the loop's time.
fn is_stuck_at_base(report: &Report) -> bool {
    report.end == Some(End::Timeout) && report.iterations.is_empty()
}

/// Why there was no iteration, where the reason alone does not tell.
fn before_first(report: &Report) -> Option<String> {
    let cut = report.baseline.iter().find(|check| check.cut);
    let cut = cut.map(|check| format!(" (at '{}')", printable(&check.name))).unwrap_or_default();
    is_stuck_at_base(report)
        .then(|| format!("the base line took all of the loop's time{cut}; no agent was started"))
}

/// How to look at the work and take it over.
fn worktree(report: &Report) -> Vec<String> {
    let Some(worktree) = &report.worktree else { return vec![] };
    let (path, repo) = (worktree.path.display(), worktree.base_repo.display());
    let ignored = &report.ignored;
    let mut remove = format!("  remove: swarm clean {}", report.name);
    if !ignored.data.is_empty() {
        remove.push_str(" --discard-ignored");
    }
    if !ignored.is_empty() {
        remove.push_str(&format!("  (deletes ignored files: {})", ignored.summary()));
    }
    let keep = (!ignored.data.is_empty())
        .then(|| "  keep:   copy the ignored files that you need; no commit contains them".to_owned());
    let mut lines = vec![
        format!(
            "worktree: {path} (branch {}); commit what its agent left uncommitted, then merge:",
            worktree.branch
        ),
        format!("  look:   swarm ralph diff {}", report.name),
        format!("  commit: git -C '{path}' add -A && git -C '{path}' commit -m '{}'", report.name),
        format!("  merge:  git -C '{repo}' merge {}", worktree.branch),
    ];
    lines.extend(keep);
    lines.push(remove);
    lines
}

/// What a merge must name to bring all of the work: the last snapshot, which holds what nobody committed too.
fn work(report: &Report, branch: &str) -> String {
    let last = report.iterations.iter().rev().find(|it| it.commit.is_some());
    last.map_or_else(|| branch.to_owned(), |it| format!("{}/{}", report.snapshots, it.iteration))
}

/// `swarm why`: ten lines at most, and the last output of an agent that failed.
pub(super) fn why(report: &Report) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {} (iteration {}/{}){}",
        report.name,
        report.worker_status,
        report.current_iteration,
        report.max_iterations,
        report.reason.as_ref().map(|reason| format!(": {}", printable(reason))).unwrap_or_default()
    )];
    if !report.task.is_empty() {
        lines.push(format!("task: {}", printable(&report.task)));
    }
    lines.push(format!("used: {}", used(report)));
    lines.extend(watched(report));
    lines.extend(before_first(report));
    lines.extend(report.warnings.iter().take(1).map(|warning| format!("warning: {}", printable(warning))));
    lines.extend(unapproved(report));
    if let Some(last) = report.iterations.last() {
        lines.push(ending(last));
        let gates = gates(last);
        let room = 9_usize.saturating_sub(lines.len());
        let more = gates.len().saturating_sub(room);
        let shown = if more > 0 { room.saturating_sub(1) } else { room };
        lines.extend(gates.into_iter().take(shown));
        if more > 0 {
            lines.push(format!("  and {} more: swarm report {}", more + 1, report.name));
        }
        lines.extend(last_output(report, last));
    }
    lines.push(format!("next: {}", next(report)));
    lines
}

/// Which files keep an iteration from counting as done when it changes them.
fn watched(report: &Report) -> Option<String> {
    let watched = report.watched.as_ref().filter(|_| !report.gates.is_empty())?;
    if report.gates.allow_changed_checks {
        return Some("watched: no file, as --allow-changed-checks says".to_owned());
    }
    let shown: Vec<&str> = watched.files.iter().take(3).map(String::as_str).collect();
    let more = watched.count.saturating_sub(shown.len() as u64);
    Some(match (shown.is_empty(), more) {
        (true, _) if !report.gates.protect.is_empty() => {
            "watched: no file; what --protect names is not there".to_owned()
        }
        (true, _) => "watched: no file; --protect would name some".to_owned(),
        (false, 0) => format!("watched: {}", printable(&shown.join(", "))),
        (false, more) => format!("watched: {} and {more} more", printable(&shown.join(", "))),
    })
}

/// What the checks that run are for.
fn at_checks(report: &Report) -> String {
    match report.watched {
        // The base line is not written down yet.
        None => "the base line is taken, then the first starts".to_owned(),
        Some(_) => format!("that of iteration {} has ended", report.current_iteration),
    }
}

/// The watched files that are not as they were, where the last iteration does not say so already.
fn unapproved(report: &Report) -> Option<String> {
    let verdict = report.iterations.last().and_then(|last| last.verdict.as_ref());
    let told = |file: &String| verdict.is_some_and(|verdict| verdict.changed.contains(file));
    let untold: Vec<String> = report.unapproved.iter().filter(|file| !told(file)).cloned().collect();
    let files = printable(&swarm_state::notice::named(&untold, 3));
    (!untold.is_empty()).then(|| format!("changed since the start, and not approved: {files}"))
}

/// What to do next.
fn next(report: &Report) -> String {
    let name = &report.name;
    let is_unfinished = |end: End| end.exit_code(true) != 0;
    let verdict = report.iterations.last().and_then(|it| it.verdict.as_ref());
    let was_changed = verdict.is_some_and(|verdict| !verdict.changed.is_empty());
    // While an agent works, it may still put right what no iteration ended with.
    let changed = !report.unapproved.is_empty() && (was_changed || report.end.is_some());
    if was_changed && !changed && report.end.is_some_and(is_unfinished) {
        return format!("no watched file differs from what is approved: swarm respawn {name}");
    }
    if changed && report.end.is_none_or(is_unfinished) {
        let again = if report.end.is_some() { format!(", then swarm respawn {name}") } else { String::new() };
        return format!(
            "look at the changed checks (swarm ralph diff {name}); to take them: swarm ralph approve {name}{again}"
        );
    }
    if let Some(end) = report.end {
        return after(report, end);
    }
    let situation = Situation {
        name,
        status: report.worker_status,
        is_loop: true,
        is_paused: report.status == LoopStatus::Paused,
        cause: report.cause.as_ref(),
    };
    match &report.cause {
        Some(Cause::Checking { .. }) => {
            format!("nothing; the checks run, and no agent: {}", at_checks(report))
        }
        _ => next_step(&situation)
            .unwrap_or_else(|| format!("nothing; swarm attach {name} shows the agent at work")),
    }
}

/// What to do after an end.
fn after(report: &Report, end: End) -> String {
    let name = &report.name;
    match end {
        End::Lost => format!("swarm ralph resume {name}"),
        End::AllChecksPassed | End::PromiseAccepted | End::DonePattern => match &report.worktree {
            Some(worktree) => {
                format!("git -C '{}' merge {}", worktree.base_repo.display(), work(report, &worktree.branch))
            }
            None => format!("look at the work: swarm ralph diff {name}"),
        },
        _ if matches!(&report.cause, Some(Cause::Stopped { reason: StopReason::NoGate, .. })) => {
            "ask for something that does not fail already, or leave --allow-preexisting out".to_owned()
        }
        _ if report.iterations.last().is_some_and(|it| it.no_agent) => {
            format!("mend why the agent was not started, then swarm respawn {name}")
        }
        _ if is_stuck_at_base(report) => {
            "give it more time (--max-time) or quicker checks; a respawn would end the same".to_owned()
        }
        End::MaxIterations | End::BudgetExhausted | End::Timeout => {
            format!("more of it: swarm respawn {name}; or look: swarm report {name}")
        }
        End::PromptMissing => {
            format!("put {} back, then swarm respawn {name}", report.prompt_file.display())
        }
        End::Failed | End::Killed | End::Cancelled => {
            format!("see what it printed: swarm logs {name}; then swarm respawn {name}")
        }
    }
}

/// `swarm report`: the ledger.
pub(super) fn markdown(report: &Report) -> Vec<String> {
    let mut lines = vec![format!("# {}", report.name), String::new()];
    if !report.task.is_empty() {
        lines.extend([printable(&report.task), String::new()]);
    }
    let why = report.reason.as_ref().map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
    lines.push(format!("{}, {}{why}", end_word(report), used(report)));
    lines.extend(before_first(report));
    lines.extend([String::new(), header(), "|---|---|---|---|---|---|---|---|---|".into()]);
    lines.extend(report.iterations.iter().map(row));
    if !report.baseline.is_empty() {
        lines.extend([String::new(), "Before the first iteration:".into(), String::new()]);
        lines.extend(report.baseline.iter().map(|c| format!("- {} {}", outcome(c), printable(&c.name))));
    }
    let told = watched(report)
        .into_iter()
        .chain(unapproved(report))
        .chain(report.warnings.iter().map(|w| format!("warning: {w}")));
    let told: Vec<String> = told.map(|line| format!("- {}", printable(&line))).collect();
    if !told.is_empty() {
        lines.extend([String::new(), "Of all iterations:".into(), String::new()]);
        lines.extend(told);
    }
    for it in &report.iterations {
        let gates = gates(it);
        if !gates.is_empty() {
            let how = it.trouble().map(|how| format!(" ({})", printable(&how))).unwrap_or_default();
            lines.extend([String::new(), format!("Iteration {}{how}:", it.iteration), String::new()]);
            lines.extend(gates.into_iter().map(|line| format!("- {}", line.trim_start())));
        }
    }
    let worktree = worktree(report);
    if !worktree.is_empty() {
        lines.push(String::new());
        lines.extend(worktree);
    }
    lines
}

fn header() -> String {
    "| iteration | started | took | exit | cost | tokens | tools | changed | snapshot |".into()
}

fn row(it: &Iteration) -> String {
    let unknown = || "-".to_owned();
    let verdict = it.verdict.as_ref();
    let exit = match (it.exit_code, it.signal) {
        _ if it.end.is_some() && !it.no_agent => it.end.map(IterationExit::word).unwrap_or_default(),
        (_, Some(signal)) => format!("signal {signal}"),
        _ if it.no_agent => "not started".into(),
        (Some(code), None) => code.to_string(),
        (None, None) => "unknown".into(),
    };
    let cells = [
        it.iteration.to_string(),
        it.started.as_deref().map_or_else(unknown, |at| at.chars().take(19).collect()),
        duration(it.seconds as u64, " "),
        exit,
        verdict.and_then(|v| v.cost).map_or_else(unknown, dollars),
        verdict.and_then(|v| v.tokens).map_or_else(unknown, |n| n.to_string()),
        it.tool_calls.map_or_else(unknown, |n| n.to_string()),
        it.diff.map_or_else(unknown, |d| format!("{} +{} -{}", counted(d.files, "file"), d.added, d.removed)),
        it.commit.as_deref().map_or_else(unknown, |commit| commit.chars().take(10).collect()),
    ];
    format!("| {} |", cells.join(" | "))
}
