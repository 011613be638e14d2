//! Recognizes in lists of tmux's clients in which panes a person types.
//!
//! tmux reports for each client the second of its last input. Measured on tmux 3.3a:
//!
//! * a key and a paste of the terminal change it; so do a change of the terminal's focus, a mouse event that the
//!   terminal sends, a key in copy mode and the prefix key; all of them in a read-only client too;
//! * output, a resize, a redraw, `paste-buffer`, `send-keys` (and so `swarm send`), and the terminal's answers to
//!   queries leave it as it is;
//! * at the attach it is the time of the attach, and a terminal may report its focus directly afterwards.
//!
//! So input counts as typing unless something else explains it: the client is read-only or a control client, it is in a
//! mode or after the prefix, its focus or mode has changed since the list before, or the client has just attached. A
//! click into an agent that uses the mouse looks like a key and counts as typing.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Presence;

/// How long after its attach the input of a client may come from the terminal itself, seconds.
const ATTACH_SECONDS: i64 = 1;

/// A client of a tmux server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachedClient {
    /// Its process.
    pub pid: i32,
    /// The second in which it attached.
    pub created: i64,
    /// The second of its last input.
    pub activity: i64,
    /// The window that it shows, `@3`.
    pub window: String,
    /// The pane that receives its keys, `%7`.
    pub pane: String,
    /// Its keys do not reach the pane: it is read-only or a control client.
    pub is_mute: bool,
    /// Its keys go to tmux at the moment: the pane is in a mode, or the prefix key was pressed.
    pub is_in_mode: bool,
    /// Its terminal has the focus.
    pub has_focus: bool,
}

/// The clients of one server as they were listed last.
#[derive(Clone, Debug)]
pub struct ClientWatch {
    /// Input up to this second was before the first list.
    since: i64,
    clients: BTreeMap<(i32, i64), AttachedClient>,
    /// The clients in which a person has typed, or may have before the first list.
    typists: BTreeSet<(i32, i64)>,
}

impl ClientWatch {
    /// A watch that begins in this second of the wall clock.
    pub fn new(since: i64) -> Self {
        Self { since, clients: BTreeMap::new(), typists: BTreeSet::new() }
    }

    /// Records a list of all clients. Returns those in which a person has typed since the list before.
    pub fn observe(&mut self, clients: Vec<AttachedClient>) -> Vec<AttachedClient> {
        let clients: BTreeMap<_, _> =
            clients.into_iter().map(|client| ((client.pid, client.created), client)).collect();
        self.typists.retain(|key| clients.contains_key(key));
        let mut typing = vec![];
        for (key, client) in &clients {
            if client.is_mute {
                continue;
            }
            let has_typed = match self.clients.get(key) {
                Some(before) => {
                    let same = (before.is_in_mode, before.has_focus) == (client.is_in_mode, client.has_focus);
                    client.activity > before.activity && same && !client.is_in_mode
                }
                None => {
                    // The previous daemon may have seen a person type here.
                    if client.created <= self.since {
                        self.typists.insert(*key);
                    }
                    let is_typed = client.activity > client.created + ATTACH_SECONDS && !client.is_in_mode;
                    is_typed && client.activity > self.since
                }
            };
            if has_typed {
                self.typists.insert(*key);
                typing.push(client.clone());
            }
        }
        self.clients = clients;
        typing
    }

    /// Whether a client in which a person has typed shows this pane.
    pub(crate) fn has_typist(&self, pane: &str) -> bool {
        self.typists.iter().filter_map(|key| self.clients.get(key)).any(|client| client.pane == pane)
    }

    /// The person at a pane, given the clients with typing. `delay` is the time to the end of the hold.
    pub fn presence(&self, pane: &str, typing: &[AttachedClient], delay: std::time::Duration) -> Presence {
        if typing.iter().any(|client| client.pane == pane) {
            Presence::Typing
        } else if self.has_typist(pane) {
            Presence::Attached
        } else {
            Presence::Away(delay)
        }
    }

