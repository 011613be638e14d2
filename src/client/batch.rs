//! Calls for several workers at once: `kill`, `clean`, `send --all`, and the verbs that pause, resume or hold workers.
//!
//! The calls run in parallel. The error of one worker is printed and does not stop the others. The exit status is the
//! highest of theirs, so that an unknown name has the same status alone and among others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use swarm_state::model::WorkerName;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::connect::QUICK_TIMEOUT;
use super::context::{self, ClientContext};
use crate::cli::PageFormat;
use crate::error::{Error, ErrorCode, Result};
use crate::out::json::error_object;
use crate::out::{CommandResult, Failure, Out};
use crate::protocol::{Call, ClearedSnapshots, Empty, HoldChanged, Listing, WorkerView};
use crate::shell::quote_path;

/// Returns the named workers, each once, or with `all` every worker that `is_meant`.
pub(super) async fn names(
    ctx: &ClientContext,
    named: &[WorkerName],
    all: bool,
    is_meant: fn(&WorkerView) -> bool,
) -> Result<Vec<String>> {
    if all {
        let listing: Listing = ctx.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?;
        return Ok(listing.workers.into_iter().filter(is_meant).map(|w| w.name).collect());
    }
    let mut seen = BTreeSet::new();
    Ok(named.iter().filter(|name| seen.insert(*name)).map(ToString::to_string).collect())
}

/// The daemon accepts a limited number of clients; this leaves places for others.
const MAX_PARALLEL_CALLS: usize = 64;

/// sshd accepts ten sessions in one connection by default.
const MAX_HOST_CALLS: usize = 4;

/// Makes the calls in parallel, each on its own connection and with the timeout `limit`. Returns the answers in the
/// order of the calls.
pub(super) async fn call_each<T>(
    ctx: &ClientContext,
    calls: impl Iterator<Item = (String, Call)>,
    limit: Duration,
) -> Result<Vec<(String, Result<T>)>, Failure>
where
    T: serde::de::DeserializeOwned + Send + 'static,
{
    let place = ctx.place()?;
    let mut tasks = JoinSet::new();
    let at_once = if place.host().is_some() { MAX_HOST_CALLS } else { MAX_PARALLEL_CALLS };
    let permits = Arc::new(Semaphore::new(at_once));
    for (index, (name, call)) in calls.enumerate() {
        let (place, permits) = (place.clone(), permits.clone());
        tasks.spawn(async move {
            // The semaphore is never closed.
            let _permit = permits.acquire().await;
            (index, name, context::call(&place, &call, limit).await)
        });
    }
    let mut answers = Vec::new();
    while let Some(done) = tasks.join_next().await {
        answers
            .push(done.map_err(|e| Error::new(ErrorCode::Internal, format!("a call did not return: {e}")))?);
    }
    answers.sort_by_key(|(index, _, _)| *index);
    Ok(answers.into_iter().map(|(_, name, answer)| (name, answer)).collect())
}

/// Prints the errors of a batch and keeps its exit status.
pub(super) struct BatchErrors {
    out: Out,
    format: PageFormat,
    /// Only one worker was named: its error is the command's error.
    is_alone: bool,
    status: u8,
}

/// The JSON of one worker's answer: one line.
#[derive(Serialize)]
struct NamedAnswer<'a, T> {
    name: &'a str,
    #[serde(flatten)]
    answer: &'a T,
    error: Option<Value>,
}

impl BatchErrors {
    pub(super) fn new(out: Out, format: PageFormat, is_alone: bool) -> Self {
        Self { out, format, is_alone, status: 0 }
    }

    pub(super) fn is_json(&self) -> bool {
        self.format == PageFormat::Json
    }

    pub(super) fn answer(
        &self,
        name: &str,
        answer: &impl Serialize,
        error: Option<&Error>,
    ) -> Result<(), Failure> {
        self.out.json_line(&NamedAnswer { name, answer, error: error.map(error_object) })
    }

    /// Prints the error of one worker, with the worker's name. Returns it if there is no other worker and the output
    /// is text.
    pub(super) fn add(&mut self, name: &str, error: Error) -> Result<(), Failure> {
        if self.is_json() {
            self.answer(name, &json!({}), Some(&error))?;
        }
        self.add_text(name, error)
    }

    /// The same for an error that the worker's JSON has.
    pub(super) fn add_text(&mut self, name: &str, mut error: Error) -> Result<(), Failure> {
        if self.is_alone && !self.is_json() {
            return Err(error.into());
        }
        if !error.message.contains(&format!("'{name}'")) {
            error.message = format!("{name}: {}", error.message);
        }
        self.out.error(&error);
        self.status = self.status.max(error.code.exit_status());
        Ok(())
    }

    pub(super) fn end(self) -> CommandResult {
        Ok(self.status)
    }
}

/// Changes workers by one call each. `done` is printed before the name of a changed worker, `was_so` after the name of
/// one that needed no change. Returns the exit status, and the changed workers.
pub(super) async fn change(
    ctx: &ClientContext,
    names: Vec<String>,
    format: PageFormat,
    call: impl Fn(String) -> Call,
    (done, was_so): (&str, &str),
) -> Result<(u8, Vec<String>), Failure> {
    let mut failures = BatchErrors::new(ctx.out, format, names.len() == 1);
    let mut changed_names = vec![];
    let calls = names.into_iter().map(|name| (name.clone(), call(name)));
    // The answers of the calls for loops have a further field.
    for (name, answer) in call_each::<HoldChanged>(ctx, calls, QUICK_TIMEOUT).await? {
        match answer {
            Ok(HoldChanged { changed, warnings }) => {
                changed_names.extend(changed.then(|| name.clone()));
                warnings.iter().for_each(|warning| ctx.out.warn(warning));
                if failures.is_json() {
                    failures.answer(&name, &json!({"changed": changed, "warnings": warnings}), None)?;
                } else if changed {
                    ctx.out.line(&format!("{done} {name}"))?;
                } else {
                    ctx.out.warn(&format!("worker '{name}' {was_so}"));
                }
            }
            Err(error) => failures.add(&name, error)?,
        }
    }
    Ok((failures.end()?, changed_names))
}

/// Prints which snapshots were deleted, and which were kept and how to delete them.
pub(super) fn print_snapshots(
    ctx: &ClientContext,
    format: PageFormat,
    snapshots: &[ClearedSnapshots],
) -> Result<(), Failure> {
    for ClearedSnapshots { repo, reference, count, kept } in snapshots {
        let what = if *count == 1 { "1 snapshot".to_owned() } else { format!("{count} snapshots") };
        let line = match kept {
            true => format!("left {what} ({reference}), since no branch has the files of the last one"),
            false => format!("removed {what} ({reference})"),
        };
        if format == PageFormat::Text {
            ctx.out.line(&line)?;
        }
        if *kept {
            let git = format!("git -C {}", quote_path(repo));
            ctx.out.hint(&format!(
                "to delete them: {git} for-each-ref --format='delete %(refname)' {reference} | {git} update-ref --stdin"
            ));
        }
    }
    Ok(())
}
