//! `swarm host install`: copy a swarm executable to a host.
//!
//! The host writes the file beside its place, compares the hash, runs it once, and only then renames it. Nothing else
//! on the host changes.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::HostInstall;
use crate::client::context::ClientContext;
use crate::client::fleet::named_place;
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Out};
use crate::paths::own_program;
use crate::protocol::RELEASE;
use crate::remote::ssh;
use crate::shell::join;

const COPY_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs on the host, with the file on standard input. Its arguments are the hash and the release; an empty release is
/// not compared.
const HOST_INSTALL_SCRIPT: &str = r#"set -e
fail() { echo "swarm: error: $1" >&2; exit 1; }
dir=$HOME/.local/bin
mkdir -p "$dir"
new=$dir/.swarm.new.$$
trap 'rm -f "$new"' EXIT
cat >"$new"
sum=$( { sha256sum "$new" || shasum -a 256 "$new"; } 2>/dev/null | cut -d' ' -f1)
[ "$sum" = "$1" ] || fail "the copy has another hash than the file"
chmod 755 "$new"
found=$("$new" --version) || fail "the copy does not run on this host"
case $found in "swarm "*) ;; *) fail "the file is not swarm: its --version prints another name";; esac
[ -z "$2" ] || [ "$found" = "$2" ] || fail "the copy is $found and this is $2; build it again with scripts/package.sh"
echo "$found"
mv -f "$new" "$dir/swarm"
"#;

pub(super) async fn run(ctx: &ClientContext, args: &HostInstall) -> CommandResult {
    let place = named_place(ctx, &args.host)?;
    let Some(host) = place.host().filter(|host| host.spec.ssh.is_some()) else {
        return Err(Error::usage("this machine is not a remote host").hint("swarm host ls").into());
    };
    let (file, bytes) = executable(args.binary.as_deref())?;
    let size = swarm_state::words::size(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    let what = format!("{} ({size}) to {}:~/.local/bin/swarm", file.display(), host.address());
    if !args.yes && !is_confirmed(ctx, &format!("copy {what}?"))? {
        ctx.out.note("nothing was copied");
        return Ok(1);
    }
    let hash = crate::files::sha256(&bytes);
    // A person may choose another release.
    let release = if args.binary.is_none() { format!("swarm {RELEASE}") } else { String::new() };
    let words = ["sh", "-c", HOST_INSTALL_SCRIPT, "sh", &hash, &release].map(str::to_owned);
    let printed = ssh::output_of(&place, host, &join(&words), bytes, COPY_TIMEOUT).await?;
    let printed = String::from_utf8_lossy(&printed);
    let release = swarm_state::screen::printable(printed.lines().next_back().unwrap_or_default());
    ctx.out.line(&format!("copied {what}; it is {release}"))?;
    ctx.out.hint(&format!("to replace a daemon that runs there: swarm daemon restart --on {}", host.name));
    Ok(0)
}

/// Reads the executable: the one of `--binary`, else this program if it runs on other machines, else the static one
/// that `scripts/package.sh` built.
fn executable(given: Option<&Path>) -> Result<(PathBuf, Vec<u8>)> {
    let read = |file: PathBuf| match std::fs::read(&file) {
        Ok(bytes) => Ok((file, bytes)),
        Err(error) => Err(Error::system(format!("cannot read {}", file.display()), error)),
    };
    if let Some(file) = given {
        return read(file.to_owned());
    }
    let own = read(own_program()?)?;
    if is_static(&own.1) {
        return Ok(own);
    }
    match packaged_program() {
        Some(file) if file.exists() => read(file),
        Some(_) | None => {
            let message = "this swarm is linked to libraries of this machine and may not run on another one";
            let hint = "build a static one with scripts/package.sh, or give one: --binary FILE";
            Err(Error::new(ErrorCode::Conflict, message).hint(hint))
        }
    }
}

/// The static executable of `scripts/package.sh`.
fn packaged_program() -> Option<PathBuf> {
    Some(directories::BaseDirs::new()?.data_dir().join("swarm/swarm-static"))
}

fn is_confirmed(ctx: &ClientContext, question: &str) -> Result<bool> {
    if !Out::is_terminal() {
        return Err(Error::usage("without a terminal, the copy must be confirmed").hint("add --yes"));
    }
    ctx.out.note(&format!("{question} [y/N]"));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|e| Error::system("cannot read the answer", e))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Whether an executable needs no loader and no shared library: an ELF file without an interpreter.
fn is_static(bytes: &[u8]) -> bool {
    const PT_INTERP: [u8; 4] = 3_u32.to_le_bytes();
    let short = |at: usize| Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let read = || -> Option<bool> {
        let start = u64::from_le_bytes(bytes.get(0x20..0x28)?.try_into().ok()?);
        let (size, count) = (short(0x36)?, short(0x38)?);
        let start = usize::try_from(start).ok()?;
        let kinds = (0..count).map(|index| bytes.get(start.checked_add(index * size)?..)?.get(..4));
        Some(kinds.collect::<Option<Vec<_>>>()?.iter().all(|kind| *kind != PT_INTERP))
    };
    // 64 bits, and the byte order of x86-64 and ARM.
    bytes.starts_with(b"\x7fELF\x02\x01") && read() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 0x40];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[0x20] = 0x40;
        bytes[0x36] = 56;
        bytes[0x38] = u8::try_from(kinds.len()).unwrap();
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn executable_with_an_interpreter_is_not_static() {
        assert!(is_static(&elf(&[1, 2, 6])) && !is_static(&elf(&[6, 3, 1])));
        assert!(
            !is_static(b"#!/bin/sh\n") && !is_static(&elf(&[1])[..0x42]) && !is_static(b"\x7fELF\x02\x01")
        );
    }
}
