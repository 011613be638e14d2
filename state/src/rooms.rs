//! The gates that are tested outside of the agent's tree: clean checks, the red replay and held-out checks.
//!
//! A *room* is a temporary checkout of the iteration's snapshot. swarm makes one for each of these gates, once all
//! others hold, and deletes it afterwards. Deliberately absent: making rooms (`loops` in the binary).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::gates::error::{GatesError, OMIT_ONE};
use crate::model::has_twice;

/// Default number of failures of the held-out checks after which the loop pauses.
const DEFAULT_FINAL_TRIES: u32 = 3;

/// The fault of a number of tries without a check, and the next step for the user.
const TRIES_ALONE: (&str, &str) = (
    "--final-tries has no effect without a --final-check",
    "add the command that is tried: --final-check COMMAND",
);

/// The gates that are tested in a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoomGates {
    /// Held-out checks: shell commands that must exit with 0, with the files of `hidden`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub final_checks: Vec<String>,
    /// The directory with the files of the held-out checks, absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<PathBuf>,
    /// How many failures of the held-out checks pause the loop; at least 1.
    #[serde(skip_serializing_if = "is_usual_tries")]
    pub final_tries: u32,
    /// Run the checks also in a room.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clean_check: bool,
    /// Shell commands that prepare a room.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// The files of the fix: globs relative to the worker's directory. With their old versions, the checks must fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fix: Vec<String>,
}

