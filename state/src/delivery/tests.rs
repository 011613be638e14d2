use proptest::prelude::*;

use super::*;

fn dialog(startup: bool) -> Option<Blocked> {
    Some(Blocked { startup, what: "a dialog".into() })
}

fn look(held: BoxContent) -> Look {
    Look { held, dialog: None, began: false, reported: false, busy: false, ready: false, untouched: true }
}

fn plan() -> Plan {
    Plan { knows_box: true, enter: true, ..Plan::default() }
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The keys that are sent while each look stands for its milliseconds, with the end.
fn run(plan: Plan, looks: &[(Look, u64)]) -> (Vec<(u64, Step)>, Delivery) {
    let mut delivery = Delivery::new(plan);
    let (mut steps, mut now) = (vec![], 0);
    for (look, length) in looks {
        let until = now + length;
        while now < until {
            let step = delivery.next(look, ms(now));
            if step != Step::Wait {
                let ends = !matches!(step, Step::Paste | Step::Enter);
                steps.push((now, step));
                if ends {
                    return (steps, delivery);
                }
            }
            now += 100;
        }
    }
    (steps, delivery)
}

fn keys(plan: Plan, looks: &[(Look, u64)]) -> Vec<(u64, Step)> {
    run(plan, looks).0
}

#[test]
fn text_that_shows_is_sent_and_an_empty_box_accepts_it() {
    let seen =
        [(look(BoxContent::Other), 100), (look(BoxContent::Text), 600), (look(BoxContent::Other), 100)];
    assert_eq!(keys(plan(), &seen), [(0, Step::Paste), (400, Step::Enter), (700, Step::Accepted)]);
}

#[test]
fn folded_text_waits_longer_for_its_enter() {
    let seen =
        [(look(BoxContent::Other), 100), (look(BoxContent::Token), 1100), (look(BoxContent::Other), 100)];
    assert_eq!(keys(plan(), &seen), [(0, Step::Paste), (1000, Step::Enter), (1200, Step::Accepted)]);
}

#[test]
fn agent_that_draws_late_gets_enter_only_afterwards() {
    let seen =
        [(look(BoxContent::Other), 4000), (look(BoxContent::Text), 500), (look(BoxContent::Other), 100)];
    assert_eq!(keys(plan(), &seen), [(0, Step::Paste), (4000, Step::Enter), (4500, Step::Accepted)]);
}

#[test]
fn enter_is_pressed_again_within_limits_and_then_the_delivery_fails() {
    let steps = keys(plan(), &[(look(BoxContent::Other), 100), (look(BoxContent::Text), 60_000)]);
    let enters = steps.iter().filter(|(_, step)| *step == Step::Enter).count();
    assert_eq!(enters, ENTER_INTERVALS.len());
    assert_eq!(steps.last().unwrap().1, Step::NotAccepted);
    let swallowed =
        [(look(BoxContent::Other), 100), (look(BoxContent::Text), 2000), (look(BoxContent::Other), 100)];
    let steps = keys(plan(), &swallowed);
    assert_eq!(steps[1..3], [(400, Step::Enter), (1600, Step::Enter)]);
    assert_eq!(steps[3], (2100, Step::Accepted));
}

#[test]
fn an_agent_that_works_on_the_first_enter_gets_no_second() {
    let busy = Look { busy: true, ..look(BoxContent::Token) };
    let seen = [(look(BoxContent::Other), 100), (busy.clone(), 20_000), (look(BoxContent::Other), 100)];
    assert_eq!(keys(plan(), &seen)[1..], [(1000, Step::Enter), (20_100, Step::Accepted)]);
    let steps = keys(plan(), &[(look(BoxContent::Other), 100), (busy, 60_000)]);
    assert_eq!(steps[1..], [(1000, Step::Enter), (31_000, Step::Enter), (41_000, Step::NotAccepted)]);
}

#[test]
fn dialog_before_the_paste_gets_no_keys() {
    let seen = [(Look { dialog: dialog(true), ..look(BoxContent::NoBox) }, 100)];
    assert_eq!(keys(plan(), &seen), [(0, Step::Dialog(dialog(true).unwrap()))]);
}

#[test]
fn a_dialog_between_paste_and_enter_gets_no_key() {
    for startup in [true, false] {
        for held in [BoxContent::NoBox, BoxContent::Other] {
            let replaced = Look { dialog: dialog(startup), ..look(held) };
            let seen = [(look(BoxContent::Other), 300), (replaced, 5000)];
            let want = [(0, Step::Paste), (300, Step::Dialog(dialog(startup).unwrap()))];
            assert_eq!(keys(plan(), &seen), want);
        }
    }
}

#[test]
fn a_dialog_between_two_enters_gets_no_key() {
    let replaced = Look { dialog: dialog(true), ..look(BoxContent::NoBox) };
    let seen = [(look(BoxContent::Other), 100), (look(BoxContent::Text), 1000), (replaced, 5000)];
    let steps = keys(plan(), &seen);
    assert_eq!(steps[1..], [(400, Step::Enter), (1100, Step::Dialog(dialog(true).unwrap()))]);
    // In mid-work it shows that the agent works on the text.
    let asks = Look { dialog: dialog(false), ..look(BoxContent::NoBox) };
    let seen = [(look(BoxContent::Other), 100), (look(BoxContent::Text), 1000), (asks, 5000)];
    assert_eq!(keys(plan(), &seen)[2], (1100, Step::Accepted));
}

#[test]
fn missing_input_box_of_a_known_agent_gets_no_key() {
    let seen = [(look(BoxContent::Other), 100), (look(BoxContent::NoBox), 60_000)];
    let steps = keys(plan(), &seen);
    assert_eq!(steps, [(0, Step::Paste), (100 + 5000, Step::NoBox)]);
    assert_eq!(keys(plan(), &[(look(BoxContent::NoBox), 60_000)]), [(5000, Step::NoBox)]);
    let seen =
        [(look(BoxContent::Other), 100), (look(BoxContent::Text), 400), (look(BoxContent::NoBox), 60_000)];
    assert_eq!(keys(plan(), &seen)[2].1, Step::NoBox);
    let hides = Plan { hides_box: true, ..plan() };
    assert_eq!(keys(hides, &seen)[2].1, Step::Accepted);
}

#[test]
fn text_that_never_shows_is_not_sent() {
    let steps = keys(plan(), &[(look(BoxContent::Other), 60_000)]);
    assert_eq!(steps, [(0, Step::Paste), (30_000, Step::NotShown)]);
}

#[test]
fn program_without_echo_gets_one_enter() {
    for held in [BoxContent::NoBox, BoxContent::Other] {
        let steps = keys(Plan { knows_box: false, ..plan() }, &[(look(held), 60_000)]);
        assert_eq!(steps, [(0, Step::Paste), (3000, Step::Enter), (3100, Step::Accepted)]);
    }
}

#[test]
fn text_is_pasted_only_into_a_visible_input_box() {
    let settled = Plan { settle: ms(1000), ..plan() };
    let seen =
        [(look(BoxContent::Other), 600), (look(BoxContent::NoBox), 100), (look(BoxContent::Other), 1500)];
    assert_eq!(keys(settled, &seen), [(1700, Step::Paste)]);
    let trust = Look { dialog: dialog(true), ..look(BoxContent::NoBox) };
    let seen = [(look(BoxContent::Other), 600), (trust, 100)];
    assert_eq!(keys(settled, &seen), [(600, Step::Dialog(dialog(true).unwrap()))]);
}

#[test]
fn text_already_in_the_box_is_not_pasted_again() {
    let once = Plan { once: true, ..plan() };
    let seen = [(look(BoxContent::Text), 1000), (look(BoxContent::Other), 100)];
    assert_eq!(keys(once, &seen), [(400, Step::Enter), (1000, Step::Accepted)]);
}

#[test]
fn interrupted_delivery_presses_enter_only_on_its_text() {
    let mut delivery = Delivery::pasted(plan());
    assert_eq!(delivery.next(&look(BoxContent::Other), ms(0)), Step::Wait);
    assert_eq!(delivery.next(&look(BoxContent::Text), ms(500)), Step::Enter);
    let mut delivery = Delivery::pasted(plan());
    assert_eq!(delivery.next(&look(BoxContent::Other), ms(2900)), Step::Wait);
    assert_eq!(delivery.next(&look(BoxContent::Other), ms(3000)), Step::Accepted);
}

#[test]
fn interrupted_delivery_waits_before_it_presses_enter_again() {
    let mut delivery = Delivery::after_enter(plan());
    assert_eq!(delivery.next(&look(BoxContent::Text), ms(0)), Step::Wait);
    assert_eq!(delivery.next(&look(BoxContent::Other), ms(300)), Step::Accepted);
    let mut delivery = Delivery::after_enter(plan());
    let busy = Look { busy: true, ..look(BoxContent::Text) };
    assert_eq!(delivery.next(&busy, ENTER_INTERVALS[0]), Step::Wait);
    assert_eq!(delivery.next(&look(BoxContent::Text), ENTER_INTERVALS[0]), Step::Enter);
}

#[test]
fn hook_report_or_started_turn_accepts_once_the_text_left_the_box() {
    for (reported, began) in [(true, false), (false, true)] {
        let look = |held| Look { reported, began, ..look(held) };
        // A prompt of a moment ago is reported late, and its turn begins: that says nothing of this text.
        let early = [(look(BoxContent::Other), 100), (look(BoxContent::Text), 2000)];
        let enters = keys(plan(), &early).iter().filter(|(_, step)| *step == Step::Enter).count();
        assert!(enters > 1, "{:?}", keys(plan(), &early));
        assert!(!keys(plan(), &early).iter().any(|(_, step)| *step == Step::Accepted));
        let seen =
            [(look(BoxContent::Other), 100), (look(BoxContent::Text), 400), (look(BoxContent::NoBox), 100)];
        assert_eq!(keys(plan(), &seen)[2], (500, Step::Accepted));
    }
}

#[test]
fn hook_report_of_the_first_text_accepts_while_it_is_still_visible() {
    let reported = Look { reported: true, ..look(BoxContent::Text) };
    let seen = [(look(BoxContent::Other), 100), (look(BoxContent::Text), 400), (reported, 100)];
    let first = Plan { first: true, ..plan() };
    assert_eq!(keys(first, &seen)[2], (500, Step::Accepted));
}

#[test]
fn text_without_enter_stays_in_the_box() {
    let typed = Plan { enter: false, ..plan() };
    let seen = [(look(BoxContent::Other), 300), (look(BoxContent::Text), 100)];
    assert_eq!(keys(typed, &seen), [(0, Step::Paste), (300, Step::Accepted)]);
}

fn looks() -> impl Strategy<Value = Vec<(Look, u64)>> {
    let held =
        prop::sample::select(vec![BoxContent::NoBox, BoxContent::Other, BoxContent::Text, BoxContent::Token]);
    let one = (held, 0..8u8, any::<bool>(), 1..40u64).prop_map(|(held, kind, startup, tenths)| {
        let look = Look {
            held,
            dialog: if kind == 0 { dialog(startup) } else { None },
            began: kind == 1,
            reported: kind == 2,
            busy: kind == 3,
            ready: kind == 4,
            untouched: kind % 2 == 0,
        };
        (look, tenths * 100)
    });
    prop::collection::vec(one, 1..30)
}

proptest! {
    /// Whatever the screen does: nothing is sent while a dialog stands, Enter goes to a box that holds the text,
    /// and the text is pasted at most once.
    #[test]
    fn keys_are_sent_only_to_the_input_box(looks in looks(), once in any::<bool>(), enter in any::<bool>()) {
        let mut delivery = Delivery::new(Plan { once, enter, ..plan() });
        let (mut now, mut pastes, mut enters) = (0, 0, 0);
        'all: for (look, length) in &looks {
            let until = now + length;
            while now < until {
                match delivery.next(look, ms(now)) {
                    Step::Paste => {
                        prop_assert!(look.dialog.is_none());
                        prop_assert!(look.held != BoxContent::NoBox || !delivery.knows_box());
                        pastes += 1;
                    }
                    Step::Enter => {
                        prop_assert!(look.dialog.is_none() && enter);
                        prop_assert!(look.held.is_text() || (look.untouched && !delivery.knows_box()));
                        enters += 1;
                    }
                    Step::Wait => {}
                    Step::Accepted => {
                        prop_assert!(!enter || enters > 0);
                        prop_assert!(!enter || !delivery.knows_box() || !look.held.is_text());
                        break 'all;
                    }
                    Step::Dialog(_) => {
                        prop_assert!(look.dialog.is_some());
                        break 'all;
                    }
                    Step::NoBox | Step::NotShown | Step::NotAccepted => break 'all,
                }
                now += 100;
            }
        }
        prop_assert!(pastes <= 1 && enters <= ENTER_INTERVALS.len());
    }
}