    /// Whether a client shows this pane whose keys reach it.
    pub fn is_attached(&self, pane: &str) -> bool {
        self.clients.values().any(|client| client.pane == pane && !client.is_mute)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::RELEASE_DELAY;

    fn client(activity: i64) -> AttachedClient {
        let (window, pane) = ("@1".to_owned(), "%1".to_owned());
        AttachedClient { pid: 7, created: 100, activity, window, pane, has_focus: true, ..Default::default() }
    }

    /// The presence after each list.
    fn presences(lists: &[Option<AttachedClient>]) -> String {
        let mut watch = ClientWatch::new(90);
        let word = |list: &Option<AttachedClient>| {
            let typing = watch.observe(list.iter().cloned().collect());
            match watch.presence("%1", &typing, RELEASE_DELAY) {
                Presence::Typing => "T",
                Presence::Attached => "a",
                Presence::Away(_) => "-",
            }
        };
        lists.iter().map(word).collect()
    }

    #[test]
    fn only_input_to_the_pane_counts_as_typing() {
        let at = |activity| Some(client(activity));
        let with = |activity, change: fn(&mut AttachedClient)| {
            let mut client = client(activity);
            change(&mut client);
            Some(client)
        };
        for (what, lists, expected) in [
            ("watches", vec![at(100), at(100), at(100)], "---"),
            ("types, idles, types, leaves", vec![at(100), at(105), at(105), at(109), None], "-TaT-"),
            ("the terminal reports its focus at the attach", vec![at(101), at(101)], "--"),
            ("typed before the first list", vec![at(103)], "T"),
            (
                "the focus goes and comes",
                vec![at(100), with(105, |c| c.has_focus = false), at(109), at(109)],
                "----",
            ),
            ("types after the focus came", vec![with(100, |c| c.has_focus = false), at(105), at(107)], "--T"),
            (
                "copy mode: enters, moves, leaves",
                vec![
                    at(100),
                    with(105, |c| c.is_in_mode = true),
                    with(107, |c| c.is_in_mode = true),
                    at(109),
                    at(110),
                ],
                "----T",
            ),
            ("read-only", vec![with(100, |c| c.is_mute = true), with(105, |c| c.is_mute = true)], "--"),
            ("in another pane", vec![at(100), with(105, |c| c.pane = "%2".into()), at(105)], "--a"),
            ("another client with the same pid", vec![at(105), with(200, |c| c.created = 200)], "T-"),
        ] {
            assert_eq!(presences(&lists), expected, "{what}");
        }
    }

    #[test]
    fn new_daemon_ignores_earlier_input_but_finds_the_attached_person() {
        let mut watch = ClientWatch::new(1000);
        for activity in [100, 101, 900] {
            let typing = watch.observe(vec![client(activity)]);
            assert_eq!(watch.presence("%1", &typing, RELEASE_DELAY), Presence::Attached);
            watch = ClientWatch::new(1000);
        }
        watch.observe(vec![client(900)]);
        assert!(watch.is_attached("%1") && !watch.is_attached("%2"));
        let typing = watch.observe(vec![client(1001)]);
        assert_eq!(watch.presence("%1", &typing, RELEASE_DELAY), Presence::Typing);
    }

    proptest! {
        /// Without new input no person types, and without a client no person is there.
        #[test]
        fn unchanged_activity_is_not_typing(activities in prop::collection::vec(100i64..110, 1..20)) {
            let mut watch = ClientWatch::new(90);
            for activity in activities {
                let typing = watch.observe(vec![client(activity)]);
                prop_assert!(typing.is_empty() || activity > 100);
                prop_assert!(watch.observe(vec![client(activity)]).is_empty());
            }
            watch.observe(vec![]);
            prop_assert!(!watch.has_typist("%1") && !watch.is_attached("%1"));
        }
    }
}
