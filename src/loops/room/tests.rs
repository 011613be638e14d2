use super::*;

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn room(dir: &Path) -> Room {
    let (top, origin) = (dir.join("room/1-0/repo"), dir.join("repo"));
    fs::create_dir_all(&top).unwrap();
    fs::create_dir_all(&origin).unwrap();
    Room {
        container: dir.join("room/1-0"),
        cwd: top.clone(),
        top,
        origins: vec![origin, "/link/repo".into()],
        watched: BTreeMap::new(),
    }
}

#[test]
fn only_complete_paths_are_replaced() {
    for (text, expected) in [
        ("cd /a/repo && make", "cd /room && make"),
        ("/a/repo/bin/x '/a/repo'", "/room/bin/x '/room'"),
        ("PATH=/a/repo:/b x", "PATH=/room:/b x"),
        ("/a/repo-2 /a/repo.old /x/a/repo /a/repository", "/a/repo-2 /a/repo.old /x/a/repo /a/repository"),
        ("", ""),
    ] {
        assert_eq!(replaced(text, "/a/repo", "/room"), expected);
    }
}

#[test]
fn variables_are_changed_to_paths_that_exist_in_the_checkout() {
    let dir = tempfile::tempdir().unwrap();
    let room = room(dir.path());
    write(&room.top.join("bin/x"), "");
    let (top, origin) = (room.top.display().to_string(), room.origins[0].display().to_string());
    let env = [
        ("PATH", format!("{origin}/bin:/usr/bin:{origin}/none"), format!("{top}/bin:/usr/bin:{origin}/none")),
        ("LINK", "/link/repo/bin".to_owned(), format!("{top}/bin")),
        ("TEXT", "a:b".to_owned(), "a:b".to_owned()),
    ];
    let given = env.iter().map(|(key, value, _)| ((*key).to_owned(), value.clone())).collect();
    let expected = env.iter().map(|(key, _, value)| ((*key).to_owned(), value.clone())).collect();
    assert_eq!(room.environment(&given), expected);
}

#[tokio::test]
async fn nothing_is_written_through_links() {
    let dir = tempfile::tempdir().unwrap();
    let (mut room, outside, hidden) =
        (room(dir.path()), dir.path().join("outside"), dir.path().join("hidden"));
    write(&outside.join("a"), "mine");
    for link in ["tests", "b"] {
        symlink(&outside, room.top.join(link)).unwrap();
    }
    write(&room.top.join("file"), "");
    for (file, text) in [("tests/a", "hidden"), ("b", "hidden"), ("file/c", "hidden"), (".git/x", "no")] {
        write(&hidden.join(file), text);
    }
    symlink("a", hidden.join("tests/link")).unwrap();
    room.lay_over(&hidden).await.unwrap();
    let read = |file: &str| fs::read_to_string(room.top.join(file)).unwrap();
    assert_eq!([read("tests/a"), read("b"), read("file/c"), read("tests/link")], ["hidden"; 4]);
    assert!(!room.top.join(".git").exists());
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "mine");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(room.changed().await.unwrap(), Vec::<String>::new());
    fs::write(room.top.join("b"), "other").unwrap();
    assert_eq!(room.changed().await.unwrap(), ["b"]);
}

#[tokio::test]
async fn only_files_as_approved_are_copied() {
    let dir = tempfile::tempdir().unwrap();
    let mut room = room(dir.path());
    let cwd = room.origins[0].clone();
    write(&cwd.join("tests/a"), "approved");
    write(&cwd.join("b"), "changed since");
    write(&room.top.join("tests/a"), "swapped");
    let hash = hash_of(&cwd.join("tests/a")).unwrap();
    let names = ["tests/a", "b", "../c", "d (its scripts)"];
    let protected = names.iter().map(|name| ((*name).to_owned(), hash.clone())).collect();
    room.lay_watched(&cwd, protected).await.unwrap();
    assert_eq!(fs::read_to_string(room.top.join("tests/a")).unwrap(), "approved");
    assert_eq!(room.watched.keys().collect::<Vec<_>>(), [Path::new("tests/a")]);
    assert!(!room.top.join("b").exists());
}

#[tokio::test]
async fn removing_a_checkout_follows_no_links_and_removes_read_only_directories() {
    let dir = tempfile::tempdir().unwrap();
    let (dropped, removed, outside) = (room(dir.path()), room(dir.path()), dir.path().join("outside"));
    write(&outside.join("a"), "mine");
    symlink(&outside, removed.top.join("link")).unwrap();
    write(&removed.top.join("cache/deep/x"), "");
    for dir in ["cache/deep", "cache"] {
        fs::set_permissions(removed.top.join(dir), fs::Permissions::from_mode(0o500)).unwrap();
    }
    removed.remove().await;
    assert!(!dir.path().join("room").exists() && outside.join("a").exists());
    drop(dropped);
    let loops = dir.path().join("ralph");
    write(&loops.join("a/room/1-0/x"), "");
    write(&loops.join("b/state.json"), "");
    sweep(&loops);
    assert!(!loops.join("a/room").exists() && loops.join("b/state.json").exists());
}

#[test]
fn dependency_folders_are_linked_and_workspaces_point_into_the_checkout() {
    let dir = tempfile::tempdir().unwrap();
    let room = room(dir.path());
    let (origin, top) = (&room.origins[0], &room.top);
    for file in [
        "node_modules/tool/x",
        "node_modules/@org/other/x",
        "app/node_modules/y/x",
        "packages/lib/x",
        ".venv/bin/python",
        "vendor/tracked",
        "a/b/c/d/vendor/too-deep",
        "gone/node_modules/x",
    ] {
        write(&origin.join(file), "agent's");
    }
    symlink("../../packages/lib", origin.join("node_modules/@org/lib")).unwrap();
    for file in ["packages/lib/x", "vendor/tracked", "app/x", "a/b/c/d/x"] {
        write(&top.join(file), "snapshot's");
    }
    link_all(origin, top).unwrap();
    let read = |file: &str| fs::read_to_string(top.join(file)).unwrap_or_default();
    for file in
        ["node_modules/tool/x", "node_modules/@org/other/x", "app/node_modules/y/x", ".venv/bin/python"]
    {
        assert_eq!(read(file), "agent's", "{file}");
    }
    for file in ["node_modules/@org/lib/x", "vendor/tracked"] {
        assert_eq!(read(file), "snapshot's", "{file}");
    }
    assert!(!top.join("a/b/c/d/vendor").exists() && !top.join("gone").exists());
    assert_eq!(room.leak(), None);
    let path_file = origin.join(".venv/lib/python3.12/site-packages/x.pth");
    write(&path_file, &format!("{}/src\n", origin.display()));
    assert_eq!(room.leak().as_deref(), Some(".venv"));
}