// ---- what a box holds ----

fn held(text: &str, before: &str, input: &str) -> BoxContent {
    Typed::new(text, Some(before)).held(Some(input))
}

#[test]
fn text_in_the_box_is_found_in_each_drawing_style() {
    let long: String = (1..60).map(|n| format!("line {n}: one\ttask\n")).collect();
    let part: String = (40..60).map(|n| format!("  line {n}: one    task\n")).collect();
    for (text, before, input, want) in [
        ("do it", "", " do it", BoxContent::Text),
        ("do it", " Ask anything", " Ask anything", BoxContent::Other),
        ("a", " Ask anything", " Ask anything", BoxContent::Other),
        ("do it", "", "", BoxContent::Other),
        ("do it", "", " do\n  it\n", BoxContent::Text),
        ("halves", " two", " two halves", BoxContent::Text),
        ("do it", "", " Press up to edit queued messages", BoxContent::Other),
        (&long, "", &part, BoxContent::Text),
        (&long, "", " [Pasted text #1 +199 lines]", BoxContent::Token),
        (&long, "", " [Pasted Content 4689 chars]", BoxContent::Token),
        (&long, "", "   [Pasted Text: 903 lines]", BoxContent::Token),
        (&long, "", "  [Pasted ~40 lines]\n", BoxContent::Token),
        (&long, "", " line 1 [...Truncated text #1 +80 lines...] end", BoxContent::Token),
        (&long, " [Pasted text #1 +2 lines]", " [Pasted text #1 +2 lines]", BoxContent::Other),
        (&long, "", " [ ] pasted", BoxContent::Other),
        ("one\n\ttwo `x` $(y);", "", " one\n> ^Itwo `x` $(y);", BoxContent::Text),
    ] {
        assert_eq!(held(text, before, input), want, "{text:?} in {input:?}");
    }
    assert_eq!(Typed::new("x", None).held(None), BoxContent::NoBox);
}

