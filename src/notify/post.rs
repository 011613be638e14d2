//! Posts a notification to a server, with curl.
//!
//! The request goes to curl on its standard input: a secret on a command line could be read by other users.

use std::time::Duration;

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::program::Program;
use crate::error::{Error, ErrorCode, Result};
use crate::files::hex;

/// The pauses before the second and the third try.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// How long one try may take, in seconds.
const TRY_SECONDS: u64 = 10;

pub(super) struct Post<'a> {
    pub(super) url: &'a str,
    /// Lines such as `Title: x`.
    pub(super) headers: Vec<String>,
    pub(super) body: String,
}

enum Try {
    Accepted(u32),
    /// Another try may succeed.
    Failed(Error),
    /// The server refused the request.
    Refused(Error),
}

impl Post<'_> {
    /// Sends it, in at most three tries.
    pub(super) async fn send(self) -> Result<String> {
        let mut pauses = RETRY_PAUSES.into_iter();
        loop {
            match self.send_once().await? {
                Try::Accepted(status) => return Ok(format!("HTTP status {status}")),
                Try::Refused(error) => return Err(error),
                Try::Failed(error) => match pauses.next() {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => return Err(error),
                },
            }
        }
    }

    async fn send_once(&self) -> Result<Try> {
        let seconds = TRY_SECONDS.to_string();
        // -q: without the user's .curlrc.
        let argv =
            ["curl", "-q", "-sS", "--max-time", &seconds, "-o", "/dev/null", "-w", "%{http_code}", "-K", "-"]
                .map(str::to_owned);
        let (input, limit) = (self.config(), Duration::from_secs(TRY_SECONDS + 2));
        let ended = Program { argv: &argv, input: &input, limit }.run().await;
        let ended = ended.map_err(|error| match error.code {
            ErrorCode::NotFound => error.hint("install it, for example: apt install curl"),
            _ => error,
        })?;
        if !ended.status.success() {
            // "curl: (6) Could not resolve host: x"
            let text = ended.stderr.split_once(") ").map_or(ended.stderr.as_str(), |(_, text)| text);
            let error = Error::new(ErrorCode::System, format!("{}: {text}", self.place()));
            return Ok(Try::Failed(error.hint("check the URL and the network")));
        }
        let status: u32 = ended.stdout.trim().parse().unwrap_or(0);
        let error = |hint: &str| {
            Error::new(ErrorCode::System, format!("{} answered with HTTP status {status}", self.place()))
                .hint(hint)
        };
        Ok(match status {
            200..300 => Try::Accepted(status),
            300..=399 => Try::Refused(error("use the URL to which the server redirects")),
            401 | 403 => Try::Refused(error("check the secret in 'notify.secret_file'")),
            408 | 429 | 500.. => Try::Failed(error("retry later, or look at the server")),
            _ => Try::Refused(error("check the URL")),
        })
    }

    fn config(&self) -> String {
        let mut text = format!("url = {}\ngloboff\nrequest = \"POST\"\n", quoted(self.url));
        for header in &self.headers {
            text.push_str(&format!("header = {}\n", quoted(header)));
        }
        // Plain http is only for this machine, which no proxy reaches.
        let is_local = self.url.starts_with("http://");
        text.push_str(if is_local { "proto = \"=http\"\nnoproxy = \"*\"\n" } else { "proto = \"=https\"\n" });
        text.push_str(&format!("data-raw = {}\n", quoted(&self.body)));
        text
    }

    /// The server. The rest of the URL may be a secret.
    fn place(&self) -> String {
        self.url.split('/').take(3).collect::<Vec<_>>().join("/")
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// The HMAC-SHA256 of a body, in hexadecimal.
pub(super) fn signature(key: &str, body: &str) -> String {
    // A key of any length is accepted.
    let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(key.as_bytes()) else { return String::new() };
    mac.update(body.as_bytes());
    hex(&mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_signature_matches_rfc_4231() {
        let wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature("Jefe", "what do ya want for nothing?"), wanted);
    }

    #[test]
    fn a_request_is_quoted_and_its_errors_hide_the_path() {
        let headers = vec!["Title: a".to_owned()];
        let body = "{\"a\":\"b\\n\"}\nx".to_owned();
        let post = Post { url: "https://ntfy.sh/secret-topic", headers, body };
        assert_eq!(
            post.config(),
            "url = \"https://ntfy.sh/secret-topic\"\ngloboff\nrequest = \"POST\"\nheader = \"Title: a\"\nproto = \"=https\"\n\
             data-raw = \"{\\\"a\\\":\\\"b\\\\n\\\"}\\nx\"\n"
        );
        assert_eq!(post.place(), "https://ntfy.sh");
    }
}
