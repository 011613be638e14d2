//! The formats of pane lists, and their parsers. Pure.
//!
//! There are three formats, because each variable costs tmux two microseconds per pane: the values that each tick
//! compares, the other values that change, and the constant ones, which are requested only when an unknown pane
//! appears.

use swarm_state::attached::AttachedClient;

use super::types::{Glance, PaneRow};

/// The values that each tick compares.
pub(super) const GLANCE_FORMAT: &str =
    "#{pane_id}:#{window_activity}:#{pane_width}:#{pane_height}:#{history_size}";

/// The values that change. None of them contains `:`.
pub(super) const SHORT_FORMAT: &str = "#{pane_id}:#{pane_pid}:#{pane_dead}:#{pane_dead_status}:#{pane_dead_signal}:#{pane_width}:#{pane_height}";

/// The constant values, after [`SHORT_FORMAT`] and a `:`. The free text is last.
pub(super) const REST_FORMAT: &str =
    ":#{window_id}:#{session_name}:#{@swarm_run}:#{@swarm_worker}:#{pane_start_command}";

/// The values of a client. Versions of tmux without the last one do not report the focus.
pub(super) const CLIENT_FORMAT: &str = "#{client_pid}:#{client_created}:#{client_activity}:#{window_id}:#{pane_id}:#{client_readonly}#{client_control_mode}:#{client_prefix}#{pane_in_mode}:#{client_flags}";

/// A line of a list, and the session it was listed under (none in the short form).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedPane {
    pub row: PaneRow,
    pub session: String,
}

/// Parses a line of either form. `None` if it is not one: a newline in a command makes such lines.
pub(super) fn parse(line: &str) -> Option<ListedPane> {
    let mut fields = line.splitn(12, ':');
    let mut next = || fields.next();
    let pane = next()?;
    if !(pane.len() > 1 && pane.starts_with('%') && pane[1..].bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let mut row = PaneRow {
        pane: pane.to_owned(),
        pid: next()?.parse().unwrap_or(0),
        dead: next()? == "1",
        dead_status: next()?.parse().ok(),
        dead_signal: next()?.parse().ok(),
        size: (next()?.parse().ok()?, next()?.parse().ok()?),
        ..PaneRow::default()
    };
    let mut session = String::new();
    if let Some(window) = next() {
        row.window = window.to_owned();
        session = next()?.to_owned();
        row.run = next()?.parse().ok();
        row.worker = next().filter(|name| !name.is_empty()).map(str::to_owned);
        row.start_command = next()?.to_owned();
    }
    Some(ListedPane { row, session })
}

/// Parses a list in [`GLANCE_FORMAT`]. A pane in several sessions appears several times.
pub(super) fn glances(text: &[u8]) -> Vec<Glance> {
    let glance = |line: &[u8]| {
        let mut fields = std::str::from_utf8(line).ok()?.split(':');
        let pane = pane_number(fields.next()?)?;
        let activity = fields.next()?.parse().ok()?;
        let size = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Glance { pane, activity, size, history: fields.next()?.parse().ok()? })
    };
    text.split(|byte| *byte == b'\n').filter_map(glance).collect()
}

/// Parses a list in [`CLIENT_FORMAT`].
pub(super) fn clients(text: &[u8]) -> Vec<AttachedClient> {
    let is_set = |flags: &str| flags.contains(|flag| flag != '0');
    let client = |line: &str| {
        let mut fields = line.splitn(8, ':');
        let mut next = || fields.next();
        Some(AttachedClient {
            pid: next()?.parse().ok()?,
            created: next()?.parse().ok()?,
            activity: next()?.parse().ok()?,
            window: next()?.to_owned(),
            pane: next()?.to_owned(),
            is_mute: is_set(next()?),
            is_in_mode: is_set(next()?),
            has_focus: next()?.split(',').any(|flag| flag == "focused"),
        })
    };
    String::from_utf8_lossy(text).lines().filter_map(client).collect()
}

/// The 7 of `%7`.
pub fn pane_number(id: &str) -> Option<u32> {
    id.strip_prefix('%')?.parse().ok()
}

