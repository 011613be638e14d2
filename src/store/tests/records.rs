//! Records, the lock, atomic writes.

use super::*;

#[test]
fn saved_records_are_loaded_unchanged() {
    let fixture = Fixture::new();
    let records = [agent(), record("b"), record("c")];
    for record in &records {
        fixture.store.save(record).unwrap();
    }
    let (found, problems) = fixture.reopened().load_all();
    assert_eq!((found.as_slice(), problems), (records.as_slice(), vec![]));
    fixture.store.remove(&name("b")).unwrap();
    fixture.store.remove(&name("b")).unwrap();
    assert_eq!(fixture.store.load_all().0.len(), 2);
}

#[test]
fn files_are_not_readable_by_other_users() {
    let fixture = Fixture::new();
    let worker = name("agent");
    fixture.store.save(&agent()).unwrap();
    assert!(fixture.store.set_mark(&worker, Mark::Killed));
    fixture.store.write_ralph(&worker, &ralph()).unwrap();
    fixture.store.append_iteration_log(&worker, "x").unwrap();
    fixture.store.append_worker_log(&worker, "run 1", "x").unwrap();
    fixture.store.write_iteration_file(&worker, 5, "contract.md", b"x").unwrap();
    fixture.store.prepare_run_dir(&worker, Run(7)).unwrap();
    let _lock = DaemonLock::acquire(fixture.paths(), false).unwrap().unwrap();
    let root = fixture.paths().root();
    for path in walk(root).into_iter().chain([root.to_owned()]) {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), wanted, "{}", path.display());
    }
}

#[test]
fn a_broken_record_is_set_aside_byte_for_byte_and_stays_reported() {
    let good = AGENT;
    let torn = good[..good.len() * 2 / 5].to_vec();
    for bytes in [vec![], torn, b"{}".to_vec(), b"[]".to_vec(), vec![0; 300]] {
        let fixture = Fixture::new();
        fixture.store.save(&record("other")).unwrap();
        let path = fixture.paths().worker_file(&name("agent"));
        fs::write(&path, &bytes).unwrap();
        let (records, problems) = fixture.store.load_all();
        assert_eq!(records, [record("other")]);
        assert_eq!(problems.len(), 1);
        assert_eq!((problems[0].name.as_ref(), problems[0].reserved), (Some(&name("agent")), false));
        assert!(
            problems[0]
                .message
                .contains("agent.json' cannot be read and was set aside as 'agent.json.corrupt-")
        );
        let files = fixture.files(&fixture.paths().workers_dir());
        let aside = files.iter().find(|file| file.starts_with("agent.json.corrupt-")).unwrap();
        assert_eq!(fs::read(path.with_file_name(aside)).unwrap(), bytes);
        assert!(!path.exists());
        // The next start still says so; the name is free.
        let next = fixture.reopened();
        let (_, problems) = next.load_all();
        assert!(problems[0].message.contains("was set aside earlier"), "{}", problems[0].message);
        next.save(&agent()).unwrap();
        // A second one does not replace the first.
        fs::write(&path, "again").unwrap();
        next.load_all();
        assert_eq!(fixture.files(&fixture.paths().workers_dir()).len(), 3);
    }
}

#[test]
fn copied_record_with_another_name_is_not_loaded() {
    let fixture = Fixture::new();
    fixture.store.save(&agent()).unwrap();
    fs::copy(fixture.paths().worker_file(&name("agent")), fixture.paths().worker_file(&name("copy")))
        .unwrap();
    let (records, problems) = fixture.store.load_all();
    assert_eq!(records, [agent()]);
    assert!(problems[0].message.contains("it is the record of 'agent'"));
}

