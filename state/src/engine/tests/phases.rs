//! Getting ready, the prompt, who waits for a person; and every event in every phase as one table.

use super::*;
use crate::engine::{Edits, PROMPT_TIMEOUT};
use crate::model::{LoopStatus, Status};
use crate::notice::PauseBy;

const R: Run = Run(1);

fn ready(n: u8) -> Reading {
    Reading { ready: true, ..screen(n) }
}

/// A loop of 9 whose first agent is up and not ready yet.
fn starting(timeout: u64) -> Worker {
    let mut worker = Worker::looping(PASTE, 9, timeout);
    worker.step(Event::Start, at(0));
    worker.step(Event::Up(R), at(0));
    worker
}

/// The same with the prompt taken, at work.
fn running() -> Worker {
    let mut worker = starting(60);
    worker.step(Event::Screen(R, ready(1)), at(0));
    worker.step(Event::PromptSent(R), at(0));
    worker
}

fn step(worker: &mut Worker, seconds: u64, event: Event) -> String {
    let effects = worker.step(event, at(seconds * 1000));
    line(&effects, worker)
}

/// Looks every two seconds as the edge does: one capture, then nothing printed; ticks when due, answers
/// probes with "idle". Gives the lines in which something happened.
fn stare(worker: &mut Worker, from: u64, to: u64, look: &Reading) -> Vec<(u64, String)> {
    let mut lines = Vec::new();
    let mut note = |worker: &mut Worker, s: u64, event: Event| {
        let effects = worker.step(event, at(s * 1000));
        if !effects.is_empty() {
            lines.push((s, line(&effects, worker)));
        }
        effects.contains(&Effect::Probe(R))
    };
    for s in (from..=to).step_by(2) {
        let event = if s == from { Event::Screen(R, look.clone()) } else { Event::Quiet(R) };
        if note(worker, s, event) {
            note(worker, s, Event::Probed(R, false));
        }
        if worker.deadline().is_some_and(|due| due.as_secs() <= s) {
            note(worker, s, Event::Tick);
        }
    }
    lines
}

fn notices_in(lines: &[(u64, String)]) -> Vec<(u64, &str)> {
    lines.iter().map(|(s, text)| (*s, text.as_str())).collect()
}

#[test]
fn a_ready_agent_gets_its_prompt() {
    let mut worker = starting(60);
    assert_eq!(step(&mut worker, 1, Event::Screen(R, screen(1))), "=> starting");
    assert_eq!(step(&mut worker, 2, Event::Screen(R, ready(2))), "persist; ready; deliver 1 => prompting");
    assert_eq!(step(&mut worker, 3, Event::PromptSent(R)), "persist; promptsent => running");
    let mut waits = Worker::plain(Policy { paste: false, ..PASTE });
    waits.step(Event::Start, at(0));
    waits.step(Event::Up(R), at(0));
    assert_eq!(step(&mut waits, 2, Event::Screen(R, ready(2))), "persist; ready => running");
}

#[test]
fn a_ready_screen_under_a_dialog_is_not_ready() {
    let mut worker = starting(60);
    let both = Reading { ready: true, ..dialog(1, true, "trust dialog") };
    assert_eq!(
        step(&mut worker, 1, Event::Screen(R, both)),
        "persist; \"waiting for a person: trust dialog\" => starting"
    );
    assert_eq!(worker.status(), Status::Waiting);
    assert_eq!(step(&mut worker, 2, Event::Screen(R, ready(2))), "persist; ready; deliver 1 => prompting");
    assert_eq!((worker.status(), worker.reason()), (Status::Starting, None));
}

/// A static dialog prints nothing, so after one capture there are only quiet looks: nothing may end it.
#[test]
fn a_startup_dialog_is_never_ended() {
    let mut worker = starting(10);
    let lines = stare(&mut worker, 0, 4000, &dialog(1, true, "login"));
    assert_eq!(notices_in(&lines), [(0, "persist; \"waiting for a person: login\" => starting")]);
    assert_eq!((worker.status(), worker.reason().as_deref()), (Status::Waiting, Some("login")));
}

