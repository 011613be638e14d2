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

#[test]
fn options_and_launchers_may_stand_before_a_runner() {
    let found = |check: &str| -> Vec<String> {
        let found = recognize(&table(), check).into_iter();
        found.map(|found| format!("{}{}", found.dir, found.runner.name)).collect()
    };
    for (check, expected) in [
        ("python3 -X dev -W error -m pytest", &["pytest"][..]),
        ("uv run --frozen pytest -q", &["pytest"]),
        ("uv run --with x pytest", &["pytest"]),
        ("poetry run python -m pytest", &["pytest"]),
        ("coverage run -m pytest", &["pytest"]),
        ("python -m coverage run --branch -m unittest", &["unittest"]),
        ("python -m tox -e py", &["tox"]),
        ("npx --yes jest", &["jest"]),
        ("pnpm exec vitest run", &["pnpm", "vitest"]),
        ("yarn mocha", &["yarn", "mocha"]),
        ("bundle exec rspec", &["rspec"]),
        ("xvfb-run -a npx jest", &["jest"]),
        ("cargo +nightly --offline test", &["cargo"]),
        ("cargo nextest run", &["nextest"]),
        ("go -C api test ./...", &["api/go"]),
        ("./gradlew test", &["gradle"]),
        ("./mvnw -B verify", &["maven"]),
        ("vendor/bin/phpunit", &["phpunit"]),
        ("php -d memory_limit=-1 vendor/bin/phpunit tests", &["phpunit"]),
        ("dotnet test", &["dotnet"]),
        ("node --import ./x.mjs --test", &["node"]),
        ("make -C a -Cb check", &["a/b/make"]),
        ("npm --prefix web test", &["web/npm"]),
        ("bun test", &["bun test"]),
        ("npm ci", &[]),
        ("python script.py -m pytest", &[]),
    ] {
        assert_eq!(found(check), expected, "{check}");
    }
}

/// Expands a check with these files.
fn expanded(check: &str, files: &[(&str, &str)]) -> Expansion {
    let read = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned());
    expand(&table(), &[check.to_owned()], &read)
}

#[test]
fn the_runner_is_found_behind_makefiles_packages_and_scripts() {
    let makefile = "include x.mk\n-include local.mk\n.PHONY: test\nA := b\ntest: unit lint\n\t@cd web && \\\n\t  npm test\n\
                    unit:\n\t-$(MAKE) -C api check\nlint: ; cargo test\napp:\n\tcc -o app x.c\ncheck:\n\tgo test ./...\n";
    let package = r#"{"scripts": {"pretest": "tsc", "test": "CI=1 jest --ci", "lint": "eslint"}}"#;
    for (check, files, expected) in [
        (
            "make test",
            &[("Makefile", makefile), ("web/package.json", package), ("api/Makefile", "check:\n\tgo test")][..],
            &["make", "api/make", "api/go", "cargo", "web/npm", "web/jest"][..],
        ),
        ("make", &[("Makefile", "all: test\ntest:\n\tpytest")], &["make", "pytest"]),
        ("make -f ci.mk t", &[("ci.mk", "t:\n\tpytest")], &["make", "pytest"]),
        (
            "just check",
            &[("justfile", "x := \"1\"\nlint:\n  clippy\ncheck a='': lint\n  @pytest -q\n")],
            &["just", "pytest"],
        ),
        ("npm run lint", &[("package.json", package)], &["npm"]),
        ("npm test -- lint", &[("package.json", package)], &["npm", "jest"]),
        ("yarn --cwd web t", &[("web/package.json", package)], &["web/yarn", "web/jest"]),
        (
            "tox -e py",
            &[("tox.ini", "[testenv]\ndeps = x\ncommands =\n    pytest {posargs}\n")],
            &["tox", "pytest"],
        ),
        (
            "./ci/check.sh",
            &[("./ci/check.sh", "#!/usr/bin/env bash\nset -e\ncd \"$(dirname \"$0\")/..\"\npytest\n")],
            &["pytest"],
        ),
        ("sh t.sh", &[("t.sh", "sh t.sh\ncargo test\n")], &["cargo"]),
        ("python3 t.py", &[("t.py", "pytest\n")], &[]),
        ("make test", &[], &["make"]),
    ] {
        let found = expanded(check, files).runners.into_iter();
        let mut found: Vec<String> =
            found.map(|found| format!("{}{}", found.dir, found.runner.name)).collect();
        found.dedup();
        assert_eq!(found, expected, "{check}");
    }
    let files = [("Makefile", makefile)];
    let of = |check: &str| expanded(check, &files).runners[0].files.clone();
    assert_eq!(of("make test"), ["x.mk", "local.mk"]);
    assert_eq!(of("make check app"), ["x.mk", "local.mk", "check"], "a file named check hides the target");
}

#[test]
fn only_the_scripts_that_run_are_watched() {
    let text = r#"{"scripts": {"test": "run-s lint 'unit'", "lint": "eslint", "unit": "npm run deep && jest", "deep": "x",
        "all": "run-p test:*", "start": "node ."}}"#;
    for (check, expected) in [
        ("npm test", &["deep", "lint", "test", "unit"][..]),
        ("npm run -s start", &["start"]),
        ("yarn jest --ci", &["jest"]),
        ("npm run all", &[]),
    ] {
        let found = expanded(check, &[("package.json", text)]).runners;
        let parts =
            &found[0].runner.config.iter().find(|config| config.glob == "package.json").unwrap().parts;
        let names = parts.iter().filter_map(|part| part.strip_prefix("scripts."));
        let names: Vec<&str> = names.filter(|name| !name.starts_with(['p'])).collect();
        assert_eq!(names, expected, "{check}");
        assert_eq!(parts.iter().any(|part| part == "scripts"), expected.is_empty(), "{check}");
    }
    let found = expanded("make -j2 test", &[("Makefile", "test:\n\tmake unit\n")]).runners;
    assert_eq!(found[0].runner.config[0].parts, ["target test"]);
    assert_eq!(found[1].runner.config[0].parts, ["target unit"]);
}

#[test]
fn the_scripts_and_programs_behind_a_check_are_found() {
    let files = [
        ("Makefile", "test:\n\tsh t.sh\n"),
        ("t.sh", "python3 x.py\n"),
        ("package.json", r#"{"scripts":{"test":"jest"}}"#),
    ];
    let names = |check: &str| -> Vec<String> {
        let programs = expanded(check, &files).programs.into_iter();
        programs.map(|program| format!("{}:{}", program.first, program.name)).collect()
    };
    let found = expanded("timeout 9 make test", &files);
    // The script may start the program that the agent works on.
    let is_found = |file: &str| found.scripts.iter().any(|found| found == file);
    assert_eq!((is_found("t.sh"), is_found("x.py")), (true, false), "{found:?}");
    assert_eq!(names("timeout 9 make test"), [":sh", ":timeout", ":make", ":python3"]);
    assert_eq!(names("npm test"), [":sh", ":npm", "node_modules/.bin:sh", "node_modules/.bin:jest"]);
    assert_eq!(names("uv run x.py")[..3], [":sh", ":uv", ".venv/bin:x.py"]);
}

#[test]
fn runners_with_a_canary_are_listed() {
    let with: Vec<String> =
        table().into_iter().filter(|row| row.canary.is_some()).map(|row| row.name).collect();
    assert_eq!(
        with,
        [
            "pytest", "unittest", "nextest", "cargo", "node", "jest", "vitest", "mocha", "go", "rspec",
            "phpunit"
        ]
    );
}
