use std::collections::BTreeMap;

use super::*;

/// Checks out a snapshot of the repository, which has another version of `file` and a new one.
async fn apart(repo: &Path, root: &Path) -> (PathBuf, String, String) {
    fs::write(repo.join("file"), "two\n").unwrap();
    fs::write(repo.join("new"), "new\n").unwrap();
    let snapshot = |name: &'static str| async move {
        let taken = snapshot(repo, &format!("refs/swarm/a/1/{name}"), &root.join("index"), "m").await;
        taken.unwrap().unwrap()
    };
    let taken = snapshot("1").await;
    let to = root.join("room with space");
    check_out_apart(repo, taken.head.as_deref(), &taken.commit, &to, &checkout_settings(repo).await)
        .await
        .unwrap();
    (to, taken.head.unwrap_or_default(), taken.commit)
}

#[tokio::test]
async fn snapshot_is_checked_out_without_changing_the_repository() {
    let fixture = Fixture::new();
    fixture.git(&["tag", "v1"]);
    let hook = fixture.repo().join(".git/hooks/post-checkout");
    fs::write(&hook, "#!/bin/sh\ntouch hooked\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let config = fs::read(fixture.repo().join(".git/config")).unwrap();
    let (room, head, commit) = apart(&fixture.repo(), &fixture.root()).await;
    assert_eq!(git_in(&room, &["rev-parse", "HEAD"]).trim(), head);
    assert_eq!(git_in(&room, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main\nrefs/tags/v1\n");
    assert_eq!(git_in(&room, &["remote"]), "");
    assert_eq!(fs::read_to_string(room.join("file")).unwrap(), "two\n");
    assert!(room.join("new").exists() && !room.join("hooked").exists());
    fixture.assert_untouched();
    assert_eq!(fs::read(fixture.repo().join(".git/config")).unwrap(), config);

    let count = put_back(&room, (&head, &commit), |path| path != Path::new("other")).await.unwrap();
    assert_eq!((count, fs::read_to_string(room.join("file")).unwrap().as_str()), (2, "one\n"));
    assert!(!room.join("new").exists());
    assert_eq!(fs::read_to_string(fixture.repo().join("file")).unwrap(), "two\n");
}

#[tokio::test]
async fn shallow_and_sha256_repositories_are_checked_out_too() {
    let fixture = Fixture::new();
    fs::write(fixture.repo().join("file"), "one\n").unwrap();
    fixture.git(&["commit", "--allow-empty", "-qm", "two"]);
    let (from, shallow) = (format!("file://{}", fixture.repo().display()), fixture.root().join("shallow"));
    fixture.git(&["clone", "-q", "--depth", "1", &from, shallow.to_str().unwrap()]);
    let (room, head, _) = apart(&shallow, &fixture.root()).await;
    assert_eq!(git_in(&room, &["log", "--format=%H"]).trim(), head);
    fs::remove_dir_all(&room).unwrap();

    let sha256 = fixture.root().join("sha256");
    fs::create_dir(&sha256).unwrap();
    git_in(&sha256, &["init", "-q", "--object-format=sha256"]);
    // Without a commit.
    let (room, head, _) = apart(&sha256, &fixture.root()).await;
    assert_eq!((head.as_str(), fs::read_to_string(room.join("file")).unwrap().as_str()), ("", "two\n"));
}

#[tokio::test]
async fn directory_that_replaced_a_file_is_put_back_as_the_file() {
    let fixture = Fixture::new();
    let repo = fixture.repo();
    fs::remove_file(repo.join("file")).unwrap();
    fs::create_dir(repo.join("file")).unwrap();
    fs::write(repo.join("file/inner"), "").unwrap();
    let taken =
        snapshot(&repo, "refs/swarm/a/1/1", &fixture.root().join("index"), "m").await.unwrap().unwrap();
    let (room, head) = (fixture.root().join("room"), taken.head.unwrap());
    check_out_apart(&repo, Some(&head), &taken.commit, &room, &BTreeMap::new()).await.unwrap();
    assert_eq!(put_back(&room, (&head, &taken.commit), |_| true).await.unwrap(), 2);
    assert_eq!(fs::read_to_string(room.join("file")).unwrap(), "one\n");
}

#[tokio::test]
async fn package_that_replaced_a_module_is_put_back_as_the_module() {
    let fixture = Fixture::new();
    let repo = fixture.repo();
    fs::write(repo.join("calc.py"), "old\n").unwrap();
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-qm", "two"]);
    fs::remove_file(repo.join("calc.py")).unwrap();
    fs::create_dir(repo.join("calc")).unwrap();
    fs::write(repo.join("calc/__init__.py"), "new\n").unwrap();
    fs::write(repo.join("calculus.py"), "").unwrap();
    let taken =
        snapshot(&repo, "refs/swarm/a/1/1", &fixture.root().join("index"), "m").await.unwrap().unwrap();
    let (room, head) = (fixture.root().join("room"), taken.head.unwrap());
    check_out_apart(&repo, Some(&head), &taken.commit, &room, &BTreeMap::new()).await.unwrap();
    let is_meant = |path: &Path| path == Path::new("calc.py");
    assert_eq!(put_back(&room, (&head, &taken.commit), is_meant).await.unwrap(), 2);
    let has = ["calc.py", "calc/__init__.py", "calculus.py"].map(|file| room.join(file).exists());
    assert_eq!(has, [true, false, true]);
}

#[tokio::test]
async fn submodules_and_filters_are_those_of_the_working_tree() {
    let fixture = Fixture::new();
    let (repo, root) = (fixture.repo(), fixture.root());
    let inner = root.join("inner");
    fs::create_dir(&inner).unwrap();
    git_in(&inner, &["init", "-q"]);
    fs::write(inner.join("inner.txt"), "inner\n").unwrap();
    git_in(&inner, &["add", "-A"]);
    git_in(&inner, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]);
    let from = inner.display().to_string();
    fixture.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "lib"]);
    fixture.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "absent"]);
    fixture.git(&["submodule", "deinit", "-q", "-f", "absent"]);
    fixture.git(&["config", "filter.up.smudge", "tr a-z A-Z"]);
    fs::write(repo.join(".gitattributes"), "*.up filter=up\n").unwrap();
    fs::write(repo.join("a.up"), "text\n").unwrap();
    let (room, ..) = apart(&repo, &root).await;
    let read = |file: &str| fs::read_to_string(room.join(file)).unwrap_or_default();
    assert_eq!((read("lib/inner.txt").as_str(), read("a.up").as_str()), ("inner\n", "TEXT\n"));
    assert!(room.join("absent").is_dir() && !room.join("absent/inner.txt").exists());
    assert_eq!(git_in(&room.join("lib"), &["status", "--short"]), "");
}
