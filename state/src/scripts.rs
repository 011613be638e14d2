//! Finds the files that a check runs: the words of its shell command in the position of a program or script.
//!
//! An agent that cannot make a check pass may make the check easier. swarm therefore watches the files that a check
//! runs directly ([`crate::ledger::Base::protected`]), and the file that a program like `make` reads. This is not a
//! shell: it finds the plain cases, and the user names other files with `--protect`. Deliberately absent: the disk;
//! the caller drops words that are not files.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Programs that run the file in their first argument.
const INTERPRETERS: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "ksh", "python", "python3", "perl", "ruby", "node", "source", "."];

/// Words that are followed by a program.
const PREFIXES: [&str; 18] = [
    "env", "exec", "time", "nice", "nohup", "command", "timeout", "sudo", "!", "setsid", "stdbuf", "xargs",
    "if", "then", "elif", "else", "while", "until",
];

/// The word before the body of a loop.
const DO: &str = "do";

/// Programs that run commands from a file of the directory: its possible names, and the flags that name another file.
const BUILDERS: [(&str, &[&str], &[&str]); 7] = [
    ("make", &MAKEFILES, &["-f", "--file", "--makefile"]),
    ("gmake", &MAKEFILES, &["-f", "--file", "--makefile"]),
    ("just", &JUSTFILES, &["-f", "--justfile"]),
    ("npm", &PACKAGES, &[]),
    ("pnpm", &PACKAGES, &[]),
    ("yarn", &PACKAGES, &[]),
    ("bun", &PACKAGES, &[]),
];

/// The files that `make` reads.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// The files that `just` reads.
const JUSTFILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];

/// The file that holds scripts among other things.
const PACKAGE: &str = "package.json";

/// `package.json`, and the settings that choose the shell or program for its scripts.
const PACKAGES: [&str; 6] =
    [PACKAGE, ".npmrc", ".yarnrc", ".yarnrc.yml", "bunfig.toml", "pnpm-workspace.yaml"];

/// Flags of such a program that name its working directory.
const INTO: [&str; 5] = ["-C", "--directory", "--prefix", "--dir", "--cwd"];

/// Words that a shell runs itself: those of dash, bash, ksh, zsh and busybox.
const SHELL_WORDS: &str = " . : alias autoload bg bind break builtin caller case cd chdir command compgen complete \
    compopt continue coproc declare dirs disown do done echo elif else emulate enable end esac eval exec exit export \
    false fc fg fi float for foreach function functions getopts hash help hist history if integer jobs kill let local \
    logout mapfile nameref newgrp noglob popd print printf pushd pwd r read readarray readonly redirect repeat return \
    select set setopt shift shopt sleep source stop suspend test then time times trap true type typeset ulimit umask \
    unalias unfunction unset unsetopt until vared wait whence where which while zmodload ";

/// Maximum depth of nested `sh -c`.
const DEPTH: u8 = 4;

/// The words that may name files which the command runs, in order, without duplicates.
pub fn candidates(command: &str) -> Vec<String> {
    let mut found = vec![];
    gather(command, "", DEPTH, &mut found);
    found
}

/// One command of a line, from its program on.
pub(crate) struct PlacedCommand {
    /// The directory that it runs in: empty, or with a `/` at its end.
    pub(crate) dir: String,
    /// Its program and arguments, without assignments and words such as `timeout 30` before them.
    pub(crate) words: Vec<String>,
}

/// The commands of a line, also those within `sh -c TEXT`, in order.
pub(crate) fn placed_commands(command: &str) -> Vec<PlacedCommand> {
    let mut placed = vec![];
    place(command, "", DEPTH, &mut placed);
    placed
}

fn place(command: &str, dir: &str, depth: u8, placed: &mut Vec<PlacedCommand>) {
    let mut dir = dir.to_owned();
    for Simple { words, .. } in simple_commands(command) {
        if let Some(to) = entered(&words) {
            let base = if to.starts_with('/') { "" } else { dir.as_str() };
            dir = format!("{base}{}/", to.trim_end_matches('/'));
        } else if let Some(text) = text_of(&words).filter(|_| depth > 0) {
            place(text, &dir, depth - 1, placed);
        } else if let Some(at) = words.iter().position(|word| is_program(word)) {
            placed.push(PlacedCommand { dir: dir.clone(), words: words[at..].to_vec() });
        }
    }
}

/// False for the words before a program: assignments, prefixes, and their options and numbers.
fn is_program(word: &str) -> bool {
    !is_option_or_number(word) && !is_assignment(word) && !is_prefix(word)
}

/// The program of a command that is plain: words without quotes, variables, patterns and operators, and first a word
/// that no shell runs itself. `None` for any other command.
pub fn plain_program(command: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _./:,+@%=-".contains(c);
    let first = command.split(' ').find(|word| !word.is_empty())?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    let is_program = first.chars().all(is_name) && !first.starts_with('-');
    let is_known = SHELL_WORDS.contains(&format!(" {first} "));
    (command.chars().all(is_plain) && is_program && !is_known).then_some(first)
}

