//! The evidence for "done" in addition to the exit status of the checks.
//!
//! A check runs in the agent's tree with the agent's tools. Each [`Layer`] detects one way to make it pass without the
//! work. The daemon (`loops` in the binary) tests the layers at the end of an iteration, in the order of the enum, and
//! adds one [`Proof`] for each layer and check to the verdict. Deliberately absent: running anything, and the layers
//! that have fields of their own in [`crate::gates::Verdict`] (checks, watched files).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One way to detect a check that passes without the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The programs that the checks run, and the directories of the PATH before them, are those of the baseline.
    Programs,
    /// No process of the agent ran while the checks ran.
    Survivors,
    /// At least the tests of the baseline ran, and none of them is skipped now.
    Inventory,
    /// The check fails when a test that must fail is added.
    Canary,
    /// The checks also pass in a fresh checkout.
    CleanRoom,
    /// The checks fail in the agent's tree with the old source files.
    RedReplay,
    /// Checks whose files the agent cannot see pass.
    HeldOut,
    /// A layer of a newer release.
    #[serde(other)]
    Other,
}

/// The result of testing a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofOutcome {
    /// Nothing suspicious was found.
    Holds,
    /// The iteration does not count.
    Fails,
    /// The layer does not apply, or could not be tested. The iteration counts.
    Unproven,
}

/// The result of one layer, for one check or for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The layer.
    pub layer: Layer,
    /// The check's command; `None` if the result is about all checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The result.
    pub outcome: ProofOutcome,
    /// The finding, as a phrase. If the layer fails, the agent reads it in its next contract, so it must not contain
    /// what a held-out check printed.
    pub found: String,
    /// The file with the output of the check, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PathBuf>,
}

impl Proof {
    /// The result of a layer for all checks.
    pub fn of_all(layer: Layer, outcome: ProofOutcome, found: impl Into<String>) -> Self {
        Self { layer, check: None, outcome, found: found.into(), output: None }
    }

    /// The result of a layer for one check.
    pub fn of_check(layer: Layer, check: &str, outcome: ProofOutcome, found: impl Into<String>) -> Self {
        Self { check: Some(check.to_owned()), ..Self::of_all(layer, outcome, found) }
    }

    /// Whether the iteration does not count because of it.
    pub fn fails(&self) -> bool {
        self.outcome == ProofOutcome::Fails
    }

    /// The same result with the file that has the output.
    #[must_use]
    pub fn with_output(self, file: impl Into<PathBuf>) -> Self {
        Self { output: Some(file.into()), ..self }
    }

    /// The finding with the check's command. The command of a held-out check is left out: it may name hidden files.
    pub fn remark(&self) -> String {
        match &self.check {
            Some(check) if self.layer != Layer::HeldOut => format!("{check}: {}", self.found),
            Some(_) | None => self.found.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_layer_of_a_newer_release_is_read() {
        let text = r#"{"layer":"notary","outcome":"holds","found":"signed"}"#;
        let proof: Proof = serde_json::from_str(text).unwrap();
        assert_eq!(proof, Proof::of_all(Layer::Other, ProofOutcome::Holds, "signed"));
    }

    #[test]
    fn proof_remark_names_the_check() {
        let proof = Proof::of_check(Layer::Canary, "pytest", ProofOutcome::Fails, "it is green");
        assert_eq!((proof.remark().as_str(), proof.fails()), ("pytest: it is green", true));
        let hidden = Proof::of_check(Layer::HeldOut, "pytest hidden", ProofOutcome::Fails, "it failed");
        assert_eq!(hidden.remark(), "it failed");
    }
}
