//! Which files of the tree a check runs: the words of a shell command that stand where a program stands.
//!
//! An agent that cannot make a check pass may make the check easier. Files that a check runs directly are
//! therefore watched without being asked for ([`crate::ledger::Base::protected`]). This is no shell: it finds
//! the plain cases, and what it misses the user names with `--protect`. A program like `make` runs what a file says
//! that nobody names; that file is one of them. Deliberately absent: the disk; whoever asks drops what is no file.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Programs that run the file that their first argument names.
const INTERPRETERS: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "ksh", "python", "python3", "perl", "ruby", "node", "source", "."];

/// Programs that run what follows them.
const PREFIXES: [&str; 9] = ["env", "exec", "time", "nice", "nohup", "command", "timeout", "sudo", "!"];

/// Programs that do what a file of the directory says: the names that it may have, and the flags that name another.
const BUILDERS: [(&str, &[&str], &[&str]); 7] = [
    ("make", &MAKEFILES, &["-f", "--file", "--makefile"]),
    ("gmake", &MAKEFILES, &["-f", "--file", "--makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"], &["-f", "--justfile"]),
    ("npm", &[PACKAGE], &[]),
    ("pnpm", &[PACKAGE], &[]),
    ("yarn", &[PACKAGE], &[]),
    ("bun", &[PACKAGE], &[]),
];

/// What `make` looks for.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// The file that holds scripts among other things.
const PACKAGE: &str = "package.json";

/// Flags of such a program that name the directory in which it works.
const INTO: [&str; 5] = ["-C", "--directory", "--prefix", "--dir", "--cwd"];

/// How deep `sh -c 'sh -c …'` is followed.
const DEPTH: u8 = 4;

/// The words that may name files which the command runs, in order and without repetition.
pub fn candidates(command: &str) -> Vec<String> {
    let mut found = vec![];
    gather(command, "", DEPTH, &mut found);
    found
}

/// Whether a file holds more than scripts, so that changing the rest of it changes no check.
pub fn is_shared(file: &str) -> bool {
    file.rsplit('/').next() == Some(PACKAGE)
}

/// What is run of such a file; all of it, where that cannot be told.
pub fn scripts_of(content: &[u8]) -> Vec<u8> {
    #[derive(Deserialize)]
    struct Package {
        #[serde(default)]
        scripts: BTreeMap<String, serde_json::Value>,
    }
    let package = serde_json::from_slice::<Package>(content).ok();
    package.and_then(|package| serde_json::to_vec(&package.scripts).ok()).unwrap_or_else(|| content.to_vec())
}

/// The same for a command that runs in `dir`, which is empty or ends in a slash.
fn gather(command: &str, dir: &str, depth: u8, found: &mut Vec<String>) {
    let mut dir = dir.to_owned();
    for simple in simple_commands(command) {
        if let [cd, to] = simple.as_slice()
            && cd == "cd"
        {
            dir = format!("{}{}/", if to.starts_with('/') { "" } else { &dir }, to.trim_end_matches('/'));
            continue;
        }
        for word in programs(&simple).into_iter().chain(built_from(&simple)) {
            let word = word.strip_prefix("$PWD/").or(word.strip_prefix("${PWD}/")).unwrap_or(&word);
            let word = if word.starts_with('/') { word.to_owned() } else { format!("{dir}{word}") };
            if !found.contains(&word) {
                found.push(word);
            }
        }
        if let Some(text) = text_of(&simple).filter(|_| depth > 0) {
            gather(text, &dir, depth - 1, found);
        }
    }
}

/// The text that a shell is given to run: `sh -c TEXT`, `bash -euc TEXT`.
fn text_of(words: &[String]) -> Option<&str> {
    let shell = |word: &String| INTERPRETERS[..5].contains(&word.rsplit('/').next().unwrap_or(word));
    let at = words.iter().position(shell)?;
    let rest = &words[at + 1..];
    let flag = rest
        .iter()
        .position(|word| word.starts_with('-') && word.ends_with('c') && !word.starts_with("--"))?;
    rest.get(flag + 1).map(String::as_str)
}

