//! The requests of clients: one file for each, named as the client's verb.
//!
//! [`Supervisor::call`] passes each request to its file. A verb checks the request, changes the worker's state through
//! the supervisor, and answers. Requests that need only data in memory are answered at once. Those that need tmux, git
//! or the disk for long run in tasks of their own, which answer when they are done.

use crate::daemon::messages::{AgentInput, DaemonEnd, DaemonInput};
use crate::daemon::reply::Reply;
use crate::daemon::supervisor::Supervisor;
use crate::error::Error;
use crate::protocol::{Call, Empty, Named};

pub(crate) mod allow;
pub(crate) mod answer;
pub(crate) mod attach;
pub(crate) mod clean;
pub(crate) mod daemon_status;
pub(crate) mod daemon_stop;
pub(crate) mod eof;
pub(crate) mod hold;
pub(crate) mod hook;
pub(crate) mod interrupt;
pub(crate) mod kill;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod morning;
pub(crate) mod morning_looked;
pub(crate) mod peek;
pub(crate) mod quota;
pub(crate) mod ralph_approve;
pub(crate) mod ralph_clean;
pub(crate) mod ralph_diff;
pub(crate) mod ralph_logs;
pub(crate) mod ralph_pause;
pub(crate) mod ralph_restore;
pub(crate) mod ralph_resume;
pub(crate) mod ralph_set;
pub(crate) mod ralph_status;
pub(crate) mod release;
pub(crate) mod report;
pub(crate) mod respawn;
pub(crate) mod seen;
pub(crate) mod send;
pub(crate) mod spawn;
pub(crate) mod status;
pub(crate) mod subscribe;

impl Supervisor {
    pub(crate) fn call(&mut self, call: Call, peer: Option<i32>, reply: Reply) {
        match call {
            Call::Spawn(params) => self.spawn(*params, peer, reply),
            Call::Respawn(params) => self.respawn(params, peer, reply),
            Call::Kill(params) => self.kill(params, reply),
            Call::Ls(Empty {}) => reply.answer(Ok(self.listing())),
            Call::Status(Named { name }) => reply.answer(self.status(&name)),
            Call::Seen(Named { name }) => reply.answer(self.seen(&name, peer)),
            Call::Morning(params) => reply.answer_by(self.morning(&params)),
            Call::MorningLooked(params) => reply.answer(self.morning_looked(&params, peer)),
            Call::Peek(params) => reply.answer_by(self.peek(&params)),
            Call::Logs(params) => reply.answer_by(self.logs(&params)),
            Call::Send(params) => self.send(&params.name.clone(), AgentInput::Text(params), reply),
            Call::Answer(params) => reply.answer(self.answer(params, peer)),
            Call::Hold(Named { name }) => reply.answer(self.hold(&name, peer)),
            Call::Release(Named { name }) => reply.answer(self.release(&name, peer)),
            Call::Allow(params) => reply.answer(self.allow(params, peer)),
            Call::Interrupt(Named { name }) => reply.answer_by(self.interrupt(&name)),
            Call::Eof(Named { name }) => self.eof(&name, reply),
            Call::Clean(params) => self.clean(params, peer, reply),
            Call::Attach(Named { name }) => reply.answer(self.attach(&name)),
            Call::RalphPause(Named { name }) => reply.answer(self.pause(&name)),
            Call::RalphResume(params) => match self.change_env(&params, peer) {
                Ok(()) => self.resume_loop(&params.name, peer, reply),
                Err(error) => reply.refuse(error),
            },
            Call::RalphStatus(Named { name }) => reply.answer(self.ralph_status(&name)),
            Call::RalphSet(params) => reply.answer(self.ralph_set(&params, peer)),
            Call::RalphLogs(params) => reply.answer_by(self.ralph_logs(&params)),
            Call::RalphReport(params) => reply.answer_by(self.ralph_report(&params, peer)),
            Call::RalphDiff(params) => reply.answer_by(self.ralph_diff(&params)),
            Call::RalphRestore(params) => reply.answer_by(self.ralph_restore(params)),
            Call::RalphApprove(Named { name }) => reply.answer_by(self.ralph_approve(&name, peer)),
            Call::Hook(params) => reply.answer(Ok(self.hook(&params, peer))),
            Call::RalphClean(params) => reply.answer_by(self.ralph_clean(params, peer)),
            Call::NotifyNext(params) => self.notifying.listeners.next(&params, reply),
            Call::Quota(Empty {}) => reply.answer(Ok(self.quota())),
            Call::QuotaLift(Empty {}) => reply.answer(self.quota_lift(peer)),
            Call::DaemonStatus(Empty {}) => self.daemon_status(reply),
            Call::DaemonStop(Empty {}) => self.daemon_stop(reply),
            Call::DaemonHandover(Empty {}) => {
                reply.answer(Ok(Empty {}));
                drop(self.inbox.send(DaemonInput::End(DaemonEnd::Handover)));
            }
            // The server hands subscriptions over as an input of their own.
            Call::Subscribe(_) => {
                reply.refuse(Error::internal("the server answers subscribe itself"));
            }
        }
    }
}