#[test]
fn input_box_of_an_unknown_agent_starts_at_its_mark() {
    let mut typed = Typed::new("do it now", Some(""));
    for (screen, want) in [
        ("hello\n❯ do it now", BoxContent::Text),
        ("hello\n❯ do it now\n  12:00:01 model", BoxContent::Text),
        ("> do it now\nhello\n> ", BoxContent::Other),
        ("hello", BoxContent::NoBox),
        ("typed: do it now", BoxContent::Text),
    ] {
        assert_eq!(typed.held_by_mark(screen, false), want, "{screen:?}");
    }
    let before = "hello\n❯ do it now\n  12:00:01 model ⠋";
    for (screen, want) in [
        ("hello\n❯ do it now\n\n  12:00:02 model ⠙", BoxContent::Text),
        ("hello\n❯ do it now\nworking\n  12:00:02 model", BoxContent::Other),
        ("hello\n❯ do it now\nok\n❯ ", BoxContent::Other),
        ("cleared", BoxContent::NoBox),
    ] {
        assert_eq!(typed.held_by_mark(before, false), BoxContent::Text);
        assert_eq!(typed.held_by_mark(screen, true), want, "{screen:?}");
    }
}

#[test]
fn short_text_is_not_distinct_from_a_dialog() {
    assert!(!Typed::new("yes", None).is_distinct() && Typed::new("do it now!", None).is_distinct());
}

