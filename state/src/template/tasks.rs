//! The files of a task list: the prompt of its iterations, the requirements, the stories, the progress log, and the
//! instructions for planning.
//!
//! `swarm ralph init --tasks` and `swarm ralph archive` write them, `swarm ralph plan` prints the last one. The daemon
//! fills in a prompt with [`fill`] before each iteration. The texts are files of their own in `tasks/`.

use serde_json::Value;

/// `prompt.md`: the prompt of each iteration (§6).
pub const TASKS_PROMPT: &str = include_str!("tasks/prompt.md");

/// `prd.md`: the requirements (§7).
pub const PRD: &str = include_str!("tasks/prd.md");

/// `progress.txt`: what iterations did and learned (§9).
pub const PROGRESS: &str = include_str!("tasks/progress.txt");

/// The skill that plans a feature (§11).
pub const PLAN_SKILL: &str = include_str!("tasks/ralph-plan.md");

/// `tasks.json` (§8), before [`tasks_file`] fills it in.
const TASKS: &str = include_str!("tasks/tasks.json");

/// The branch in a new `tasks.json`.
const PLACEHOLDER_BRANCH: &str = "ralph/feature-name";

/// The values of a template's placeholders, by the names in `{{NAME}}`: `ITERATION` (from 1), `MAX_ITERATIONS`, `MODE`,
/// `STORY_ID`, `STORY_TITLE`, `REVIEW_CAP`, `PROJECT_NAME` and `DATE` (a day, `2026-01-15`). The first two are also
/// those of `$RALPH_NAME`. A placeholder without a value stays as it is.
pub type TemplateValues<'a> = [(&'a str, String)];

/// Fills in a template. A value is not searched for placeholders.
pub fn fill(template: &str, values: &TemplateValues<'_>) -> String {
    let (mut filled, mut rest) = (String::new(), template);
    while let Some(at) = rest.find(['{', '$']) {
        let (before, placeholder) = rest.split_at(at);
        filled.push_str(before);
        rest = match value_at(placeholder, values) {
            Some((value, after)) => {
                filled.push_str(value);
                after
            }
            None => {
                let (character, after) = placeholder.split_at(1);
                filled.push_str(character);
                after
            }
        };
    }
    filled + rest
}

/// The value of the placeholder with which a text begins, and the text behind it.
fn value_at<'a>(text: &'a str, values: &'a TemplateValues<'_>) -> Option<(&'a str, &'a str)> {
    let value_of = |name: &str| Some(values.iter().find(|(known, _)| *known == name)?.1.as_str());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = |text: &'a str| text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len()));
    if let Some(inner) = text.strip_prefix("{{") {
        let (name, after) = word(inner);
        return Some((value_of(name)?, after.strip_prefix("}}")?));
    }
    let inner = text.strip_prefix('$')?;
    let braced = inner.strip_prefix('{');
    let (name, after) = word(braced.unwrap_or(inner));
    let name = name.strip_prefix("RALPH_").filter(|name| ["ITERATION", "MAX_ITERATIONS"].contains(name))?;
    let after = if braced.is_some() { after.strip_prefix('}')? } else { after };
    Some((value_of(name)?, after))
}

/// The first prompt of an agent that plans. `has_prd`: `prd.md` has requirements; `dir` is the directory of the list.
pub fn plan_prompt(has_prd: bool, dir: &str) -> String {
    let text = PLAN_SKILL.splitn(3, "---\n").nth(2).unwrap_or(PLAN_SKILL).trim_start();
    let mode = match has_prd {
        true => format!("Use mode 2: `{dir}/prd.md` has requirements."),
        false => format!("Use mode 1: `{dir}/prd.md` has no requirements yet."),
    };
    let place = match dir {
        "ralph" => String::new(),
        dir => format!(" The directory is `{dir}`: use it where this text names `ralph`."),
    };
    format!("{text}\n## Begin now\n\n{mode}{place}\n")
}

/// `tasks.json` with one empty story. `branch` is the list's branch, if there is one.
pub fn tasks_file(project: &str, branch: Option<&str>) -> String {
    let text = |value: &str| Value::from(value).to_string();
    let branch = text(branch.unwrap_or(PLACEHOLDER_BRANCH));
    let project = format!("\"project\": {}", text(project));
    TASKS.replace(&text(PLACEHOLDER_BRANCH), &branch).replacen("\"project\": \"\"", &project, 1)
}

/// The branch of a feature, `ralph/FEATURE`; `None` if git does not accept the name.
pub fn feature_branch(feature: &str) -> Option<String> {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with(".lock");
    let is_refused = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let is_legal = feature.split('/').all(is_part)
        && !feature.contains(is_refused)
        && !["..", "@{"].iter().any(|word| feature.contains(word))
        && !feature.ends_with('.')
        && feature != "@"
        && feature.len() <= MAX_FEATURE_BYTES;
    is_legal.then(|| format!("ralph/{feature}"))
}

/// The longest name of a feature. git keeps a branch as a file, whose name may have 255 bytes with `.lock`.
const MAX_FEATURE_BYTES: usize = 200;

/// True if a `prd.md` has requirements: a line that is not a heading, a comment, or a line of the template.
pub fn has_requirements(prd: &str) -> bool {
    let scaffold = without_comments(PRD);
    let known: Vec<&str> = scaffold.lines().map(str::trim).collect();
    let is_content = |line: &str| !line.is_empty() && !line.starts_with('#') && !known.contains(&line);
    without_comments(prd).lines().map(str::trim).any(is_content)
}

/// True if a `tasks.json` has a person's stories or description.
pub fn has_stories(tasks: &str) -> bool {
    let Ok(list) = serde_json::from_str::<Value>(tasks) else { return !tasks.trim().is_empty() };
    let is_empty = |value: Option<&Value>| value.is_none_or(|text| text.as_str() == Some(""));
    let stories = list.get("userStories").and_then(Value::as_array);
    let is_planned = |story: &Value| !is_empty(story.get("title")) || !is_empty(story.get("description"));
    !is_empty(list.get("description")) || stories.into_iter().flatten().any(is_planned)
}

/// True if a `progress.txt` has more than its first lines.
pub fn has_progress(progress: &str) -> bool {
    let known: Vec<&str> = PROGRESS.lines().collect();
    let is_head = |line: &str| line.starts_with("Started:") || line.starts_with("PRD:");
    let mut lines = progress.lines().map(str::trim_end);
    lines.any(|line| !line.is_empty() && !known.contains(&line) && !is_head(line))
}

fn without_comments(text: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, comment)) = rest.split_once("<!--") {
        let Some((_, after)) = comment.split_once("-->") else { break };
        kept.push_str(before);
        rest = after;
    }
    kept + rest
}

#[cfg(test)]
mod tests;
