//! In directories of their own, with the format's fixtures.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::thread;

use proptest::prelude::*;
use swarm_state::format::{RalphFile, Record, parse_ralph, parse_record};
use swarm_state::model::Run;
use tempfile::TempDir;

use super::*;
use crate::error::ErrorCode;

const AGENT: &[u8] = include_bytes!("../../state/fixtures/v1/workers/agent.json");
const PLAIN: &[u8] = include_bytes!("../../state/fixtures/v1/workers/plain.json");
const RALPH: &[u8] = include_bytes!("../../state/fixtures/v1/ralph/agent/state.json");
const EDITED: &[u8] = include_bytes!("../../state/fixtures/v1/ralph/edited/state.json");
const OLD_STATE: &[u8] = include_bytes!("../../state/fixtures/v0/state.json");
const OLD_RALPH: &[u8] = include_bytes!("../../state/fixtures/v0/ralph/agent/state.json");

struct Fixture {
    _dir: TempDir,
    store: Store,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Paths::new(dir.path().join("swarm"))).unwrap();
        Self { _dir: dir, store }
    }

    fn paths(&self) -> &Paths {
        self.store.paths()
    }

    /// A store that knows nothing of what this one reserved.
    fn reopened(&self) -> Store {
        Store::open(self.paths().clone()).unwrap()
    }

    fn files(&self, dir: &Path) -> Vec<String> {
        entries(dir).iter().map(|path| file_name(path).to_owned()).collect()
    }
}

fn name(text: &str) -> WorkerName {
    WorkerName::new(text).unwrap()
}

fn agent() -> Record {
    parse_record(AGENT).unwrap()
}

fn record(text: &str) -> Record {
    let mut record = parse_record(PLAIN).unwrap();
    record.name = name(text);
    record.spec.name = name(text);
    record
}

fn ralph() -> RalphFile {
    parse_ralph(RALPH).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o777
}

/// Everything below `dir`.
fn walk(dir: &Path) -> Vec<PathBuf> {
    let below = entries(dir).into_iter().flat_map(|path| {
        let inner = if path.is_dir() { walk(&path) } else { vec![] };
        [vec![path], inner].concat()
    });
    below.collect()
}

