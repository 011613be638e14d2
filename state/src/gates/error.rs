//! Why the gates of a loop are not valid, as the modules of all its options report it.

/// Why gates are not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct GatesError {
    text: String,
    /// The next step for the user.
    pub hint: &'static str,
}

impl GatesError {
    pub(crate) fn new(text: &str, hint: &'static str) -> Self {
        Self { text: text.to_owned(), hint }
    }

    /// The error of the first row whose condition holds. A row has the text of the error and the hint.
    pub(crate) fn first<'a>(
        faults: impl IntoIterator<Item = (bool, &'a str, &'static str)>,
    ) -> Result<(), Self> {
        let fault = faults.into_iter().find(|(is_fault, ..)| *is_fault);
        fault.map_or(Ok(()), |(_, text, hint)| Err(Self::new(text, hint)))
    }
}

/// The hint for two options of which one is too many.
pub(crate) const OMIT_ONE: &str = "omit one of the two";