#[test]
fn a_newer_record_is_left_alone_and_its_name_is_reserved() {
    let fixture = Fixture::new();
    let path = fixture.paths().worker_file(&name("agent"));
    let newer = br#"{"format":2,"who":"knows"}"#;
    fs::write(&path, newer).unwrap();
    let (records, problems) = fixture.store.load_all();
    assert_eq!(records, []);
    assert!(problems[0].reserved && problems[0].message.contains("newer swarm (format 2"));
    assert!(fixture.store.is_reserved(&name("agent")));
    assert_eq!(fixture.store.save(&agent()).unwrap_err().code, ErrorCode::Conflict);
    assert_eq!(fixture.store.remove(&name("agent")).unwrap_err().code, ErrorCode::Conflict);
    assert_eq!(fs::read(&path).unwrap(), newer);
}

#[test]
fn name_of_an_unreadable_record_is_reserved() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.paths().worker_file(&name("agent"))).unwrap();
    let (_, problems) = fixture.store.load_all();
    assert!(problems[0].reserved, "{problems:?}");
    assert!(fixture.store.save(&agent()).is_err());
}

#[test]
fn other_files_in_the_directory_are_not_touched() {
    let fixture = Fixture::new();
    let dir = fixture.paths().workers_dir();
    for file in ["notes.txt", "not.a.name.json", ".hidden.json", "agent.json~", "agent.json.swp"] {
        fs::write(dir.join(file), file).unwrap();
    }
    assert_eq!(fixture.reopened().load_all(), (vec![], vec![]));
    assert_eq!(fixture.files(&dir).len(), 5);
}

#[test]
fn predecessors_workers_are_loaded_and_its_file_is_not_changed() {
    let fixture = Fixture::new();
    let path = fixture.paths().legacy_state();
    fs::write(&path, OLD_STATE).unwrap();
    fs::create_dir_all(fixture.paths().ralph_dir(&name("agent"))).unwrap();
    fs::write(fixture.paths().ralph_state(&name("agent")), OLD_RALPH).unwrap();
    fixture.store.save(&record("server")).unwrap();
    let (records, problems) = fixture.store.load_all();
    let legacy: Vec<_> = records.iter().map(|r| (r.name.as_str(), r.legacy.is_some())).collect();
    assert_eq!(legacy, [("agent", true), ("login-form", true), ("server", false)]);
    assert_eq!(records[0].spec.ralph.as_ref().unwrap().max_iterations, 100);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("worker \"not.a.name\""), "{}", problems[0].message);
    assert_eq!(fs::read(&path).unwrap(), OLD_STATE);
    // A broken one is told, and left.
    fs::write(&path, "{").unwrap();
    let (records, problems) = fixture.store.load_all();
    assert_eq!((records.len(), problems.len()), (1, 1));
    assert!(path.exists());
}

#[test]
fn failed_write_keeps_the_previous_file() {
    let fixture = Fixture::new();
    let path = fixture.paths().workers_dir().join("x.json");
    write_atomic(&path, b"before").unwrap();
    let full = crate::files::write_with(&path, |file| {
        file.write_all(b"half of")?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    });
    assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(fs::read(&path).unwrap(), b"before");
    // The rename fails: something is in the way.
    let dir = fixture.paths().workers_dir().join("dir.json");
    fs::create_dir_all(dir.join("inner")).unwrap();
    assert!(write_atomic(&dir, b"x").is_err());
    assert_eq!(fixture.files(&fixture.paths().workers_dir()), ["dir.json", "x.json"]);
    // The message names path and cause.
    fs::remove_dir_all(fixture.paths().workers_dir()).unwrap();
    let error = fixture.store.save(&agent()).unwrap_err();
    assert!(
        error.message.starts_with("cannot write '/") && error.message.contains("No such file"),
        "{error}"
    );
}