/// The files that a program would read instead of this one, or together with it. If one of them existed and this file
/// is new, the program's behavior has changed.
pub fn anchors(file: &str) -> Vec<String> {
    let (dir, name) = file.rsplit_once('/').map_or(("", file), |(dir, name)| (dir, name));
    let beside: &[&str] = match name {
        _ if MAKEFILES.contains(&name) => &MAKEFILES,
        _ if JUSTFILES.contains(&name) => &JUSTFILES,
        PACKAGE => &[],
        _ if PACKAGES.contains(&name) => &PACKAGES[..1],
        _ => &[],
    };
    let others = beside.iter().filter(|other| **other != name);
    others.map(|other| if dir.is_empty() { (*other).to_owned() } else { format!("{dir}/{other}") }).collect()
}

/// True for a file that has other contents than scripts, which may change.
pub fn is_shared(file: &str) -> bool {
    file.rsplit('/').next() == Some(PACKAGE)
}

/// The scripts of such a file; the whole file when it cannot be parsed.
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
    let mut dirs = vec![dir.to_owned()];
    let mut before: Vec<String> = vec![];
    for Simple { words, input } in simple_commands(command) {
        if let Some(to) = entered(&words) {
            let dir = dirs.last().map(String::as_str).filter(|_| !to.starts_with('/')).unwrap_or_default();
            let dir = format!("{dir}{}/", to.trim_end_matches('/'));
            // A directory that was entered within brackets is left again.
            if !command.contains('(') {
                dirs.clear();
            }
            dirs.push(dir);
            continue;
        }
        let mut named = programs(&words);
        named.extend(built_from(&words));
        if reads_its_text(&words) {
            named.extend(input);
            // `cat FILE | sh`
            named.extend(before.strip_prefix(&["cat".to_owned()]).unwrap_or_default().iter().cloned());
        }
        for word in named {
            let word = word.strip_prefix("$PWD/").or(word.strip_prefix("${PWD}/")).unwrap_or(&word);
            for dir in &dirs {
                let word = if word.starts_with('/') { word.to_owned() } else { format!("{dir}{word}") };
                if !found.contains(&word) {
                    found.push(word);
                }
            }
        }
        if let Some(text) = text_of(&words).filter(|_| depth > 0) {
            for dir in &dirs {
                gather(text, dir, depth - 1, found);
            }
        }
        before = words;
    }
}

/// True for a word before a program.
fn is_prefix(word: &str) -> bool {
    PREFIXES.contains(&word) || word == DO
}

/// The directory of a `cd`.
fn entered(words: &[String]) -> Option<&str> {
    let mut rest = words.iter().skip_while(|word| is_assignment(word) || is_prefix(word));
    let (cd, to) = (rest.next()?, rest.find(|word| !word.starts_with('-'))?);
    (cd == "cd" && rest.next().is_none()).then_some(to.as_str())
}

/// True for an interpreter without a file argument, which runs its standard input.
fn reads_its_text(words: &[String]) -> bool {
    let mut rest = words.iter().skip_while(|word| is_assignment(word) || is_prefix(word));
    let interprets = rest.find(|word| !is_option_or_number(word)).is_some_and(|word| is_interpreter(word));
    interprets && text_of(words).is_none() && rest.all(|word| word.starts_with('-'))
}

fn is_interpreter(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&versioned)
}

/// One command of a line.
#[derive(Debug, Default)]
struct Simple {
    words: Vec<String>,
    /// The file that it reads.
    input: Option<String>,
}

/// The text that a shell is given to run: `sh -c TEXT`, `bash -euc TEXT`.
fn text_of(words: &[String]) -> Option<&str> {
    // A command substitution has become a command of its own, `eval TEXT`.
    if let [eval, text] = words
        && eval == "eval"
    {
        return Some(text);
    }
    let shell = |word: &String| INTERPRETERS[..5].contains(&word.rsplit('/').next().unwrap_or(word));
    let at = words.iter().position(shell)?;
    let rest = &words[at + 1..];
    let flag = rest
        .iter()
        .position(|word| word.starts_with('-') && word.ends_with('c') && !word.starts_with("--"))?;
    rest.get(flag + 1).map(String::as_str)
}

/// Each simple command: cut at operators, quotes taken off.
fn simple_commands(command: &str) -> Vec<Simple> {
    let (mut commands, mut simple, mut word) = (vec![], Simple::default(), None::<String>);
    let mut chars = command.chars().peekable();
    let (mut quote, mut redirected) = (None, None);
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(_), '`') => commands.push(evaluated(chars.by_ref().take_while(|c| *c != '`').collect())),
            (Some(_), '$') if chars.peek() == Some(&'(') => {
                commands.push(evaluated(bracketed(&mut chars)));
            }
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            // A redirected file is not a program; `2>` has its number before it.
            (None, '<' | '>') => {
                let number = |word: &String| word.chars().all(|c| c.is_ascii_digit());
                simple.words.extend(word.take().filter(|word| !number(word)));
                redirected = Some(c);
            }
            (None, ';' | '&' | '|' | '\n' | '(' | ')' | '{' | '}' | '`')
                if !(redirected.is_some() && c == '&' && word.is_none()) =>
            {
                end_word(&mut simple, &mut word, &mut redirected);
                redirected = None;
                commands.push(std::mem::take(&mut simple));
            }
            (None, _) if c.is_whitespace() => end_word(&mut simple, &mut word, &mut redirected),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    end_word(&mut simple, &mut word, &mut redirected);
    commands.push(simple);
    commands.retain(|simple| !simple.words.is_empty());
    commands
}