#[test]
fn startup_dialog_during_work_never_ends_the_run() {
    let mut worker = running();
    let lines = stare(&mut worker, 0, 4000, &dialog(1, true, "no credit"));
    assert_eq!(notices_in(&lines), [(0, "persist; \"waiting for a person: no credit\" => running")]);
    assert_eq!(step(&mut worker, 4002, Event::Screen(R, screen(2))), "=> running");
    assert_eq!((worker.status(), worker.reason()), (Status::Running, None), "answered");
}

#[test]
fn an_agent_that_is_not_ready_in_time_waits_without_limit() {
    for timeout in [10, 60] {
        let mut worker = starting(timeout);
        assert_eq!(
            notices_in(&stare(&mut worker, 0, 4000, &screen(1))),
            [(30, "persist; \"waiting for a person: not ready after 30s\" => starting")]
        );
        assert_eq!((worker.status(), worker.deadline()), (Status::Waiting, None));
    }
}

#[test]
fn answered_dialog_restarts_the_ready_timeout() {
    let mut worker = starting(60);
    stare(&mut worker, 0, 1000, &dialog(1, true, "login"));
    let lines = stare(&mut worker, 1000, 1062, &screen(2));
    assert_eq!(
        notices_in(&lines),
        [(1030, "persist; \"waiting for a person: not ready after 30s\" => starting")]
    );
}

#[test]
fn dialog_after_the_ready_timeout_replaces_its_reason() {
    let mut worker = starting(60);
    stare(&mut worker, 0, 32, &screen(1));
    let lines = stare(&mut worker, 34, 900, &dialog(2, true, "theme"));
    assert_eq!(notices_in(&lines), [(34, "persist; \"waiting for a person: theme\" => starting")]);
}

#[test]
fn dialog_delays_the_end_by_the_done_pattern() {
    let mut worker = running();
    step(&mut worker, 0, Event::Screen(R, Reading { done: true, ..screen(1) }));
    step(&mut worker, 2, Event::Quiet(R));
    let dialog = dialog(1, false, "permission");
    assert_eq!(
        step(&mut worker, 4, Event::Screen(R, dialog)),
        "persist; \"waiting for a person: permission\" => running"
    );
    assert_eq!(step(&mut worker, 6, Event::Quiet(R)), "persist; term 1 => ending(done)");
}

#[test]
fn undelivered_prompt_fails_the_iteration() {
    let mut worker = starting(60);
    step(&mut worker, 0, Event::Screen(R, ready(1)));
    let failed = Event::PromptFailed(R, "not taken".into());
    assert_eq!(
        step(&mut worker, 1, failed),
        "persist; term 1; \"prompt not delivered: not taken\" => ending(undelivered)"
    );
    step(&mut worker, 2, Event::Exited(R, Exit::Signal(15)));
    let ended = worker.ended().unwrap();
    assert_eq!(ended.reason, "prompt not delivered: not taken");
    // Whatever holds then is not the agent's work.
    assert_eq!(
        step(&mut worker, 2, Event::Evaluated(R, gates(true))),
        "persist; \"iteration 1 failed (exit: undelivered): prompt not delivered: not taken, retrying in 1s (attempt 1/5)\" => backoff(1s)"
    );
}

#[test]
fn exit_before_the_prompt_is_a_failure() {
    for ready_first in [false, true] {
        let mut worker = starting(60);
        if ready_first {
            step(&mut worker, 0, Event::Screen(R, ready(1)));
        }
        let exited = step(&mut worker, 1, Event::Exited(R, Exit::Code(0)));
        assert_eq!(exited, "persist; judge 1 => judging(0,undelivered)");
        if ready_first {
            // News of the delivery may come after news of the exit.
            let mut taken = worker.clone();
            assert_eq!(taken.ended_delivered().unwrap().reason, "exit status 0");
            assert_eq!(step(&mut taken, 1, Event::PromptSent(R)), "persist => judging(0)");
        }
        assert_eq!(
            worker.ended().unwrap().reason,
            "the agent exited with status 0 before it received its prompt"
        );
        let judged = step(&mut worker, 1, Event::Evaluated(R, gates(false)));
        assert!(judged.contains("failed (exit: undelivered)"), "{judged}");
    }
}

