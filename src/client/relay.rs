//! `swarm connect`, the far side of a connection from another machine. ssh runs it on the host.
//!
//! `connect --stdio` copies bytes between its standard streams and the daemon's socket, and starts the daemon if none
//! runs (not with `--existing`). `connect --facts DIR…` prints the data of this machine that a spawn from another
//! machine needs. The other options are for jobs of Slurm ([`super::jobs`]). `main` calls it before it parses the
//! command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::client::connect;
use crate::client::connect::remote::{NOBODY_STATUS, STARTING};
use crate::client::spawn_params::own_env;
use crate::error::{Error, Result};
use crate::out::{CommandResult, Out};
use crate::paths::{Paths, home, resolve};
use crate::remote::Place;
use crate::runtime::block_on;

/// The data of a machine that a spawn from another one needs.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HostFacts {
    pub(super) env: BTreeMap<String, String>,
    /// The first of the requested directories that exists, without symbolic links.
    pub(super) directory: Option<PathBuf>,
}

/// Carries out `swarm connect ARGS`. Fails if the daemon cannot be reached or started.
pub fn run(args: &[OsString], out: Out) -> CommandResult {
    if let Some(done) = super::jobs::run(args, out) {
        return done;
    }
    match args.first().and_then(|arg| arg.to_str()) {
        Some("--stdio") => relay(out, args.iter().any(|arg| arg == "--existing")),
        Some("--facts") => {
            let facts = facts(args.iter().skip(1).map(PathBuf::from))?;
            out.line(
                &serde_json::to_string(&facts).map_err(|e| Error::system("cannot print the facts", e))?,
            )?;
            Ok(0)
        }
        _ => {
            Err(Error::usage("connect is for a connection from another machine").hint("swarm --help").into())
        }
    }
}

/// Directories are relative to the home directory.
fn facts(mut dirs: impl Iterator<Item = PathBuf>) -> Result<HostFacts> {
    let home = home()?;
    let directory = dirs.find_map(|dir| Some(resolve(&home.join(dir))).filter(|dir| dir.is_dir()));
    Ok(HostFacts { env: own_env()?, directory })
}

fn relay(out: Out, only_existing: bool) -> CommandResult {
    let paths = Paths::from_env()?;
    let broken = |e: io::Error| Error::system("the connection to the daemon broke", e);
    let socket = match UnixStream::connect(paths.socket()) {
        Ok(socket) => socket,
        Err(_) if only_existing => return Ok(NOBODY_STATUS),
        Err(_) => {
            out.line(STARTING)?;
            block_on(async { connect::connect(&Place::from(&paths)).await.map(drop) })??;
            UnixStream::connect(paths.socket()).map_err(broken)?
        }
    };
    let mut to_daemon = socket.try_clone().map_err(broken)?;
    // The thread ends with the process: nothing can interrupt a read of standard input.
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut to_daemon);
        let _ = to_daemon.shutdown(Shutdown::Both);
    });
    let mut lines = BufReader::new(socket);
    let mut line = vec![];
    // Either side may close the connection at any time.
    while lines.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        out.raw(&String::from_utf8_lossy(&line))?;
        line.clear();
    }
    Ok(0)
}
