//! `swarm ralph archive`: move a finished task list to an archive, and write a new one.
//!
//! The daemon is only asked which loops there are. The order is copy, reset, commit, so that nothing is lost if swarm
//! is killed in between; the next archive continues with the same folder. Deliberately absent: the text of the summary
//! ([`swarm_state::tasks::archive`]).

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Local};
use serde_json::{Value, json};
use swarm_state::tasks::TaskList;
use swarm_state::tasks::archive::{ListSummary, LoopDates, archive_folder, summary_text};
use swarm_state::template::tasks::{TASKS_PROMPT, has_progress, has_requirements, has_stories};

use crate::cli::{PageFormat, RalphArchive};
use crate::client::task_list_file::{ListChange, refuse_used_list};
use crate::error::{Error, ErrorCode, Result, failed};
use crate::files::sync_dir;
use crate::git::{self, PathsCommit};
use crate::out::{CommandResult, Out};
use crate::paths::resolve;
use crate::runtime::block_on;
use crate::shell::quote_path;
use crate::task_files::{PRD_FILE, PROGRESS_FILE, PROMPT_FILE, TASKS_FILE, TaskDir, put, today};

/// The directory of all archives, in the project's directory.
const ARCHIVES: &str = "ralph-archive";

/// The summary's file.
const SUMMARY_FILE: &str = "summary.md";

/// The files that an archive gets and that are then written again.
const MOVED: [&str; 3] = [PRD_FILE, TASKS_FILE, PROGRESS_FILE];

/// The most archives of one day and label.
const MAX_SAME_NAMES: usize = 1000;

