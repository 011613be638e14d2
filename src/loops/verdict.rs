//! Ends an iteration: reads the agent's account, runs the checks, stores the tree as a commit, and forms the verdict.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use swarm_state::engine::Ended;
use swarm_state::gates::{CheckResult, Verdict, not_started};
use swarm_state::ledger::{Base, Iteration};
use swarm_state::notice::IterationExit;
use swarm_state::outage::{Outage, Wording, one_line};
use swarm_state::pattern::Pattern;
use swarm_state::promise::Source;
use swarm_state::screen::{ScreenReader, printable};
use swarm_state::transcript::{Account, ApiError};
use tokio::time::sleep;

use super::canary::undo_canary;
use super::gates::Before;
use super::run::{Finished, LoopRun, SNAPSHOT_GRACE, long_over};
use super::{account, protect};
use crate::checks::OnCheckStep;
use crate::error::{Result, sentence};
use crate::git;

/// How often to look whether the worker is being killed.
const HURRY_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How many of the last lines of an agent's output a report shows, and how many characters of each.
const MAX_SHOWN_LINES: usize = 5;
const MAX_SHOWN_LINE_CHARS: usize = 200;

impl LoopRun {
    /// Stores the tree and tests the gates. Call [`LoopRun::write_down`] afterwards. Failures are in the iteration's
    /// warnings; a verdict that could not be reached passes no gate. When `hurry` is set, because the worker is being
    /// killed, the checks are canceled. The tree is stored even then, if that takes at most [`SNAPSHOT_GRACE`].
    pub(crate) async fn conclude(
        &self,
        finished: Finished<'_>,
        on_step: OnCheckStep<'_>,
        hurry: &AtomicBool,
    ) -> Iteration {
        undo_canary(&self.folder);
        let known = self.read_base();
        let blind = known.is_none() && !self.gates.is_empty();
        let base = known.unwrap_or_default();
        let mut it = self.iteration_of(&finished);
        let (account, source) = match finished.account.clone() {
            Some(account) if account.texts.is_empty() && account.tool_calls.is_none() => {
                (account, Source::Screen)
            }
            Some(account) => (account, Source::Result),
            None => account::of(&self.env, self.shows_text, &finished),
        };
        let mut verdict = self.claimed(&finished, (&account, source), &mut it);
        let before = self.before(&base, finished.iteration);
        let late = async {
            set(hurry).await;
            sleep(SNAPSHOT_GRACE).await;
        };
        // git may run filters for the tree, which may never end.
        let (head, was_over) = tokio::select! {
            head = self.keep_tree(&base, &before, &mut it, &mut verdict) => (head, false),
            () = late => (None, false),
            () = long_over(finished.until) => (None, true),
        };
        if was_over {
            it.warnings.push("the snapshot failed: git took longer than the loop's time".into());
        }
        let tried;
        (tried, it.check_seconds) = tokio::select! {
            took = self.try_gates(&base, (&account, source), &finished, &before, head, &mut verdict, on_step) => {
                (true, took)
            }
            () = set(hurry) => (false, None),
        };
        if tried && !blind {
            self.try_rooms((&base, &finished), &mut it, &mut verdict, on_step, hurry).await;
            self.settle_tasks((&account, source), &finished, before.tree.as_ref(), &mut verdict);
        }
        if tried {
            it.left = tokio::select! {
                left = self.tree_left(&verdict) => left,
                () = long_over(finished.until) => verdict.tree.clone(),
                () = set(hurry) => verdict.tree.clone(),
            };
        } else {
            verdict.trouble = Some("it was killed".into());
        }
        if blind {
            verdict.trouble = Some(sentence(&self.no_base()));
        }
        if let Some(tree) = &verdict.tree {
            let fails: Vec<&str> = verdict.failed_checks().map(|check| check.name.as_str()).collect();
            verdict.moved = Some(before.tree.as_ref() != Some(tree) || before.fails != fails);
        }
        it.verdict = Some(verdict);
        it
    }