/// The words of each simple command: cut at operators, quotes taken off.
fn simple_commands(command: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words, mut word) = (vec![], vec![], None::<String>);
    let mut chars = command.chars();
    let (mut quote, mut redirected) = (None, false);
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            // What is read or written is no program; `2>` has its number before it.
            (None, '<' | '>') => {
                let number = |word: &String| word.chars().all(|c| c.is_ascii_digit());
                words.extend(word.take().filter(|word| !number(word)));
                redirected = true;
            }
            (None, ';' | '&' | '|' | '\n' | '(' | ')' | '{' | '}' | '`')
                if !(redirected && c == '&' && word.is_none()) =>
            {
                end_word(&mut words, &mut word, &mut redirected);
                redirected = false;
                commands.push(std::mem::take(&mut words));
            }
            (None, _) if c.is_whitespace() => end_word(&mut words, &mut word, &mut redirected),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    end_word(&mut words, &mut word, &mut redirected);
    commands.push(words);
    commands
}

/// A word is at its end: it belongs to the command, unless it is where its input or output goes.
fn end_word(words: &mut Vec<String>, word: &mut Option<String>, redirected: &mut bool) {
    let Some(word) = word.take() else { return };
    if !std::mem::take(redirected) {
        words.push(word);
    }
}

/// What one simple command runs: its program, and the file that an interpreter is given.
fn programs(words: &[String]) -> Vec<String> {
    let mut rest = words.iter().skip_while(|word| is_assignment(word) || PREFIXES.contains(&word.as_str()));
    // `timeout 30 ./check`, `nice -n 5 ./check`: what is an option or a number is no program either.
    let is_program = |word: &&String| {
        !is_option_or_number(word) && !is_assignment(word) && !PREFIXES.contains(&word.as_str())
    };
    let Some(program) = rest.find(is_program) else { return vec![] };
    let mut found = vec![program.clone()];
    let name = program.rsplit('/').next().unwrap_or(program);
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if INTERPRETERS.contains(&name) || INTERPRETERS.contains(&versioned) {
        // `sh -c TEXT` and `python -m MODULE` name no file; a text that is none is dropped by whoever looks.
        found.extend(rest.find(|word| !word.starts_with('-')).cloned());
    }
    found
}

/// The files that a program like `make` does what they say: those that are named, else those that it looks for.
fn built_from(words: &[String]) -> Vec<String> {
    let name = |word: &String| word.rsplit('/').next().unwrap_or(word).to_owned();
    // What stands before the program names none of its flags.
    let before = |word: &&String| is_assignment(word) || PREFIXES.contains(&word.as_str());
    let Some((at, (_, defaults, flags))) = words.iter().enumerate().find_map(|(at, word)| {
        let known = BUILDERS.iter().find(|(program, ..)| *program == name(word))?;
        words[..at].iter().all(|word| before(&word) || is_option_or_number(word)).then_some((at, known))
    }) else {
        return vec![];
    };
    let values = |flags: &[&str]| -> Vec<String> {
        let rest = words[at + 1..].iter();
        let next = words[at + 1..].iter().skip(1).map(Some).chain([None]);
        let value = |(word, next): (&String, Option<&String>)| match word.split_once('=') {
            Some((flag, value)) if flags.contains(&flag) => Some(value.to_owned()),
            _ if flags.contains(&word.as_str()) => next.cloned(),
            // `-Csub`
            _ => flags
                .iter()
                .filter(|flag| flag.len() == 2)
                .find_map(|flag| word.strip_prefix(*flag))
                .filter(|value| !value.is_empty())
                .map(str::to_owned),
        };
        rest.zip(next).filter_map(value).collect()
    };
    let dir: String = values(&INTO).iter().map(|dir| format!("{}/", dir.trim_end_matches('/'))).collect();
    let named = values(flags);
    let files =
        if named.is_empty() { defaults.iter().map(|file| (*file).to_owned()).collect() } else { named };
    files
        .iter()
        .map(|file| if file.starts_with('/') { file.clone() } else { format!("{dir}{file}") })
        .collect()
}

/// Whether a word is an option, or the number of one: `timeout 30`, `nice -n 5`.
fn is_option_or_number(word: &str) -> bool {
    let is_number = word.starts_with(|c: char| c.is_ascii_digit())
        && word.trim_end_matches(['s', 'm', 'h']).chars().all(|c| c.is_ascii_digit() || c == '.');
    is_number || word.starts_with('-')
}