#[test]
fn short_text_of_an_earlier_paste_must_fill_the_box() {
    for (text, input, wanted) in [
        ("the task", "the task", true),
        ("the task\n", " the task ", true),
        ("the task", "the task\n? for shortcuts", true),
        ("the task", "try: the task", false),
        ("the task", "", false),
        ("do the whole task", "do the whole task\n? for shortcuts", true),
        ("do the whole task", "[Pasted text #1 +9 lines]", true),
        ("do the whole task", "try: refactor x", false),
    ] {
        assert_eq!(Typed::new(text, None).was_left_in(Some(input)), wanted, "{text:?} {input:?}");
    }
    assert!(!Typed::new("the task", None).was_left_in(None));
}

#[test]
fn unknown_agent_that_shows_something_else_gets_no_enter() {
    let plan = Plan { knows_box: false, ..plan() };
    for held in [BoxContent::Other, BoxContent::NoBox] {
        let other = Look { untouched: false, ..look(held) };
        let steps = keys(plan, &[(look(BoxContent::Other), 100), (other, 40_000)]);
        assert_eq!(steps, [(0, Step::Paste), (30_000, Step::NotShown)], "{held:?}");
        let steps = keys(plan, &[(look(BoxContent::Other), 100), (look(held), 5000)]);
        assert_eq!(steps, [(0, Step::Paste), (3000, Step::Enter), (3100, Step::Accepted)], "{held:?}");
    }
}