struct OldList {
    place: TaskDir,
    /// The existing files of [`MOVED`], and a changed prompt.
    files: Vec<(&'static str, Vec<u8>)>,
    /// The list's branch; empty if it has none.
    branch: String,
    /// The list, or why it is not valid.
    list: Result<TaskList, String>,
}

/// Carries out the command. Fails when a loop works on the list or there is nothing to archive. When git cannot commit,
/// the archive exists.
pub fn run(args: &RalphArchive, out: Out) -> CommandResult {
    let place = TaskDir::find(args.cwd.as_deref(), args.ralph_dir.as_deref())?;
    place.require()?;
    refuse_other_repository(&place)?;
    block_on(refuse_used_list(&place, ListChange::Replace))??.iter().for_each(|warning| out.warn(warning));
    let old = OldList::read(place)?;
    let day = today();
    let name = archive_folder(&day, args.label.as_deref(), &old.branch);
    let dates = old.dates();
    let summary = summary_text(old.list.as_ref().map_err(String::as_str), &day, &dates);
    let folder = old.copy(&name, &summary)?;
    old.reset()?;
    let shown = shown(&folder);
    let commit = match args.no_commit {
        true => Err("because of --no-commit"),
        false => match commit(&old, &folder).map_err(|error| not_committed(&shown, error))? {
            PathsCommit::Made(id) => Ok(id),
            PathsCommit::NoRepository => Err("since the project is not in a git repository"),
            PathsCommit::Ignored => Err("since git ignores these files"),
        },
    };
    let counts = old.list.as_ref().ok().map(ListSummary::of);
    if args.format == PageFormat::Json {
        let files: Vec<&str> = old.files.iter().map(|(file, _)| *file).chain([SUMMARY_FILE]).collect();
        out.json(&json!({
            "path": folder.display().to_string(), "files": files, "stories": counts.as_ref().map(|it| it.stories),
            "done": counts.as_ref().map(|it| it.done), "reviews": counts.as_ref().map(|it| it.reviews),
            "approved_at_cap": counts.as_ref().map(|it| &it.approved_at_cap),
            "first_day": dates.first, "last_day": dates.last, "commit": commit.as_ref().ok(),
        }))?;
    } else {
        out.line(&format!("archived the task list in {shown}"))?;
        if let Some(ListSummary { stories, done, reviews, .. }) = &counts {
            out.line(&format!("stories done: {done} of {stories}, reviews: {reviews}"))?;
        }
        commit.as_ref().map_or(Ok(()), |id| out.line(&format!("committed {id}")))?;
    }
    if let Some(ListSummary { stories, done, .. }) = counts.filter(|counts| counts.done < counts.stories) {
        let left = stories - done;
        out.warn(&format!(
            "{left} of {stories} stories were not done; their list is in {shown}/{TASKS_FILE}"
        ));
    }
    if let Err(why) = &old.list {
        out.warn(&format!("the archived {TASKS_FILE} is not a valid task list: {why}"));
    }
    if old.has_prompt() {
        out.note(&format!("kept your {}; the archive has a copy", old.place.shown(PROMPT_FILE)));
    }
    if let Err(why) = commit {
        out.note(&format!("not committed, {why}"));
    }
    out.hint("to plan the next feature: swarm ralph plan");
    Ok(0)
}

/// Refuses a list that belongs to another repository than the project, which gets the archive.
fn refuse_other_repository(place: &TaskDir) -> Result<()> {
    let top = |dir: &Path| block_on(git::top(dir)).map(|found| found.ok());
    if top(&place.project)? == top(&place.dir)? {
        return Ok(());
    }
    let real = resolve(&place.dir);
    if top(&place.dir)?.is_some_and(|top| resolve(&top) == real) {
        let message =
            format!("'{}' is the whole repository, not the directory of a task list", real.display());
        return Err(
            Error::invalid(message).hint("a task list is in a directory of the project, such as ralph")
        );
    }
    let (list, project) = (place.shown(""), place.project.display());
    let message =
        format!("the task list '{list}' and the project '{project}' are not in the same repository");
    let (parent, dir) = (quote_path(real.parent().unwrap_or(&real)), quote_path(&real));
    Err(Error::invalid(message)
        .hint(format!("to archive the list where it is: --cwd {parent} --ralph-dir {dir}")))
}

impl OldList {
    fn read(place: TaskDir) -> Result<Self> {
        let mut files = vec![];
        for file in MOVED {
            files.extend(place.read(file)?.map(|bytes| (file, bytes)));
        }
        let text = |name: &str| {
            let found = files.iter().find(|(file, _)| *file == name);
            found.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
        };
        let (prd, tasks, progress) = (text(PRD_FILE), text(TASKS_FILE), text(PROGRESS_FILE));
        if !has_requirements(&prd) && !has_stories(&tasks) && !has_progress(&progress) {
            let message = format!("nothing to archive: the files in '{}' are still empty", place.shown(""));
            return Err(Error::invalid(message).hint("to plan a feature: swarm ralph plan"));
        }
        let list = TaskList::parse(&tasks).map_err(|fault| fault.to_string());
        // A list that is not valid may have one.
        let value: Value = serde_json::from_str(&tasks).unwrap_or_default();
        let branch = value.get("branchName").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(prompt) =
            place.read(PROMPT_FILE)?.filter(|text| text.as_slice() != TASKS_PROMPT.as_bytes())
        {
            files.push((PROMPT_FILE, prompt));
        }
        Ok(Self { place, files, branch, list })
    }

    fn has_prompt(&self) -> bool {
        self.files.iter().any(|(file, _)| *file == PROMPT_FILE)
    }

    /// The days of the loop, from the progress log, the commits, and the times of the files.
    fn dates(&self) -> LoopDates {
        let progress = self.files.iter().find(|(file, _)| *file == PROGRESS_FILE);
        let progress = progress.map(|(_, bytes)| String::from_utf8_lossy(bytes)).unwrap_or_default();
        let paths: Vec<PathBuf> = MOVED.map(|file| self.place.dir.join(file)).to_vec();
        let commits = block_on(git::commit_days(&self.place.project, &paths)).and_then(|days| days);
        let changed =
            paths.iter().filter_map(|path| fs::metadata(path).and_then(|found| found.modified()).ok());
        let changed = changed.max().map(|at| DateTime::<Local>::from(at).format("%Y-%m-%d").to_string());
        LoopDates::of(&progress, commits.unwrap_or_default(), changed.unwrap_or_else(today))
    }