#[test]
fn a_delivery_waits_for_a_tmux_that_does_not_answer() {
    let mut worker = starting(60);
    step(&mut worker, 0, Event::Screen(R, ready(1)));
    step(&mut worker, 1, Event::Reachable(false));
    let due = PROMPT_TIMEOUT.as_secs();
    assert_eq!(step(&mut worker, due, Event::Tick), "=> prompting");
    assert_eq!(worker.deadline(), Some(at(2 * due * 1000).mono));
}

#[test]
fn undelivered_prompt_of_a_plain_worker_is_shown_until_the_screen_changes() {
    let mut worker = Worker::plain(PASTE);
    worker.step(Event::Start, at(0));
    worker.step(Event::Up(R), at(0));
    step(&mut worker, 0, Event::Screen(R, ready(1)));
    let failed = Event::PromptFailed(R, "not taken".into());
    assert_eq!(step(&mut worker, 1, failed), "persist; \"prompt not delivered: not taken\" => running");
    for s in [2, 4] {
        step(&mut worker, s, Event::Screen(R, ready(1)));
        assert_eq!(
            (worker.status(), worker.reason().as_deref()),
            (Status::Waiting, Some("prompt not delivered: not taken"))
        );
    }
    let mut helped = worker.clone();
    step(&mut helped, 6, Event::Screen(R, ready(2)));
    assert_eq!((helped.status(), helped.reason()), (Status::Running, None));
}

#[test]
fn prompt_displaced_by_a_dialog_is_delivered_after_the_answer() {
    let mut worker = starting(60);
    step(&mut worker, 0, Event::Screen(R, ready(1)));
    let dialog = Blocked { startup: true, what: "trust dialog".into() };
    let told = "persist; \"waiting for a person: trust dialog\" => starting";
    assert_eq!(step(&mut worker, 1, Event::PromptBlocked(R, Some(dialog.clone()))), told);
    let stands = Reading { blocked: Some(dialog), ..screen(2) };
    assert_eq!(step(&mut worker, 2, Event::Screen(R, stands.clone())), "=> starting");
    assert_eq!((worker.status(), worker.reason().as_deref()), (Status::Waiting, Some("trust dialog")));
    assert_eq!(stare(&mut worker, 4, 200, &stands), vec![], "nobody is hurried");
    let again = step(&mut worker, 300, Event::Screen(R, ready(3)));
    assert!(again.contains("deliver 1 => prompting"), "{again}");
    // The prompt also waits when something that no profile describes blocks its delivery.
    let gone = step(&mut worker, 301, Event::PromptBlocked(R, None));
    assert!(gone.ends_with("=> starting"), "{gone}");
    assert!(step(&mut worker, 302, Event::Screen(R, ready(4))).contains("deliver 1"));
    step(&mut worker, 303, Event::PromptSent(R));
    assert_eq!(step(&mut worker, 304, Event::PromptBlocked(R, None)), "=> running", "late news");
}

#[test]
fn delivery_without_an_answer_times_out() {
    let mut worker = starting(60);
    step(&mut worker, 0, Event::Screen(R, ready(1)));
    let due = PROMPT_TIMEOUT.as_secs();
    assert_eq!(step(&mut worker, due - 1, Event::Tick), "=> prompting");
    let late =
        "persist; term 1; \"prompt not delivered: the delivery did not end in time\" => ending(undelivered)";
    assert_eq!(step(&mut worker, due, Event::Tick), late);
    let after = step(&mut worker, due, Event::PromptSent(R));
    assert_eq!(after, "=> ending(undelivered)", "late news of it changes nothing");
}