/// Parses a whole list. A pane in several sessions appears once.
pub(super) fn parse_all(text: &[u8]) -> Vec<ListedPane> {
    let mut seen = std::collections::HashSet::new();
    String::from_utf8_lossy(text)
        .lines()
        .filter_map(parse)
        .filter(|listed| seen.insert(listed.row.pane.clone()))
        .collect()
}

/// Whether a pane concerns us: it is in our session, has our marks, or runs our wrapper.
pub(super) fn is_ours(listed: &ListedPane, session: &str) -> bool {
    listed.session == session || listed.row.worker.is_some() || listed.row.start_command.contains("__pane")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_and_short_pane_rows_are_parsed() {
        let long = "%7:4242:1::9:200:50:@3:swarm:5:agent:\"/x y/swarm\" __pane /a:b";
        let listed = parse(long).unwrap();
        let row = PaneRow {
            pane: "%7".into(),
            window: "@3".into(),
            pid: 4242,
            dead: true,
            dead_status: None,
            dead_signal: Some(9),
            size: (200, 50),
            worker: Some("agent".into()),
            run: Some(5),
            start_command: "\"/x y/swarm\" __pane /a:b".into(),
        };
        assert_eq!(listed, ListedPane { row: row.clone(), session: "swarm".into() });
        let short = parse("%7:4242:0:::80:24").unwrap().row;
        assert!(!short.dead && short.size == (80, 24) && short.window.is_empty());
        let twice = format!("{long}\nsecond line of a command\n{}\n", long.replace(":swarm:", ":view:"));
        assert_eq!(parse_all(twice.as_bytes()).len(), 1);
    }

    #[test]
    fn glance_rows_are_parsed() {
        let text = b"%7:1700000000:200:50:9\n%12:1700000001:80:24:9\n\n%x:1:1:1:0\n%1:2:0\n\xff";
        let glance = |pane, activity, size| Glance { pane, activity, size, history: 9 };
        let expected = [glance(7, 1_700_000_000, (200, 50)), glance(12, 1_700_000_001, (80, 24))];
        assert_eq!(glances(text), expected);
    }

    #[test]
    fn client_rows_are_parsed() {
        let client = AttachedClient {
            pid: 42,
            created: 100,
            activity: 105,
            window: "@3".into(),
            pane: "%7".into(),
            is_mute: false,
            is_in_mode: false,
            has_focus: true,
        };
        for (line, expected) in [
            ("42:100:105:@3:%7:00:00:attached,focused,UTF-8", client.clone()),
            ("42:100:105:@3:%7:00:00:", AttachedClient { has_focus: false, ..client.clone() }),
            ("42:100:105:@3:%7:10:00:focused", AttachedClient { is_mute: true, ..client.clone() }),
            ("42:100:105:@3:%7:01:00:focused", AttachedClient { is_mute: true, ..client.clone() }),
            ("42:100:105:@3:%7:00:02:focused", AttachedClient { is_in_mode: true, ..client.clone() }),
            ("42:100:105:@3:%7:00:10:focused", AttachedClient { is_in_mode: true, ..client.clone() }),
        ] {
            assert_eq!(clients(format!("{line}\n\nno client\n").as_bytes()), [expected], "{line}");
        }
    }

    #[test]
    fn swarms_panes_are_found_by_session_mark_or_command() {
        let listed = |line| parse(line).unwrap();
        assert!(is_ours(&listed("%1:2:0:::80:24:@1:swarm:::sh"), "swarm"));
        assert!(is_ours(&listed("%1:2:0:::80:24:@1:other:1:a:sh"), "swarm"));
        assert!(is_ours(&listed("%1:2:0:::80:24:@1:other:::/b/swarm __pane /d"), "swarm"));
        assert!(!is_ours(&listed("%1:2:0:::80:24:@1:swarm-ctl:::cat -"), "swarm"));
    }

    proptest! {
        #[test]
        fn random_pane_rows_do_not_panic(line in "[%0-9:a@]{0,60}", any in any::<String>()) {
            let _ = (parse(&line), parse(&any), glances(line.as_bytes()), glances(any.as_bytes()));
        }
    }
}