#[test]
fn temporary_files_of_a_crash_are_removed() {
    let fixture = Fixture::new();
    fixture.store.write_ralph(&name("agent"), &ralph()).unwrap();
    for iteration in [1, 9999, 10000] {
        fixture.store.write_iteration_file(&name("agent"), iteration, "contract.md", b"whole").unwrap();
    }
    let left = [
        fixture.paths().root().join(".tmux.conf.99-3.tmp"),
        fixture.paths().iteration_dir(&name("agent"), 10000).join(".contract.md.99-2.tmp"),
        fixture.paths().workers_dir().join(".agent.json.99-0.tmp"),
        fixture.paths().ralph_dir(&name("agent")).join(".state.json.99-1.tmp"),
    ];
    for path in &left {
        fs::write(path, "half").unwrap();
    }
    fixture.reopened();
    assert!(left.iter().all(|path| !path.exists()));
    assert!(fixture.paths().ralph_state(&name("agent")).exists());
}

#[test]
fn second_daemon_cannot_take_the_lock() {
    let fixture = Fixture::new();
    let paths = fixture.paths();
    assert_eq!(DaemonLock::holder(paths), None);
    let lock = DaemonLock::acquire(paths, false).unwrap().unwrap();
    assert!(DaemonLock::acquire(paths, false).unwrap().is_none());
    assert_eq!(DaemonLock::holder(paths), Some(std::process::id()));
    let text = fs::read_to_string(paths.lock()).unwrap();
    assert!(text.starts_with(&format!("{}\nhost=", std::process::id())), "{text}");
    assert!(lock.is_current());
    drop(lock);
    // Whatever pid stands there: nobody holds it.
    fs::write(paths.lock(), "1\n").unwrap();
    // A child that another test forks in this moment holds the lock until its exec.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while DaemonLock::holder(paths).is_some() {
        assert!(std::time::Instant::now() < until, "somebody holds it");
        thread::yield_now();
    }
    let lock = DaemonLock::acquire(paths, false).unwrap().unwrap();
    lock.release(2);
    assert!(fs::read_to_string(paths.lock()).unwrap().ends_with("\nleft=2\n"));
    lock.release(0);
    assert_eq!(fs::read_to_string(paths.lock()).unwrap(), "");
    fs::remove_dir_all(paths.root()).unwrap();
    assert!(!lock.is_current());
    let second = DaemonLock::acquire(paths, false).unwrap().unwrap();
    assert!(second.is_current() && !lock.is_current());
}

#[test]
fn host_that_writes_the_lock_at_the_same_time_keeps_a_shared_directory() {
    let fixture = Fixture::new();
    fs::write(fixture.paths().root().join("shared"), "").unwrap();
    let paths = Paths::new(fixture.paths().root().to_owned());
    let lock = paths.lock();
    let other = thread::spawn(move || {
        let own = format!("{}\n", std::process::id());
        while !fs::read_to_string(&lock).is_ok_and(|text| text.starts_with(&own)) {
            thread::yield_now();
        }
        // Another host does not see the lock of this one.
        fs::write(&lock, "4242\nhost=node9\nboot=b9\n").unwrap();
    });
    let error = DaemonLock::acquire(&paths, false).unwrap_err();
    other.join().unwrap();
    assert_eq!(error.code, ErrorCode::OtherHost, "{error}");
    assert!(error.message.contains("belongs to the daemon on node9 (pid 4242)"), "{error}");
    assert_eq!(fs::read_to_string(paths.lock()).unwrap(), "4242\nhost=node9\nboot=b9\n");
}

#[test]
fn store_writes_nothing_for_a_daemon_that_was_replaced() {
    let fixture = Fixture::new();
    let paths = fixture.paths();
    let lock = DaemonLock::acquire(paths, false).unwrap().unwrap();
    fixture.store.write_while(lock);
    let worker = name("agent");
    fixture.store.append_iteration_log(&worker, "one").unwrap();
    fs::write(paths.lock(), "4242\nhost=node9\nboot=b9\n").unwrap();
    let store = &fixture.store;
    for outcome in [
        store.append_iteration_log(&worker, "two"),
        store.append_worker_log(&worker, "=== run 1 ===", "text"),
        store.write_iteration_file(&worker, 1, "checks.json", b"{}"),
        store.prepare_run_dir(&worker, Run(1)).map(drop),
        store.remove(&worker),
        store.remove_ralph_dir("agent"),
    ] {
        assert_eq!(outcome.unwrap_err().code, ErrorCode::OtherHost);
    }
    assert!(store.append_events("{}\n", "{}\n").is_err());
    assert!(!store.set_mark(&worker, Mark::Killed));
    assert_eq!(fs::read_to_string(paths.iterations_log(&worker)).unwrap(), "one\n");
}