#[test]
fn records_come_back_as_they_were() {
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
fn nothing_is_open_to_others() {
    let fixture = Fixture::new();
    let worker = name("agent");
    fixture.store.save(&agent()).unwrap();
    fixture.store.write_ralph(&worker, &ralph()).unwrap();
    fixture.store.append_iteration_log(&worker, "x").unwrap();
    fixture.store.append_worker_log(&worker, "run 1", "x").unwrap();
    fixture.store.write_iteration_file(&worker, 5, "contract.md", b"x").unwrap();
    fixture.store.prepare_run_dir(&worker, Run(7)).unwrap();
    let _lock = DaemonLock::try_acquire(fixture.paths()).unwrap().unwrap();
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
fn a_record_under_a_false_name_never_makes_two_of_one_worker() {
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
fn what_cannot_even_be_read_is_reserved_too() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.paths().worker_file(&name("agent"))).unwrap();
    let (_, problems) = fixture.store.load_all();
    assert!(problems[0].reserved, "{problems:?}");
    assert!(fixture.store.save(&agent()).is_err());
}

#[test]
fn strangers_in_the_directory_are_not_touched() {
    let fixture = Fixture::new();
    let dir = fixture.paths().workers_dir();
    for file in ["notes.txt", "not.a.name.json", ".hidden.json", "agent.json~", "agent.json.swp"] {
        fs::write(dir.join(file), file).unwrap();
    }
    assert_eq!(fixture.reopened().load_all(), (vec![], vec![]));
    assert_eq!(fixture.files(&dir).len(), 5);
}

#[test]
fn the_predecessors_workers_come_in_and_its_file_is_never_touched() {
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
fn a_failed_write_leaves_the_earlier_file_and_nothing_else() {
    let fixture = Fixture::new();
    let path = fixture.paths().workers_dir().join("x.json");
    write_atomic(&path, b"before").unwrap();
    let full = atomic::write_with(&path, |file| {
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
fn left_overs_of_a_crash_are_swept() {
    let fixture = Fixture::new();
    fixture.store.write_ralph(&name("agent"), &ralph()).unwrap();
    let left = [
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
fn there_is_one_daemon() {
    let fixture = Fixture::new();
    let paths = fixture.paths();
    assert_eq!(DaemonLock::holder(paths), None);
    let lock = DaemonLock::try_acquire(paths).unwrap().unwrap();
    assert!(DaemonLock::try_acquire(paths).unwrap().is_none());
    assert_eq!(DaemonLock::holder(paths), Some(std::process::id()));
    assert_eq!(fs::read_to_string(paths.lock()).unwrap(), format!("{}\n", std::process::id()));
    assert!(lock.is_current());
    drop(lock);
    // Whatever pid stands there: nobody holds it.
    fs::write(paths.lock(), "1\n").unwrap();
    assert_eq!(DaemonLock::holder(paths), None);
    let lock = DaemonLock::try_acquire(paths).unwrap().unwrap();
    fs::remove_dir_all(paths.root()).unwrap();
    assert!(!lock.is_current());
    let second = DaemonLock::try_acquire(paths).unwrap().unwrap();
    assert!(second.is_current() && !lock.is_current());
}

#[test]
fn asking_for_the_holder_never_keeps_a_daemon_from_starting() {
    let fixture = Fixture::new();
    let paths = fixture.paths().clone();
    let asking = thread::spawn(move || (0..500).filter(|_| DaemonLock::holder(&paths).is_some()).count());
    for _ in 0..20 {
        drop(DaemonLock::try_acquire(fixture.paths()).unwrap().unwrap());
    }
    asking.join().unwrap();
}

#[test]
fn a_loops_state_and_its_stamp() {
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
fn keys_of_somebodys_own_survive_in_a_loops_state() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("agent"));
    store.write_ralph(&worker, &ralph()).unwrap();
    fs::write(fixture.paths().ralph_state(&worker), EDITED).unwrap();
    store.write_ralph(&worker, &ralph()).unwrap();
    let RalphRead::Found(file, _) = store.read_ralph(&worker).unwrap() else { panic!("not there") };
    assert_eq!((file.max_iterations, &file.extra["my_note"]["why"]), (100, &"slow machine".into()));
    // The write that looks first takes the edit over instead.
    fs::write(fixture.paths().ralph_state(&worker), EDITED).unwrap();
    store
        .update_ralph(&worker, |found| {
            let RalphRead::Found(on_disk, _) = found else { panic!("not there") };
            RalphFile { max_iterations: on_disk.max_iterations, current_iteration: 6, ..ralph() }
        })
        .unwrap();
    let RalphRead::Found(file, _) = store.read_ralph(&worker).unwrap() else { panic!("not there") };
    assert_eq!((file.max_iterations, file.current_iteration, file.extra.len()), (200, 6, 1));
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
    assert_eq!(aside().len(), 2);
    assert!(matches!(store.read_ralph(&worker).unwrap(), RalphRead::Found(..)));
    // A newer one is neither moved nor written.
    fs::write(&path, "{\"format\": 9}").unwrap();
    assert!(matches!(store.read_ralph(&worker).unwrap(), RalphRead::Bad(Problem { reserved: true, .. })));
    assert_eq!(store.write_ralph(&worker, &ralph()).unwrap_err().code, ErrorCode::Conflict);
    assert_eq!(fs::read(&path).unwrap(), b"{\"format\": 9}");
}

#[test]
fn an_editor_in_the_middle_of_its_write_is_waited_for() {
    let fixture = Fixture::new();
    let worker = name("agent");
    fixture.store.write_ralph(&worker, &ralph()).unwrap();
    let path = fixture.paths().ralph_state(&worker);
    let mut editor = File::create(&path).unwrap();
    let writer = thread::spawn(move || {
        thread::sleep(std::time::Duration::from_millis(20));
        editor.write_all(EDITED).unwrap();
    });
    let found = fixture.store.read_ralph(&worker).unwrap();
    writer.join().unwrap();
    assert!(matches!(found, RalphRead::Found(file, _) if file.max_iterations == 200));
}

#[test]
fn a_lock_that_somebody_keeps_is_an_error_not_a_hang() {
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
fn loops_are_archived_in_the_order_of_time() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("agent"));
    assert_eq!(store.archive_ralph(&worker).unwrap(), None);
    for archived in ["agent.1", "agent.2", "agent.3"] {
        store.write_ralph(&worker, &ralph()).unwrap();
        assert_eq!(store.archive_ralph(&worker).unwrap().as_deref(), Some(archived));
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
fn an_iterations_files_are_where_they_belong() {
    let fixture = Fixture::new();
    let worker = name("agent");
    fixture.store.write_iteration_file(&worker, 5, "output.txt", b"hello").unwrap();
    let path = fixture.paths().ralph_dir(&worker).join("iterations/0005/output.txt");
    assert_eq!(fs::read(path).unwrap(), b"hello");
    for bad in ["", "..", "../x", "a/b", ".hidden", "nul\0"] {
        assert!(fixture.store.write_iteration_file(&worker, 5, bad, b"x").is_err(), "{bad:?}");
    }
}

#[test]
fn a_loops_log_is_lines() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("agent"));
    assert_eq!(
        store.read_iteration_log(&worker, 10, 1000).unwrap(),
        Tail { total: Some(0), ..Tail::default() }
    );
    store.append_iteration_log(&worker, "one").unwrap();
    store.append_iteration_log(&worker, "two\n[DONE] forged\x1b[31m").unwrap();
    // A line that a crash cut off does not swallow the next one.
    let mut file = fs::OpenOptions::new().append(true).open(fixture.paths().iterations_log(&worker)).unwrap();
    file.write_all(b"cut o").unwrap();
    store.append_iteration_log(&worker, "four").unwrap();
    let tail = store.read_iteration_log(&worker, 10, 1000).unwrap();
    assert_eq!(tail.lines, ["one", "two [DONE] forged [31m", "cut o", "four"]);
    assert_eq!((tail.total, tail.truncated), (Some(4), false));
    let tail = store.read_iteration_log(&worker, 1, 1000).unwrap();
    assert_eq!((tail.lines, tail.truncated), (vec!["four".to_owned()], true));
}

#[test]
fn a_workers_log_is_bounded_and_read_over_its_rotation() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("w"));
    let line = "x".repeat(99);
    let block = format!("{line}\n").repeat(30_000);
    for run in 1..=12 {
        store.append_worker_log(&worker, &format!("== run {run}"), &block).unwrap();
    }
    let sizes: Vec<u64> =
        entries(&fixture.paths().logs_dir()).iter().map(|path| fs::metadata(path).unwrap().len()).collect();
    assert_eq!(sizes.len(), 2);
    assert!(sizes.iter().all(|size| *size <= LOG_LIMIT), "{sizes:?}");
    let total = store.count_worker_log_lines(&worker).unwrap();
    assert_eq!(total, 4 * 30_001);
    // Few lines come from the end, many from both files, none beyond the limit of bytes.
    let tail = store.read_worker_log_tail(&worker, 2, 1 << 20).unwrap();
    assert_eq!((tail.lines.as_slice(), tail.truncated), ([line.clone(), line.clone()].as_slice(), true));
    let tail = store.read_worker_log_tail(&worker, usize::MAX, u64::MAX).unwrap();
    assert_eq!((tail.lines.len() as u64, tail.total, tail.truncated), (total, Some(total), false));
    assert_eq!(tail.lines[30_001], "== run 10");
    let tail = store.read_worker_log_tail(&worker, 100_000, 1000).unwrap();
    assert_eq!((tail.lines.len(), tail.truncated), (9, true), "only whole lines");
    store.remove_worker_log(&worker).unwrap();
    assert_eq!(store.read_worker_log_tail(&worker, 9, 9).unwrap().total, Some(0));
}

#[test]
fn of_an_endless_output_the_end_is_kept() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("w"));
    let text = format!("{}\nthe end\n", "é".repeat(LOG_LIMIT as usize));
    store.append_worker_log(&worker, "run 1", &text).unwrap();
    let tail = store.read_worker_log_tail(&worker, 10, u64::MAX).unwrap();
    assert!(tail.lines[0].starts_with("run 1 [the first "), "{}", tail.lines[0]);
    assert_eq!(tail.lines[1..], ["the end"]);
    store.append_worker_log(&worker, "run 2", "").unwrap();
    assert_eq!(store.count_worker_log_lines(&worker).unwrap(), 3);
}

#[test]
fn a_runs_directory_starts_empty() {
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
fn the_directory_must_be_ours() {
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
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever lies there: nothing is lost, nothing becomes an empty value, nothing panics.
    #[test]
    fn any_bytes_in_place_of_a_record(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let fixture = Fixture::new();
        fs::write(fixture.paths().worker_file(&name("agent")), &bytes).unwrap();
        fs::write(fixture.paths().legacy_state(), &bytes).unwrap();
        let (records, problems) = fixture.store.load_all();
        prop_assert_eq!((records.len(), problems.len()), (0, 2));
        let kept = entries(&fixture.paths().workers_dir());
        prop_assert_eq!(fs::read(&kept[0]).unwrap(), bytes);
    }

    #[test]
    fn a_tail_is_the_end_of_the_lines(
        lines in prop::collection::vec("[a-zé]{0,9}", 0..60), want in 0_usize..80, max in 0_u64..700,
    ) {
        let fixture = Fixture::new();
        let worker = name("w");
        for line in &lines {
            fixture.store.append_iteration_log(&worker, line).unwrap();
        }
        let tail = fixture.store.read_iteration_log(&worker, want, max).unwrap();
        prop_assert!(tail.lines.len() <= want);
        if tail.lines.len() > 1 {
            prop_assert!(lines.ends_with(&tail.lines), "{:?}", tail);
        }
        if !tail.truncated {
            prop_assert_eq!(&tail.lines, &lines);
            prop_assert_eq!(tail.total, Some(lines.len() as u64));
        }
    }
}
