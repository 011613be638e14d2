//! With real git, in directories of their own.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tempfile::TempDir;

use super::listing::changed_files;
use super::*;
use crate::error::ErrorCode;

mod apart;
mod snapshots;

/// A repository `repo` with one commit, in a directory of its own.
struct Fixture {
    dir: TempDir,
}

/// Removes a worktree, or refuses as `swarm clean` does.
async fn remove(wt: &Worktree, force_dirty: bool) -> Result<Removed> {
    let permission = Permission { force_dirty, discard_ignored: false };
    let command = swarm_state::removal::RemovalCommand::Clean;
    let name = WorkerName::new("w").unwrap();
    let removed = remove_worktree(wt, permission).await;
    removed.map_err(|error| error.into_error(&wt.path, |refusal| Some(refusal.command(command, &name))))
}

/// The work that would be lost with a worktree.
async fn lost_work(tree: &Path) -> Vec<String> {
    losses(tree).await.unwrap().work
}

impl Fixture {
    fn empty() -> Self {
        let fixture = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(fixture.repo()).unwrap();
        fixture.git(&["init", "-q", "-b", "main"]);
        fixture
    }

    fn new() -> Self {
        let fixture = Self::empty();
        fs::write(fixture.repo().join("file"), "one\n").unwrap();
        fixture.git(&["add", "."]);
        fixture.git(&["commit", "-qm", "one"]);
        fixture
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap()
    }

    fn repo(&self) -> PathBuf {
        self.root().join("repo")
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.repo(), args)
    }

    fn branches(&self) -> Vec<String> {
        let text = self.git(&["for-each-ref", "--format=%(refname)", "refs/heads/"]);
        text.lines().map(|line| line.replacen("refs/heads/", "", 1)).collect()
    }

    fn trees(&self) -> usize {
        self.git(&["worktree", "list", "--porcelain"]).lines().filter(|l| l.starts_with("worktree ")).count()
    }

    async fn create(&self, name: &str, branch: Option<&str>) -> Result<Created> {
        let spec = WorktreeSpec { branch: branch.map(ToOwned::to_owned), dir: None };
        create_worktree(&self.repo(), &WorkerName::new(name).unwrap(), &spec, |_| Ok(())).await
    }

    /// Nothing but the main tree and its branch.
    fn assert_untouched(&self) {
        assert_eq!(self.branches(), ["main"]);
        assert_eq!(self.trees(), 1);
        assert!(!self.root().join("repo-worktrees").exists());
    }
}

fn git_in(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", dir);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "t").env(format!("GIT_{who}_EMAIL"), "t@example.com");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn worktree_is_created_and_removed() {
    let repo = Fixture::new();
    // From a directory inside: the main tree counts.
    fs::create_dir(repo.repo().join("sub")).unwrap();
    let name = WorkerName::new("a").unwrap();
    let made =
        create_worktree(&repo.repo().join("sub"), &name, &WorktreeSpec::default(), |_| Ok(())).await.unwrap();
    let wt = made.worktree;
    assert_eq!(made.note, None);
    assert_eq!(wt.path, repo.root().join("repo-worktrees/a"));
    assert_eq!((wt.branch.as_str(), &wt.base_repo), ("swarm/a", &repo.repo()));
    assert_eq!(fs::read_to_string(wt.path.join("file")).unwrap(), "one\n");
    assert_eq!(losses(&wt.path).await.unwrap(), Losses::default());
    // A worktree of a worktree lies beside the same repository.
    let name = WorkerName::new("b").unwrap();
    let second =
        create_worktree(&wt.path, &name, &WorktreeSpec::default(), |_| Ok(())).await.unwrap().worktree;
    assert_eq!(second.path, repo.root().join("repo-worktrees/b"));
    assert_eq!(second.base_repo, repo.repo());
    for wt in [wt, second] {
        let removed = remove(&wt, false).await.unwrap();
        assert_eq!(removed, Removed { path: wt.path, note: None, ignored: IgnoredFiles::default() });
    }
    repo.assert_untouched();
}

