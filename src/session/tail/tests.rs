use std::path::PathBuf;

use super::*;

fn user(text: &str) -> String {
    format!(
        r#"{{"type":"user","timestamp":"2026-11-28T08:00:00Z","message":{{"role":"user","content":"{text}"}}}}"#
    )
}

fn result() -> String {
    r#"{"type":"user","timestamp":"2026-11-28T08:00:00Z","message":{"role":"user","content":[{"type":"tool_result","content":"<promise>DONE</promise>"}]}}"#.to_owned()
}

fn says(id: u32, text: &str) -> String {
    format!(
        r#"{{"type":"assistant","timestamp":"2026-11-28T08:00:00Z","isSidechain":false,"message":{{"id":"m{id}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

fn calls(id: u32) -> String {
    format!(
        r#"{{"type":"assistant","timestamp":"2026-11-28T08:00:00Z","message":{{"id":"m{id}","content":[{{"type":"tool_use","id":"t{id}","name":"Bash"}}]}}}}"#
    )
}

struct Transcript {
    dir: tempfile::TempDir,
}

impl Transcript {
    fn of(lines: &[String]) -> Self {
        let it = Self { dir: tempfile::tempdir().unwrap() };
        it.add(lines);
        it
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("s.jsonl")
    }

    fn add(&self, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.add_bytes(text.as_bytes());
    }

    fn add_bytes(&self, bytes: &[u8]) {
        use std::io::Write;
        std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path())
            .unwrap()
            .write_all(bytes)
            .unwrap();
    }

    fn tail(&self, from: TailStart<'_>) -> TranscriptTail {
        read(&self.path(), from).unwrap()
    }
}

#[test]
fn only_text_since_the_last_stop_counts() {
    let transcript = Transcript::of(&[user("go"), calls(1), result(), says(2, "one")]);
    let first = transcript.tail(TailStart::default());
    assert_eq!((first.texts.as_slice(), first.tool_calls), (&["one".to_owned()][..], 1));
    assert!(first.is_news && !first.is_behind && !first.is_cut);
    let again = transcript.tail(TailStart { mark: Some(&first.mark), ..TailStart::default() });
    assert!(again.is_behind && !again.is_news && again.texts.is_empty() && again.tool_calls == 0);
    transcript.add(&[user("Stop hook feedback: go on")]);
    let behind = transcript.tail(TailStart { mark: Some(&first.mark), ..TailStart::default() });
    assert!(behind.is_behind && behind.is_news);
    transcript.add(&[says(3, "two")]);
    let second = transcript.tail(TailStart { mark: Some(&first.mark), ..TailStart::default() });
    assert_eq!(
        (second.texts.as_slice(), second.tool_calls, second.is_behind),
        (&["two".to_owned()][..], 0, false)
    );
    assert_eq!(second.mark.message.as_deref(), Some("m3"));
}

#[test]
fn line_of_the_previous_stop_may_be_written_late() {
    let transcript = Transcript::of(&[user("go")]);
    let told = Some("working");
    let first = transcript.tail(TailStart { last_message: told, ..TailStart::default() });
    assert!(first.is_behind);
    transcript.add(&[says(1, "working")]);
    let same =
        transcript.tail(TailStart { mark: Some(&first.mark), last_message: told, ..TailStart::default() });
    assert!(!same.is_news && !same.is_behind);
    transcript.add(&[user("go on"), says(2, "working")]);
    assert!(
        transcript
            .tail(TailStart { mark: Some(&first.mark), last_message: told, ..TailStart::default() })
            .is_news
    );
}

#[test]
fn reading_waits_for_the_last_message_of_the_hook_input() {
    let transcript = Transcript::of(&[user("go"), user("go on"), says(1, "working")]);
    let told = TailStart { last_message: Some("all of it: done"), ..TailStart::default() };
    assert!(transcript.tail(told).is_behind);
    transcript.add(&[calls(2), says(2, "done")]);
    let tail = transcript.tail(told);
    assert_eq!((tail.is_behind, tail.tool_calls), (false, 1));
    // A last message without words is there when anything of the agent's is.
    assert!(!transcript.tail(TailStart { last_message: Some(""), ..TailStart::default() }).is_behind);
}

#[test]
fn lines_older_than_the_loop_do_not_count() {
    let old = says(1, "<promise>DONE</promise>").replace("T08:", "T07:");
    let transcript = Transcript::of(&[old, user("go"), says(2, "new")]);
    let began = "2026-11-28T07:30:00Z".parse().ok();
    assert_eq!(transcript.tail(TailStart { began, ..TailStart::default() }).texts, ["new"]);
    assert_eq!(transcript.tail(TailStart::default()).texts.len(), 2);
}

#[test]
fn torn_lines_bad_bytes_and_sub_agents_give_no_text() {
    let child = says(7, "<promise>DONE</promise>").replace("\"isSidechain\":false", "\"isSidechain\":true");
    let transcript = Transcript::of(&[user("go"), child]);
    transcript.add_bytes(b"\xff\xfe \"assistant\"\n{\"type\":\"assistant\"\n");
    assert!(transcript.tail(TailStart::default()).is_behind);
    let whole = says(2, "hello");
    let (head, rest) = whole.split_at(60);
    transcript.add_bytes(head.as_bytes());
    let torn = transcript.tail(TailStart::default());
    assert!(torn.is_behind && torn.texts.is_empty());
    // A last line without its end is one when it is whole.
    transcript.add_bytes(rest.as_bytes());
    let tail = transcript.tail(TailStart::default());
    assert_eq!((tail.texts.as_slice(), tail.is_behind), (&["hello".to_owned()][..], false));
    transcript.add_bytes(b"\n");
    let next = transcript.tail(TailStart { mark: Some(&tail.mark), ..TailStart::default() });
    assert!(next.texts.is_empty() && !next.is_news);
}

#[test]
fn only_the_end_of_a_huge_transcript_is_read() {
    let transcript = Transcript::of(&[says(1, "early")]);
    let noise = format!(
        "{{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"content\":\"{}\"}}]}}}}",
        "x".repeat(100_000)
    );
    transcript.add(&vec![noise; 100]);
    transcript.add(&[user("go on"), says(2, "late")]);
    let tail = transcript.tail(TailStart::default());
    assert_eq!((tail.texts.as_slice(), tail.is_cut), (&["late".to_owned()][..], true));
    // Read to the end once, only what follows is read.
    transcript.add(&[user("on"), says(3, "later")]);
    let next = transcript.tail(TailStart { mark: Some(&tail.mark), ..TailStart::default() });
    assert_eq!((next.texts.as_slice(), next.is_cut), (&["later".to_owned()][..], false));
    // A mark of another transcript, or of one that was longer, is none.
    let other = Mark { position: u64::MAX, ..tail.mark.clone() };
    assert!(transcript.tail(TailStart { mark: Some(&other), ..TailStart::default() }).is_cut);
}

#[test]
fn transcript_that_ends_in_a_tool_result_or_a_thought_is_incomplete() {
    let transcript = Transcript::of(&[user("go"), calls(1)]);
    assert!(!transcript.tail(TailStart::default()).is_behind);
    transcript.add(&[result()]);
    assert!(transcript.tail(TailStart::default()).is_behind);
    let thought =
        r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"thinking","thinking":"hm"}]}}"#;
    transcript.add(&[thought.to_owned()]);
    assert!(transcript.tail(TailStart::default()).is_behind);
    transcript.add(&[says(2, "done")]);
    let tail = transcript.tail(TailStart::default());
    assert_eq!((tail.is_behind, tail.texts.as_slice()), (false, &["done".to_owned()][..]));
}