    /// Copies the files to a new folder, or to that of an archive of the same files that was interrupted.
    fn copy(&self, name: &str, summary: &str) -> Result<PathBuf> {
        let all = self.place.project.join(ARCHIVES);
        fs::create_dir_all(&all).map_err(|e| failed("write", &all, e))?;
        let folder = self.new_folder(&all, name).map_err(|e| failed("write", &all, e))?;
        let summary = (SUMMARY_FILE, summary.as_bytes().to_vec());
        for (file, bytes) in self.files.iter().chain([&summary]) {
            let path = folder.join(file);
            if !path.exists() {
                put(&path, bytes).map_err(|e| failed("write", &path, e))?;
            }
        }
        sync_dir(&folder).and_then(|()| sync_dir(&all)).map_err(|e| failed("write", &folder, e))?;
        Ok(folder)
    }

    fn new_folder(&self, all: &Path, name: &str) -> std::io::Result<PathBuf> {
        for number in 1..=MAX_SAME_NAMES {
            let name = if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
            let folder = all.join(name);
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(folder),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            if self.is_interrupted(&folder) {
                return Ok(folder);
            }
        }
        Err(std::io::Error::other("there are too many archives of this name"))
    }

    /// Whether a folder was begun by an archive of the same files. Each file that it has is either as it is now, or was
    /// already written again.
    fn is_interrupted(&self, folder: &Path) -> bool {
        let is_same = |(file, bytes): &(&str, Vec<u8>)| match fs::read(folder.join(file)) {
            Ok(copy) => copy == *bytes,
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        let is_fresh = |(file, bytes): &(&str, Vec<u8>)| {
            *file != PROMPT_FILE && self.place.fresh(file, None).as_bytes() == bytes.as_slice()
        };
        let has_only_ours = fs::read_dir(folder).is_ok_and(|entries| {
            entries.flatten().all(|entry| {
                let is = |file: &&str| entry.file_name() == *file;
                MOVED.iter().chain(&[PROMPT_FILE, SUMMARY_FILE]).any(is)
                    || crate::files::is_temporary(&entry.path())
            })
        });
        // A committed archive is complete.
        let is_new = block_on(git::is_untracked(&self.place.project, folder)).unwrap_or(false);
        is_new && has_only_ours && self.files.iter().all(|file| is_same(file) || is_fresh(file))
    }

    /// Writes empty files. A prompt that was changed stays.
    fn reset(&self) -> Result<()> {
        for file in MOVED {
            self.place.put(file, &self.place.fresh(file, None))?;
        }
        if !self.has_prompt() {
            self.place.put(PROMPT_FILE, &self.place.fresh(PROMPT_FILE, None))?;
        }
        Ok(())
    }
}

fn commit(old: &OldList, folder: &Path) -> Result<PathsCommit> {
    let mut paths = vec![folder.to_owned()];
    let prompt = (!old.has_prompt()).then_some(PROMPT_FILE);
    paths.extend(MOVED.into_iter().chain(prompt).map(|file| old.place.dir.join(file)));
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    block_on(git::commit_paths(&old.place.project, &paths, &format!("chore: archive task list {name}")))?
}

fn not_committed(shown: &str, error: Error) -> Error {
    let text = format!("archived the task list in {shown}, but cannot commit it: {}", error.message);
    Error::new(ErrorCode::System, text)
        .hint("nothing is lost; commit the files yourself (git status shows them)")
}

/// A path for messages: relative to the current directory if it is in it.
fn shown(path: &Path) -> String {
    let here = crate::paths::pin(Path::new(".")).unwrap_or_default();
    quote_path(path.strip_prefix(here).unwrap_or(path))
}
