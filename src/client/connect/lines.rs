//! Lines from the daemon's socket and from the pipe of a daemon that starts.

use std::io::ErrorKind;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

use crate::protocol::{ClientHello, MAX_LINE_BYTES, RELEASE, VERSION};

pub(super) type DaemonLines = LineReader<BufReader<Box<dyn AsyncRead + Send + Sync + Unpin>>>;

pub(super) fn lines_of(reader: impl AsyncRead + Send + Sync + Unpin + 'static) -> DaemonLines {
    LineReader::new(BufReader::new(Box::new(reader)))
}

pub(super) fn hello_line() -> Vec<u8> {
    let hello = ClientHello { swarm: VERSION, client: RELEASE.to_owned() };
    let mut line = serde_json::to_vec(&hello).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reads lines of at most [`MAX_LINE_BYTES`] bytes. Cancel-safe: a read that is dropped loses nothing.
pub(super) struct LineReader<R> {
    reader: R,
    line: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, line: Vec::new() }
    }

    /// Returns the next line without its line end; `None` at the end of the input.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let end = chunk.iter().position(|b| *b == b'\n');
            let taken = end.map_or(chunk.len(), |at| at + 1);
            self.line.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
            self.reader.consume(taken);
            if self.line.len() >= MAX_LINE_BYTES {
                return Err(std::io::Error::new(ErrorKind::InvalidData, "a line of over 1 MiB"));
            }
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}
