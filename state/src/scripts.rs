//! Reads the shell commands of checks: their programs, directories, and the files that they run.
//!
//! An agent that cannot make a check pass may make the check easier. swarm therefore watches the files that a check
//! runs directly ([`crate::ledger::Base::protected`]); [`crate::runners`] adds the files that a known runner reads.
//! This is not a shell: it finds the plain cases, and the user names other files with `--protect`. Deliberately
//! absent: the disk; the caller drops words that are not files.

use crate::words::{base_name, unique};

/// Programs that run the file in their first argument.
const SCRIPT_INTERPRETERS: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "ksh", "python", "python3", "perl", "ruby", "node", "source", "."];

/// The interpreters whose files are always check scripts.
pub(crate) const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "source", "."];

/// Parts of the path of a file that is plainly a check script.
const CHECK_PARTS: [&str; 7] = ["check", "test", "spec", "verif", "valid", "lint", "assert"];

/// The same as whole words.
const CHECK_WORDS: [&str; 3] = ["ci", "qa", "e2e"];

/// Words that are followed by a program.
const PREFIXES: [&str; 18] = [
    "env", "exec", "time", "nice", "nohup", "command", "timeout", "sudo", "!", "setsid", "stdbuf", "xargs",
    "if", "then", "elif", "else", "while", "until",
];

/// The word before the body of a loop.
const DO: &str = "do";

/// Words that a shell runs itself: those of dash, bash, ksh, zsh and busybox.
const SHELL_WORDS: &str = " . : alias autoload bg bind break builtin caller case cd chdir command compgen complete \
    compopt continue coproc declare dirs disown do done echo elif else emulate enable end esac eval exec exit export \
    false fc fg fi float for foreach function functions getopts hash help hist history if integer jobs kill let local \
    logout mapfile nameref newgrp noglob popd print printf pushd pwd r read readarray readonly redirect repeat return \
    select set setopt shift shopt sleep source stop suspend test then time times trap true type typeset ulimit umask \
    unalias unfunction unset unsetopt until vared wait whence where which while zmodload ";

/// Maximum depth of nested `sh -c`.
const MAX_SHELL_DEPTH: u8 = 4;

/// The words that may name files which the command runs, in order, without duplicates.
pub fn candidates(command: &str) -> Vec<String> {
    unique(placed_commands(command).iter().flat_map(PlacedCommand::files))
}

/// One command of a line, from its program on.
#[derive(Clone, Debug)]
pub(crate) struct PlacedCommand {
    /// The directory that it runs in: empty, or with a `/` at its end.
    pub(crate) dir: String,
    /// The programs before it that start it, such as `timeout` and `env`.
    pub(crate) starters: Vec<String>,
    /// Its program and arguments, without assignments and words such as `timeout 30` before them.
    pub(crate) words: Vec<String>,
    /// The files with the commands of a shell: `sh <FILE`, `cat FILE | sh`.
    inputs: Vec<String>,
}

impl PlacedCommand {
    /// The words that may name files which it runs: program, an interpreter's script or module, a shell's input files.
    pub(crate) fn files(&self) -> Vec<String> {
        let Some((program, rest)) = self.words.split_first() else { return vec![] };
        let mut found = vec![program.clone()];
        if is_interpreter(program) {
            if let Some(module) = rest.iter().skip_while(|word| *word != "-m").nth(1) {
                let path = module.replace('.', "/");
                found.extend([format!("{path}.py"), format!("{path}/__main__.py")]);
            }
            // The first word may be the value of an option: `python -X dev check.py`.
            let mut named = rest.iter().filter(|word| !word.starts_with('-'));
            let is_path = |word: &&String| word.contains(['.', '/']);
            let first = named.next();
            found.extend(first.cloned());
            let has_options = rest.first().is_some_and(|word| word.starts_with('-'));
            if has_options && first.is_some_and(|word| !is_path(&word)) {
                found.extend(named.next().filter(is_path).cloned());
            }
            // Another interpreter may run the program that the agent works on.
            let is_shell = SHELLS.contains(&base_name(program));
            let rest = found.split_off(1).into_iter();
            found.extend(rest.filter(|file| is_shell || is_check_script(&placed(&self.dir, file))));
        }
        found.extend(self.inputs.iter().cloned());
        found.iter().map(|word| placed(&self.dir, word)).collect()
    }
}

/// Whether a file's path shows that it checks the work. The directories above the worker's do not count.
fn is_check_script(file: &str) -> bool {
    let is_above = file.starts_with('/');
    let parts: Vec<&str> = file.rsplit('/').take(if is_above { 2 } else { usize::MAX }).collect();
    let path = parts.join("/").to_lowercase();
    let mut words = path.split(|c: char| !c.is_alphanumeric());
    CHECK_PARTS.iter().any(|part| path.contains(part)) || words.any(|word| CHECK_WORDS.contains(&word))
}

