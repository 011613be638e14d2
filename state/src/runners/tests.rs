use super::*;

#[test]
fn runners_are_recognized_in_the_commands_of_checks() {
    let found = |check: &str| -> Vec<String> {
        let found = recognize(&table(), check).into_iter();
        found.map(|found| format!("{}{} {}", found.dir, found.runner.name, found.args.join(" "))).collect()
    };
    for (check, expected) in [
        ("pytest", &["pytest "][..]),
        ("CI=1 timeout 60 .venv/bin/pytest -q tests/unit", &["pytest -q tests/unit"]),
        ("python3.12 -m pytest -x", &["pytest -x"]),
        ("python3 -m unittest", &["unittest "]),
        ("cd web && node --test", &["web/node "]),
        ("sh -c 'cargo test --lib'", &["cargo --lib"]),
        ("cargo build && cargo test -p x", &["cargo -p x"]),
        ("cargo fmt --check", &[]),
        ("echo pytest", &[]),
        ("./check.sh", &[]),
        ("", &[]),
    ] {
        assert_eq!(found(check), expected, "{check}");
    }
}
