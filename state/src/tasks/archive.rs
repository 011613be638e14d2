//! Describes a task list that `swarm ralph archive` archives: the folder's name, and the summary of its stories.

use serde::Serialize;

use super::{APPROVED_AT_CAP, TaskList};
use crate::screen::printable;

/// The most bytes of a label in a folder's name.
const MAX_LABEL_BYTES: usize = 80;

/// The summary of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListSummary {
    /// The number of stories.
    pub stories: usize,
    /// Those that pass.
    pub done: usize,
    /// The reviews of all stories.
    pub reviews: u64,
    /// The ids of stories that were approved because of the review cap.
    pub approved_at_cap: Vec<String>,
}

impl ListSummary {
    /// Summarizes a list. Whether its loop had reviews is unknown, so a story is done if it passes.
    pub fn of(list: &TaskList) -> Self {
        let at_cap = list.stories().iter().filter(|story| story.feedback.starts_with(APPROVED_AT_CAP));
        Self {
            stories: list.stories().len(),
            done: list.done(true),
            reviews: list
                .stories()
                .iter()
                .fold(0, |sum, story| sum.saturating_add(story.review.review_count)),
            approved_at_cap: at_cap.map(|story| story.id.clone()).collect(),
        }
    }
}

/// The days on which a loop began and ended, `2026-01-15`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopDates {
    /// The first day.
    pub first: String,
    /// The last day.
    pub last: String,
}

impl LoopDates {
    /// Chooses the days: the day in `progress.txt` or else of the first commit, and the day of the last commit or else
    /// `changed`, when the files were last changed. `commits` has the days of the first and the last commit.
    pub fn of(progress: &str, commits: Option<(String, String)>, changed: String) -> Self {
        let started = progress.lines().find_map(|line| line.strip_prefix("Started:")).map(str::trim);
        let is_day = |text: &&str| text.len() == 10 && text.chars().all(|c| c.is_ascii_digit() || c == '-');
        let (oldest, newest) = commits.unzip();
        let last = newest.unwrap_or(changed);
        let first = started.filter(is_day).map(str::to_owned).or(oldest).unwrap_or_else(|| last.clone());
        Self { last: last.max(first.clone()), first }
    }
}

/// The text of `summary.md`. `list` is the list, or why it is not valid.
pub fn summary_text(list: Result<&TaskList, &str>, day: &str, dates: &LoopDates) -> String {
    let LoopDates { first, last } = dates;
    let list = match list {
        Ok(list) => list,
        Err(why) => {
            let text = format!("- tasks.json is not a valid task list: {}", one_line(why));
            return format!(
                "# Archived task list\n\n- Archived: {day}\n- Dates: {first} to {last}\n{text}\n"
            );
        }
    };
    let ListSummary { stories, done, reviews, approved_at_cap } = ListSummary::of(list);
    let at_cap = match approved_at_cap.as_slice() {
        [] => "none".to_owned(),
        ids => ids.join(", "),
    };
    let description = match one_line(list.text("description")).as_str() {
        "" => String::new(),
        text => format!("{text}\n\n"),
    };
    let mut text = format!(
        "# Archived task list: {}\n\n{description}- Archived: {day}\n- Branch: {}\n- Dates: {first} to {last}\n\
         - Stories done: {done} of {stories}\n- Reviews: {reviews}\n- Approved at the review cap: {}\n\n\
         | Story | Title | State | Reviews |\n| --- | --- | --- | --- |\n",
        one_line(list.text("project")),
        one_line(list.text("branchName")),
        one_line(&at_cap),
    );
    for story in list.stories() {
        let cell = |text: &str| one_line(text).replace('|', "\\|");
        let (state, count) = (story.state_word(), story.review.review_count);
        text.push_str(&format!("| {} | {} | {state} | {count} |\n", cell(&story.id), cell(&story.title)));
    }
    text
}

