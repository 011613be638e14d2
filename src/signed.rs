//! Signed files: JSON files that the daemon writes for itself and accepts only if they are unchanged.
//!
//! An agent runs as the user and can write below SWARM_DIR. The daemon must not accept a verdict or a baseline that the
//! agent wrote there. Each such file ends with the member `signature`: the HMAC-SHA256 of the rest of the file and of
//! its purpose, so that a valid file cannot replace another one. The key is in a file of its own, 0600. This stops a
//! file that was edited or made up. It does not stop an agent that reads the key on purpose: that needs a sandbox.
//!
//! The store and the loops use it. It does not decide which files are signed.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;

use crate::files::{read_bounded, write_atomic};

#[cfg(test)]
mod tests;

/// One block of SHA-256.
const KEY_BYTES: usize = 64;

/// The last member of a signed object, up to the signature itself.
const MEMBER: &str = ",\n  \"signature\": \"";

/// The end of a signed file.
const END: &str = "\"\n}\n";

/// The use of a signed file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose<'a> {
    /// The record of this worker.
    Worker(&'a str),
    /// The baseline of the loop of this worker.
    Baseline(&'a str),
    /// The result of an iteration: the worker, the loop's id and the number.
    Iteration(&'a str, &'a str, u32),
    /// The reports of tests of the last iteration: the worker and the loop's id.
    Reports(&'a str, &'a str),
    /// The verdict on a run: the worker, the loop's id, if it is one, and the run.
    Verdict(&'a str, Option<&'a str>, u64),
    /// The hash of the index of a loop's snapshots: the worker and the loop's id.
    Index(&'a str, &'a str),
    /// The record of a task list: the worker and the loop's id.
    Tasks(&'a str, &'a str),
    /// The output of a run, as in [`Purpose::Verdict`].
    Output(&'a str, Option<&'a str>, u64),
}

impl fmt::Display for Purpose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = |id: &Option<&str>| id.unwrap_or_default().to_owned();
        match self {
            Self::Worker(name) => write!(f, "worker {name}"),
            Self::Baseline(name) => write!(f, "baseline {name}"),
            Self::Iteration(name, loop_id, number) => write!(f, "iteration {name} {loop_id} {number}"),
            Self::Index(name, loop_id) => write!(f, "index {name} {loop_id}"),
            Self::Tasks(name, loop_id) => write!(f, "tasks {name} {loop_id}"),
            Self::Reports(name, loop_id) => write!(f, "reports {name} {loop_id}"),
            Self::Verdict(name, loop_id, run) => write!(f, "verdict {name} {} {run}", id(loop_id)),
            Self::Output(name, loop_id, run) => write!(f, "output {name} {} {run}", id(loop_id)),
        }
    }
}

/// The key that signs the files of one SWARM_DIR.
#[derive(Clone)]
pub(crate) struct SigningKey([u8; KEY_BYTES]);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

impl SigningKey {
    /// Returns a key that no file has.
    pub(crate) fn random() -> io::Result<Self> {
        let mut key = [0; KEY_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Self(key))
    }

    /// A key for a store that only reads.
    pub(crate) fn none() -> Self {
        Self([0; KEY_BYTES])
    }

    /// Reads the key; `None` without a file, or if it is not a key.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        match read_bounded(path, KEY_BYTES as u64) {
            Ok(bytes) => Ok(bytes.try_into().ok().map(Self)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::FileTooLarge) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a key and writes it.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let key = Self::random()?;
        key.write(path)?;
        Ok(key)
    }

    /// Writes the key.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        write_atomic(path, &self.0)
    }

    /// Returns the content of a signed file with `value`, which has to be a JSON object with a member. `purpose` names
    /// what the file is for; a reader must name the same.
    pub(crate) fn sign(&self, purpose: Purpose<'_>, value: &impl Serialize) -> io::Result<Vec<u8>> {
        self.sign_text(purpose, &serde_json::to_string_pretty(value)?)
    }

    /// As [`SigningKey::sign`], for an object that is already indented text.
    pub(crate) fn sign_text(&self, purpose: Purpose<'_>, text: &str) -> io::Result<Vec<u8>> {
        let body = text.trim_end().strip_suffix("\n}");
        let body = body.ok_or_else(|| io::Error::other("not an object with members"))?;
        let signature = crate::files::hex(&self.mac(purpose, body).finalize().into_bytes());
        Ok(format!("{body}{MEMBER}{signature}{END}").into_bytes())
    }

    /// Reads the value in a signed file; `None` if swarm did not write it for this purpose.
    pub(crate) fn open<T: DeserializeOwned>(&self, purpose: Purpose<'_>, bytes: &[u8]) -> Option<T> {
        serde_json::from_str(&self.open_text(purpose, bytes)?).ok()
    }

    /// The text of a signed file without its signature; `None` if swarm did not write it for this purpose.
    pub(crate) fn open_text(&self, purpose: Purpose<'_>, bytes: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (body, signature) = text.strip_suffix(END)?.rsplit_once(MEMBER)?;
        let digits = signature.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        let signature: Vec<u8> =
            digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<_>>()?;
        self.mac(purpose, body).verify_slice(&signature).ok()?;
        Some(format!("{body}\n}}\n"))
    }

    fn mac(&self, purpose: Purpose<'_>, body: &str) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new((&self.0).into());
        // No part of a purpose has a space or a line break, so no purpose and body can be read as another.
        mac.update(format!("{purpose}\n{body}").as_bytes());
        mac
    }
}
