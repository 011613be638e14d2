//! Rules for programs whose arguments alone are dangerous.
//!
//! A rule is one line. Its first part names the programs, and each further part must hold:
//!
//! * `push` – the next word that is not an option
//! * `-f`, `--force` – an option; a single letter may be in a group, and a value may follow after `=`
//! * `~WORD` – any word, `$WORD` – the last one, `!PART` – the part does not hold
//!
//! `a|b` are alternatives, and `*` stands for any text. `@worker` is the worker that runs the command.

use crate::guard::scene::Scene;

/// Options with which a program does nothing.
const HARMLESS: [&str; 3] = ["--help", "--version", "--dry-run"];

pub(super) fn applies(rule: &str, scene: &Scene<'_>) -> bool {
    let mut parts = rule.split(' ');
    let is_program = parts.next().is_some_and(|programs| is_one(programs, scene.program(), scene));
    let mut operands = scene.operands();
    is_program
        && !scene.words().any(|word| HARMLESS.contains(&word))
        && parts.all(|part| match part.strip_prefix('!') {
            Some(part) => !holds(part, scene, &mut operands),
            None => holds(part, scene, &mut operands),
        })
}

fn holds<'a>(part: &str, scene: &Scene<'a>, operands: &mut impl Iterator<Item = &'a str>) -> bool {
    match part.chars().next() {
        Some('~') => scene.words().any(|word| is_one(&part[1..], word, scene)),
        Some('$') => scene.words().last().is_some_and(|word| is_one(&part[1..], word, scene)),
        Some('-') => scene.words().any(|word| part.split('|').any(|option| is_option(option, word))),
        Some(_) | None => operands.next().is_some_and(|word| is_one(part, word, scene)),
    }
}

fn is_option(option: &str, word: &str) -> bool {
    // A longer word such as `-oRequestTTY=no` is an option with a value.
    let is_group =
        word.len() <= 6 && word.strip_prefix('-').is_some_and(|w| w.chars().all(char::is_alphabetic));
    match option.strip_prefix('-').filter(|letter| letter.len() == 1) {
        Some(letter) => is_group && word.contains(letter),
        None => is_match(option, word) || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')),
    }
}

fn is_one(alternatives: &str, word: &str, scene: &Scene<'_>) -> bool {
    alternatives.split('|').any(|wanted| match wanted {
        "@worker" => scene.place.worker.as_deref() == Some(word),
        wanted => is_match(wanted, word),
    })
}

/// Whether a word matches a text in which `*` stands for any text.
fn is_match(wanted: &str, word: &str) -> bool {
    let mut parts = wanted.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = word.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