fn one_line(text: &str) -> String {
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The name of an archive's folder: the day, and the label or else the branch without `ralph/`.
pub fn archive_folder(day: &str, label: Option<&str>, branch: &str) -> String {
    let branch = branch.strip_prefix("ralph/").unwrap_or(branch);
    let label = label.map(safe_label).filter(|label| !label.is_empty()).unwrap_or_else(|| safe_label(branch));
    if label.is_empty() { format!("{day}-loop") } else { format!("{day}-{label}") }
}

/// A label as part of a folder's name: letters, digits, `_`, `.` and single dashes.
fn safe_label(label: &str) -> String {
    let mut safe = String::new();
    for c in label.chars() {
        let is_kept = c.is_alphanumeric() || c == '_' || c == '.';
        let c = if is_kept { c } else { '-' };
        if safe.len() + c.len_utf8() > MAX_LABEL_BYTES {
            break;
        }
        if c != '-' || !safe.ends_with('-') {
            safe.push(c);
        }
    }
    safe.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: &str = "2026-01-15";

    fn list() -> TaskList {
        let story = |id: &str, title: &str, passes: bool, count: u64, feedback: &str| {
            serde_json::json!({
                "id": id, "title": title, "acceptanceCriteria": ["x"], "priority": 1, "passes": passes,
                "reviewStatus": passes.then_some("approved"), "reviewCount": count, "reviewFeedback": feedback,
                "notes": "n",
            })
        };
        let stories = [
            story("US-001", "Pay | by\ncard", true, 1, ""),
            story("US-002", "Refund", true, 5, "[AUTO-APPROVED AT CAP] slow"),
            story("US-003", "Invoice", false, 0, ""),
        ];
        let list = serde_json::json!({
            "project": "shop", "branchName": "ralph/checkout", "description": "A checkout", "userStories": stories,
        });
        TaskList::parse(&list.to_string()).unwrap()
    }

    #[test]
    fn labels_are_safe_names() {
        let long = "ü".repeat(300);
        for (label, branch, folder) in [
            (Some("checkout"), "", "checkout"),
            (None, "ralph/checkout", "checkout"),
            (None, "feat/a b", "feat-a-b"),
            (Some(""), "ralph/x", "x"),
            (Some("../x"), "", "x"),
            (Some("a/b\\c"), "", "a-b-c"),
            (Some(".."), "", "loop"),
            (Some("größe 日本"), "", "größe-日本"),
            (Some("-rf --"), "", "rf"),
            (Some("a\nb\0c\x1b[31m"), "", "a-b-c-31m"),
            (Some("v1.2_x"), "", "v1.2_x"),
            (None, "", "loop"),
            (Some(&long), "", &"ü".repeat(40)),
        ] {
            assert_eq!(archive_folder(DAY, label, branch), format!("{DAY}-{folder}"), "{label:?} {branch}");
        }
    }

    #[test]
    fn the_summary_counts_stories_and_reviews() {
        let summary = ListSummary::of(&list());
        let expected =
            ListSummary { stories: 3, done: 2, reviews: 6, approved_at_cap: vec!["US-002".into()] };
        assert_eq!(summary, expected);
        let dates = LoopDates { first: "2026-01-10".into(), last: "2026-01-14".into() };
        let text = summary_text(Ok(&list()), DAY, &dates);
        for line in [
            "# Archived task list: shop",
            "A checkout",
            "- Branch: ralph/checkout",
            "- Dates: 2026-01-10 to 2026-01-14",
            "- Stories done: 2 of 3",
            "- Reviews: 6",
            "- Approved at the review cap: US-002",
            "| US-001 | Pay \\| by card | approved | 1 |",
            "| US-003 | Invoice | open | 0 |",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(
            summary_text(Err("it is\nbroken"), DAY, &dates).contains("not a valid task list: it is broken\n")
        );
    }

    #[test]
    fn archive_dates_come_from_the_progress_file_and_the_commits() {
        let commits = |first: &str, last: &str| Some((first.to_owned(), last.to_owned()));
        let progress = "# Ralph Progress Log\nStarted: 2026-01-10\n";
        for (progress, commits, first, last) in [
            (progress, None, "2026-01-10", DAY),
            (progress, commits("2025-12-01", "2026-01-12"), "2026-01-10", "2026-01-12"),
            ("Started: {{DATE}}", commits("2026-01-11", "2026-01-12"), "2026-01-11", "2026-01-12"),
            ("", None, DAY, DAY),
            // The files were not committed since the loop began.
            (progress, commits("2025-12-01", "2025-12-02"), "2026-01-10", "2026-01-10"),
        ] {
            let dates = LoopDates { first: first.into(), last: last.into() };
            assert_eq!(LoopDates::of(progress, commits, DAY.into()), dates);
        }
    }
}
