//! Sends the ignored files that `.worktreeinclude` names to a host, for the worktree of a new worker.
//!
//! The file has the syntax of `.gitignore`. A file is sent if it matches and git ignores it; links are not. The daemon
//! of the host moves the files into the worktree when it makes it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;

use swarm_state::words::counted;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::code::{TRANSFER_TIMEOUT, git, git_bytes};
use super::{Place, RemoteHost, ssh};
use crate::error::{Error, Result};
use crate::shell::join;

/// The file that names them.
const FILE: &str = ".worktreeinclude";

/// The most bytes that are sent.
const MAX_SENT_BYTES: u64 = 64 * 1024 * 1024;

/// Replaces the files for a branch. Its arguments are the repository and the branch.
const UNPACK: &str = r#"set -e
dir=$1/swarm-include/$2
rm -rf "$dir"
mkdir -p "$dir"
exec tar -xf - -C "$dir""#;

/// Sends the files of the repository that holds `dir`. Returns the note for the user; `None` if none are named. Fails
/// if they are too large.
pub(crate) async fn send(
    place: &Place,
    host: &RemoteHost,
    dir: &Path,
    repo: &Path,
    branch: &str,
) -> Result<Option<String>> {
    let top = git(place, dir, &["rev-parse", "--show-toplevel"]).await?;
    let top = Path::new(&top);
    if !fs::symlink_metadata(top.join(FILE)).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let list = ["ls-files", "-z", "--others", "--ignored"];
    let named = git_bytes(place, top, &[&list[..], &[&format!("--exclude-from={FILE}")]].concat()).await?;
    let ignored = git_bytes(place, top, &[&list[..], &["--exclude-standard"]].concat()).await?;
    let ignored: BTreeSet<&[u8]> = ignored.split(|byte| *byte == 0).collect();
    let paths = named.split(|byte| *byte == 0).filter(|path| !path.is_empty() && ignored.contains(path));
    let (mut files, mut bytes) = (vec![], 0);
    for path in paths {
        // Git looks below no link.
        let found = fs::symlink_metadata(top.join(OsStr::from_bytes(path)));
        if let Some(found) = found.ok().filter(fs::Metadata::is_file) {
            bytes += found.len();
            files.push(path);
        }
    }
    if bytes > MAX_SENT_BYTES {
        let limit = MAX_SENT_BYTES / 1024 / 1024;
        let message =
            format!("the files that {FILE} names have {} MiB, at most {limit}", bytes / 1024 / 1024);
        return Err(Error::invalid(message).hint(format!("name fewer files in {}", top.join(FILE).display())));
    }
    let packed = pack(top, &files).await?;
    let shown = repo.to_string_lossy();
    let words = ["sh", "-c", UNPACK, "sh", &shown, branch].map(str::to_owned);
    ssh::output_of(place, host, &join(&words), packed, TRANSFER_TIMEOUT).await?;
    let count = counted(u32::try_from(files.len()).unwrap_or(u32::MAX), "ignored file");
    Ok(Some(format!("sent {count} to {} ({} KiB, named in {FILE})", host.name, bytes.div_ceil(1024))))
}

async fn pack(top: &Path, files: &[&[u8]]) -> Result<Vec<u8>> {
    let failed = |what: &str| Error::system("cannot pack the ignored files", what);
    let mut tar = Command::new("tar");
    tar.args(["-cf", "-", "--no-recursion", "--null", "--verbatim-files-from", "-T", "-"]).current_dir(top);
    tar.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut tar = tar.spawn().map_err(|error| failed(&error.to_string()))?;
    let mut stdin = tar.stdin.take().ok_or_else(|| failed("its pipe is missing"))?;
    let list: Vec<u8> = files.iter().flat_map(|path| [path, &b"\0"[..]].concat()).collect();
    // A tar that fails reads no more, and its message is the one to report.
    let feed = tokio::spawn(async move { stdin.write_all(&list).await });
    let output = timeout(TRANSFER_TIMEOUT, tar.wait_with_output()).await;
    feed.abort();
    let output = output.map_err(|_| failed("tar did not end in time"))?;
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    Err(failed(printed.lines().next().unwrap_or("tar printed no message")))
}
