//! Logs, their bounds and their ends.

use super::*;

#[test]
fn iteration_log_is_read_by_lines() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("agent"));
    assert_eq!(
        store.read_iteration_log(&worker, 10, 1000).unwrap(),
        LogTail { total: Some(0), ..LogTail::default() }
    );
    store.append_iteration_log(&name("blank"), "").unwrap();
    assert_eq!(store.read_iteration_log(&name("blank"), 10, 1000).unwrap().lines, [""]);
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
fn worker_log_is_bounded_and_read_across_its_rotation() {
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
    assert!(sizes.iter().all(|size| *size <= MAX_WORKER_LOG_BYTES), "{sizes:?}");
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
fn only_the_end_of_an_endless_output_is_kept() {
    let fixture = Fixture::new();
    let (store, worker) = (&fixture.store, name("w"));
    let text = format!("{}\nthe end\n", "é".repeat(MAX_WORKER_LOG_BYTES as usize));
    store.append_worker_log(&worker, "run 1", &text).unwrap();
    let tail = store.read_worker_log_tail(&worker, 10, u64::MAX).unwrap();
    assert!(tail.lines[0].starts_with("run 1 [the first "), "{}", tail.lines[0]);
    assert_eq!(tail.lines[1..], ["the end"]);
    store.append_worker_log(&worker, "run 2", "").unwrap();
    assert_eq!(store.count_worker_log_lines(&worker).unwrap(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tail_returns_the_last_lines(
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
