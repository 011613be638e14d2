//! `answer`: a person's answer to a request that a hook of the agent holds open.

use tokio::time::Instant;

use crate::daemon::caller::refuse_own;
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{AnswerParams, Answered};

impl Supervisor {
    pub(crate) fn answer(&mut self, params: AnswerParams, peer: Option<i32>) -> Result<Answered> {
        let (name, slot) = self.find(&params.name)?;
        refuse_own(slot, peer, "answer its own request")?;
        let Some(slot) = self.slots.get_mut(&name) else {
            return Err(Error::new(ErrorCode::NotFound, "gone"));
        };
        let answer = params.answer;
        let fits = |request: &_| match answer.unfit_for(request) {
            Some(why) => Err(Error::invalid(why)),
            None => Ok(()),
        };
        let answered =
            slot.requests.answer(params.request.as_deref(), answer.clone(), Instant::now(), fits)?;
        answered.map(|request| Answered { request }).ok_or_else(|| {
            let message = match &params.request {
                Some(_) => format!("worker '{name}' does not hold this request open any more"),
                None => format!("worker '{name}' holds no request open"),
            };
            let hint = format!("if it shows a dialog, answer there: swarm attach {name}");
            Error::conflict(message).hint(hint)
        })
    }
}
