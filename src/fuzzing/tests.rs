//! The properties over known and random input, and every find of the fuzzer with its bytes.

use proptest::prelude::*;

use super::*;

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
fn known_inputs_hold() {
    golden().iter().for_each(|line| protocol_line(line));
    for file in seeds("state/fixtures/v0").iter().chain(&seeds("state/fixtures/v1")) {
        state_file(file);
        protocol_line(file);
    }
    for text in seeds("state/fixtures/screens") {
        screen(&[b"\x01\xc8\x32DONE\0do it, then print DONE\0\0", &text[..]].concat());
        control_stream(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_hold(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        protocol_line(&bytes);
        control_stream(&bytes);
        screen(&bytes);
        state_file(&bytes);
    }

    #[test]
    fn changed_lines_hold(line in prop_oneof![mutated(golden()), numbers(golden())]) {
        protocol_line(&line);
    }

    #[test]
    fn changed_files_hold(file in prop_oneof![
        mutated(seeds("state/fixtures/v0")), numbers(seeds("state/fixtures/v0")),
        mutated(seeds("state/fixtures/v1")), numbers(seeds("state/fixtures/v1")),
    ]) {
        state_file(&file);
    }
}
