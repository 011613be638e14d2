//! The properties over known and random input, and every find of the fuzzer with its bytes.

use proptest::prelude::*;
use swarm_state::model::PromptVia;
use swarm_state::notice::duration;

use super::*;
use crate::wrapper::{ExitRecord, LaunchSpec};

/// The stored files below a directory of the repository.
fn seeds(dir: &str) -> Vec<Vec<u8>> {
    fn walk(dir: &std::path::Path, found: &mut Vec<Vec<u8>>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(std::fs::read(&path).unwrap()) }
        }
    }
    let mut found = vec![];
    walk(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(dir), &mut found);
    assert!(!found.is_empty());
    found
}

/// The stored screens, behind what chooses profile, size, pattern, prompt and the screen before.
fn screens() -> Vec<Vec<u8>> {
    let head = b"\x01\xc8\x32TASK_(DONE|OVER)\0do it, then print TASK_DONE\0> do it\0";
    seeds("state/fixtures/screens").iter().map(|text| [&head[..], text].concat()).collect()
}

/// The lines of all golden files.
fn golden() -> Vec<Vec<u8>> {
    seeds("tests/golden").iter().flat_map(|text| text.split(|b| *b == b'\n').map(<[u8]>::to_vec)).collect()
}

/// A known input with some bytes changed, cut out or put in.
fn mutated(known: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..4), 0usize..4);
    (prop::sample::select(known), prop::collection::vec(change, 0..6)).prop_map(|(mut bytes, changes)| {
        for (at, with, out) in changes {
            let at = at.index(bytes.len() + 1);
            let end = (at + out).min(bytes.len());
            bytes.splice(at..end, with);
        }
        bytes
    })
}

/// A JSON file or line in which some numbers have become others.
fn numbers(known: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![
        Just("0"),
        Just("-1"),
        Just("1"),
        Just("2147483647"),
        Just("-2147483648"),
        Just("4294967295"),
        Just("9223372036854775807"),
        Just("18446744073709551615"),
        Just("1e400"),
        Just("0.1"),
        Just("null"),
    ];
    let change = (any::<prop::sample::Index>(), number);
    (prop::sample::select(known), prop::collection::vec(change, 1..6)).prop_map(|(bytes, changes)| {
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        for (at, number) in changes {
            let starts: Vec<usize> =
                text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
            if starts.is_empty() {
                break;
            }
            let start = starts[at.index(starts.len())];
            let end = text[start..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |len| start + len);
            text.replace_range(start..end, number);
        }
        text.into_bytes()
    })
}

