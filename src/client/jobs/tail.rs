//! Notices of the workers of a Slurm host, from the event logs in their directories.
//!
//! The logs are read and not the daemons, so that a subscription goes on while a job waits for its next node. The loss
//! of a node, and the pause before it, are warnings here as long as the job starts again; a job that has ended without
//! its worker makes the worker lost.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use chrono::{DateTime, Local};
use swarm_state::host::HostName;
use swarm_state::model::{Status, WorkerName};
use swarm_state::notice::{Entry, PauseBy, StopReason};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep};

use super::dir::{JobDir, JobFacts};
use super::workers::Workers;
use crate::error::Result;
use crate::hosts::slurm;
use crate::paths::Paths;
use crate::protocol::{Notice, Snapshot, SubscribeParams};

/// How often the logs are read.
const READ_INTERVAL: Duration = Duration::from_millis(300);

/// How often the queue is read while nothing happens.
const QUEUE_INTERVAL: Duration = Duration::from_secs(5);

/// The notices of one worker.
#[derive(Debug, Default)]
struct WorkerLog {
    /// The number of the last notice that was read.
    seq: u64,
    /// The file that was read last, and up to where.
    read: Option<(u64, u64)>,
    /// The worker was reported as lost, or has ended.
    is_over: bool,
}

pub(super) struct Tail {
    paths: Paths,
    host: HostName,
    worker: Option<WorkerName>,
    logs: BTreeMap<String, WorkerLog>,
    /// The stored notices that follow the snapshot.
    first: Vec<Notice>,
}

/// Makes a subscription. Fails if the host does not have the worker, or Slurm does not answer.
pub(super) async fn subscribe(workers: &Workers, params: &SubscribeParams) -> Result<(Snapshot, Tail)> {
    let all = match &params.worker {
        Some(name) => vec![workers.one(name).await?],
        None => workers.all().await?,
    };
    let worker = params.worker.as_deref().and_then(|name| WorkerName::new(name).ok());
    let (paths, host) = (workers.paths.clone(), workers.host.clone());
    let mut tail = Tail { paths, host, worker, logs: BTreeMap::new(), first: vec![] };
    let mut stored: Vec<Notice> = vec![];
    for facts in &all {
        let mut log = WorkerLog { is_over: facts.worker().status.is_finished(), ..WorkerLog::default() };
        let view_seq = facts.view.seq;
        let notices = log.read(&facts.dir);
        let since = params.since.unwrap_or(view_seq);
        log.seq = log.seq.max(since);
        stored.extend(notices.into_iter().filter(|notice| params.since.is_some() || notice.seq > view_seq));
        tail.logs.insert(facts.dir.name.clone(), log);
    }
    if let Some(since) = params.since {
        stored = after(stored, since);
    }
    let last = all.iter().map(|facts| facts.view.seq).max().unwrap_or(0);
    tail.first = sorted(stored);
    let snapshot = Snapshot {
        seq: last.max(params.since.unwrap_or(0)),
        gap: false,
        workers: all.iter().map(JobFacts::worker).collect(),
        foreign: false,
        replayed: tail.first.len(),
        missing: vec![],
    };
    Ok((snapshot, tail))
}

/// The notices after the one with this number. Each worker counts by itself, so the time of that notice decides.
fn after(notices: Vec<Notice>, since: u64) -> Vec<Notice> {
    let at = notices.iter().find(|notice| notice.seq == since).map(time);
    let is_later = |notice: &Notice| match at {
        Some(at) => time(notice) > at || time(notice) == at && notice.seq > since,
        None => notice.seq > since,
    };
    notices.into_iter().filter(is_later).collect()
}

fn time(notice: &Notice) -> i64 {
    DateTime::parse_from_rfc3339(&notice.at).ok().and_then(|at| at.timestamp_nanos_opt()).unwrap_or(0)
}

fn sorted(mut notices: Vec<Notice>) -> Vec<Notice> {
    notices.sort_by_key(|notice| (time(notice), notice.seq));
    notices
}

impl Tail {
    pub(super) async fn send(mut self, id: u64, to: mpsc::Sender<(u64, Notice)>) {
        let mut last_queue = Instant::now();
        let mut notices = std::mem::take(&mut self.first);
        loop {
            for notice in notices {
                if to.send((id, self.shown(notice))).await.is_err() {
                    return;
                }
            }
            sleep(READ_INTERVAL).await;
            notices = self.read();
            if notices.is_empty() && last_queue.elapsed() >= QUEUE_INTERVAL {
                notices = self.lost().await;
                last_queue = Instant::now();
            }
        }
    }

    fn dirs(&self) -> Vec<JobDir> {
        match &self.worker {
            Some(name) => vec![JobDir::new(&self.paths, &self.host, name)],
            None => JobDir::all(&self.paths, &self.host),
        }
    }

    fn read(&mut self) -> Vec<Notice> {
        let mut notices = vec![];
        for dir in self.dirs() {
            let log = self.logs.entry(dir.name.clone()).or_default();
            notices.extend(log.read(&dir));
        }
        sorted(notices)
    }