#[test]
fn one_probe_is_pending_at_a_time_and_a_new_daemon_probes_again() {
    let mut worker = running();
    let mut probes = 0;
    for s in (0..80).step_by(2) {
        probes += usize::from(worker.step(Event::Quiet(R), at(s * 1000)) == [Effect::Probe(R)]);
    }
    assert_eq!(probes, 1);
    worker.rebase(at(80_000));
    assert_eq!(step(&mut worker, 80, Event::Adopted(R)), "=> running");
    assert_eq!(step(&mut worker, 80, Event::Probed(R, false)), "=> running", "an answer nobody asked for");
    assert_eq!(step(&mut worker, 82, Event::Quiet(R)), "probe 1 => running");
    assert_eq!(step(&mut worker, 84, Event::Quiet(R)), "=> running");
}

#[test]
fn probe_is_sent_only_when_silence_was_possible() {
    for gap in [500, 2_000, 3_700, 60_000] {
        let mut worker = running();
        let expected: Vec<bool> = (1..200)
            .map(|look| {
                let expected = worker.may_be_silent();
                let probes = worker.step(Event::Quiet(R), at(look * gap)) == [Effect::Probe(R)];
                assert!(expected || !probes, "look {look}, every {gap} ms");
                expected
            })
            .collect();
        assert!(!expected[0] && expected[198], "{gap}");
        worker.step(Event::Screen(R, screen(9)), at(300 * gap));
        assert!(!worker.may_be_silent(), "the screen changed");
    }
    assert!(!Worker::plain(STDIN).may_be_silent());
}

#[test]
fn daemon_restart_neither_extends_nor_drops_a_wait() {
    let late = at(10_000_000);
    let due = |mut worker: Worker, now: Now| {
        worker.rebase(now);
        worker.deadline().map(|due| due.saturating_sub(now.mono).as_secs())
    };
    let mut prompting = starting(60);
    prompting.step(Event::Screen(R, ready(1)), late);
    let mut ending = running();
    ending.step(Event::Kill, late);
    let mut backing = running();
    backing.step(Event::Exited(R, Exit::Code(1)), late);
    backing.step(Event::Evaluated(R, gates(false)), late);
    let mut started = Worker::looping(PASTE, 9, 60);
    started.step(Event::Start, late);
    started.step(Event::Up(R), late);
    for (what, worker, whole) in [
        ("prompting", prompting, 120),
        ("ending", ending, 5),
        ("backing off", backing, 1),
        ("starting", started, 30),
    ] {
        assert_eq!(due(worker.clone(), late), Some(whole), "{what}: the same clock");
        assert_eq!(due(worker.clone(), at(0)), Some(whole), "{what}: a new boot");
        assert_eq!(due(worker, at(20_000_000)), Some(0), "{what}: hours later it is due");
    }
    let mut worker = running();
    worker.rebase(at(0));
    assert_eq!(worker.deadline(), None);
    let mut fresh = Worker::looping(PASTE, 9, 60);
    fresh.step(Event::Start, late);
    fresh.rebase(at(1000));
    assert_eq!(
        fresh.ralph().map(|l| l.started_mono),
        Some(at(1000).mono),
        "no iteration started in the future"
    );
}

/// Silence before a restart counts, the time in which no daemon looked does not.
#[test]
fn daemon_restart_does_not_count_as_silence() {
    let mut worker = running();
    stare(&mut worker, 0, 50, &screen(1));
    worker.rebase(at(9_000_000));
    assert_eq!(step(&mut worker, 9000, Event::Quiet(R)), "=> running");
    assert_eq!(step(&mut worker, 9004, Event::Quiet(R)), "=> running");
    assert_eq!(step(&mut worker, 9010, Event::Quiet(R)), "probe 1 => running");
}

