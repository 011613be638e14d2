use super::*;

struct Bench {
    dir: tempfile::TempDir,
    env: BTreeMap<String, String>,
}

impl Bench {
    fn new() -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        Self {
            dir: tempfile::tempdir().unwrap(),
            env: [("PATH".to_owned(), path), ("A".to_owned(), "1".to_owned())].into(),
        }
    }

    async fn run(&self, commands: &[&str], limit: u64, jobs: usize) -> Vec<CheckResult> {
        self.run_until(None, commands, limit, jobs).await
    }

    async fn run_until(
        &self,
        until: Option<Instant>,
        commands: &[&str],
        limit: u64,
        jobs: usize,
    ) -> Vec<CheckResult> {
        let commands: Vec<String> = commands.iter().map(|&command| command.to_owned()).collect();
        let plan = CheckPlan {
            commands: &commands,
            cwd: self.dir.path(),
            env: &self.env,
            limit: Duration::from_secs(limit),
            until,
            kept: KEPT_OUTPUT_BYTES,
            jobs,
            folder: self.dir.path(),
            stem: "check",
            on_step: &|_| {},
            sandbox: None,
        };
        plan.run().await.unwrap()
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
    }
}

fn is_running(pid: &str) -> bool {
    procs::is_alive(pid.trim().parse().unwrap())
}