    /// The loss of workers whose jobs have ended without them.
    async fn lost(&mut self) -> Vec<Notice> {
        if self.logs.values().all(|log| log.is_over) {
            return vec![];
        }
        let Ok(queue) = slurm::queue().await else { return vec![] };
        let mut notices = vec![];
        for dir in self.dirs() {
            let log = self.logs.entry(dir.name.clone()).or_default();
            let Some(worker) = JobFacts::read(dir, &queue).map(|facts| facts.worker()) else { continue };
            let reason = worker.reason.unwrap_or_default();
            let entry = match worker.status {
                _ if log.is_over => continue,
                Status::Lost => Entry::Lost { reason },
                // Its job was canceled in the queue, or ended before the worker started.
                Status::Killed => Entry::Stopped { reason: StopReason::Killed },
                Status::Failed => Entry::Stopped { reason: StopReason::SpawnFailed(reason) },
                _ => continue,
            };
            log.is_over = true;
            let (seq, at) = (log.seq + 1, Local::now().fixed_offset().to_rfc3339());
            notices.push(Notice { seq, worker: worker.name, at, status: worker.status, entry });
        }
        notices
    }

    /// A notice for a client. The end of a node is a warning, since the job starts again elsewhere.
    fn shown(&mut self, notice: Notice) -> Notice {
        let log = self.logs.entry(notice.worker.clone()).or_default();
        let message = match &notice.entry {
            _ if log.is_over && notice.status == Status::Lost => return notice,
            Entry::Lost { reason } => format!("the job lost its node: {reason}"),
            Entry::Paused { by: PauseBy::Shutdown } => "the job leaves its node".to_owned(),
            _ => {
                log.is_over = notice.status.is_finished();
                return notice;
            }
        };
        Notice { entry: Entry::Warning { message }, ..notice }
    }
}

impl WorkerLog {
    fn read(&mut self, dir: &JobDir) -> Vec<Notice> {
        let path = dir.paths.event_log();
        let mut text = String::new();
        let Ok(mut file) = File::open(&path) else { return vec![] };
        let Ok(found) = file.metadata() else { return vec![] };
        let offset = self.read.filter(|(inode, offset)| *inode == found.ino() && *offset <= found.len());
        let start = match offset {
            Some((_, offset)) => offset,
            None => {
                // A full log becomes the earlier one.
                let earlier = std::fs::read(path.with_extension("jsonl.1")).unwrap_or_default();
                text.push_str(&String::from_utf8_lossy(&earlier));
                0
            }
        };
        let mut bytes = vec![];
        if file.seek(SeekFrom::Start(start)).and_then(|_| file.read_to_end(&mut bytes)).is_err() {
            return vec![];
        }
        // The last line may not be complete.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        text.push_str(&String::from_utf8_lossy(&bytes[..whole]));
        self.read = Some((found.ino(), start + whole as u64));
        let new = text.lines().filter_map(|line| serde_json::from_str::<Notice>(line).ok());
        let new: Vec<Notice> = new.filter(|notice| notice.seq > self.seq).collect();
        self.seq = new.iter().map(|notice| notice.seq).max().unwrap_or(self.seq);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(seq: u64, second: u32) -> Notice {
        let text = format!(
            r#"{{"seq":{seq},"worker":"a","at":"2026-01-15T10:35:{second:02}+00:00","status":"running","kind":"ready","run":1}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn line(seq: u64) -> String {
        serde_json::to_string(&notice(seq, 1)).unwrap() + "\n"
    }

    #[test]
    fn resume_with_several_workers_follows_the_time_of_the_notice() {
        let stored = || vec![notice(7, 1), notice(1007, 2), notice(8, 3), notice(1008, 3)];
        let after_seq = |since| after(stored(), since).iter().map(|notice| notice.seq).collect::<Vec<_>>();
        assert_eq!(after_seq(0), [7, 1007, 8, 1008]);
        assert_eq!(after_seq(1007), [8, 1008]);
        assert_eq!(after_seq(8), [1008]);
        assert_eq!(after_seq(900), [1007, 1008], "the notice is not stored any more");
    }

    #[test]
    fn log_is_read_line_by_line_across_a_rotation() {
        let root = tempfile::tempdir().unwrap();
        let dir = JobDir::own(Paths::new(root.path().to_owned()));
        let path = dir.paths.event_log();
        let mut log = WorkerLog::default();
        let mut read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            log.read(&dir).iter().map(|notice| notice.seq).collect::<Vec<_>>()
        };
        let head = "{\"format\":1,\"after\":5,\"earlier\":false}\n";
        let (first, second) = (format!("{head}{}", line(6)), line(7));
        assert_eq!(read(&format!("{first}{}", &second[..20])), [6]);
        assert_eq!(read(&format!("{first}{second}")), [7]);
        assert_eq!(read(&format!("{first}{second}")), [] as [u64; 0]);
        std::fs::rename(&path, path.with_extension("jsonl.1")).unwrap();
        std::fs::write(path.with_extension("jsonl.1"), format!("{first}{second}{}", line(8))).unwrap();
        assert_eq!(read(&format!("{head}{}", line(9))), [8, 9]);
    }
}