impl Default for RoomGates {
    fn default() -> Self {
        Self {
            final_checks: vec![],
            hidden: None,
            final_tries: DEFAULT_FINAL_TRIES,
            clean_check: false,
            setup: vec![],
            fix: vec![],
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires the signature")]
fn is_usual_tries(tries: &u32) -> bool {
    *tries == DEFAULT_FINAL_TRIES
}

impl RoomGates {
    /// True if no gate needs a room.
    pub fn is_empty(&self) -> bool {
        self.final_checks.is_empty() && !self.clean_check && self.fix.is_empty()
    }

    /// The fault of a given number of tries if the loop has no held-out check.
    pub fn tries_alone() -> GatesError {
        GatesError::new(TRIES_ALONE.0, TRIES_ALONE.1)
    }

    /// Returns the first fault of the gates of a loop with these `checks`. `gated`: the loop has a check or a promise.
    pub(crate) fn validate(&self, checks: &[String], gated: bool) -> Result<(), GatesError> {
        const ADD_CHECK: &str = "add the condition for a complete loop: --check COMMAND";
        const ROOMS_EXAMPLE: &str =
            "example: --final-check 'pytest hidden_tests' --setup 'npm ci' --fix 'src/**'";
        for (option, texts) in
            [("--final-check", &self.final_checks), ("--setup", &self.setup), ("--fix", &self.fix)]
        {
            let (empty, nul) =
                (format!("{option} cannot be empty"), format!("{option} cannot contain a NUL byte"));
            GatesError::first([
                (texts.iter().any(|text| text.trim().is_empty()), &*empty, ROOMS_EXAMPLE),
                (texts.iter().any(|text| text.contains('\0')), &*nul, ROOMS_EXAMPLE),
            ])?;
        }
        let is_known = |held_out: &String| checks.iter().any(|check| check.trim() == held_out.trim());
        let has_final = !self.final_checks.is_empty();
        GatesError::first([
            (self.final_tries == 0, "--final-tries must be at least 1", "omit the option to use its default"),
            (self.final_tries != DEFAULT_FINAL_TRIES && !has_final, TRIES_ALONE.0, TRIES_ALONE.1),
            (
                has_twice(self.final_checks.iter().map(|check| check.trim())),
                "the same --final-check is given twice",
                OMIT_ONE,
            ),
            (
                self.hidden.is_some() && !has_final,
                "--hidden has no effect without a --final-check",
                "add the command that uses the files: --final-check COMMAND",
            ),
            (
                !self.setup.is_empty() && self.is_empty(),
                "--setup has no effect without a --clean-check, a --final-check or a --fix",
                "add --clean-check to run the checks after it",
            ),
            (
                self.hidden.is_none() && self.final_checks.iter().any(is_known),
                "a --final-check is the same command as a --check, which the agent sees",
                "use a command and files that the agent does not know: --hidden DIR",
            ),
            (self.clean_check && checks.is_empty(), "--clean-check requires a --check", ADD_CHECK),
            (!self.fix.is_empty() && checks.is_empty(), "--fix requires a --check", ADD_CHECK),
            (
                has_final && !gated,
                "--final-check requires a --check or a --promise: it runs once they hold",
                ADD_CHECK,
            ),
        ])
    }

    /// The number of the try within its round, and whether it is the last one, after which the loop pauses. `failed`
    /// is how often the held-out checks failed before in this loop. Each resume permits another round.
    pub fn next_try(&self, failed: u32) -> (u32, bool) {
        let limit = self.final_tries.max(1);
        let number = failed % limit + 1;
        (number, number == limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn invalid_options_are_refused() {
        let base = RoomGates { final_checks: strings(&["make hidden"]), ..RoomGates::default() };
        let fix = RoomGates { fix: strings(&["src/**"]), ..RoomGates::default() };
        let clean = RoomGates { clean_check: true, ..RoomGates::default() };
        let with = |setup: &[&str], gates: &RoomGates| RoomGates { setup: strings(setup), ..gates.clone() };
        for (gates, checks, gated, expected) in [
            (base.clone(), &["make test"][..], true, None),
            (base.clone(), &[], true, None),
            (
                base.clone(),
                &[],
                false,
                Some("--final-check requires a --check or a --promise: it runs once they hold"),
            ),
            (
                base.clone(),
                &[" make hidden\n"],
                true,
                Some("a --final-check is the same command as a --check, which the agent sees"),
            ),
            (RoomGates { hidden: Some("/h".into()), ..base.clone() }, &["make hidden"], true, None),
            (
                RoomGates { final_tries: 0, ..base.clone() },
                &["a"],
                true,
                Some("--final-tries must be at least 1"),
            ),
            (
                RoomGates { final_tries: 2, ..clean.clone() },
                &["a"],
                true,
                Some("--final-tries has no effect without a --final-check"),
            ),
            (
                RoomGates { final_checks: strings(&["x", " x"]), ..base.clone() },
                &["a"],
                true,
                Some("the same --final-check is given twice"),
            ),
            (
                RoomGates { final_checks: strings(&[" "]), ..base.clone() },
                &["a"],
                true,
                Some("--final-check cannot be empty"),
            ),
            (with(&["a\0"], &base), &["a"], true, Some("--setup cannot contain a NUL byte")),
            (
                RoomGates { hidden: Some("/h".into()), ..RoomGates::default() },
                &["a"],
                true,
                Some("--hidden has no effect without a --final-check"),
            ),
            (
                with(&["npm ci"], &RoomGates::default()),
                &["a"],
                true,
                Some("--setup has no effect without a --clean-check, a --final-check or a --fix"),
            ),
            (with(&["npm ci"], &clean), &["a"], true, None),
            (with(&["npm ci"], &fix), &["a"], true, None),
            (clean, &[], true, Some("--clean-check requires a --check")),
            (fix, &[], true, Some("--fix requires a --check")),
        ] {
            let fault = gates.validate(&strings(checks), gated).err().map(|fault| fault.to_string());
            assert_eq!(fault.as_deref(), expected, "{gates:?} {checks:?}");
        }
    }

    #[test]
    fn tries_restart_after_the_limit() {
        let tries = |limit, failed| RoomGates { final_tries: limit, ..RoomGates::default() }.next_try(failed);
        let three: Vec<_> = (0..5).map(|failed| tries(3, failed)).collect();
        assert_eq!(three, [(1, false), (2, false), (3, true), (1, false), (2, false)]);
        assert_eq!([tries(1, 0), tries(1, 7)], [(1, true), (1, true)]);
    }

    #[test]
    fn gates_of_an_older_release_have_no_checkouts() {
        let gates: crate::gates::Gates = serde_json::from_str(r#"{"checks":["a"]}"#).unwrap();
        assert_eq!(gates.rooms, RoomGates::default());
        let text = serde_json::to_string(&gates).unwrap();
        assert!(!text.contains("final"), "{text}");
        let rooms = RoomGates { final_tries: 2, final_checks: strings(&["b"]), ..RoomGates::default() };
        let gates = crate::gates::Gates { rooms, ..gates };
        let text = serde_json::to_string(&gates).unwrap();
        assert_eq!(serde_json::from_str::<crate::gates::Gates>(&text).unwrap(), gates, "{text}");
    }
}
