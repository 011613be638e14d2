//! `peek`: the last lines of a worker's screen.

use crate::daemon::output::{OutputSource, last_section};
use crate::daemon::pages::fit;
use crate::daemon::reply::Reply;
use crate::daemon::slot::Slot;
use crate::protocol::Peeked;

/// Lines of a finished run that `peek` can reach.
const MAX_PEEK_LINES: usize = 20_000;

/// Answers `peek`.
pub(crate) fn peek(slot: &Slot, lines: u32, styled: bool, reply: Reply) {
    let source = OutputSource::of(slot);
    tokio::spawn(async move {
        let answer = async {
            if let Some((mut rows, first, picture)) = source.rows(lines, styled).await? {
                let cut = rows.len().saturating_sub(lines as usize);
                rows.drain(..cut);
                let first = first + cut as u64;
                let (lines, dropped) = fit(rows);
                return Ok(Peeked {
                    run: source.run,
                    first: first + dropped,
                    lines,
                    alternate: picture,
                    live: true,
                });
            }
            let rows = last_section(source.logged(MAX_PEEK_LINES)?);
            let first = rows.len().saturating_sub(lines as usize);
            let rows = rows.into_iter().skip(first).collect();
            let first = first as u64;
            Ok(Peeked { run: source.run, first, lines: fit(rows).0, alternate: false, live: false })
        };
        reply.answer(answer.await);
    });
}
