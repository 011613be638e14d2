//! The direction of imports, read from the source: no two files import each other, directly or in a circle.
//!
//! An import is a `use` or a path in the code, from one file to the file that defines the named item, as far as the
//! path names files. A file that declares a module and uses nothing of it does not import it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use regex::Regex;

/// The path of a module within its crate: `["daemon", "run"]`; empty for `lib.rs` and `main.rs`.
type Module = Vec<String>;

/// The code of every file below `dir` without tests and comments.
fn modules(dir: &Path) -> BTreeMap<Module, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(dir).unwrap().with_extension("");
            let module: Module = name.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if module.iter().any(|part| part == "tests" || part == "testing") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            found.insert(module, lines.collect::<Vec<_>>().join("\n"));
        }
    }
    found
}

/// Every path of `use a::{b, c::{d, e}}` in one list: `a::b`, `a::c::d`, `a::c::e`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        paths.push(format!("{prefix}{}", tree.split(" as ").next().unwrap()));
        return;
    };
    let body = &rest[..rest.rfind('}').expect("a brace is closed")];
    let (mut depth, mut start) = (0, 0);
    for (at, c) in body.char_indices().chain([(body.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !body[start..at].trim().is_empty() {
                    expand(&format!("{prefix}{head}"), body[start..at].trim(), paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// The files that each file imports.
fn imports(files: &BTreeMap<Module, String>) -> BTreeMap<&Module, BTreeSet<&Module>> {
    let statement = Regex::new(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);").unwrap();
    let inline = Regex::new(r"\b(?:\w+::)+\w+").unwrap();
    let target = |from: &Module, path: &str| {
        let mut segments: Vec<&str> = path.split("::").map(str::trim).collect();
        let mut base: Module = match segments[0] {
            "crate" => vec![],
            "self" => from.clone(),
            "super" => from[..from.len().saturating_sub(1)].to_vec(),
            child => {
                let of_child = [&from[..], &[child.to_owned()]].concat();
                return longest(files, &of_child, &segments[1..], of_child.len());
            }
        };
        segments.remove(0);
        while segments.first() == Some(&"super") {
            segments.remove(0);
            base.pop();
        }
        longest(files, &base, &segments, 1)
    };
    let of = |from: &Module, code: &str| {
        let mut paths = vec![];
        for found in statement.captures_iter(code) {
            expand("", &found[1].split_whitespace().collect::<Vec<_>>().join(" "), &mut paths);
        }
        let rest = statement.replace_all(code, "");
        paths.extend(inline.find_iter(&rest).map(|found| found.as_str().to_owned()));
        let module = module_of(from);
        let targets = paths.iter().filter_map(|path| target(&module, path));
        targets.filter(|to| *to != from).collect::<BTreeSet<_>>()
    };
    files.iter().map(|(from, code)| (from, of(from, code))).collect()
}

/// `lib.rs` and `main.rs` are the root of their crate.
fn module_of(file: &Module) -> Module {
    if file.len() == 1 && (file[0] == "lib" || file[0] == "main") { vec![] } else { file.clone() }
}

/// The file of the longest beginning of `base` and `rest` with at least `least` parts.
fn longest<'a>(
    files: &'a BTreeMap<Module, String>,
    base: &[String],
    rest: &[&str],
    least: usize,
) -> Option<&'a Module> {
    let whole: Module = base.iter().cloned().chain(rest.iter().map(|&part| part.to_owned())).collect();
    let known = |length: usize| files.get_key_value(&whole[..length].to_vec()).map(|(module, _)| module);
    (least.max(1)..=whole.len()).rev().find_map(known)
}

/// Files that import each other in a circle, each circle in order of its names.
fn circles(graph: &BTreeMap<&Module, BTreeSet<&Module>>) -> Vec<Vec<String>> {
    let mut reached: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
    for &file in graph.keys() {
        let (mut seen, mut open) = (BTreeSet::new(), vec![file]);
        while let Some(next) = open.pop() {
            open.extend(graph[next].iter().copied().filter(|to| seen.insert(*to)));
        }
        reached.insert(file, seen);
    }
    let circle = |file: &Module| {
        let all = reached[file].iter().filter(|&&other| reached[other].contains(file));
        all.map(|module| module.join("/")).collect::<Vec<_>>()
    };
    let found: BTreeSet<Vec<String>> =
        graph.keys().map(|&file| circle(file)).filter(|all| all.len() > 1).collect();
    found.into_iter().collect()
}

#[test]
fn source_files_have_no_import_cycles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![];
    for dir in ["state/src", "src"] {
        let files = modules(&root.join(dir));
        let cycles = circles(&imports(&files));
        let imports: usize = imports(&files).values().map(BTreeSet::len).sum();
        println!("{dir}: {} files, {imports} imports, {} circles", files.len(), cycles.len());
        found.extend(cycles);
    }
    let report: Vec<String> = found.iter().map(|c| format!("{}: {}", c.len(), c.join(" "))).collect();
    assert!(report.is_empty(), "circles of imports:\n{}", report.join("\n"));
}
