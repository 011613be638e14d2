//! A loop's directory.

use super::*;

#[test]
fn write_of_the_loop_state_changes_its_stamp() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("agent"));
    assert_eq!(store.read_ralph(&worker).unwrap(), RalphRead::Absent);
    assert_eq!(store.ralph_stamp(&worker), None);
    let stamp = store.write_ralph(&worker, &ralph()).unwrap();
    assert_eq!(store.ralph_stamp(&worker), Some(stamp));
    assert_eq!(store.read_ralph(&worker).unwrap(), RalphRead::Found(Box::new(ralph()), stamp));
    assert_eq!(fs::read(fixture.paths().ralph_state(&worker)).unwrap(), RALPH);
    // Our own next write is another version, and so is an edit.
    let next = store.write_ralph(&worker, &ralph()).unwrap();
    assert_ne!(next, stamp);
    fs::write(fixture.paths().ralph_state(&worker), EDITED).unwrap();
    assert_ne!(store.ralph_stamp(&worker), Some(next));
}

#[test]
fn unknown_keys_in_a_loops_state_are_kept() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("agent"));
    store.write_ralph(&worker, &ralph()).unwrap();
    fs::write(fixture.paths().ralph_state(&worker), EDITED).unwrap();
    store.write_ralph(&worker, &ralph()).unwrap();
    let RalphRead::Found(file, _) = store.read_ralph(&worker).unwrap() else { panic!("not there") };
    assert_eq!((file.max_iterations, &file.extra["my_note"]["why"]), (100, &"slow machine".into()));
}

#[test]
fn a_loops_state_that_does_not_parse_is_set_aside() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("agent"));
    let path = fixture.paths().ralph_state(&worker);
    let aside = || {
        let files = fixture.files(&fixture.paths().ralph_dir(&worker));
        files.into_iter().filter(|file| file.starts_with("state.json.corrupt-")).collect::<Vec<_>>()
    };
    store.write_ralph(&worker, &ralph()).unwrap();
    fs::write(&path, "{\"max_iterations\": 200,").unwrap();
    let RalphRead::Bad(problem) = store.read_ralph(&worker).unwrap() else { panic!("it was read") };
    assert!(!problem.reserved && problem.message.contains("set aside"), "{}", problem.message);
    assert_eq!(aside().len(), 1);
    // A write does not go over it either.
    fs::write(&path, "{").unwrap();
    store.write_ralph(&worker, &ralph()).unwrap();
    assert_eq!((store.take_problems().len(), store.take_problems().len()), (1, 0));
    assert_eq!(aside().len(), 2);
    assert!(matches!(store.read_ralph(&worker).unwrap(), RalphRead::Found(..)));
    // A newer one is neither moved nor written.
    fs::write(&path, "{\"format\": 9}").unwrap();
    assert!(matches!(store.read_ralph(&worker).unwrap(), RalphRead::Bad(Problem { reserved: true, .. })));
    assert_eq!(store.write_ralph(&worker, &ralph()).unwrap_err().code, ErrorCode::Conflict);
    assert_eq!(fs::read(&path).unwrap(), b"{\"format\": 9}");
}

#[test]
fn half_written_state_file_is_read_again() {
    let fixture = Fixture::new();
    let worker = name("agent");
    fixture.store.write_ralph(&worker, &ralph()).unwrap();
    let path = fixture.paths().ralph_state(&worker);
    let mut editor = fs::File::create(&path).unwrap();
    let writer = thread::spawn(move || {
        thread::sleep(std::time::Duration::from_millis(20));
        editor.write_all(EDITED).unwrap();
    });
    let found = fixture.store.read_ralph(&worker).unwrap();
    writer.join().unwrap();
    assert!(matches!(found, RalphRead::Found(file, _) if file.max_iterations == 200));
}

#[test]
fn lock_that_is_never_released_is_an_error() {
    let fixture = Fixture::new();
    let worker = name("agent");
    fixture.store.write_ralph(&worker, &ralph()).unwrap();
    let held = lock::lock_dir(&fixture.paths().ralph_dir(&worker)).unwrap();
    let error = fixture.store.write_ralph(&worker, &ralph()).unwrap_err();
    assert!(error.message.contains("another process holds the lock"), "{error}");
    drop(held);
    fixture.store.write_ralph(&worker, &ralph()).unwrap();
}

#[test]
fn archived_loops_are_numbered_by_time() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("agent"));
    store.archive_ralph(&worker).unwrap();
    for archived in ["agent.1", "agent.2", "agent.3"] {
        store.write_ralph(&worker, &ralph()).unwrap();
        store.archive_ralph(&worker).unwrap();
        assert!(store.ralph_dirs().contains(&archived.to_owned()), "{archived}");
        if archived == "agent.2" {
            store.remove_ralph_dir("agent.1").unwrap();
        }
    }
    store.write_ralph(&name("agent-2"), &ralph()).unwrap();
    fs::create_dir(fixture.paths().ralph_root().join("other.things")).unwrap();
    assert_eq!(store.ralph_dirs(), ["agent-2", "agent.2", "agent.3"]);
    for path in ["", ".", "..", "../workers", "agent.2/..", "other.things", "/"] {
        assert_eq!(store.remove_ralph_dir(path).unwrap_err().code, ErrorCode::NotFound, "{path:?}");
    }
    assert!(fixture.paths().workers_dir().exists());
}

#[test]
fn iteration_files_are_in_the_iterations_directory() {
    let fixture = Fixture::new();
    let worker = name("agent");
    fixture.store.write_iteration_file(&worker, 5, "output.txt", b"hello").unwrap();
    let path = fixture.paths().ralph_dir(&worker).join("iterations/0005/output.txt");
    assert_eq!(fs::read(path).unwrap(), b"hello");
    for bad in ["", "..", "../x", "a/b", ".hidden", "nul\0"] {
        assert!(fixture.store.write_iteration_file(&worker, 5, bad, b"x").is_err(), "{bad:?}");
    }
}