fn is_assignment(word: &str) -> bool {
    let name = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !text.starts_with(|c: char| c.is_ascii_digit())
    };
    word.split_once('=').is_some_and(|(key, _)| name(key))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_files_that_commands_run() {
        for (command, expected) in [
            ("./check.sh", &["./check.sh"][..]),
            ("sh check.sh --all", &["sh", "check.sh"]),
            ("make test && ./scripts/lint 2>&1 | tail -5", &["make", "./scripts/lint", "1", "tail"]),
            ("CI=1 bash -eu 'my checks/a b.sh'", &["bash", "my checks/a b.sh"]),
            ("timeout 30 ./check", &["./check"]),
            ("nice -n 5 python3.11 -X dev tools/check.py", &["python3.11", "dev"]),
            ("cd sub; ./x || exit 1", &["sub/./x", "sub/exit"]),
            ("cd t && sh run.sh", &["t/sh", "t/run.sh"]),
            ("sh $PWD/t/run.sh", &["sh", "t/run.sh"]),
            ("bash -euc 'sh t/run.sh'", &["bash", "sh", "t/run.sh"]),
            ("pytest tests/test_auth.py", &["pytest"]),
            (". ./env.sh && go test ./...", &[".", "./env.sh", "go"]),
            ("", &[]),
        ] {
            let found = candidates(command);
            for word in expected.iter().filter(|word| !["1", "dev"].contains(word)) {
                assert!(found.contains(&(*word).to_owned()), "{command}: {found:?}");
            }
        }
        for (command, data) in [
            ("pytest tests/test_auth.py", "tests/test_auth.py"),
            ("grep -q DONE < TODO.md", "TODO.md"),
            ("test $(wc -l <n) -ge 3", "n"),
            ("cmp - a < b", "b"),
            ("./prog >out.txt 2>&1", "out.txt"),
        ] {
            assert!(!candidates(command).contains(&data.to_owned()), "{command}: {:?}", candidates(command));
        }
        assert!(candidates("./prog >out.txt 2>&1 | ./next").contains(&"./next".to_owned()));
    }

    #[test]
    fn what_a_builder_does_stands_in_a_file_that_nobody_names() {
        let make = ["GNUmakefile", "makefile", "Makefile"];
        for (command, expected) in [
            ("make test", &make[..]),
            ("CI=1 timeout 30 make -j4 test 2>&1 | tail", &make),
            ("make -C sub check", &["sub/Makefile"]),
            ("make -Csub/deep/ check", &["sub/deep/Makefile"]),
            ("make --directory=sub check", &["sub/GNUmakefile"]),
            ("cd sub && make -C x", &["sub/x/makefile"]),
            ("make -f ci/Tests.mk", &["ci/Tests.mk"]),
            ("/usr/bin/make --file=ci.mk", &["ci.mk"]),
            ("npm test", &["package.json"]),
            ("npm --prefix web run lint", &["web/package.json"]),
            ("yarn --cwd web test", &["web/package.json"]),
            ("pnpm -C web test", &["web/package.json"]),
            ("bun test", &["package.json"]),
            ("just check", &["justfile", "Justfile"]),
            ("just --justfile ci.just check", &["ci.just"]),
            ("sh -c 'make test'", &["Makefile"]),
        ] {
            let found = candidates(command);
            for word in expected {
                assert!(found.contains(&(*word).to_owned()), "{command}: {found:?}");
            }
        }
        for (command, other) in [
            ("make -f ci.mk", "Makefile"),
            ("make -C sub", "Makefile"),
            ("echo make", "Makefile"),
            ("cargo test -- make", "Makefile"),
            // There it means something else.
            ("npm -f test", "test"),
        ] {
            assert!(!candidates(command).contains(&other.to_owned()), "{command}: {:?}", candidates(command));
        }
    }

    #[test]
    fn of_a_package_only_its_scripts_are_run() {
        assert!(is_shared("package.json") && is_shared("web/package.json") && !is_shared("Makefile"));
        let package = |scripts: &str, more: &str| format!(r#"{{"name":"x","scripts":{scripts}{more}}}"#);
        let part = |text: String| scripts_of(text.as_bytes());
        let one = part(package(r#"{"test":"jest"}"#, ""));
        assert_eq!(part(package(r#"{ "test": "jest" }"#, r#","dependencies":{"left":"1"}"#)), one);
        assert_ne!(part(package(r#"{"test":"true"}"#, "")), one);
        assert_ne!(scripts_of(br#"{"name":"x"}"#), one, "they are gone");
        assert_eq!(scripts_of(b"no JSON"), b"no JSON");
    }

    proptest! {
        #[test]
        fn any_builder_is_read_without_a_panic(text in "(make|npm|just)( (-C|-f|--dir=|--file=|x|-)[a=/]{0,3}){0,5}") {
            candidates(&text);
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,80}") {
            candidates(&text);
        }
    }
}