#[test]
fn reading_the_lock_holder_does_not_block_a_start() {
    let fixture = Fixture::new();
    let paths = fixture.paths().clone();
    let asking = thread::spawn(move || (0..500).filter(|_| DaemonLock::holder(&paths).is_some()).count());
    for _ in 0..20 {
        drop(DaemonLock::acquire(fixture.paths(), false).unwrap().unwrap());
    }
    asking.join().unwrap();
}

#[test]
fn run_directory_is_created_empty() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("agent"));
    let dir = store.prepare_run_dir(&worker, Run(7)).unwrap();
    fs::write(dir.join("exit"), "0").unwrap();
    store.prepare_run_dir(&worker, Run(7)).unwrap();
    assert_eq!(entries(&dir), Vec::<PathBuf>::new());
    assert_eq!(store.run_dirs(), [(worker.clone(), Run(7))]);
    store.remove_run_dir(&worker, Run(7)).unwrap();
    store.remove_run_dir(&worker, Run(7)).unwrap();
    assert_eq!(store.run_dirs(), []);
}

#[test]
fn swarm_directory_must_be_a_directory_and_becomes_private() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Store::open(Paths::new(file)).is_err());
    let open = dir.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    Store::open(Paths::new(open.clone())).unwrap();
    assert_eq!(mode(&open), 0o700);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever lies there: nothing is lost, nothing becomes an empty value, nothing panics.
    #[test]
    fn random_bytes_in_place_of_a_record_are_set_aside(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let fixture = Fixture::new();
        fs::write(fixture.paths().worker_file(&name("agent")), &bytes).unwrap();
        fs::write(fixture.paths().legacy_state(), &bytes).unwrap();
        let (records, problems) = fixture.store.load_all();
        prop_assert_eq!((records.len(), problems.len()), (0, 2));
        let kept = entries(&fixture.paths().workers_dir());
        prop_assert_eq!(fs::read(&kept[0]).unwrap(), bytes);
    }
}

#[test]
fn removed_name_of_a_predecessors_worker_does_not_reappear() {
    const LIST: &str = include_str!("../../../state/fixtures/predecessor/state.json");
    let fixture = Fixture::new();
    fs::write(fixture.paths().legacy_state(), LIST).unwrap();
    let names = || {
        let (records, problems) = fixture.reopened().load_all();
        assert_eq!(problems, []);
        records.into_iter().map(|r| r.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["agent", "bg", "feature"]);
    // A worker whose creation was undone changes nothing.
    fixture.store.save(&record("bg")).unwrap();
    fixture.store.take_back(&name("bg")).unwrap();
    assert_eq!(names(), ["agent", "bg", "feature"]);
    fixture.store.save(&agent()).unwrap();
    assert_eq!(names(), ["agent", "bg", "feature"]);
    for gone in ["agent", "bg"] {
        fixture.store.remove(&name(gone)).unwrap();
        fixture.store.remove(&name(gone)).unwrap();
    }
    assert_eq!(names(), ["feature"]);
    assert_eq!(fs::read_to_string(fixture.paths().legacy_state()).unwrap(), LIST);
    // The predecessor started another one of that name: that is a new worker.
    fs::write(fixture.paths().legacy_state(), LIST.replace("22:43:49.927103", "23:00:00.000000")).unwrap();
    assert_eq!(names(), ["agent", "feature"]);
    // If the file of the predecessor's finished entries is damaged, every worker is still loaded.
    fs::write(fixture.paths().legacy_over(), "{").unwrap();
    let (records, problems) = fixture.reopened().load_all();
    assert_eq!((records.len(), problems.len()), (3, 1));
}