#[test]
fn ready_agent_with_an_odd_box_is_treated_as_unknown() {
    let odd = Look { ready: true, ..look(BoxContent::NoBox) };
    let steps = keys(plan(), &[(odd, 5100), (look(BoxContent::Text), 600), (look(BoxContent::Other), 100)]);
    assert_eq!(steps, [(5100, Step::Paste), (5500, Step::Enter), (5700, Step::Accepted)]);
    assert_eq!(keys(plan(), &[(look(BoxContent::NoBox), 6000)]), [(5000, Step::NoBox)]);
}

#[test]
fn input_row_is_untouched_only_while_it_stays_in_place() {
    let typed = Typed::new("do the work", Some(" "));
    assert!(typed.is_untouched("logo\n❯ \n"));
    assert!(Typed::new("do the work", Some("\n 12:30:05")).is_untouched("logo\n❯\n 12:30:07"));
    assert!(!typed.is_untouched("Trust?\n❯ Yes\n  No"));
    assert!(!typed.is_untouched("Trust? Yes / No"));
    assert!(Typed::new("do the work", None).is_untouched("no mark at all"));
}

#[test]
fn long_text_that_fills_the_screen_is_not_a_dialog() {
    let long: String = (1..90).map(|n| format!("step {n}: read the module and test it\n")).collect();
    let typed = Typed::new(&long, None);
    let screen: String = long.lines().skip(35).take(50).map(|row| format!("  {row}\n")).collect();
    assert!(typed.fills(&screen));
    assert!(!typed.fills("  step 3: read the module\n"), "too little to fill a screen");
    let dialog = "Trust this folder? Files here may run commands on this machine. ".repeat(6);
    assert!(!typed.fills(&dialog) && !typed.fills(""));
    assert!(!Typed::new("fix it", None).fills(&screen));
}
