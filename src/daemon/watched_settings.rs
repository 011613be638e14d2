//! The user's settings file, which the daemon reads again when it has changed: for `[notify]` and `[quota]`.

use std::fs;
use std::time::SystemTime;

use crate::error::sentence;
use crate::paths::Paths;
use crate::settings::Settings;

/// The file as it was last read.
#[derive(Default)]
pub(crate) struct WatchedSettings {
    stamp: Option<(SystemTime, u64)>,
}

impl WatchedSettings {
    /// The settings, if the file has changed and has no errors. `section` is for the message about an error, after
    /// which the values that were read before stay in force.
    pub(crate) fn changed(&mut self, paths: &Paths, section: &str) -> Option<Settings> {
        let file = paths.user_config();
        let stamp = fs::metadata(&file).ok().and_then(|found| Some((found.modified().ok()?, found.len())));
        if stamp == self.stamp {
            return None;
        }
        self.stamp = stamp;
        match Settings::load(&file, None, None) {
            Ok(settings) => Some(settings),
            Err(error) => {
                tracing::warn!("{section} is unchanged: {}", sentence(&error));
                None
            }
        }
    }
}
