//! The compiled markers of agent profiles, shared by all workers of a profile.
//!
//! Compiling takes longer than a thousand readings, and the result takes more memory than the rest of a worker. The
//! cache behind [`Markers::of`] does not change any result.

use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::dialog::Blocked;
use crate::pattern::{Pattern, PatternError};
use crate::profiles::{self, Marker, Profile};

/// The dialogs that any agent may show. A test of the profiles checks that all compile.
static COMMON_STARTUP: LazyLock<Vec<(Pattern, Blocked)>> =
    LazyLock::new(|| dialogs(&profiles::common_startup(), true).flatten().collect());
static COMMON_PERMISSION: LazyLock<Vec<(Pattern, Blocked)>> =
    LazyLock::new(|| dialogs(&profiles::common_permission(), false).flatten().collect());

/// The markers in use, by profile.
static KNOWN: Mutex<Vec<(Profile, Weak<Markers>)>> = Mutex::new(Vec::new());

/// The compiled patterns of one agent; the fields are as in [`Profile`].
#[derive(Debug)]
pub(super) struct Markers {
    pub ready: Vec<Pattern>,
    pub input: Vec<Pattern>,
    pub error: Vec<Pattern>,
    pub hides_input: bool,
    pub settle: Duration,
    pub working: Vec<Pattern>,
    startup: Vec<(Pattern, Blocked)>,
    permission: Vec<(Pattern, Blocked)>,
}

impl Markers {
    /// The markers of a profile, shared between its workers; [`PatternError`] if one is invalid.
    pub(super) fn of(profile: &Profile) -> Result<Arc<Self>, PatternError> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let same = known.iter().filter(|(other, _)| other == profile);
        if let Some(markers) = same.filter_map(|(_, markers)| markers.upgrade()).next() {
            return Ok(markers);
        }
        known.retain(|(_, markers)| markers.strong_count() > 0);
        let markers = Arc::new(Self::compile(profile)?);
        known.push((profile.clone(), Arc::downgrade(&markers)));
        Ok(markers)
    }

    fn compile(profile: &Profile) -> Result<Self, PatternError> {
        let all = |list: &[String]| list.iter().map(|text| Pattern::compile(text)).collect::<Result<_, _>>();
        Ok(Self {
            ready: all(&profile.ready)?,
            input: all(&profile.input)?,
            error: all(&profile.error)?,
            hides_input: profile.hides_input,
            settle: Duration::from_millis(profile.settle_ms),
            working: all(&profile.working)?,
            startup: dialogs(&profile.startup, true).collect::<Result<_, _>>()?,
            permission: dialogs(&profile.permission, false).collect::<Result<_, _>>()?,
        })
    }

    /// The dialogs to search for: those at start-up first, because their wording is narrower, and of each kind the
    /// profile's own first, because their descriptions are more specific.
    pub(super) fn dialogs(&self) -> impl Iterator<Item = &(Pattern, Blocked)> {
        let (startup, permission) = (&*COMMON_STARTUP, &*COMMON_PERMISSION);
        self.startup.iter().chain(startup).chain(&self.permission).chain(permission)
    }
}

fn dialogs(list: &[Marker], startup: bool) -> impl Iterator<Item = Result<(Pattern, Blocked), PatternError>> {
    let blocked = move |marker: &Marker| Blocked { startup, what: marker.what.clone() };
    list.iter().map(move |marker| Ok((Pattern::compile(&marker.pattern)?, blocked(marker))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_is_compiled_once_and_again_after_a_change() {
        let profile = Profile { name: "once".into(), ..Profile::generic() };
        let first = Markers::of(&profile).unwrap();
        assert!(Arc::ptr_eq(&first, &Markers::of(&profile).unwrap()));
        let changed = Profile { ready: vec!["^now> $".into()], ..profile.clone() };
        let other = Markers::of(&changed).unwrap();
        assert!(!Arc::ptr_eq(&first, &other) && other.ready.len() == 1);
        drop((first, other));
        drop(Markers::of(&Profile::generic()).unwrap());
        let names = |known: &(Profile, Weak<Markers>)| known.0.name == "once" && known.1.strong_count() > 0;
        assert!(!KNOWN.lock().unwrap().iter().any(names), "what nobody uses is let go");
    }
}