    /// The part of the verdict from the agent's end and its own account, before any gate is tested.
    fn claimed(
        &self,
        finished: &Finished<'_>,
        (account, source): (&Account, Source),
        it: &mut Iteration,
    ) -> Verdict {
        it.tool_calls = account.tool_calls;
        let has_said_it = |pattern: &Pattern| source != Source::Screen && pattern.matches_any(&account.texts);
        let done_pattern =
            finished.done_pattern.map(|seen| seen || finished.pattern.is_some_and(has_said_it));
        let mut verdict = Verdict { done_pattern, ..Verdict::default() };
        verdict.cost = self.profile.cost(account);
        it.limits.clone_from(&account.limits);
        for figure in it.limits.iter_mut().filter(|figure| figure.read_at == 0) {
            figure.read_at = finished.ended.timestamp();
        }
        verdict.tokens = account.usage.map(swarm_state::transcript::Usage::total);
        // If the agent never started, passing gates prove nothing.
        verdict.trouble = finished.never_started.as_ref().map(|why| not_started(why));
        if it.end == Some(IterationExit::Undelivered) {
            verdict.trouble = Some(it.reason.clone());
        }
        let shown = self.shown_error(finished);
        verdict.outage = self.outage_of(account, finished, shown.as_deref());
        verdict.api_error = shown.as_deref().map(|error| one_line(error).into());
        if let Some(outage) = &verdict.outage {
            (it.end, it.reason) = (Some(IterationExit::Outage), outage.message.clone());
        } else if let Some(error) = &verdict.api_error
            && it.end.is_some_and(IterationExit::fails_by_api_error)
        {
            (it.end, it.reason) = (Some(IterationExit::ApiError), error.to_string());
        }
        verdict
    }

    /// The error that the agent's screen shows above its input box. `None` if swarm ended the run for a better reason,
    /// such as a matched done pattern or a report from the agent's hooks.
    fn shown_error(&self, finished: &Finished<'_>) -> Option<String> {
        let is_open = |end: &Ended| {
            matches!(end.exit, IterationExit::Inactivity | IterationExit::Timeout | IterationExit::Exit(_))
        };
        let ended = finished.end.as_ref().filter(|end| is_open(end));
        let reader = ended.and_then(|_| ScreenReader::new(&self.profile, None, None).ok())?;
        reader.shown_error(finished.output)
    }

    /// The cause that kept the agent from working: from structured messages first, then the error `shown` on its
    /// screen, then its output after a bad exit.
    fn outage_of(&self, account: &Account, finished: &Finished<'_>, shown: Option<&str>) -> Option<Outage> {
        let wordings: &[Wording] = &self.profile.outages();
        let of_hook = finished.api_error.clone().map(|message| ApiError { message, status: None });
        let reported = account.error.as_ref().or(of_hook.as_ref());
        let reported = reported.and_then(|error| Outage::of_error(error, wordings, finished.ended));
        let shown = || Outage::of_shown(shown?, wordings, finished.ended);
        if let Some(found) = reported.or_else(shown) {
            return Some(found);
        }
        // An agent that swarm ended for inactivity may exit with any status. If its screen would show an error and
        // shows none, its last text is its answer.
        let is_idle = finished.end.as_ref().is_some_and(|end| end.exit == IterationExit::Inactivity);
        let has_answered = is_idle && !self.profile.error.is_empty();
        let silent = account.texts.is_empty() && !finished.exit.is_success() && !has_answered;
        silent.then(|| Outage::of_output(finished.output, wordings, finished.ended)).flatten()
    }

    fn iteration_of(&self, finished: &Finished<'_>) -> Iteration {
        let seconds = finished
            .started
            .map_or(0.0, |started| (finished.ended - started).to_std().unwrap_or_default().as_secs_f64());
        Iteration {
            iteration: finished.iteration,
            run: finished.run,
            started: finished.started.map(|at| at.to_rfc3339()),
            ended: finished.ended.to_rfc3339(),
            seconds,
            no_agent: finished.never_started.is_some(),
            end: finished.end.as_ref().map(|end| end.exit),
            reason: finished.end.as_ref().map(|end| end.reason.clone()).unwrap_or_default(),
            last_lines: last_lines(finished.output),
            exit_code: finished.exit.code(),
            signal: finished.exit.signal(),
            ..Iteration::default()
        }
    }

    /// The state of the work when the iteration began.
    fn before(&self, base: &Base, iteration: u32) -> Before {
        let last = self.last_worked(iteration);
        let excused = self.gates.excused(base.failed());
        let failing = |checks: &[CheckResult], excused: &[String]| -> Vec<String> {
            let fails = checks.iter().filter(|check| !check.passed && !excused.contains(&check.name));
            fails.map(|check| check.name.clone()).collect()
        };
        match last {
            Some(last) => {
                let verdict = last.verdict.unwrap_or_default();
                Before {
                    fails: failing(&verdict.checks, &verdict.excused),
                    tree: last.left.or(verdict.tree),
                    head: last.head,
                    commit: last.commit,
                    worked: verdict.worked,
                }
            }
            None => Before {
                fails: failing(&base.checks, &excused),
                tree: base.tree.clone(),
                head: base.head.clone(),
                commit: base.commit.clone(),
                worked: false,
            },
        }
    }