#[tokio::test]
async fn refused_worktree_leaves_no_files_or_branches() {
    let repo = Fixture::new();
    for branch in ["a..b", "x.lock", "a~1", "-x", "@", "", "HEAD", "@{-1}", "a b", "/a", "main/x", "nul\0"] {
        let error = repo.create("w", Some(branch)).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Invalid, "{branch:?}: {error}");
        repo.assert_untouched();
    }
    let error = repo.create("w", Some("main")).await.unwrap_err();
    assert!(error.message.contains("is checked out at"), "{error}");
    repo.assert_untouched();

    let dir = repo.root().join("full");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("precious"), "").unwrap();
    let spec = WorktreeSpec { branch: None, dir: Some(dir.clone()) };
    let name = WorkerName::new("w").unwrap();
    let error = create_worktree(&repo.repo(), &name, &spec, |_| Ok(())).await.unwrap_err();
    assert!(error.message.contains("not an empty directory"), "{error}");
    assert!(dir.join("precious").exists());
    repo.assert_untouched();

    let error = create_worktree(&repo.root(), &name, &WorktreeSpec::default(), |_| Ok(())).await.unwrap_err();
    assert!(error.message.contains("fatal: not a git repository"), "{error}");
}

#[tokio::test]
async fn worktree_without_a_commit_is_refused_with_the_text_of_git() {
    let repo = Fixture::empty();
    let error = repo.create("w", None).await.unwrap_err();
    assert!(error.message.contains("no commit yet (fatal:"), "{error}");
    assert!(error.hint.unwrap().contains("git commit"));
    assert!(!repo.root().join("repo-worktrees").exists());
}