/// A command substitution within quotes.
fn evaluated(text: String) -> Simple {
    Simple { words: vec!["eval".to_owned(), text], input: None }
}

/// The text within the brackets that begin here.
fn bracketed(chars: &mut impl Iterator<Item = char>) -> String {
    let mut depth = 0_usize;
    let mut text: String = chars
        .take_while(|c| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth > 0
        })
        .collect();
    text.drain(..text.len().min(1));
    text
}

/// A word is at its end: it belongs to the command, unless it is where its input or output goes.
fn end_word(simple: &mut Simple, word: &mut Option<String>, redirected: &mut Option<char>) {
    let Some(word) = word.take() else { return };
    match redirected.take() {
        None => simple.words.push(word),
        Some('<') => simple.input = Some(word),
        Some(_) => {}
    }
}

/// Returns the files that one simple command runs: its program, and the file that an interpreter is given.
fn programs(words: &[String]) -> Vec<String> {
    let mut rest = words.iter().skip_while(|word| is_assignment(word) || is_prefix(word));
    let Some(program) = rest.find(|word| is_program(word)) else { return vec![] };
    let mut found = vec![program.clone()];
    if is_interpreter(program) {
        // `sh -c TEXT` and `python -m MODULE` name no file; a text that is none is dropped by whoever looks.
        found.extend(rest.find(|word| !word.starts_with('-')).cloned());
    }
    found
}

/// The files that a program like `make` does what they say: those that are named, else those that it looks for.
fn built_from(words: &[String]) -> Vec<String> {
    let name = |word: &String| word.rsplit('/').next().unwrap_or(word).to_owned();
    // The words before the program are not its flags.
    let before = |word: &&String| is_assignment(word) || is_prefix(word);
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
    fn only_the_program_of_a_plain_command_is_certain() {
        for (command, program) in [
            ("pytest", Some("pytest")),
            ("  ./check.sh --all tests/a.py", Some("./check.sh")),
            ("cargo test -p x --features=a,b", Some("cargo")),
            ("g++ -o a b.c", Some("g++")),
            ("", None),
            ("  ", None),
            ("[ -e x ]", None),
            ("test -e x", None),
            ("CI=1 pytest", None),
            ("-x", None),
            ("~/check.sh", None),
            ("$PYTHON -m pytest", None),
            ("pytest $ARGS", None),
            ("pytest 'a b'", None),
            ("pytest || true", None),
            ("pytest; true", None),
            ("pytest | tail", None),
            ("pytest >out", None),
            ("pytest\ntrue", None),
            ("pytest *.py", None),
            ("if x", None),
            ("{ x", None),
            ("! x", None),
            ("cd sub", None),
            ("# x", None),
        ] {
            assert_eq!(plain_program(command), program, "{command:?}");
        }
    }

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
            ("cd s && sh ../t.sh", &["s/../t.sh"]),
            ("(cd s && ./x); sh t.sh", &["s/./x", "t.sh"]),
            ("if ./t.sh; then exit 0; else sh u.sh; fi", &["./t.sh", "u.sh"]),
            ("for n in 1 2; do sh t.sh $n; done", &["t.sh"]),
            ("while ! sh t.sh; do ./wait; done", &["t.sh", "./wait"]),
            ("if cd s; then ./x; fi", &["s/./x"]),
            ("test \"$(sh t.sh)\" = ok", &["t.sh"]),
            ("test \"`sh t.sh`\" = \"$(cd s && cat \"$(./x)\")\"", &["t.sh", "s/./x"]),
            ("sh < t.sh", &["t.sh"]),
            ("bash -eu <t.sh && true", &["t.sh"]),
            ("cat t.sh | sh -e", &["t.sh"]),
            ("ls | xargs -n1 ./x", &["./x"]),
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
            ("sh t.sh < data", "data"),
            ("sh -c ./x < data", "data"),
            ("cat data | ./x", "data"),
            ("echo '$(sh t.sh)'", "t.sh"),
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
    fn what_comes_in_the_place_of_a_builders_file_or_beside_it_is_known() {
        assert_eq!(anchors("sub/GNUmakefile"), ["sub/makefile", "sub/Makefile"]);
        assert_eq!(anchors(".justfile"), ["justfile", "Justfile"]);
        assert_eq!(anchors("web/.npmrc"), ["web/package.json"]);
        for file in ["package.json", "t.sh", "", "a/"] {
            assert_eq!(anchors(file), [""; 0], "{file}");
        }
        for (command, settings) in [("npm test", ".npmrc"), ("yarn --cwd web test", "web/.yarnrc.yml")] {
            assert!(candidates(command).contains(&settings.to_owned()), "{command}");
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