/// A loop of 9 in each phase, its first run the current one.
fn every_phase() -> Vec<(&'static str, Worker)> {
    let with = |worker: &Worker, events: &[Event]| {
        let mut worker = worker.clone();
        for event in events {
            worker.step(event.clone(), at(0));
        }
        worker
    };
    let idle = Worker::looping(PASTE, 9, 60);
    let spawning = with(&idle, &[Event::Start]);
    let judging = with(&running(), &[Event::Exited(R, Exit::Code(1))]);
    let failed = Event::Evaluated(R, gates(false));
    vec![
        ("idle", idle),
        ("doomed", with(&spawning, &[Event::Kill])),
        ("spawning", spawning),
        ("starting", starting(60)),
        ("prompting", with(&starting(60), &[Event::Screen(R, ready(1))])),
        ("running", running()),
        ("ending", with(&running(), &[Event::Hook(R, HookSignal::ContextSpent)])),
        ("backing off", with(&judging, std::slice::from_ref(&failed))),
        ("parked", with(&judging, &[Event::Pause(PauseBy::User), failed])),
        ("judging", judging),
        ("lost", with(&running(), &[Event::ServerLost(R)])),
        ("stopped", with(&running(), &[Event::ServerLost(R), Event::Kill])),
    ]
}

fn every_event(run: Run) -> Vec<(&'static str, Event)> {
    vec![
        ("start", Event::Start),
        ("pause", Event::Pause(PauseBy::User)),
        ("resume", Event::Resume),
        ("kill", Event::Kill),
        ("tick", Event::Tick),
        (
            "edited",
            Event::Edited(Edits {
                max_iterations: Some(8),
                inactivity_timeout: Some(50),
                ..Edits::default()
            }),
        ),
        ("up", Event::Up(run)),
        ("spawn-failed", Event::SpawnFailed(run, SpawnError::Other("no".into()))),
        ("no-prompt", Event::SpawnFailed(run, SpawnError::Prompt("gone".into()))),
        ("no-time", Event::SpawnFailed(run, SpawnError::OutOfTime)),
        ("adopted", Event::Adopted(run)),
        ("never-started", Event::NeverStarted(run)),
        ("ready", Event::Screen(run, ready(1))),
        ("dialog", Event::Screen(run, dialog(1, true, "login"))),
        ("quiet", Event::Quiet(run)),
        ("sent", Event::PromptSent(run)),
        ("not-sent", Event::PromptFailed(run, "no".into())),
        ("turn-over", Event::Hook(run, HookSignal::TurnOver)),
        ("idles", Event::Hook(run, HookSignal::Idle)),
        ("prompt", Event::Hook(run, HookSignal::Prompt)),
        ("working", Event::Hook(run, HookSignal::Working)),
        ("tool-used", Event::Hook(run, HookSignal::ToolUsed(Some(50)))),
        ("api-error", Event::Hook(run, HookSignal::ApiError("529".into()))),
        ("context-spent", Event::Hook(run, HookSignal::ContextSpent)),
        ("asks", Event::Hook(run, HookSignal::Asks("may I".into()))),
        ("idle-probe", Event::Probed(run, false)),
        ("exited", Event::Exited(run, Exit::Code(0))),
        ("pane-lost", Event::PaneLost(run)),
        ("server-lost", Event::ServerLost(run)),
        ("judged", Event::Evaluated(run, gates(false))),
        ("complete", Event::Evaluated(run, gates(true))),
    ]
}

/// Renders the step of one cell: one letter for each effect (notices left out), then the phase.
fn cell(effects: &[Effect], worker: &Worker) -> String {
    let letter = |effect: &Effect| match effect {
        Effect::Persist => "P",
        Effect::Spawn(_) => "S",
        Effect::Deliver(_) => "D",
        Effect::Terminate(_) => "T",
        Effect::ForceKill(_) => "F",
        Effect::Probe(_) => "B",
        Effect::Look(_) => "L",
        Effect::Evaluate(_) => "J",
        Effect::Notify(_) => "",
    };
    let letters: String = effects.iter().map(letter).collect();
    format!("{letters}>{}", phase_word(worker))
}

