//! Snapshots in repositories that are set up to hinder them.

use super::*;

/// The state that a snapshot must not change, byte for byte: index, HEAD, config, refs, stash, and the names in `.git`.
fn state(fixture: &Fixture) -> Vec<Vec<u8>> {
    let git_dir = fixture.repo().join(".git");
    let read = |name: &str| fs::read(git_dir.join(name)).unwrap_or_default();
    let mut state = vec![read("index"), read("HEAD"), read("ORIG_HEAD"), read("logs/HEAD"), read("config")];
    let refs = fixture.git(&["for-each-ref", "--exclude=refs/swarm", "--format=%(objectname) %(refname)"]);
    state.extend([refs.into_bytes(), read("logs/refs/stash")]);
    let mut names: Vec<PathBuf> =
        fs::read_dir(&git_dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    state.extend(names.into_iter().map(|name| name.into_os_string().into_encoded_bytes()));
    state
}

/// Takes a snapshot, which touches nothing. Gives its files.
async fn taken(fixture: &Fixture, number: u32) -> (TreeSnapshot, Vec<String>) {
    let before = state(fixture);
    let taken = shot(fixture, number).await;
    assert!(state(fixture) == before, "nothing of the user's may change");
    let files = fixture.git(&["-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", &taken.commit]);
    (taken, files.lines().map(str::to_owned).collect())
}

fn content(fixture: &Fixture, taken: &TreeSnapshot, file: &str) -> String {
    fixture.git(&["show", &format!("{}:{file}", taken.commit)])
}

fn write(fixture: &Fixture, file: &str, text: &str) {
    let path = fixture.repo().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn fails(dir: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_EDITOR", "true").env("GIT_AUTHOR_NAME", "t").env("GIT_AUTHOR_EMAIL", "t@t");
    command.env("GIT_COMMITTER_NAME", "t").env("GIT_COMMITTER_EMAIL", "t@t");
    assert!(!command.output().unwrap().status.success(), "git {args:?} should have stopped");
}

#[tokio::test]
async fn conflict_of_a_rebase_is_in_the_snapshot_and_stays_a_conflict() {
    let fixture = Fixture::new();
    fixture.git(&["checkout", "-q", "-b", "other"]);
    write(&fixture, "file", "theirs\n");
    fixture.git(&["commit", "-qam", "theirs"]);
    fixture.git(&["checkout", "-q", "main"]);
    write(&fixture, "file", "ours\n");
    fixture.git(&["commit", "-qam", "ours"]);
    fails(&fixture.repo(), &["rebase", "other"]);
    write(&fixture, "new", "in between\n");
    let (shot, files) = taken(&fixture, 1).await;
    assert_eq!(files, ["file", "new"]);
    assert!(content(&fixture, &shot, "file").contains("<<<<<<<"));
    assert!(fixture.git(&["status"]).contains("rebase in progress"));
    assert!(fixture.git(&["ls-files", "-u"]).contains("file"), "the conflict is still one");
}

#[tokio::test]
async fn snapshot_of_a_detached_head_with_a_dirty_index_and_a_stash() {
    let fixture = Fixture::new();
    write(&fixture, "file", "stashed\n");
    fixture.git(&["stash", "-q"]);
    fixture.git(&["checkout", "-q", "--detach"]);
    write(&fixture, "staged", "1\n");
    fixture.git(&["add", "staged"]);
    fs::remove_file(fixture.repo().join("file")).unwrap();
    let (shot, files) = taken(&fixture, 1).await;
    assert_eq!(files, ["staged"], "a removed file is removed");
    assert_eq!(shot.head.as_deref(), Some(fixture.git(&["rev-parse", "HEAD"]).trim()));
}

#[tokio::test]
async fn failing_filter_loses_no_work() {
    for required in ["true", "false"] {
        let fixture = Fixture::new();
        fixture.git(&["config", "filter.big.clean", "exit 1"]);
        fixture.git(&["config", "filter.big.process", "no-such-program"]);
        fixture.git(&["config", "filter.big.required", required]);
        write(&fixture, ".gitattributes", "*.bin filter=big\n");
        write(&fixture, "a.bin", "hours of work\n");
        write(&fixture, "z", "more\n");
        let (shot, files) = taken(&fixture, 1).await;
        assert_eq!(files, [".gitattributes", "a.bin", "file", "z"], "required={required}");
        assert_eq!(content(&fixture, &shot, "a.bin"), "hours of work\n");
    }
}

#[tokio::test]
async fn a_filter_that_works_is_used() {
    let fixture = Fixture::new();
    fixture.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
    fixture.git(&["config", "filter.up.required", "true"]);
    write(&fixture, ".gitattributes", "*.up filter=up\n");
    write(&fixture, "a.up", "small\n");
    let (shot, _) = taken(&fixture, 1).await;
    assert_eq!(content(&fixture, &shot, "a.up"), "SMALL\n");
}

#[tokio::test]
async fn snapshot_and_restore_run_no_hooks() {
    let fixture = Fixture::new();
    let ran = fixture.root().join("ran");
    for name in ["reference-transaction", "post-index-change", "pre-commit", "post-checkout", "pre-auto-gc"] {
        let path = fixture.repo().join(".git/hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\necho {name} >> '{}'\nexit 1\n", ran.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    write(&fixture, "new", "x\n");
    let shot = shot(&fixture, 1).await;
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
    let hooks = fixture.repo().join(".git/hooks");
    fs::remove_file(hooks.join("reference-transaction")).unwrap();
    let dir = restore(&fixture.repo(), &shot.commit, None, "a-1", "swarm/a-1").await.unwrap();
    assert!(dir.join("new").exists() && !ran.exists());
}

#[tokio::test]
async fn fsmonitor_is_not_started_and_its_answers_are_ignored() {
    let fixture = Fixture::new();
    let watcher = fixture.root().join("watcher");
    fs::write(&watcher, "#!/bin/sh\ntouch \"$0.ran\"\nprintf 'token\\0'\n").unwrap();
    fs::set_permissions(&watcher, fs::Permissions::from_mode(0o755)).unwrap();
    fixture.git(&["config", "core.fsmonitor", watcher.to_str().unwrap()]);
    fixture.git(&["update-index", "--fsmonitor"]);
    fixture.git(&["status"]);
    let ran = fixture.root().join("watcher.ran");
    assert!(ran.exists(), "git asks it");
    fs::remove_file(&ran).unwrap();
    write(&fixture, "file", "two\n");
    write(&fixture, "new", "x\n");
    let shot = shot(&fixture, 1).await;
    assert!(!ran.exists());
    assert_eq!(content(&fixture, &shot, "file"), "two\n");
    assert_eq!(content(&fixture, &shot, "new"), "x\n");
}

#[tokio::test]
async fn snapshot_has_assume_unchanged_files_and_keeps_sparse_ones() {
    let fixture = Fixture::new();
    for file in ["assumed", "skipped", "sparse"] {
        write(&fixture, file, "one\n");
    }
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "-qm", "more"]);
    fixture.git(&["update-index", "--assume-unchanged", "assumed"]);
    fixture.git(&["update-index", "--skip-worktree", "skipped", "sparse"]);
    write(&fixture, "assumed", "two\n");
    write(&fixture, "skipped", "two\n");
    fs::remove_file(fixture.repo().join("sparse")).unwrap();
    let (shot, files) = taken(&fixture, 1).await;
    assert_eq!(files, ["assumed", "file", "skipped", "sparse"]);
    assert_eq!(content(&fixture, &shot, "assumed") + &content(&fixture, &shot, "skipped"), "two\ntwo\n");
}

#[tokio::test]
async fn nested_repository_with_or_without_a_commit_breaks_no_snapshot() {
    let fixture = Fixture::new();
    for sub in ["empty", "nested"] {
        fs::create_dir(fixture.repo().join(sub)).unwrap();
        git_in(&fixture.repo().join(sub), &["init", "-q"]);
        write(&fixture, &format!("{sub}/inside"), "x\n");
    }
    git_in(&fixture.repo().join("nested"), &["commit", "-q", "--allow-empty", "-m", "x"]);
    write(&fixture, "zzz", "work\n");
    let (shot, files) = taken(&fixture, 1).await;
    assert!(files.contains(&"zzz".to_owned()), "{files:?}");
    assert_eq!(content(&fixture, &shot, "zzz"), "work\n");
}

#[tokio::test]
async fn dirty_submodule_is_not_changed() {
    let (inner, fixture) = (Fixture::new(), Fixture::new());
    let url = inner.repo().display().to_string();
    fixture.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub"]);
    fixture.git(&["commit", "-qm", "sub"]);
    write(&fixture, "sub/file", "changed inside\n");
    write(&fixture, "beside", "x\n");
    let (_, files) = taken(&fixture, 1).await;
    assert_eq!(files, [".gitmodules", "beside", "file", "sub"]);
    assert_eq!(fs::read_to_string(fixture.repo().join("sub/file")).unwrap(), "changed inside\n");
}

#[tokio::test]
async fn line_ends_refused_by_safecrlf_are_in_the_snapshot() {
    let fixture = Fixture::new();
    fixture.git(&["config", "core.autocrlf", "input"]);
    fixture.git(&["config", "core.safecrlf", "true"]);
    write(&fixture, "dos", "one\r\ntwo\r\n");
    write(&fixture, "mixed", "one\r\ntwo\n");
    let (shot, files) = taken(&fixture, 1).await;
    assert_eq!(files, ["dos", "file", "mixed"]);
    assert_eq!(content(&fixture, &shot, "dos"), "one\ntwo\n");
}

#[tokio::test]
async fn ignored_directory_is_not_in_the_snapshot() {
    let fixture = Fixture::new();
    write(&fixture, ".gitignore", "target/\n");
    for n in 0..2000 {
        write(&fixture, &format!("target/{}/{n}", n % 40), "x");
    }
    let (_, files) = taken(&fixture, 1).await;
    assert_eq!(files, [".gitignore", "file"]);
}

#[tokio::test]
async fn snapshot_works_with_a_split_index() {
    let fixture = Fixture::new();
    fixture.git(&["config", "core.splitIndex", "true"]);
    fixture.git(&["update-index", "--split-index"]);
    write(&fixture, "file", "two\n");
    let (shot, _) = taken(&fixture, 1).await;
    assert_eq!(content(&fixture, &shot, "file"), "two\n");
}

#[tokio::test]
async fn change_with_the_same_time_as_the_index_is_in_the_snapshot() {
    // The same size, and times that a coarse clock cannot tell apart.
    for n in 1..=4 {
        let fixture = Fixture::new();
        let file = fixture.repo().join("file");
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, "two\n").unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        let index = fixture.repo().join(".git/index");
        fs::File::options().write(true).open(&index).unwrap().set_modified(time).unwrap();
        fixture.git(&["config", "core.trustctime", "false"]);
        let (shot, _) = taken(&fixture, n).await;
        assert_eq!(content(&fixture, &shot, "file"), "two\n");
    }
}

#[tokio::test]
async fn commit_that_no_branch_has_is_kept_by_the_snapshot() {
    let fixture = Fixture::new();
    let wt = fixture.create("a", None).await.unwrap().worktree;
    git_in(&wt.path, &["checkout", "-q", "--detach"]);
    git_in(&wt.path, &["commit", "-q", "--allow-empty", "-m", "loose"]);
    let lost = remove(&wt, false).await.unwrap_err();
    assert!(lost.message.contains("that no branch holds"), "{lost:?}");
    let scratch = fixture.root().join("index");
    let taken = snapshot(&wt.path, "refs/swarm/a/1/1", &scratch, "x").await.unwrap().unwrap();
    // Changes are named all the same: whoever removes them should have looked.
    fs::write(wt.path.join("file"), "two\n").unwrap();
    assert!(remove(&wt, false).await.unwrap_err().message.contains("file"));
    git_in(&wt.path, &["checkout", "-q", "--", "file"]);
    remove(&wt, false).await.unwrap();
    let head = taken.head.unwrap();
    assert_eq!(fixture.git(&["rev-parse", "refs/swarm/a/1/1^"]).trim(), head, "it can be had back");
}