#[test]
fn queue_operations_are_read_in_order() {
    let queue = |operation: &str, more: &str| {
        format!(
            r#"{{"type":"queue-operation","operation":"{operation}","timestamp":"2026-11-28T08:00:00Z","sessionId":"s"{more}}}"#
        )
    };
    let typed = user("typed").replacen(r#""type":"user""#, r#""origin":{"kind":"human"},"type":"user""#, 1);
    let fed = typed.replacen(r#""type":"user""#, r#""isMeta":true,"type":"user""#, 1);
    let old = queue("enqueue", r#","content":"old""#).replace("T08:", "T07:");
    let transcript = Transcript::of(&[
        old,
        queue("enqueue", r#","content":"a""#),
        says(1, "one"),
        queue("enqueue", r#","content":"b""#),
        queue("remove", r#","content":"a","reason":"absorbed_mid_turn""#),
        fed,
        queue("dequeue", ""),
        typed,
        queue("popAll", r#","content":"b""#),
        queue("later", ""),
        says(2, "two"),
    ]);
    let began = "2026-11-28T07:30:00Z".parse().ok();
    let tail = transcript.tail(TailStart { began, ..TailStart::default() });
    let text = |text: &str| text.to_owned();
    assert_eq!(
        tail.queue,
        [
            QueueChange::Added(text("a")),
            QueueChange::Added(text("b")),
            QueueChange::Removed(text("a")),
            QueueChange::Submitted,
            QueueChange::Prompted,
            QueueChange::Removed(text("b")),
        ]
    );
    let rest = transcript.tail(TailStart { mark: Some(&tail.mark), ..TailStart::default() });
    assert_eq!(rest.queue, []);
}

#[test]
fn codex_record_is_read() {
    let item = |payload: &str| {
        format!(r#"{{"timestamp":"2026-11-28T08:00:00Z","type":"response_item","payload":{payload}}}"#)
    };
    let transcript = Transcript::of(&[
        item(r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}"#),
        item(r#"{"type":"function_call","name":"shell","call_id":"c1","arguments":"{}"}"#),
        item(r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#),
    ]);
    let tail = transcript.tail(TailStart::default());
    assert_eq!(
        (tail.texts.as_slice(), tail.tool_calls, tail.is_behind),
        (&["done".to_owned()][..], 1, false)
    );
}

proptest::proptest! {
    #[test]
    fn random_transcript_does_not_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..2000), at in 0u64..3000) {
        let transcript = Transcript::of(&[says(1, "x")]);
        transcript.add_bytes(&bytes);
        let mark = Mark { transcript: transcript.path(), position: at, message: None };
        let tail = transcript.tail(TailStart { mark: Some(&mark), ..TailStart::default() });
        proptest::prop_assert!(tail.mark.position <= std::fs::metadata(transcript.path()).unwrap().len());
    }
}
