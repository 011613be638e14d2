//! Messages that wait in the CLI's queue when the agent wants to stop.

use super::*;

fn added(text: &str) -> Stop {
    Stop { queue: vec![QueueChange::Added(text.to_owned())], ..says("at work") }
}

fn turn(queue: Vec<QueueChange>) -> Stop {
    Stop { queue, ..says("at work") }
}

#[test]
fn queued_message_is_let_through_and_the_loop_continues() {
    let mut world = World::new(ralph(9));
    assert!(is_block(&world.stop(&says("at work")).unwrap()));
    let outcome = world.stop(&added("please use tabs")).unwrap();
    assert_eq!(
        outcome.answer,
        StopAnswer::Allow(Some(
            "swarm: a queued message goes to the agent first; the loop continues after that".into()
        ))
    );
    assert_eq!((outcome.status, world.state().active, world.state().iteration), (None, true, 2));
    let line = world.log.last().unwrap();
    assert_eq!((line.promise, line.decision, line.status), (PromiseFound::Missing, Decision::Allow, None));
    assert_eq!(line.why, "no promise was given; a queued message goes to the agent first");
    // The CLI has submitted it, and the agent has answered.
    assert!(is_block(&world.stop(&turn(vec![QueueChange::Submitted, QueueChange::Prompted])).unwrap()));
    assert_eq!(world.state().iteration, 3);
}

#[test]
fn every_queued_message_gets_a_turn() {
    let mut world = World::new(ralph(9));
    let add = |text: &str| QueueChange::Added(text.to_owned());
    let one = world.stop(&turn(vec![add("one"), add("two")])).unwrap();
    let StopAnswer::Allow(Some(told)) = &one.answer else { panic!("{:?}", one.answer) };
    assert!(told.contains("2 queued messages go"), "{told}");
    let next = [QueueChange::Submitted, QueueChange::Prompted];
    assert!(!is_block(&world.stop(&turn(next.to_vec())).unwrap()));
    assert!(is_block(&world.stop(&turn(next.to_vec())).unwrap()));
    assert_eq!(world.state().iteration, 2);
}

#[test]
fn a_queued_cancel_ends_the_loop_at_the_next_stop() {
    for text in ["/cancel-ralph", " /swarm:cancel-ralph", "/do-it:cancel-ralph now"] {
        for before in [vec![], vec![QueueChange::Added("first this".into())]] {
            let mut world = World::new(ralph(9));
            let queue = [before, vec![QueueChange::Added(text.to_owned())]].concat();
            assert_eq!(world.status(&turn(queue)), Some(SessionStatus::Cancelled), "{text}");
            assert_eq!(
                (world.state, world.log[0].why.as_str()),
                (None, "a cancel was typed while the agent worked")
            );
        }
    }
    let mut world = World::new(ralph(9));
    let asks = QueueChange::Added("what does /cancel-ralph do?".to_owned());
    assert_eq!(world.status(&turn(vec![asks])), None);
    // A given promise wins over a queued cancel.
    let mut world = World::new(ralph(9));
    let done = Stop { said: Some("<promise>DONE</promise>".into()), ..added("/cancel-ralph") };
    assert_eq!(world.status(&done), Some(SessionStatus::PromiseAccepted));
}

#[test]
fn message_removed_from_the_queue_does_not_stop_the_loop() {
    let mut world = World::new(ralph(9));
    let text = "please use tabs".to_owned();
    let absorbed = turn(vec![QueueChange::Added(text.clone()), QueueChange::Removed(text)]);
    assert!(is_block(&world.stop(&absorbed).unwrap()));
}

#[test]
fn unsubmitted_message_stops_the_loop_at_most_once() {
    let mut world = World::new(ralph(9));
    assert!(!is_block(&world.stop(&added("left behind")).unwrap()));
    for _ in 0..3 {
        assert!(is_block(&world.stop(&says("at work")).unwrap()));
    }
    // A typed prompt shows that the queue is empty.
    let typed = turn(vec![QueueChange::Prompted]);
    assert!(is_block(&world.stop(&typed).unwrap()));
    assert!(world.book.queue.is_empty());
}

#[test]
fn queued_message_does_not_extend_the_last_turn() {
    let mut world = World::new(ralph(1));
    assert_eq!(world.status(&added("one more thing")), Some(SessionStatus::MaxIterationsReached));
}

#[test]
fn queued_message_resets_the_count_for_the_block_cap() {
    let mut world = World::new(ralph(20));
    let silent =
        |queue| Stop { host_cap: Some(2), tool_calls: Some(0), stop_hook_active: Some(true), ..turn(queue) };
    assert!(is_block(&world.stop(&silent(vec![])).unwrap()));
    assert!(is_block(&world.stop(&silent(vec![])).unwrap()));
    assert_eq!(world.status(&silent(vec![QueueChange::Added("look".into())])), None);
    assert!(is_block(&world.stop(&silent(vec![QueueChange::Submitted])).unwrap()));
}
