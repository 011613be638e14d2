//! `peek`: the last lines of a worker's screen.

use crate::daemon::output::{OutputSource, last_section};
use crate::daemon::pages::fit;
use crate::daemon::reply::Later;
use crate::daemon::supervisor::Supervisor;
use crate::protocol::{PeekParams, Peeked};

/// Lines of a finished run that `peek` can reach.
const MAX_PEEK_LINES: usize = 20_000;

impl Supervisor {
    pub(crate) fn peek(&mut self, params: &PeekParams) -> Later<Peeked> {
        let (_, slot) = self.find(&params.name)?;
        let (source, lines, styled) = (OutputSource::of(slot), params.lines, params.styled);
        Ok(Box::pin(async move {
            let run = source.run;
            if let Some((mut rows, first, alternate)) = source.rows(lines, styled).await? {
                let cut = rows.len().saturating_sub(lines as usize);
                rows.drain(..cut);
                let (lines, dropped) = fit(rows);
                let first = first + cut as u64 + dropped;
                return Ok(Peeked { run, first, lines, alternate, live: true });
            }
            let rows = last_section(source.logged(MAX_PEEK_LINES)?);
            let first = rows.len().saturating_sub(lines as usize);
            let (lines, _) = fit(rows.into_iter().skip(first).collect());
            Ok(Peeked { run, first: first as u64, lines, alternate: false, live: false })
        }))
    }
}
