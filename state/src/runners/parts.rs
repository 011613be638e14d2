//! The parts of a file that configure a runner.
//!
//! A file such as `pyproject.toml` has other contents too, which an agent may change.

use serde_json::Value;

use super::targets;

/// The parts of a file that exist in it, each with its content in one fixed form; `None` if the file cannot be parsed.
/// A part is a path of keys in TOML (`tool.pytest`) and JSON (`scripts`), an element's name in XML, a section's name in
/// INI (`tox.ini`, `setup.cfg`; may end with `*`), the targets of `make` in a makefile, and in other files a word: all
/// lines that contain it. The format follows from the ending of `name`.
pub fn parts_of(name: &str, content: &[u8], parts: &[String]) -> Option<Vec<(String, String)>> {
    let text = std::str::from_utf8(content).ok()?.trim_start_matches('\u{feff}');
    let is_makefile = name.rsplit('/').next().is_some_and(|name| name.to_lowercase().ends_with("makefile"));
    let found = |read: &dyn Fn(&str) -> Option<String>| {
        parts.iter().filter_map(|part| Some((part.clone(), read(part)?))).collect()
    };
    if is_makefile {
        return parts.iter().map(|part| Some((part.clone(), targets::part(text, part)?))).collect();
    }
    Some(match name.rsplit('.').next().unwrap_or_default() {
        "toml" => {
            let table: toml::Table = text.parse().ok()?;
            found(&|part| at_path(&serde_json::to_value(&table).ok()?, part))
        }
        "json" => {
            let value: Value = serde_json::from_str(text).ok()?;
            found(&|part| at_path(&value, part))
        }
        "xml" => found(&|part| element(text, part)),
        "ini" | "cfg" | "coveragerc" => found(&|part| section(text, part)),
        _ => found(&|part| lines(text.lines().filter(|line| line.contains(part)))),
    })
}

/// A key may contain a dot, such as the name of a script.
fn at_path(value: &Value, path: &str) -> Option<String> {
    let below = || path.split_once('.').and_then(|(key, rest)| at_path(value.get(key)?, rest));
    value.get(path).map(Value::to_string).or_else(below)
}

/// From the first start of an element to its last end.
fn element(text: &str, name: &str) -> Option<String> {
    let start = [format!("<{name}>"), format!("<{name} ")].iter().filter_map(|tag| text.find(tag)).min()?;
    let end = text.rfind(&format!("</{name}>")).filter(|end| *end > start)?;
    Some(text[start..end].to_owned())
}

/// The lines of all sections with this name, without comments.
fn section(text: &str, name: &str) -> Option<String> {
    let is_wanted = |header: &str| match name.strip_suffix('*') {
        Some(start) => header.starts_with(start),
        None => header == name,
    };
    let mut is_in = false;
    let kept = text.lines().filter(|line| {
        let header = line.strip_prefix('[').and_then(|rest| rest.split(']').next());
        is_in = header.map_or(is_in, |header| is_wanted(header.trim()));
        is_in && !line.trim_start().starts_with(['#', ';'])
    });
    lines(kept)
}

fn lines<'a>(kept: impl Iterator<Item = &'a str>) -> Option<String> {
    let kept: Vec<&str> = kept.map(str::trim_end).filter(|line| !line.is_empty()).collect();
    (!kept.is_empty()).then(|| kept.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_watched_parts_of_a_file_count() {
        let parts = |name: &str, text: &str, parts: &[&str]| {
            let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            parts_of(name, text.as_bytes(), &parts)
        };
        let pytest = &["tool.pytest", "tool.coverage"][..];
        let scripts = &["scripts", "jest"][..];
        for (name, wanted, before, after, is_same) in [
            (
                "pyproject.toml",
                pytest,
                "[project]\ndependencies = []",
                "[project]\ndependencies = ['x']",
                true,
            ),
            ("pyproject.toml", pytest, "[tool.pytest.a]\nb=1", "[x]\n[tool.pytest]\na = {b = 1} # c", true),
            ("pyproject.toml", pytest, "[project]", "[tool.pytest.ini_options]\naddopts='--co'", false),
            (
                "package.json",
                scripts,
                r#"{"scripts":{"test":"jest"}}"#,
                r#"{"a":1, "scripts":{"test": "jest"}}"#,
                true,
            ),
            (
                "package.json",
                scripts,
                r#"{"scripts":{"test":"jest"}}"#,
                r#"{"scripts":{"test":"true"}}"#,
                false,
            ),
            ("package.json", scripts, "{}", r#"{"jest":{}}"#, false),
            (
                "tox.ini",
                &["pytest"],
                "[flake8]\nx=1\n[pytest]\n# c\na=1",
                "[pytest]\na=1\n\n[flake8]\nx=2",
                true,
            ),
            ("tox.ini", &["testenv*"], "[testenv:a]\nx=1", "[testenv:a]\nx=2", false),
            ("setup.cfg", &["tool:pytest"], "[metadata]\na=1", "[metadata]\na=2", true),
            ("pom.xml", &["build"], "<a/><build>x</build>", "<b/><build>x</build>", true),
            ("pom.xml", &["build"], "<build>x</build>", "<build>y</build>", false),
            ("CMakeLists.txt", &["add_test"], "add_test(a)", "add_test(a)\nadd_library(b)", true),
            ("CMakeLists.txt", &["add_test"], "add_test(a)", "", false),
        ] {
            let (before, after) = (parts(name, before, wanted).unwrap(), parts(name, after, wanted).unwrap());
            assert_eq!(before == after, is_same, "{name}: {before:?} {after:?}");
        }
        assert_eq!(parts("package.json", "no JSON", scripts), None);
        assert_eq!(parts("a.toml", "= =", scripts), None);
        assert_eq!(parts_of("a.ini", b"\xff", &[]), None);
    }
}