/// Every event in every phase, at a moment when the phase's deadline has come. What is not in the table
/// does nothing at all.
const TABLE: &[(&str, &str)] = &[
    ("idle", "start PS>spawning, pause P>idle, kill P>stopped(killed), edited P>idle, adopted F>idle"),
    (
        "doomed",
        "pause P>doomed, kill P>doomed, edited P>doomed, up PT>ending(kill), \
         spawn-failed P>stopped(killed), no-prompt P>stopped(killed), no-time P>stopped(killed), \
         adopted PT>ending(kill), \
         never-started P>stopped(killed), exited PJ>judging(0,kill), \
         pane-lost PJ>judging(lost,kill), server-lost P>stopped(killed)",
    ),
    (
        "spawning",
        "pause P>spawning, kill P>doomed, edited P>spawning, up P>starting, \
         spawn-failed P>backoff(1s), no-prompt P>stopped(prompt_file), no-time P>backoff(1s), adopted P>starting, \
         never-started PS>spawning, exited PJ>judging(0), pane-lost PJ>judging(lost), \
         server-lost P>lost",
    ),
    (
        "starting",
        "pause P>starting, kill PT>ending(kill), tick P>starting, edited P>starting, \
         ready PD>prompting, dialog P>starting, turn-over P>starting, idles P>starting, prompt P>starting, working P>starting, tool-used P>starting, \
         api-error PT>ending(apierror), context-spent PT>ending(contextspent), asks P>starting, exited PJ>judging(0,undelivered), pane-lost PJ>judging(lost), \
         server-lost P>lost",
    ),
    (
        "prompting",
        "pause P>prompting, kill PT>ending(kill), tick PT>ending(undelivered), edited P>prompting, \
         adopted D>prompting, sent P>running, not-sent PT>ending(undelivered), turn-over P>running, prompt P>running, \
         api-error PT>ending(apierror), exited PJ>judging(0,undelivered), \
         pane-lost PJ>judging(lost), server-lost P>lost",
    ),
    (
        "running",
        "pause P>running, kill PT>ending(kill), edited P>running, dialog P>running, \
         turn-over P>running, idles P>running, prompt P>running, working P>running, \
         tool-used P>running, api-error PT>ending(apierror), context-spent PT>ending(contextspent), asks P>running, exited PJ>judging(0), pane-lost PJ>judging(lost), \
         server-lost P>lost",
    ),
    (
        "ending",
        "pause P>ending(contextspent), kill P>ending(kill), tick F>ending(contextspent), \
         edited P>ending(contextspent), adopted T>ending(contextspent), exited PJ>judging(0,contextspent), \
         pane-lost PJ>judging(lost,contextspent), server-lost P>lost",
    ),
    (
        "backing off",
        "pause P>parked, kill P>stopped(killed), tick PS>spawning, edited P>backoff(1s), \
         adopted F>backoff(1s)",
    ),
    ("parked", "resume PS>spawning, kill P>stopped(killed), edited P>parked, adopted F>parked"),
    (
        "judging",
        "pause P>judging(1), kill P>judging(1,kill), edited P>judging(1), adopted J>judging(1), \
         judged P>backoff(1s), complete P>stopped(done_pattern)",
    ),
    (
        "lost",
        "pause P>lost, resume PS>spawning, kill P>stopped(killed), edited P>lost, \
         adopted P>running",
    ),
    ("stopped", "edited P>stopped(killed), adopted F>stopped(killed)"),
];

