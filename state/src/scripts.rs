//! Which files of the tree a check runs: the words of a shell command that stand where a program stands.
//!
//! An agent that cannot make a check pass may make the check easier. Files that a check runs directly are
//! therefore watched without being asked for ([`crate::ledger::Base::protected`]). This is no shell: it finds
//! the plain cases, and what it misses the user names with `--protect`. Deliberately absent: the disk; whoever asks
//! drops what is no file.

/// Programs that run the file that their first argument names.
const INTERPRETERS: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "ksh", "python", "python3", "perl", "ruby", "node", "source", "."];

/// Programs that run what follows them.
const PREFIXES: [&str; 9] = ["env", "exec", "time", "nice", "nohup", "command", "timeout", "sudo", "!"];

/// How deep `sh -c 'sh -c …'` is followed.
const DEPTH: u8 = 4;

/// The words that may name files which the command runs, in order and without repetition.
pub fn candidates(command: &str) -> Vec<String> {
    let mut found = vec![];
    gather(command, "", DEPTH, &mut found);
    found
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
        for word in programs(&simple) {
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
        let is_number = word.starts_with(|c: char| c.is_ascii_digit())
            && word.trim_end_matches(['s', 'm', 'h']).chars().all(|c| c.is_ascii_digit() || c == '.');
        !is_number && !word.starts_with('-') && !is_assignment(word) && !PREFIXES.contains(&word.as_str())
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

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,80}") {
            candidates(&text);
        }
    }
}
