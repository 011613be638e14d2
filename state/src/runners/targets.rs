//! The part of a makefile that decides about some of its targets.
//!
//! An agent may then add other targets without approval. The part errs on the side of too much: a target counts as
//! needed if its name occurs as a word in what is needed, and unusual makefiles count as a whole.

use std::collections::BTreeSet;

use super::delegated::rule_line;

/// Words at the beginning of a line that is not a rule, also if it contains a colon.
const DIRECTIVES: [&str; 12] = [
    "ifeq", "ifneq", "ifdef", "ifndef", "else", "endif", "export", "unexport", "override", "private",
    "undefine", "vpath",
];

/// Words after which the rules of a file are not known from its text.
const UNKNOWN_DIRECTIVES: [&str; 5] = ["include", "-include", "sinclude", "define", "load"];

/// The beginning of a part's name.
const PREFIX: &str = "target ";

/// The name of the part for the arguments of `make`.
pub(super) fn part_name(args: &[String]) -> String {
    let words = args.iter().filter(|word| !word.starts_with('-') && !word.contains('='));
    let words: Vec<&str> = words.map(String::as_str).collect();
    if words.is_empty() { "first target".to_owned() } else { format!("{PREFIX}{}", words.join(" ")) }
}

/// Lines that belong together: a rule with its recipe, or a line of another kind.
#[derive(Default)]
struct Block<'a> {
    lines: Vec<&'a str>,
    /// The targets of a rule with plain names; none for a block that always counts.
    targets: Vec<&'a str>,
    /// Its targets require others whose names are not plain.
    has_variable_needs: bool,
    is_needed: bool,
}

/// The part of a makefile with this name; `None` if only the whole file is safe.
pub(super) fn part(text: &str, name: &str) -> Option<String> {
    let text = text.replace("\\\n", " ");
    let mut blocks = blocks(&text)?;
    let known = |name: &str, blocks: &[Block<'_>]| blocks.iter().any(|block| block.targets.contains(&name));
    let mut wanted: BTreeSet<&str> = name.strip_prefix(PREFIX).unwrap_or_default().split(' ').collect();
    wanted.retain(|target| known(target, &blocks));
    if wanted.is_empty() {
        // The first rule decides; its name has to be plain.
        let rules =
            blocks.iter().find(|block| block.lines[0].contains(':') && !block.lines[0].starts_with('.'));
        wanted.extend(rules.and_then(|rule| rule.targets.first()));
        if wanted.is_empty() && rules.is_some() {
            return None;
        }
    }
    while let Some(next) = blocks.iter_mut().find(|block| {
        !block.is_needed
            && (block.targets.is_empty() || block.targets.iter().any(|name| wanted.contains(name)))
    }) {
        next.is_needed = true;
        if next.has_variable_needs {
            return None;
        }
        if next.lines[0].starts_with(".PHONY") {
            continue;
        }
        wanted.extend(next.lines.iter().flat_map(|line| words(line)));
    }
    let lines = blocks.iter().filter(|block| block.is_needed).flat_map(|block| &block.lines);
    let shown = lines.map(|line| match line.strip_prefix(".PHONY") {
        // Other names do not matter.
        Some(rest) => words(rest).filter(|name| wanted.contains(name)).collect::<Vec<_>>().join(" "),
        None => (*line).to_owned(),
    });
    Some(shown.filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n"))
}

/// The words that may be names of targets.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c.is_whitespace() || "$(){};|&'\"=,:@`<>".contains(c))
        .filter(|word| !word.is_empty())
}

fn blocks(text: &str) -> Option<Vec<Block<'_>>> {
    let mut blocks: Vec<Block<'_>> = vec![];
    let mut is_open = false;
    for line in text.lines() {
        if line.starts_with('\t') && is_open {
            blocks.last_mut()?.lines.push(line);
            continue;
        }
        let plain = line.split('#').next().unwrap_or_default().trim_end();
        let Some(first) = plain.split_whitespace().next() else { continue };
        if UNKNOWN_DIRECTIVES.contains(&first) || plain.contains(".RECIPEPREFIX") {
            return None;
        }
        let mut block = Block { lines: vec![plain], ..Block::default() };
        is_open = false;
        if let Some((targets, rest)) = rule_line(plain).filter(|_| !DIRECTIVES.contains(&first)) {
            is_open = true;
            let needs = rest.split(';').next().unwrap_or_default();
            block.has_variable_needs = needs.contains('$');
            let is_plain = !targets.contains(['$', '%']) && !first.starts_with('.');
            block.targets = targets.split_whitespace().filter(|_| is_plain).collect();
        }
        blocks.push(block);
    }
    Some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKEFILE: &str = "PY := python3\n.PHONY: test lint\ntest: unit\n\t$(PY) -m pytest\nunit:\n\tsh unit.sh\n\
                            lint:\n\truff\n";

    #[test]
    fn only_the_targets_of_the_check_are_watched() {
        let changed = |name: &str, after: &str| part(MAKEFILE, name) != part(after, name);
        for (what, before, after, test, lint) in [
            ("a new target", "lint:", "run:\n\tsh run.sh\nlint:", false, false),
            ("a new phony target", "test lint\n", "test lint run\nrun:\n\tx\n", false, false),
            ("a comment", "unit:", "# the units\nunit:", false, false),
            ("the recipe of the target", "-m pytest", "-m pytest --co", true, false),
            ("the recipe of a needed target", "sh unit.sh", "true", true, false),
            ("the recipe of another target", "ruff", "true", false, true),
            ("another rule for the target", "lint:", "test:\n\ttrue\nlint:", true, false),
            ("a variable", "python3", "true", true, true),
            ("a shell", "PY :=", "SHELL := true\nPY :=", true, true),
            ("a pattern", "lint:", "%:\n\ttrue\nlint:", true, true),
            ("no longer phony", ".PHONY: test lint", ".PHONY: lint", true, false),
            ("evaluated at once", "lint:", "$(eval SHELL=true):\nlint:", true, true),
            ("a condition", "lint:", "ifeq (a:b,c)\nelse\nlint:", true, true),
            ("an included file", "lint:", "include x.mk\nlint:", true, true),
        ] {
            let after = MAKEFILE.replace(before, after);
            let found = (changed("target test", &after), changed("target lint", &after));
            assert_eq!(found, (test, lint), "{what}");
        }
        assert!(changed("first target", &format!("all:\n{MAKEFILE}")), "another first target");
        assert!(!changed("first target", &format!("{MAKEFILE}all:\n")));
    }

    #[test]
    fn unusual_makefiles_are_watched_as_a_whole() {
        for text in [
            "include x.mk\ntest:\n\tx\n",
            "define x\nendef\ntest:\n\tx\n",
            "test: $(OBJS)\n\tx\n",
            "$(BIN): a.o\n\tx\n",
        ] {
            assert_eq!(part(text, "first target"), None, "{text}");
        }
        assert_eq!(part("", "target test").as_deref(), Some(""));
        let names = [vec!["-j".to_owned()], vec!["-C".into(), "a".into(), "V=1".into(), "test".into()]];
        assert_eq!(names.map(|args| part_name(&args)), ["first target", "target a test"]);
    }
}
