//! `swarm quota`: the usage limits of accounts, and the loops that wait for a reset.

use chrono::{DateTime, FixedOffset, Local};
use serde_json::{Value, json};
use swarm_state::notice::counted;

use crate::cli::{Format, QuotaArgs};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::worker::time_left;
use crate::error::sentence;
use crate::out::{CommandResult, table};
use crate::protocol::{Call, Empty, QuotaAccountView, QuotaFigureView, QuotaView};
use crate::settings::Settings;

pub(super) async fn run(ctx: &ClientContext, args: &QuotaArgs) -> CommandResult {
    let place = ctx.place()?;
    let settings = Settings::load(&place.user_config(), None, None);
    if let Some(error) = settings.err().filter(|_| place.host().is_none()) {
        ctx.out.warn(&format!("[quota] has the values from before this error: {}", sentence(&error)));
    }
    let view: QuotaView = ctx.call(&Call::Quota(Empty {}), QUICK_TIMEOUT).await?;
    match args.format {
        Format::Json => ctx.out.json_list(&objects(&view))?,
        Format::Names => {
            let names: Vec<&String> = view.accounts.iter().flat_map(|account| &account.parked).collect();
            ctx.out.lines(&names)?;
        }
        Format::Table if view.accounts.is_empty() => {
            ctx.out.note("no loop of an agent that reports its limits")
        }
        Format::Table => {
            ctx.out.lines(&lines(&view, ctx.out.width, Local::now().fixed_offset()))?;
            if view.accounts.iter().any(|account| !account.parked.is_empty()) {
                ctx.out.hint("to go on before the reset: swarm ralph resume --all --now");
            }
        }
    }
    Ok(0)
}

fn objects(view: &QuotaView) -> Vec<Value> {
    let limit = |figure: &QuotaFigureView| {
        json!({
            "window": figure.window,
            "title": figure.title,
            "used_percent": figure.used,
            "resets_at": figure.resets_at,
            "read_at": figure.read_at,
        })
    };
    let account = |account: &QuotaAccountView| {
        json!({
            "agent": account.agent,
            "directory": account.dir,
            "account": account.title,
            "park_at": account.park_at,
            "parked_until": account.parked_until,
            "lifted_until": account.lifted_until,
            "loops": account.loops,
            "parked": account.parked,
            "limits": account.figures.iter().map(limit).collect::<Vec<_>>(),
        })
    };
    view.accounts.iter().map(account).collect()
}

/// The table: a line for each limit, and the loops at the first line of an account.
fn lines(view: &QuotaView, width: Option<usize>, now: DateTime<FixedOffset>) -> Vec<String> {
    let head = ["ACCOUNT", "LIMIT", "USED", "RESETS IN", "PARK AT", "LOOPS"];
    let none = || "-".to_owned();
    let rows = view.accounts.iter().flat_map(|account| {
        let park_at = account.park_at.map_or_else(none, |percent| format!("{percent} %"));
        let first = vec![account.title.clone(), none(), none(), none(), park_at, loops(account)];
        let mut rows: Vec<Vec<String>> =
            account.figures.iter().map(|figure| figure_row(&first, figure, now)).collect();
        if rows.is_empty() {
            rows.push(first);
        }
        for row in rows.iter_mut().skip(1) {
            (row[0], row[4], row[5]) = (String::new(), String::new(), String::new());
        }
        rows
    });
    table(&head, &rows.collect::<Vec<_>>(), &[(5, 8), (0, 16)], width)
}

fn figure_row(first: &[String], figure: &QuotaFigureView, now: DateTime<FixedOffset>) -> Vec<String> {
    let mut row = first.to_vec();
    row[1].clone_from(&figure.title);
    row[2] = format!("{} %", figure.used);
    let at = figure.resets_at.as_deref().and_then(|at| DateTime::parse_from_rfc3339(at).ok());
    row[3] = at.map_or_else(|| "unknown".to_owned(), |at| time_left(at, now));
    row
}

fn loops(account: &QuotaAccountView) -> String {
    let count = counted(account.loops.len() as u64, "loop");
    match (account.parked.as_slice(), &account.lifted_until) {
        ([], Some(_)) => format!("{count}, park lifted until the reset"),
        ([], None) if account.parked_until.is_some() => format!("{count}, to be parked after this iteration"),
        ([], None) => count,
        (parked, _) => format!("{count}, parked: {}", parked.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use swarm_state::quota::QuotaAgent;

    use super::*;

    fn figure(title: &str, used: u16, resets_at: Option<&str>) -> QuotaFigureView {
        let resets_at = resets_at.map(str::to_owned);
        QuotaFigureView { window: "w".into(), title: title.into(), used, resets_at, read_at: None }
    }

    fn account(title: &str, parked: &[&str], figures: Vec<QuotaFigureView>) -> QuotaAccountView {
        QuotaAccountView {
            agent: QuotaAgent::Claude,
            dir: "/h".into(),
            title: title.into(),
            park_at: Some(90),
            parked_until: None,
            lifted_until: None,
            loops: vec!["a".into(), "b".into()],
            parked: parked.iter().map(|name| (*name).to_owned()).collect(),
            figures,
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_limit() {
        let now = DateTime::parse_from_rfc3339("2026-01-15T12:00:00+01:00").unwrap();
        let five = figure("5 hour limit", 92, Some("2026-01-15T14:05:10+01:00"));
        let seven = figure("7 day limit", 41, None);
        let mut other = account("codex account ~/.codex", &[], vec![]);
        other.park_at = None;
        let view = QuotaView {
            accounts: vec![account("claude account ~/.claude", &["a"], vec![five, seven]), other],
        };
        assert_eq!(
            lines(&view, None, now),
            [
                "ACCOUNT                   LIMIT         USED  RESETS IN  PARK AT  LOOPS",
                "claude account ~/.claude  5 hour limit  92 %  2h 5m      90 %     2 loops, parked: a",
                "                          7 day limit   41 %  unknown",
                "codex account ~/.codex    -             -     -          -        2 loops",
            ]
        );
    }

    #[test]
    fn loops_of_an_account_are_described() {
        let text = |parked: &[&str], until: bool, lifted: bool| {
            let mut account = account("x", parked, vec![]);
            account.parked_until = until.then(|| "t".to_owned());
            account.lifted_until = lifted.then(|| "t".to_owned());
            loops(&account)
        };
        assert_eq!(text(&[], false, false), "2 loops");
        assert_eq!(text(&[], true, false), "2 loops, to be parked after this iteration");
        assert_eq!(text(&[], false, true), "2 loops, park lifted until the reset");
        assert_eq!(text(&["a", "b"], true, false), "2 loops, parked: a, b");
    }
}
