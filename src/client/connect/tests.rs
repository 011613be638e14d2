use serde_json::{Value, json};
use tokio::net::UnixListener;

use tokio::io::BufReader;

use super::lines::LineReader;
use super::*;
use crate::protocol::{Empty, Listing, Named, RELEASE};

/// A daemon on a private socket that takes one client and answers each line by `answer`.
async fn daemon(answer: impl Fn(Value) -> Vec<String> + Send + 'static) -> (tempfile::TempDir, Paths) {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths::new(dir.path().to_path_buf());
    let listener = UnixListener::bind(paths.socket()).unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (reader, mut writer) = stream.into_split();
        let mut lines = LineReader::new(BufReader::new(reader));
        while let Ok(Some(line)) = lines.next().await {
            for line in answer(serde_json::from_slice(&line).unwrap()) {
                writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            }
        }
    });
    (dir, paths)
}

fn hello(version: u32) -> String {
    json!({"swarm": version, "daemon": "9.9.9", "pid": 4242}).to_string()
}

async fn ready(answer: impl Fn(Value) -> Vec<String> + Send + 'static) -> (tempfile::TempDir, Client) {
    let greet =
        move |line: Value| if line.get("client").is_some() { vec![hello(VERSION)] } else { answer(line) };
    let (dir, paths) = daemon(greet).await;
    let client = connect_existing(&(&paths).into()).await.unwrap().unwrap();
    (dir, client)
}

#[tokio::test]
async fn call_receives_the_answer_with_its_id() {
    let (_dir, mut client) = ready(|request| {
        assert_eq!(request, json!({"id": 1, "method": "ls", "params": {}}));
        let ok = json!({"workers": [], "problems": ["p"]});
        vec![json!({"id": 77, "ok": {}}).to_string(), json!({"id": request["id"], "ok": ok}).to_string()]
    })
    .await;
    assert_eq!(client.daemon.pid, 4242);
    let listing: Listing = client.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await.unwrap();
    assert_eq!(listing.problems, ["p"]);
}

#[tokio::test]
async fn error_answer_keeps_its_code_and_hint() {
    let (_dir, mut client) = ready(|request| {
        let err = json!({"code": "not_found", "message": "no worker named 'x'", "hint": "swarm ls"});
        vec![json!({"id": request["id"], "err": err}).to_string()]
    })
    .await;
    let call = Call::Status(Named { name: "x".into() });
    let error = client.call::<Value>(&call, QUICK_TIMEOUT).await.unwrap_err();
    assert_eq!((error.code, error.hint.as_deref()), (ErrorCode::NotFound, Some("swarm ls")));
}

#[tokio::test]
async fn unanswered_call_times_out() {
    let (_dir, mut client) = ready(|_| vec![]).await;
    let error = client.call::<Value>(&Call::Ls(Empty {}), Duration::from_millis(30)).await.unwrap_err();
    assert_eq!(error.code.exit_status(), 5);
    assert!(error.message.contains("`ls`"), "{}", error.message);
}

#[tokio::test]
async fn other_protocol_version_is_refused_with_a_hint() {
    let (_dir, paths) = daemon(|_| vec![hello(VERSION + 1)]).await;
    let error = connect_existing(&(&paths).into()).await.err().unwrap();
    assert_eq!(error.code.exit_status(), 4);
    assert!(error.message.contains("9.9.9") && error.message.contains(RELEASE), "{error}");
    assert_eq!(error.hint.as_deref(), Some("swarm daemon restart"));
}

#[tokio::test]
async fn probe_distinguishes_no_daemon_from_another_program() {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths::new(dir.path().to_path_buf());
    assert!(matches!(probe(&(&paths).into()).await, Ok(DaemonProbe::Nobody)), "no socket");
    drop(UnixListener::bind(paths.socket()).unwrap());
    assert!(
        matches!(probe(&(&paths).into()).await, Ok(DaemonProbe::Nobody)),
        "a socket that a dead daemon left"
    );
    let (_dir, paths) = daemon(|_| vec!["HTTP/1.1 400 Bad Request".into()]).await;
    assert_eq!(probe(&(&paths).into()).await.err().unwrap().code, ErrorCode::NoDaemon);
}

#[tokio::test]
async fn a_request_over_the_limit_is_not_sent() {
    let (_dir, mut client) = ready(|_| vec![]).await;
    let call = Call::Status(Named { name: "x".repeat(MAX_LINE_BYTES) });
    let error = client.call::<Value>(&call, QUICK_TIMEOUT).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Invalid);
}

#[tokio::test]
async fn an_answer_over_the_limit_is_an_error() {
    let (_dir, mut client) = ready(|_| vec!["x".repeat(MAX_LINE_BYTES + 1)]).await;
    let error = client.call::<Value>(&Call::Ls(Empty {}), QUICK_TIMEOUT).await.unwrap_err();
    assert!(error.message.contains("over 1 MiB"), "{error}");
}

#[tokio::test]
async fn lines_are_complete_after_any_chunking_and_a_dropped_read() {
    let (mut far, near) = tokio::io::duplex(64);
    let mut lines = LineReader::new(BufReader::with_capacity(3, near));
    far.write_all(b"one\ntw").await.unwrap();
    assert_eq!(lines.next().await.unwrap().unwrap(), b"one");
    assert!(timeout(Duration::from_millis(20), lines.next()).await.is_err());
    far.write_all(b"o\n\nhalf").await.unwrap();
    drop(far);
    assert_eq!(lines.next().await.unwrap().unwrap(), b"two");
    assert_eq!(lines.next().await.unwrap().unwrap(), b"");
    assert_eq!(lines.next().await.unwrap(), None);
}
