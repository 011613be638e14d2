//! Serves the protocol for the workers of a Slurm host, on standard input and output.

use std::io::{BufRead, Read};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::tail;
use super::workers::{WorkerLinks, Workers, json as to_json};
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Failure, Out};
use crate::protocol::{
    Call, ClientHello, DaemonHello, MAX_LINE_BYTES, Notice, RELEASE, Request, Response, VERSION,
};

/// Notices that may wait for the client.
const MAX_RELAYED_NOTICES: usize = 256;

pub(super) async fn serve(workers: Workers, out: Out) -> CommandResult {
    let mut links = WorkerLinks::default();
    let served = serve_client(&workers, &mut links, out).await;
    links.close().await;
    match served {
        Err(Failure::ReaderGone) => Ok(0),
        served => served.map(|()| 0),
    }
}

/// Reads the lines of the client. The thread ends with the process: nothing can interrupt a read of standard input.
fn read_lines() -> mpsc::UnboundedReceiver<Vec<u8>> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = vec![];
            let limit = MAX_LINE_BYTES as u64 + 1;
            match input.by_ref().take(limit).read_until(b'\n', &mut line) {
                Ok(1..) if line.len() <= MAX_LINE_BYTES && sender.send(line).is_ok() => {}
                Ok(_) | Err(_) => return,
            }
        }
    });
    lines
}

async fn serve_client(workers: &Workers, links: &mut WorkerLinks, out: Out) -> Result<(), Failure> {
    let mut lines = read_lines();
    let hello = DaemonHello { swarm: VERSION, daemon: RELEASE.to_owned(), pid: std::process::id() };
    out.line(&text(&hello)?)?;
    let Some(line) = lines.recv().await else { return Ok(()) };
    if serde_json::from_slice::<ClientHello>(&line).is_err() {
        return Err(Error::usage("connect --slurm is for a connection from another machine").into());
    }
    let (sender, mut notices) = mpsc::channel::<(u64, Notice)>(MAX_RELAYED_NOTICES);
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            Some((id, notice)) = notices.recv() => {
                out.line(&text(&Response { id, ok: None, err: None, notice: Some(notice) })?)?;
                continue;
            }
        };
        let Some(line) = line else { return Ok(()) };
        let request: Request = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(error) => {
                let error = Error::invalid(format!("cannot parse the request: {error}"));
                out.line(&text(&Response { id: 0, ok: None, err: Some(error), notice: None })?)?;
                continue;
            }
        };
        let id = request.id;
        let (ok, err) = match answer(workers, links, request, &sender).await {
            Ok(ok) => (Some(ok), None),
            Err(error) => (None, Some(error)),
        };
        out.line(&text(&Response { id, ok, err, notice: None })?)?;
    }
}

fn text(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::system("cannot serialize an answer", e))
}

async fn answer(
    workers: &Workers,
    links: &mut WorkerLinks,
    request: Request,
    notices: &mpsc::Sender<(u64, Notice)>,
) -> Result<Value> {
    let name = ["name", "worker"].iter().find_map(|key| request.params[key].as_str()).map(str::to_owned);
    let method = request.method.clone();
    let call: Call = serde_json::from_value(json!({"method": request.method, "params": request.params}))
        .map_err(|e| Error::invalid(format!("invalid request `{method}`: {e}")))?;
    match call {
        Call::Ls(_) => to_json(&workers.list().await),
        Call::Spawn(params) => to_json(&workers.spawn(*params).await?),
        Call::Subscribe(params) => {
            let (snapshot, tail) = tail::subscribe(workers, &params).await?;
            tokio::spawn(tail.send(request.id, notices.clone()));
            to_json(&snapshot)
        }
        call => match name {
            Some(name) => workers.call(links, &name, &call).await,
            None => {
                let message = "this needs the name of a worker: each job of the host has a daemon of its own";
                Err(Error::new(ErrorCode::Usage, message).hint("swarm ls"))
            }
        },
    }
}