#[test]
fn recorded_inputs_do_not_panic() {
    golden().iter().for_each(|line| protocol_line(line));
    for file in seeds("state/fixtures/v0").iter().chain(&seeds("state/fixtures/v1")) {
        state_file(file);
        protocol_line(file);
    }
    for text in seeds("state/fixtures/screens") {
        control_stream(&text);
    }
    screens().iter().for_each(|text| screen(text));
    seeds("state/fixtures/stops").iter().for_each(|stop| session_stop(stop));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        protocol_line(&bytes);
        control_stream(&bytes);
        screen(&bytes);
        state_file(&bytes);
        session_stop(&bytes);
    }

    #[test]
    fn mutated_protocol_lines_do_not_panic(line in prop_oneof![mutated(golden()), numbers(golden())]) {
        protocol_line(&line);
    }

    #[test]
    fn mutated_screens_do_not_panic(text in mutated(screens())) {
        screen(&text);
    }

    #[test]
    fn mutated_state_files_do_not_panic(file in prop_oneof![
        mutated(seeds("state/fixtures/v0")), numbers(seeds("state/fixtures/v0")),
        mutated(seeds("state/fixtures/v1")), numbers(seeds("state/fixtures/v1")),
    ]) {
        state_file(&file);
    }

    #[test]
    fn mutated_stop_inputs_do_not_panic(stop in prop_oneof![
        mutated(seeds("state/fixtures/stops")), numbers(seeds("state/fixtures/stops")),
    ]) {
        session_stop(&stop);
    }

    #[test]
    fn worker_name_is_1_to_64_letters_digits_underscores_and_dashes(text in "[A-Za-z0-9_-]{0,70}|\\PC{0,10}|-[a-z]{0,3}|[a-z]{1,3}[./ :\n\\x00][a-z]{0,3}") {
        let legal = (1..=64).contains(&text.len())
            && !text.starts_with('-')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        prop_assert_eq!(WorkerName::new(&text).is_ok(), legal);
        if let Ok(name) = WorkerName::new(&text) {
            let written = serde_json::to_string(&name).unwrap();
            prop_assert_eq!(serde_json::from_str::<WorkerName>(&written).unwrap(), name);
        }
    }

    #[test]
    fn printed_duration_has_the_same_seconds(seconds: u64) {
        let words = duration(seconds, " ");
        let read: u128 = words.split(' ').map(|part| {
            let (number, unit) = part.split_at(part.len() - 1);
            number.parse::<u128>().unwrap() * match unit { "h" => 3600, "m" => 60, _ => 1 }
        }).sum();
        prop_assert_eq!(read, u128::from(seconds));
    }

    #[test]
    fn random_profile_is_usable_or_refused(
        file in mutated(profiles::table().iter().map(|row| serde_json::to_vec(row).unwrap()).collect()),
        cmd in prop::collection::vec("env|-u|--|-p|a=b|claude|/x/codex|\\PC{0,4}", 0..5),
        prompt in "-?\\PC{0,8}",
    ) {
        if let Ok(profile) = serde_json::from_slice::<Profile>(&file) {
            if let Ok(reader) = ScreenReader::new(&profile, None, Some(prompt.clone())) {
                reader.read("❯ \n", (80, 24));
            }
            for is_loop in [true, false] {
                prop_assert_ne!(profile.route(&cmd, PromptVia::Auto, is_loop), PromptVia::Auto);
            }
            let whole = profile.command_with_prompt(&cmd, &prompt);
            prop_assert!(whole.iter().any(|word| word.ends_with(&prompt)));
            // A word that needs the prompt as its value gets it right behind itself.
            prop_assert!(profile.one_shot_takes_prompt || whole.starts_with(&cmd));
            profiles::find(&[profile], &cmd);
        }
    }

    #[test]
    fn launch_and_exit_records_survive_serialization(
        argv in prop::collection::vec("\\PC{0,6}|\\x00", 0..4),
        env in prop::collection::btree_map("[A-Z=]{0,4}", "\\PC{0,6}|\\x00", 0..4),
        code: Option<i32>, signal: Option<i32>, hup: bool, ended: Option<i64>,
        error in prop::option::of("\\PC{0,20}"),
        memory: Option<u64>,
        junk in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let caps = swarm_state::caps::Caps { memory, ..Default::default() };
        let launch = LaunchSpec {
            argv,
            env,
            cwd: "/".into(),
            stdin: None,
            end_leftovers: hup,
            caps,
            sandboxed: false,
proxy: None,
            placeholders: vec![],
        };
        let text = serde_json::to_vec(&launch).unwrap();
        prop_assert_eq!(serde_json::from_slice::<LaunchSpec>(&text).unwrap(), launch);
        let exit = ExitRecord { code, signal, hup, ended, error, helper: hup, oom_kills: 0, memory_cap: 0 };
        let text = serde_json::to_vec(&exit).unwrap();
        prop_assert_eq!(&serde_json::from_slice::<ExitRecord>(&text).unwrap(), &exit);
        crate::daemon::exit_of(&exit).code();
        let dir = tempfile::tempdir().unwrap();
        for name in ["exit.json", "started", "forced"] {
            std::fs::write(dir.path().join(name), &junk).unwrap();
        }
        let _ = (crate::wrapper::read_exit(dir.path()), crate::wrapper::started(dir.path()), crate::wrapper::read_forced(dir.path()));
    }
}

#[test]
fn exit_record_with_an_invalid_signal_is_read() {
    state_file(br#"{"code":null,"signal":2147483647,"hup":false,"ended":null,"error":null}"#);
}

#[test]
fn predecessors_key_with_the_name_of_a_new_one_is_kept() {
    let file = br#"{"workers":[{"name":"w","status":"stopped","cmd":["codex"],"started":"2024-01-15T11:02:41.000307",
        "cwd":"/","pane":["team-a","ui"],"format":7}]}"#;
    state_file(file);
    let utc = |at: chrono::NaiveDateTime| at.and_utc().fixed_offset();
    let record = format::v0::parse_workers(file, &utc).unwrap().remove(0).unwrap();
    let again = format::parse_record(&record.to_bytes().unwrap()).unwrap();
    assert_eq!(again.extra["v0_pane"], serde_json::json!(["team-a", "ui"]));
}

#[test]
fn pattern_that_ends_in_a_wide_character_does_not_panic() {
    // As the fuzzer found it, and as a person may type it.
    screen(b"\x01\xc8_\xa1\0#\x87\x11\x02\0\xa1\0\0\0\0\0\xed");
    screen("\u{1}22DONE ✓\0do it\0> DONE ✓\0> DONE ✓\nmore".as_bytes());
}