    /// The tree after the checks. Files that the checks write are not the next agent's work.
    async fn tree_left(&self, verdict: &Verdict) -> Option<String> {
        if verdict.checks.is_empty() {
            return verdict.tree.clone();
        }
        self.tree().await.or_else(|| verdict.tree.clone())
    }

    /// Takes the snapshot. Returns the commit that is checked out.
    async fn keep_tree(
        &self,
        base: &Base,
        before: &Before,
        it: &mut Iteration,
        verdict: &mut Verdict,
    ) -> Option<String> {
        match self.snapshot(it.iteration).await {
            Ok(Some(mut taken)) => {
                if let Some(from) = before.commit.as_ref().or(base.commit.as_ref()) {
                    let mut stat = git::diff_stat(&self.cwd, from, &taken.commit).await.ok();
                    if stat.is_some_and(|(_, changes_rules)| changes_rules) {
                        self.drop_index();
                        taken = self.snapshot(it.iteration).await.ok().flatten().unwrap_or(taken);
                        stat = git::diff_stat(&self.cwd, from, &taken.commit).await.ok();
                    }
                    it.diff = stat.map(|(size, _)| size);
                }
                if let Some(from) = &base.commit {
                    verdict.changed_tests = self.changed_tests(base, from, &taken.commit).await;
                }
                verdict.tree = Some(taken.tree);
                (it.commit, it.head) = (Some(taken.commit), taken.head.clone());
                taken.head
            }
            Ok(None) => {
                if base.commit.is_some() {
                    it.warnings
                        .push("no snapshot was taken: the directory is no longer in a git repository".into());
                }
                None
            }
            Err(error) => {
                it.warnings.push(error.to_string());
                None
            }
        }
    }

    /// The test files of the baseline that an iteration changed or removed, if they are not watched.
    async fn changed_tests(&self, base: &Base, from: &str, to: &str) -> Vec<String> {
        let globs = protect::tests(base);
        if globs.is_empty() {
            return vec![];
        }
        let mut files = git::changed_between(&self.cwd, from, to).await.unwrap_or_default();
        files.retain(|file| {
            !base.protected.contains_key(file) && globs.iter().any(|glob| glob.is_match(file))
        });
        files
    }

    /// Writes down that an iteration had no agent, and why, so that reports show it.
    pub(crate) fn write_unstarted(
        &self,
        (iteration, run): (u32, u64),
        started: Option<DateTime<FixedOffset>>,
        ended: DateTime<FixedOffset>,
        why: &str,
    ) -> Result<()> {
        let seconds = started.map_or(0.0, |at| (ended - at).to_std().unwrap_or_default().as_secs_f64());
        let verdict = Verdict { trouble: Some(not_started(why)), ..Verdict::default() };
        let it = Iteration {
            iteration,
            run,
            started: started.map(|at| at.to_rfc3339()),
            ended: ended.to_rfc3339(),
            seconds,
            verdict: Some(verdict),
            no_agent: true,
            end: Some(IterationExit::SpawnFailed),
            reason: why.to_owned(),
            ..Iteration::default()
        };
        self.write_result(&it)
    }

    /// Writes down the result of an iteration, for the next contract and for reports. It is safe to retry.
    pub(crate) fn write_down(&self, it: &Iteration) -> Result<()> {
        self.write_result(it)?;
        if self.gates.is_empty() { Ok(()) } else { self.write_progress(it.iteration) }
    }
}

/// The last lines of the agent's output, safe to print.
fn last_lines(output: &str) -> Vec<String> {
    let is_written = |line: &&str| line.chars().any(char::is_alphanumeric);
    let mut lines: Vec<String> = output
        .lines()
        .rev()
        .filter(is_written)
        .take(MAX_SHOWN_LINES)
        .map(|line| printable(line).trim_end().chars().take(MAX_SHOWN_LINE_CHARS).collect())
        .collect();
    lines.reverse();
    lines
}

pub(crate) async fn set(mark: &AtomicBool) {
    while !mark.load(Ordering::Relaxed) {
        sleep(HURRY_POLL_INTERVAL).await;
    }
}
