use std::sync::Mutex;

use tokio::net::TcpListener;

use super::*;

/// Rules that record what they refused.
struct Recording {
    list: AllowList,
    refused: Mutex<Vec<String>>,
}

impl ProxyRules for Recording {
    fn list(&self) -> AllowList {
        self.list.clone()
    }

    fn refused(&self, target: &RequestTarget, why: &HostRefusal) {
        self.refused.lock().unwrap().push(format!("{target} {why:?}"));
    }

    fn hint(&self, target: &RequestTarget) -> String {
        format!("swarm allow fix {target}")
    }
}

struct World {
    rules: Arc<Recording>,
    dir: tempfile::TempDir,
    _proxy: Proxy,
}

impl World {
    fn new(entries: &[String]) -> Self {
        let list = AllowList(entries.iter().map(|entry| entry.parse().unwrap()).collect());
        let rules = Arc::new(Recording { list, refused: Mutex::default() });
        let dir = tempfile::tempdir().unwrap();
        let shared: Arc<dyn ProxyRules> = rules.clone();
        let proxy = Proxy::start(dir.path(), shared).unwrap();
        Self { rules, dir, _proxy: proxy }
    }

    /// Sends a request, and returns all that comes back.
    async fn ask(&self, request: &str) -> String {
        let mut stream = UnixStream::connect(self.dir.path().join(SOCKET_NAME)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![];
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    fn refused(&self) -> Vec<String> {
        self.rules.refused.lock().unwrap().clone()
    }
}

/// A server that answers each connection with what it read first, and then closes it.
async fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 4096];
            let len = stream.read(&mut bytes).await.unwrap();
            stream.write_all(&bytes[..len]).await.unwrap();
        }
    });
    port
}

#[tokio::test]
async fn a_tunnel_carries_bytes_to_an_allowed_host() {
    let port = echo_server().await;
    let world = World::new(&[format!("127.0.0.1:{port}")]);
    let answer = world.ask(&format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\nhello")).await;
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nhello");
    assert!(world.refused().is_empty());
}

#[tokio::test]
async fn a_request_is_forwarded_without_the_headers_for_the_proxy() {
    let port = echo_server().await;
    let world = World::new(&[format!("127.0.0.1:{port}")]);
    let request = format!(
        "POST HTTP://127.0.0.1:{port}/a?b HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\nA: 1\r\nContent-Length: 2\r\n\r\nhi"
    );
    let forwarded = world.ask(&request).await;
    let expected = format!(
        "POST /a?b HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nA: 1\r\nContent-Length: 2\r\n\r\n"
    );
    assert!(forwarded.starts_with(&expected), "{forwarded}");
}

#[tokio::test]
async fn other_hosts_are_refused_with_the_command_that_allows_them() {
    let port = echo_server().await;
    let world = World::new(&["allowed.example".into(), "localhost:81".into(), format!("127.0.0.1:{port}")]);
    let requests = [
        ("CONNECT evil.example:443 HTTP/1.1\r\n\r\n".to_owned(), "evil.example NotListed"),
        ("GET http://evil.example/ HTTP/1.1\r\n\r\n".to_owned(), "evil.example NotListed"),
        (format!("CONNECT 127.0.0.2:{port} HTTP/1.1\r\n\r\n"), ""),
        ("CONNECT 1.1.1.1:443 HTTP/1.1\r\n\r\n".to_owned(), "1.1.1.1 NotListed"),
        ("CONNECT allowed.example:22 HTTP/1.1\r\n\r\n".to_owned(), "allowed.example:22 NotListed"),
        ("GET http://allowed.example@evil.example/ HTTP/1.1\r\n\r\n".to_owned(), "malformed"),
    ];
    for (request, expected) in requests {
        let (before, answer) = (world.refused().len(), world.ask(&request).await);
        if expected == "malformed" {
            assert!(answer.starts_with("HTTP/1.1 400 "), "{request}: {answer}");
            continue;
        }
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains("swarm allow fix "),
            "{request}: {answer}"
        );
        let refused = &world.refused()[before..];
        assert!(refused.len() == 1 && refused[0].starts_with(expected), "{request}: {refused:?}");
    }
}

#[tokio::test]
async fn allowed_name_that_resolves_to_this_machine_is_refused() {
    let port = echo_server().await;
    let world = World::new(&[format!("localhost:{port}")]);
    let answer = world.ask(&format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nhello")).await;
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("has the private address"), "{answer}");
    assert!(world.refused()[0].contains("PrivateAddress"), "{:?}", world.refused());
}

#[tokio::test]
async fn malformed_requests_and_dead_servers_get_an_answer() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let world = World::new(&[format!("127.0.0.1:{port}")]);
    let answer = world.ask(&format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    for request in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET https://a.example/ HTTP/1.1\r\n\r\n",
        "CONNECT a.example HTTP/1.1\r\n\r\n",
        "CONNECT a.example:443:1 HTTP/1.1\r\n\r\n",
        "\x16\x03\x01\x02 nonsense\r\n\r\n",
    ] {
        let answer = world.ask(request).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request}: {answer}");
    }
    let long = format!("GET http://a.example/{} HTTP/1.1\r\n\r\n", "x".repeat(4 * MAX_HEAD_BYTES));
    let answer = world.ask(&long).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") || answer.is_empty(), "{answer}");
}