/// A path that starts at a directory, relative to where the directory starts.
pub(crate) fn placed(dir: &str, path: &str) -> String {
    let path = path.strip_prefix("$PWD/").or(path.strip_prefix("${PWD}/")).unwrap_or(path);
    if path.starts_with('/') { path.to_owned() } else { format!("{dir}{path}") }
}

/// The directory after `cd`. If it is not plain text, the same one.
fn changed_dir(dir: &str, to: &str) -> String {
    if to.is_empty() || to.contains('$') || to.starts_with('~') {
        return dir.to_owned();
    }
    let mut parts: Vec<String> = vec![];
    let path = placed(dir, to);
    for part in path.split('/').filter(|part| !["", "."].contains(part)) {
        match parts.last() {
            Some(last) if part == ".." && last != ".." => drop(parts.pop()),
            Some(_) | None => parts.push(part.to_owned()),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    root.to_owned() + &parts.iter().map(|part| format!("{part}/")).collect::<String>()
}

/// The commands of a text, also those within `sh -c TEXT`, in order.
pub(crate) fn placed_commands(text: &str) -> Vec<PlacedCommand> {
    let mut found = vec![];
    place(text, "", MAX_SHELL_DEPTH, &mut found);
    found
}

fn place(text: &str, dir: &str, depth: u8, found: &mut Vec<PlacedCommand>) {
    // One for each level of brackets: a `cd` within brackets has no effect after them.
    let mut dirs = vec![dir.to_owned()];
    let mut before: Vec<String> = vec![];
    for Simple { words, input, level } in simple_commands(text) {
        dirs.truncate(level + 1);
        let mut dir = dirs.last().cloned().unwrap_or_default();
        dirs.resize(level + 1, dir.clone());
        if let Some(to) = entered(&words) {
            dir = changed_dir(&dir, to);
        } else if let Some(at) = words.iter().position(|word| is_program(word)) {
            let mut inputs = vec![];
            if reads_its_text(&words) {
                inputs.extend(input);
                // `cat FILE | sh`
                inputs.extend(before.strip_prefix(&["cat".to_owned()]).unwrap_or_default().iter().cloned());
            }
            let (starters, own) = words.split_at(at);
            let is_starter = |word: &&String| PREFIXES.contains(&word.as_str());
            found.push(PlacedCommand {
                dir: dir.clone(),
                starters: starters.iter().filter(is_starter).cloned().collect(),
                words: own.to_vec(),
                inputs,
            });
            if let Some(text) = text_of(&words).filter(|_| depth > 0) {
                place(text, &dir, depth - 1, found);
            }
        }
        dirs[level] = dir;
        before = words;
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

pub(crate) fn is_interpreter(program: &str) -> bool {
    let name = base_name(program);
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    SCRIPT_INTERPRETERS.contains(&name) || SCRIPT_INTERPRETERS.contains(&versioned)
}

#[derive(Debug, Default)]
struct Simple {
    words: Vec<String>,
    /// The file that it reads.
    input: Option<String>,
    /// How many brackets are open around it.
    level: usize,
}

/// The text that a shell runs: `sh -c TEXT`, `bash -euc TEXT`.
fn text_of(words: &[String]) -> Option<&str> {
    // A command substitution has become a command of its own, `eval TEXT`.
    if let [eval, text] = words
        && eval == "eval"
    {
        return Some(text);
    }
    let shell = |word: &String| SCRIPT_INTERPRETERS[..5].contains(&base_name(word));
    let at = words.iter().position(shell)?;
    let rest = &words[at + 1..];
    let flag = rest
        .iter()
        .position(|word| word.starts_with('-') && word.ends_with('c') && !word.starts_with("--"))?;
    rest.get(flag + 1).map(String::as_str)
}

/// Each simple command: split at operators, without quotes.
fn simple_commands(command: &str) -> Vec<Simple> {
    let (mut commands, mut simple, mut word) = (vec![], Simple::default(), None::<String>);
    let mut chars = command.chars().peekable();
    let (mut quote, mut redirected, mut level) = (None, None, 0_usize);
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(_), '`') => {
                commands.push(evaluated(chars.by_ref().take_while(|c| *c != '`').collect(), level))
            }
            (Some(_), '$') if chars.peek() == Some(&'(') => {
                commands.push(evaluated(bracketed(&mut chars), level));
                word.get_or_insert_default().push_str("$()");
            }
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '$') if chars.peek() == Some(&'{') => {
                let name: String = chars.by_ref().take_while(|c| *c != '}').collect();
                word.get_or_insert_default().push_str(&format!("${name}}}"));
            }
            (None, '#') if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
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
                commands.push(Simple { level, ..std::mem::take(&mut simple) });
                level = if c == '(' { level + 1 } else { level.saturating_sub(usize::from(c == ')')) };
            }
            (None, _) if c.is_whitespace() => end_word(&mut simple, &mut word, &mut redirected),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    end_word(&mut simple, &mut word, &mut redirected);
    commands.push(Simple { level, ..simple });
    commands.retain(|simple| !simple.words.is_empty());
    commands
}

/// A command substitution within quotes.
fn evaluated(text: String, level: usize) -> Simple {
    Simple { words: vec!["eval".to_owned(), text], input: None, level }
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

/// A word has ended: it belongs to the command, unless it is the file of a redirection.
fn end_word(simple: &mut Simple, word: &mut Option<String>, redirected: &mut Option<char>) {
    let Some(word) = word.take() else { return };
    match redirected.take() {
        None => simple.words.push(word),
        Some('<') => simple.input = Some(word),
        Some(_) => {}
    }
}

/// Whether a word is an option, or the number of one: `timeout 30`, `nice -n 5`.
fn is_option_or_number(word: &str) -> bool {
    let is_number = word.starts_with(|c: char| c.is_ascii_digit())
        && word.trim_end_matches(['s', 'm', 'h']).chars().all(|c| c.is_ascii_digit() || c == '.');
    is_number || word.starts_with('-')
}

/// The name and the value of `NAME=VALUE`.
pub(crate) fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_valid = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    (is_valid && !name.is_empty()).then_some((name, value))
}

fn is_assignment(word: &str) -> bool {
    assignment(word).is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_program_of_a_simple_command_is_certain() {
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
    fn files_run_by_commands_are_found() {
        for (command, expected) in [
            ("./check.sh", &["./check.sh"][..]),
            ("sh check.sh --all", &["sh", "check.sh"]),
            ("make test && ./scripts/lint 2>&1 | tail -5", &["make", "./scripts/lint", "tail"]),
            ("CI=1 bash -eu 'my checks/a b.sh'", &["bash", "my checks/a b.sh"]),
            ("timeout 30 ./check", &["./check"]),
            ("nice -n 5 python3.11 -X dev tools/check.py", &["python3.11", "tools/check.py"]),
            ("cd sub; ./x || exit 1", &["sub/./x", "sub/exit"]),
            ("cd t && sh run.sh", &["t/sh", "t/run.sh"]),
            ("sh $PWD/t/run.sh", &["sh", "t/run.sh"]),
            ("bash -euc 'sh t/run.sh'", &["bash", "sh", "t/run.sh"]),
            ("pytest tests/test_auth.py", &["pytest"]),
            (". ./env.sh && go test ./...", &[".", "./env.sh", "go"]),
            ("cd s && sh ../t.sh", &["s/../t.sh"]),
            ("(cd s && ./x); sh t.sh", &["s/./x", "t.sh"]),
            ("cd \"$(dirname \"$0\")/..\" && ./x", &["./x"]),
            ("# it's here\n./x", &["./x"]),
            ("node ci/run.js", &["ci/run.js"]),
            ("cd tests && python3 run.py", &["tests/run.py"]),
            ("python3 /src/testing/a/checks/run.py", &["/src/testing/a/checks/run.py"]),
            ("sh app.sh", &["app.sh"]),
            ("python3 -m tools.check -v", &["tools/check.py", "tools/check/__main__.py"]),
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
            for word in expected {
                assert!(found.contains(&(*word).to_owned()), "{command}: {found:?}");
            }
        }
        for (command, data) in [
            ("pytest tests/test_auth.py", "tests/test_auth.py"),
            ("grep -q DONE < TODO.md", "TODO.md"),
            ("test $(wc -l <n) -ge 3", "n"),
            ("cmp - a < b", "b"),
            ("sh t.sh < data", "data"),
            ("(cd s && ./x); sh t.sh", "s/t.sh"),
            ("./x # ./y", "./y"),
            ("sh -c ./x < data", "data"),
            ("cat data | ./x", "data"),
            ("echo '$(sh t.sh)'", "t.sh"),
            ("./prog >out.txt 2>&1", "out.txt"),
            ("python3 app.py 1 2", "app.py"),
            ("python3 manage.py test", "manage.py"),
            ("python3 -m app", "app.py"),
            ("python3 /src/testing/a/app.py", "/src/testing/a/app.py"),
            ("node serve/circus.js", "serve/circus.js"),
        ] {
            assert!(!candidates(command).contains(&data.to_owned()), "{command}: {:?}", candidates(command));
        }
        assert!(candidates("./prog >out.txt 2>&1 | ./next").contains(&"./next".to_owned()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,80}") {
            candidates(&text);
        }
    }
}