#[test]
fn every_event_in_every_phase_has_the_listed_effects() {
    let mut table = Vec::new();
    for (phase, worker) in every_phase() {
        let mut cells = Vec::new();
        for (name, event) in every_event(worker.run()) {
            let mut next = worker.clone();
            let effects = next.step(event, at(1_000_000));
            if !effects.is_empty() || next.phase() != worker.phase() {
                let looked = matches!(name, "ready" | "quiet") && effects.is_empty();
                if !looked {
                    cells.push(format!("{name} {}", cell(&effects, &next)));
                }
            }
        }
        table.push((phase, cells.join(", ")));
    }
    let table: Vec<(&str, &str)> = table.iter().map(|(phase, cells)| (*phase, cells.as_str())).collect();
    assert_eq!(table, TABLE, "{table:#?}");
}

#[test]
fn event_of_another_run_is_ignored_in_every_phase() {
    for (phase, worker) in every_phase() {
        for other in [worker.run().0.wrapping_sub(1), worker.run().0 + 1] {
            for (name, event) in every_event(Run(other)).into_iter().filter(|(_, e)| about(e).is_some()) {
                let mut next = worker.clone();
                assert_eq!(next.step(event, at(1_000_000)), [], "{name} in {phase}");
                assert_eq!(next, worker, "{name} in {phase}");
            }
        }
    }
}

#[test]
fn every_phase_has_its_status_and_reason() {
    let loop_words = |worker: &Worker| worker.loop_status().unwrap();
    let expected = [
        ("idle", Status::Starting, LoopStatus::Running, None),
        ("doomed", Status::Starting, LoopStatus::Running, None),
        ("spawning", Status::Starting, LoopStatus::Running, None),
        ("starting", Status::Starting, LoopStatus::Running, None),
        ("prompting", Status::Starting, LoopStatus::Running, None),
        ("running", Status::Running, LoopStatus::Running, None),
        ("ending", Status::Running, LoopStatus::Running, Some("ending: its context was full")),
        (
            "backing off",
            Status::Retrying,
            LoopStatus::Running,
            Some("next try 1s after a failure: exit status 1"),
        ),
        ("parked", Status::Paused, LoopStatus::Paused, Some("paused")),
        ("judging", Status::Running, LoopStatus::Running, None),
        ("lost", Status::Lost, LoopStatus::Running, Some("the tmux server went away")),
        ("stopped", Status::Killed, LoopStatus::Stopped, Some("killed")),
    ];
    for ((phase, worker), row) in every_phase().into_iter().zip(expected) {
        let reason = worker.reason();
        assert_eq!((phase, worker.status(), loop_words(&worker), reason.as_deref()), row);
        let mut paused = worker.clone();
        paused.step(Event::Pause(PauseBy::Shutdown), at(0));
        let word = if worker.is_stopped() { LoopStatus::Stopped } else { LoopStatus::Paused };
        assert_eq!(loop_words(&paused), word, "{phase}");
        let mut deaf = worker.clone();
        deaf.step(Event::Reachable(false), at(0));
        let calm = matches!(phase, "backing off" | "parked" | "lost" | "stopped");
        assert_eq!(deaf.status(), if calm { worker.status() } else { Status::Unreachable }, "{phase}");
    }
}

#[test]
fn due_log_entries_follow_from_the_state() {
    let due_entries = |worker: &Worker| -> String {
        worker.due_entries().iter().flat_map(|entry| entry.log_lines()).collect::<Vec<_>>().join("; ")
    };
    let mut worker = Worker::looping(STDIN, 2, 60);
    assert_eq!(due_entries(&worker), "");
    worker.step(Event::Start, at(0));
    assert_eq!(due_entries(&worker), "[START] iteration 1/2");
    worker.step(Event::Pause(PauseBy::User), at(0));
    assert_eq!(due_entries(&worker), "[START] iteration 1/2; [PAUSE]");
    worker.step(Event::Kill, at(0));
    worker.step(Event::SpawnFailed(R, SpawnError::Other("x".into())), at(0));
    assert!(
        due_entries(&worker).ends_with("[DONE] loop killed after 1 iteration reason=killed"),
        "{}",
        due_entries(&worker)
    );
    let mut plain = Worker::plain(STDIN);
    plain.step(Event::Start, at(0));
    assert_eq!(due_entries(&plain), "");
}