#[tokio::test]
async fn existing_branch_is_reused_and_kept() {
    let repo = Fixture::new();
    repo.git(&["branch", "topic"]);
    repo.git(&["tag", "topic", "main"]);
    let made = repo.create("w", Some("topic")).await.unwrap();
    assert!(made.note.unwrap().contains("'topic' already exists"));
    assert_eq!(git_in(&made.worktree.path, &["symbolic-ref", "HEAD"]).trim(), "refs/heads/topic");
    let error = repo.create("v", Some("topic")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    let removed = remove(&made.worktree, false).await.unwrap();
    assert!(removed.note.unwrap().contains("not made by swarm"));
    assert_eq!(repo.branches(), ["main", "topic"]);
}

#[tokio::test]
async fn uncommitted_work_is_named_and_kept() {
    let repo = Fixture::new();
    let wt = repo.create("w", None).await.unwrap().worktree;
    for file in 0..7 {
        fs::write(wt.path.join(format!("new{file}")), "").unwrap();
    }
    // A user's setting must not hide them.
    repo.git(&["config", "status.showUntrackedFiles", "no"]);
    let error = remove(&wt, false).await.unwrap_err();
    assert!(error.message.contains("new0, new1, new2, new3, new4 and 2 more"), "{error}");
    assert!(wt.path.join("new6").exists());
    git_in(&wt.path, &["add", "."]);
    git_in(&wt.path, &["mv", "file", "moved"]);
    let losses = lost_work(&wt.path).await;
    assert!(losses.contains(&"moved".to_owned()) && !losses.contains(&"file".to_owned()), "{losses:?}");
    let removed = remove(&wt, true).await.unwrap();
    assert!(removed.note.is_none() && !wt.path.exists());
}

#[tokio::test]
async fn commits_in_a_worktree_are_kept() {
    let repo = Fixture::new();
    // On the branch: the branch stays.
    let wt = repo.create("w", None).await.unwrap().worktree;
    git_in(&wt.path, &["commit", "-q", "--allow-empty", "-m", "work"]);
    let removed = remove(&wt, false).await.unwrap();
    assert!(removed.note.unwrap().contains("'swarm/w' is kept"));
    // The kept branch is used again, with its commits.
    let wt = repo.create("w", None).await.unwrap().worktree;
    assert!(git_in(&wt.path, &["log", "--format=%s"]).starts_with("work"));
    // On no branch at all: the worktree stays.
    git_in(&wt.path, &["checkout", "-q", "--detach"]);
    assert_eq!(losses(&wt.path).await.unwrap(), Losses::default());
    git_in(&wt.path, &["commit", "-q", "--allow-empty", "-m", "loose"]);
    let error = remove(&wt, false).await.unwrap_err();
    assert!(error.message.contains("that no branch holds"), "{error}");
}

#[tokio::test]
async fn a_rebase_in_progress_is_work() {
    let repo = Fixture::new();
    let wt = repo.create("w", None).await.unwrap().worktree;
    git_in(&wt.path, &["commit", "-q", "--allow-empty", "-m", "work"]);
    git_in(
        &wt.path,
        &["-c", "sequence.editor=sed -i 1ibreak", "rebase", "-q", "-i", "--force-rebase", "HEAD~1"],
    );
    let error = remove(&wt, false).await.unwrap_err();
    assert!(error.message.contains("a rebase in progress"), "{error}");
    assert!(wt.path.exists());
}

#[tokio::test]
async fn directory_that_is_not_a_worktree_is_not_removed() {
    let repo = Fixture::new();
    let wt = repo.create("w", None).await.unwrap().worktree;
    fs::remove_file(wt.path.join(".git")).unwrap();
    assert!(remove(&wt, true).await.is_err());
    assert!(wt.path.join("file").exists());
    // Never the main tree, whatever a record says.
    let main = Worktree { path: repo.repo(), branch: "main".into(), base_repo: repo.repo() };
    assert_eq!(remove(&main, true).await.unwrap_err().code, ErrorCode::Conflict);
    assert!(repo.repo().join("file").exists());
    // If the directory is already gone, the worktree's entry is removed.
    fs::remove_dir_all(&wt.path).unwrap();
    assert!(remove(&wt, false).await.unwrap().note.is_none());
    assert!(remove(&wt, false).await.unwrap().note.unwrap().contains("already gone"));
    repo.assert_untouched();
}

#[tokio::test]
async fn entry_of_a_deleted_worktree_is_not_pruned() {
    let repo = Fixture::new();
    let wt = repo.create("w", None).await.unwrap().worktree;
    fs::remove_dir_all(&wt.path).unwrap();
    for branch in [None, Some("other")] {
        let error = repo.create("w", branch).await.unwrap_err();
        assert!(error.hint.unwrap().contains("git worktree prune"), "{branch:?}");
        assert_eq!((repo.trees(), repo.branches()), (2, vec!["main".to_owned(), "swarm/w".to_owned()]));
    }
    repo.git(&["worktree", "prune"]);
    assert!(repo.create("w", None).await.unwrap().note.unwrap().contains("already exists"));
}

#[tokio::test]
async fn worktree_of_a_submodule_belongs_to_the_submodule() {
    let repo = Fixture::new();
    let inner = Fixture::new();
    let url = inner.repo().display().to_string();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub"]);
    let name = WorkerName::new("w").unwrap();
    let sub = repo.repo().join("sub");
    let wt = create_worktree(&sub, &name, &WorktreeSpec::default(), |_| Ok(())).await.unwrap().worktree;
    assert_eq!((wt.base_repo.clone(), wt.path.clone()), (sub, repo.repo().join("sub-worktrees/w")));
    assert!(remove(&wt, false).await.unwrap().note.is_none());
}

#[tokio::test]
async fn repository_set_to_bare_is_reported_and_not_changed() {
    let repo = Fixture::new();
    let wt = repo.create("w", None).await.unwrap().worktree;
    repo.git(&["config", "core.bare", "true"]);
    let made = repo.create("v", None).await.unwrap_err();
    let removed = remove(&wt, true).await.unwrap_err();
    for error in [made, removed] {
        assert!(error.message.contains("core.bare = true"), "{error}");
        assert!(error.hint.unwrap().contains("core.bare false"));
    }
    assert!(wt.path.join("file").exists());
}

#[tokio::test]
async fn bare_repository_can_have_worktrees() {
    let repo = Fixture::new();
    git_in(&repo.root(), &["clone", "-q", "--bare", "repo", "store.git"]);
    let name = WorkerName::new("w").unwrap();
    let store = repo.root().join("store.git");
    let wt = create_worktree(&store, &name, &WorktreeSpec::default(), |_| Ok(())).await.unwrap().worktree;
    assert_eq!(wt.path, repo.root().join("store-worktrees/w"));
    assert_eq!(wt.base_repo, store);
    assert!(remove(&wt, false).await.unwrap().note.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_worktrees_at_once_wait_for_a_held_lock() {
    let repo = Arc::new(Fixture::new());
    let lock = repo.repo().join(".git/packed-refs.lock");
    let config_lock = repo.repo().join(".git/config.lock");
    fs::write(&lock, "").unwrap();
    fs::write(&config_lock, "").unwrap();
    let tasks: Vec<_> = (0..16)
        .map(|n| {
            let repo = Arc::clone(&repo);
            tokio::spawn(async move { repo.create(&format!("p{n}"), None).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    fs::remove_file(&lock).unwrap();
    fs::remove_file(&config_lock).unwrap();
    let mut made = vec![];
    for task in tasks {
        made.push(task.await.unwrap().unwrap().worktree);
    }
    assert_eq!((repo.trees(), repo.branches().len()), (17, 17));
    let removals: Vec<_> =
        made.into_iter().map(|wt| tokio::spawn(async move { remove(&wt, false).await })).collect();
    for removal in removals {
        assert!(removal.await.unwrap().unwrap().note.is_none());
    }
    repo.assert_untouched();
}

fn hook(repo: &Fixture, script: &str) {
    let hook = repo.repo().join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn no_hook_runs_when_a_worktree_is_made() {
    let repo = Fixture::new();
    hook(&repo, "touch ran; exit 3");
    let made = repo.create("w", None).await.unwrap();
    assert_eq!(made.note, None);
    assert!(made.worktree.path.join("file").exists() && !made.worktree.path.join("ran").exists());
}

#[tokio::test]
async fn failed_checkout_is_undone() {
    let repo = Fixture::new();
    // A filter that fails makes the checkout fail.
    fs::write(repo.repo().join(".gitattributes"), "file filter=broken\n").unwrap();
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "filter"]);
    repo.git(&["config", "filter.broken.smudge", "false"]);
    repo.git(&["config", "filter.broken.required", "true"]);
    let error = repo.create("w", None).await.unwrap_err();
    assert!(error.message.contains("fatal:") || error.message.contains("error:"), "{error}");
    repo.assert_untouched();
}

#[tokio::test]
async fn a_hanging_git_is_ended_with_its_children() {
    let repo = Fixture::new();
    repo.git(&["config", "alias.hang", "!sleep 1000"]);
    let start = Instant::now();
    let said = git(&repo.repo(), Duration::from_millis(200), &["hang"]).await.unwrap();
    assert!(said.timed_out && !said.ok);
    assert!(start.elapsed() < Duration::from_secs(5), "its child held the pipe");
}

#[tokio::test]
async fn git_variables_do_not_reach_git() {
    let repo = Fixture::new();
    // `cargo test` under a git hook sets such; the test harness's own variables stand for them here.
    let said = git(&repo.repo(), SHORT_TIMEOUT, &["-c", "alias.vars=!env", "vars"]).await.unwrap().text();
    let known = [
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_TERMINAL_PROMPT",
        "GIT_OPTIONAL_LOCKS",
        "GIT_NO_REPLACE_OBJECTS",
    ];
    // git itself adds these for an alias.
    let own = ["GIT_PREFIX", "GIT_EXEC_PATH", "GIT_CONFIG_PARAMETERS"];
    for line in said.lines().filter(|line| line.starts_with("GIT_")) {
        let key = line.split('=').next().unwrap();
        let is_setting = ["GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];
        assert!(
            is_setting.iter().any(|start| key.starts_with(start))
                || known.contains(&key)
                || own.contains(&key),
            "{line}"
        );
    }
    assert!(said.contains("LC_ALL=C"));
}

async fn shot(fixture: &Fixture, number: u32) -> TreeSnapshot {
    let reference = format!("refs/swarm/a/1/{number}");
    let scratch = fixture.root().join("index");
    let taken = snapshot(&fixture.repo(), &reference, &scratch, "iteration").await.unwrap().unwrap();
    assert_eq!(fixture.git(&["rev-parse", &reference]).trim(), taken.commit);
    assert!(!fixture.root().join("index.lock").exists());
    taken
}

#[tokio::test]
async fn snapshot_has_all_files_and_changes_nothing() {
    let fixture = Fixture::new();
    let repo = fixture.repo();
    fs::write(repo.join(".gitignore"), "ignored\n").unwrap();
    fs::write(repo.join("staged"), "staged\n").unwrap();
    fixture.git(&["add", "staged"]);
    fs::write(repo.join("staged"), "edited since\n").unwrap();
    fs::write(repo.join("file"), "two\n").unwrap();
    fs::create_dir(repo.join("new dir")).unwrap();
    fs::write(repo.join("new dir/untracked ü"), "mine\n").unwrap();
    fs::write(repo.join("ignored"), "x").unwrap();
    let state = || {
        (
            fixture.git(&["status", "--porcelain"]),
            fixture.git(&["diff", "--cached"]),
            fixture.git(&["log", "--all", "--format=%s", "--branches"]),
            fixture.git(&["stash", "list"]),
        )
    };
    let before = (state().0, state().1, state().3);
    let taken = shot(&fixture, 1).await;
    assert_eq!((state().0, state().1, state().3), before);
    let files = fixture.git(&["-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", &taken.commit]);
    assert_eq!(files, ".gitignore\nfile\nnew dir/untracked ü\nstaged\n");
    assert_eq!(fixture.git(&["show", &format!("{}:staged", taken.commit)]), "edited since\n");
    assert_eq!(taken.head.as_deref(), Some(fixture.git(&["rev-parse", "HEAD"]).trim()));
}

#[tokio::test]
async fn work_discarded_by_the_agent_is_restored() {
    let fixture = Fixture::new();
    let base = shot(&fixture, 0).await;
    fs::write(fixture.repo().join("file"), "two\n").unwrap();
    fs::write(fixture.repo().join("work"), "hours of it\n").unwrap();
    let taken = shot(&fixture, 1).await;
    fixture.git(&["reset", "-q", "--hard"]);
    fixture.git(&["clean", "-qfdx"]);
    assert!(!fixture.repo().join("work").exists());
    let text = diff(&fixture.repo(), &[], &base.commit, &taken.commit).await.unwrap();
    assert!(text.contains("+two") && text.contains("+hours of it"), "{text}");
    let dir = restore(&fixture.repo(), &taken.commit, None, "a-1", "swarm/a-1").await.unwrap();
    assert_eq!(dir, fixture.root().join("repo-worktrees/a-1"));
    assert_eq!(fs::read_to_string(dir.join("work")).unwrap(), "hours of it\n");
    let again = restore(&fixture.repo(), &taken.commit, None, "a-1", "swarm/a-1").await.unwrap_err();
    assert_eq!(again.code, ErrorCode::Invalid);
    assert_eq!(shot(&fixture, 2).await.tree, base.tree, "the same files are the same tree");
}

#[tokio::test]
async fn a_snapshot_before_the_first_commit_and_outside_of_a_repository() {
    let fixture = Fixture::empty();
    fs::write(fixture.repo().join("a"), "a").unwrap();
    let taken = shot(&fixture, 1).await;
    assert_eq!(taken.head, None);
    let outside = snapshot(&fixture.root(), "refs/swarm/a/1/1", &fixture.root().join("index"), "x").await;
    assert_eq!(outside.unwrap(), None);
}

#[tokio::test]
async fn snapshot_works_with_a_locked_index_and_without_an_identity() {
    let fixture = Fixture::new();
    fs::write(fixture.repo().join(".git/index.lock"), "").unwrap();
    fixture.git(&["config", "user.useConfigOnly", "true"]);
    fixture.git(&["config", "commit.gpgSign", "true"]);
    fs::write(fixture.repo().join("file"), "two\n").unwrap();
    let taken = shot(&fixture, 1).await;
    assert_eq!(fixture.git(&["show", &format!("{}:file", taken.commit)]), "two\n");
}

proptest! {
    #[test]
    fn random_output_of_git_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), lines in "([RCM? ]{0,3}|worktree |branch |[a-zé\\x00\n]{0,9}){0,20}") {
        for output in [&bytes[..], lines.as_bytes()] {
            changed_files(output);
            repo::listed(output);
        }
    }

    #[test]
    fn worktree_list_of_git_is_parsed(trees in prop::collection::vec(("/[ -~é]{0,20}", prop::option::of("refs/heads/[!-~]{1,20}")), 0..6)) {
        let mut output = String::new();
        for (path, branch) in &trees {
            output.push_str(&format!("worktree {path}\nHEAD 0123\n"));
            output.push_str(&branch.as_ref().map_or("detached\n\n".to_owned(), |b| format!("branch {b}\n\n")));
        }
        let read = repo::listed(output.as_bytes());
        let read: Vec<_> = read.into_iter().map(|l| (l.path.display().to_string(), l.branch)).collect();
        prop_assert_eq!(read, trees);
    }

    #[test]
    fn status_output_of_git_is_parsed(files in prop::collection::vec(("[MADRC?!][MD? ]", "[ -~é\n]{1,20}"), 0..8)) {
        let mut output = vec![];
        for (state, file) in &files {
            output.extend(format!("{state} {file}\0").bytes());
            if state.starts_with(['R', 'C']) {
                output.extend(b"its old name\0");
            }
        }
        let wanted: Vec<String> = files.into_iter().map(|(_, file)| file).collect();
        prop_assert_eq!(changed_files(&output), wanted);
    }
}

#[tokio::test]
async fn interrupted_worktree_creation_is_undone_and_can_be_repeated() {
    let fixture = Fixture::new();
    let worker = WorkerName::new("w").unwrap();
    let mut noted = None;
    let note = |wt: &Worktree| {
        noted = Some(wt.clone());
        Err(Error::invalid("no room"))
    };
    let spec = WorktreeSpec::default();
    create_worktree(&fixture.repo(), &worker, &spec, note).await.unwrap_err();
    fixture.assert_untouched();
    let noted = noted.unwrap();
    assert!(!settle_worktree(&noted).await.unwrap(), "not begun");

    let made = fixture.create("w", None).await.unwrap();
    assert_eq!(made.worktree, noted);
    assert!(settle_worktree(&noted).await.unwrap(), "whole");
    assert!(noted.path.join("file").exists());

    // As git leaves it when it is killed in the middle.
    fs::remove_file(noted.path.join("file")).unwrap();
    fs::write(fixture.repo().join(".git/worktrees/w/locked"), "initializing").unwrap();
    assert!(!settle_worktree(&noted).await.unwrap(), "half");
    assert_eq!((noted.path.exists(), fixture.trees()), (false, 1));
    let again = fixture.create("w", None).await.unwrap();
    assert_eq!(again.worktree, noted);
    assert!(remove(&again.worktree, false).await.unwrap().note.is_none());
}

#[tokio::test]
async fn changes_with_skip_worktree_or_assume_unchanged_are_work() {
    for mark in ["--skip-worktree", "--assume-unchanged"] {
        let fixture = Fixture::new();
        let made = fixture.create("w", None).await.unwrap();
        git_in(&made.worktree.path, &["update-index", mark, "file"]);
        fs::write(made.worktree.path.join("file"), "precious\n").unwrap();
        let refused = remove(&made.worktree, false).await.unwrap_err();
        assert!(refused.message.contains("file"), "{refused:?}");
        assert_eq!(fs::read_to_string(made.worktree.path.join("file")).unwrap(), "precious\n");
    }
}

#[tokio::test]
async fn commits_that_only_a_nested_repository_has_are_work() {
    let outer = Fixture::new();
    fs::write(outer.repo().join(".gitignore"), "vendor/\n").unwrap();
    outer.git(&["add", "."]);
    outer.git(&["commit", "-qm", "ignore"]);
    let remote = Fixture::new();
    remote.git(&["tag", "v1"]);
    let url = remote.repo().display().to_string();
    let wt = outer.create("w", None).await.unwrap().worktree;
    let (vendor, inner) = (wt.path.join("vendor"), wt.path.join("vendor/deep/inner"));
    fs::create_dir_all(inner.parent().unwrap()).unwrap();
    // Commits that a remote has exist elsewhere, whether they are checked out from a branch, a tag or `FETCH_HEAD`. So
    // do the commits of a worktree of another repository. An empty or broken repository has none.
    git_in(&vendor, &["clone", "-q", &url, "deep/inner"]);
    git_in(&vendor, &["clone", "-q", "--depth=1", "--branch=v1", &format!("file://{url}"), "tagged"]);
    git_in(&vendor, &["init", "-q", "fetched"]);
    let fetched = vendor.join("fetched");
    git_in(&fetched, &["fetch", "-q", &url, "main"]);
    git_in(&fetched, &["checkout", "-q", "FETCH_HEAD"]);
    git_in(&vendor, &["init", "-q", "empty"]);
    outer.git(&["worktree", "add", "-q", "-b", "aside", vendor.join("aside").to_str().unwrap()]);
    git_in(&vendor.join("aside"), &["commit", "-q", "--allow-empty", "-m", "kept in the outer one"]);
    fs::create_dir(vendor.join("broken")).unwrap();
    fs::write(vendor.join("broken/.git"), "gitdir: /nowhere\n").unwrap();
    assert_eq!(lost_work(&wt.path).await, Vec::<String>::new());

    let work = |dir: &Path| git_in(dir, &["commit", "-q", "--allow-empty", "-m", "work"]);
    let undo = |dir: &Path| git_in(dir, &["reset", "-q", "--hard", "HEAD~1"]);
    work(&inner);
    let refused = remove(&wt, false).await.unwrap_err();
    assert!(refused.message.contains("repository 'vendor/deep/inner' (a commit that is on no"), "{refused}");
    work(&inner);
    let found = lost_work(&wt.path).await;
    assert_eq!(found, ["repository 'vendor/deep/inner' (2 commits that are on no remote)"]);
    undo(&inner);
    undo(&inner);
    // A file of its own too, and one that is put aside.
    fs::write(inner.join("new"), "").unwrap();
    assert_eq!(lost_work(&wt.path).await, ["repository 'vendor/deep/inner' (new)"]);
    git_in(&inner, &["add", "."]);
    git_in(&inner, &["stash", "-q"]);
    assert_eq!(lost_work(&wt.path).await.len(), 1);
    git_in(&inner, &["stash", "drop", "-q"]);
    work(&fetched);
    assert_eq!(lost_work(&wt.path).await, ["repository 'vendor/fetched' (a commit that is on no remote)"]);
    // Also one that is bare, or that git cannot read.
    fs::remove_dir_all(&fetched).unwrap();
    git_in(&vendor, &["clone", "-q", "--bare", &url, "bare.git"]);
    git_in(&vendor, &["clone", "-q", &url, "torn"]);
    fs::write(vendor.join("torn/.git/HEAD"), "rubbish").unwrap();
    assert_eq!(
        lost_work(&wt.path).await,
        [
            "repository 'vendor/bare.git' (a commit that is on no remote)",
            "repository 'vendor/torn' (git cannot read it)"
        ]
    );
    assert!(remove(&wt, true).await.is_ok() && !wt.path.exists());
}