#[tokio::test]
async fn all_run_in_order_also_after_one_failed() {
    let bench = Bench::new();
    let results = bench
        .run(&["echo 1 >>ran; echo ok $A", "echo 2 >>ran; echo no >&2; exit 3", "echo 3 >>ran"], 60, 1)
        .await;
    assert_eq!(results.iter().map(|check| check.passed).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(results[0].output, "ok 1");
    assert_eq!(results[1].output, "no\nexit status 3");
    assert_eq!(bench.file("ran"), "1\n2\n3\n");
    assert_eq!(bench.file("check-2.txt"), "no\n", "all of it is kept");
}

#[tokio::test]
async fn parallel_checks_run_at_once_and_keep_their_order() {
    let bench = Bench::new();
    // Each waits for the other: one after the other they would run out of time.
    let results = bench
        .run(&["mkfifo f 2>/dev/null; echo a >f; echo one", "mkfifo f 2>/dev/null; cat f; echo two"], 60, 2)
        .await;
    assert_eq!(results.iter().map(|check| check.output.as_str()).collect::<Vec<_>>(), ["one", "a\ntwo"]);
}

#[tokio::test]
async fn a_check_that_hangs_is_ended_with_its_children() {
    let bench = Bench::new();
    let hang = "trap '' TERM; sleep 900 & echo $! >a; setsid sleep 901 & echo $! >b; wait; sleep 902";
    let results = bench.run(&[hang, "true"], 1, 1).await;
    assert!(!results[0].passed && results[0].output.contains("Timeout after 1s"), "{results:?}");
    assert!(results[1].passed);
    for file in ["a", "b"] {
        procs::wait_gone(bench.file(file).trim().parse().unwrap()).await;
        assert!(!is_running(&bench.file(file)));
    }
}

#[tokio::test]
async fn end_of_loop_time_ends_the_running_check_and_starts_no_other() {
    let bench = Bench::new();
    let until = Instant::now() + Duration::from_secs(1);
    let results = bench.run_until(Some(until), &["true", "echo on; sleep 900", "touch ran"], 600, 1).await;
    assert!(results[0].passed && !results[0].cut, "{results:?}");
    let said = &results[1].output;
    assert!(said.starts_with("on\n") && said.ends_with("\nended: the loop's time was over"), "{said}");
    assert_eq!(results[2], CheckResult::not_run("touch ran"));
    assert!(results[1].cut && !bench.dir.path().join("ran").exists());
    // Its own limit comes first where it is the shorter one.
    let later = Instant::now() + Duration::from_secs(600);
    let results = bench.run_until(Some(later), &["sleep 900"], 1, 1).await;
    assert!(!results[0].cut && results[0].output.ends_with("Timeout after 1s"), "{results:?}");
}

#[tokio::test]
async fn background_process_of_a_check_is_ended() {
    let bench = Bench::new();
    let results = bench.run(&["sleep 900 & echo $! >a"], 60, 1).await;
    assert!(results[0].passed);
    procs::wait_gone(bench.file("a").trim().parse().unwrap()).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn detached_orphan_of_a_check_is_ended_and_found_by_a_sweep() {
    let bench = Bench::new();
    let results = bench.run(&["(setsid sh -c 'cd /; echo $$ >\"$0/a\"; exec sleep 903' \"$PWD\" & wait) & until [ -s a ]; do sleep 0.01; done; kill -9 $!"], 60, 1).await;
    assert!(results[0].passed, "{results:?}");
    procs::wait_gone(bench.file("a").trim().parse().unwrap()).await;
    // A process that a dead daemon left behind.
    let (ours, other) = (bench.dir.path().join("x/check-1.txt"), bench.dir.path().with_extension("other"));
    let start =
        |path: &Path| std::process::Command::new("sleep").arg("904").env(CHECK_MARK, path).spawn().unwrap();
    let (mut left, mut foreign) = (start(&ours), start(&other));
    let swept =
        (sweep(bench.dir.path()), procs::is_alive(left.id() as i32), procs::is_alive(foreign.id() as i32));
    for child in [&mut left, &mut foreign] {
        drop(child.kill());
        drop(child.wait());
    }
    assert_eq!(swept, (1, false, true));
}

#[tokio::test]
async fn check_that_kills_its_parent_fails_and_the_others_pass() {
    let bench = Bench::new();
    let results = bench.run(&["kill -9 $PPID; sleep 900", "true"], 60, 1).await;
    assert_eq!(results[0].output, "ended by signal 9");
    assert!(!results[0].passed && results[1].passed);
}

#[tokio::test]
async fn check_has_empty_input_and_may_print_a_lot() {
    let bench = Bench::new();
    let results = bench
        .run(&["cat; echo end-of-input", "yes 0123456789 | head -c 30000000; echo the end"], 60, 1)
        .await;
    assert_eq!(results[0].output, "end-of-input");
    assert!(results[1].passed && results[1].output.ends_with("the end"));
    assert_eq!(results[1].output.chars().count(), MAX_OUTPUT_CHARS);
    // Of that much the beginning and the end are kept.
    let kept = bench.file("check-2.txt");
    assert!(
        kept.len() as u64 <= KEPT_OUTPUT_BYTES && kept.len() as u64 > KEPT_OUTPUT_BYTES - 100,
        "{}",
        kept.len()
    );
    assert!(kept.starts_with("0123456789\n") && kept.ends_with("the end\n"));
    let (head, rest) = kept.split_once("\n[swarm: ").unwrap();
    let (left_out, tail) = rest.split_once(" bytes omitted]\n").unwrap();
    assert_eq!(head.len() + left_out.parse::<usize>().unwrap() + tail.len(), 30_000_008);
}

#[test]
fn a_long_file_is_shortened_to_any_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let text: String = (0..200).map(|n| format!("line {n}\n")).collect();
    for kept in [0, 1, 40, 100, 1000, text.len() as u64 - 1] {
        std::fs::write(&path, &text).unwrap();
        shorten(&path, kept).unwrap();
        let left = std::fs::read_to_string(&path).unwrap();
        assert!(left.contains(" bytes omitted]"), "{kept}: {left}");
        assert!(left.len() as u64 <= kept.max(50), "{kept}: {}", left.len());
    }
    std::fs::write(&path, &text).unwrap();
    shorten(&path, text.len() as u64).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert!(shorten(&dir.path().join("none"), 1).is_err());
}

#[tokio::test]
async fn odd_output_bytes_and_odd_commands_are_handled() {
    let bench = Bench::new();
    let results =
        bench.run(&[r"printf '\377\033[31mred\033[0m'; false", "no-such-program-xyz", "", "'"], 60, 1).await;
    assert!(results[0].output.contains("red") && !results[0].output.contains('\u{1b}'));
    assert!(results[1].output.contains("exit status 127"));
    assert!(results[2].passed, "nothing is what was asked for");
    assert!(!results[3].passed);
}

#[tokio::test]
async fn a_dropped_plan_leaves_no_process() {
    let bench = Bench::new();
    let run = bench.run(&["echo $$ >a; sleep 900"], 900, 1);
    let started = async {
        while bench.file("a").trim().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        results = run => panic!("it ended: {results:?}"),
        () = started => {}
    }
    procs::wait_gone(bench.file("a").trim().parse().unwrap()).await;
}
