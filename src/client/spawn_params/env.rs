//! Builds the agent's environment: the caller's, without variables that would mislead the agent.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::environ::misleads;
use crate::error::{Error, Result};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Env {
    pub(super) values: BTreeMap<String, String>,
    /// The names that `--env` set, in order.
    pub(super) set: Vec<String>,
}

/// Builds the environment: the caller's, without misleading variables, plus `--env`. Fails if an `--env` is not
/// `KEY=VALUE` or `KEY`, or names a variable that the caller does not have.
pub(super) fn build(
    own: impl Iterator<Item = (OsString, OsString)>,
    wanted: &[String],
    warnings: &mut Vec<String>,
) -> Result<Env> {
    let own: BTreeMap<OsString, OsString> = own.collect();
    let mut env = Env::default();
    for (name, value) in own.iter().filter(|(name, _)| !misleads(name)) {
        match (name.to_str(), value.to_str()) {
            (Some(name), Some(value)) => {
                env.values.insert(name.to_owned(), value.to_owned());
            }
            _ => warnings.push(format!(
                "the variable {} is not UTF-8; the agent does not receive it",
                swarm_state::screen::printable(&name.to_string_lossy())
            )),
        }
    }
    for text in wanted {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => (text.as_str(), taken(&own, text)?),
        };
        if name.is_empty() || value.contains('\0') {
            return Err(Error::usage(format!("--env {text:?}: expected KEY=VALUE or KEY")));
        }
        env.values.insert(name.to_owned(), value);
        if !env.set.iter().any(|known| known == name) {
            env.set.push(name.to_owned());
        }
    }
    Ok(env)
}

fn taken(own: &BTreeMap<OsString, OsString>, name: &str) -> Result<String> {
    let value = own.get(OsStr::new(name)).ok_or_else(|| {
        Error::invalid(format!("--env {name}: it is not set in your environment"))
            .hint(format!("--env {name}=VALUE"))
    })?;
    value
        .to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::invalid(format!("--env {name}: its value is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn own(pairs: &[(&str, &str)]) -> std::vec::IntoIter<(OsString, OsString)> {
        pairs.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))).collect::<Vec<_>>().into_iter()
    }

    fn wanted(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|t| (*t).to_owned()).collect()
    }

    #[test]
    fn misleading_git_tmux_and_swarm_variables_do_not_reach_the_agent() {
        let mine = own(&[
            ("PATH", "/bin"),
            ("TMUX", "x"),
            ("TMUX_PANE", "%1"),
            ("SWARM_DIR", "/s"),
            ("GIT_DIR", "/r/.git"),
            ("GIT_AUTHOR_NAME", "me"),
        ]);
        let env = build(mine, &[], &mut vec![]).unwrap();
        assert_eq!(env.values.keys().collect::<Vec<_>>(), ["GIT_AUTHOR_NAME", "PATH"]);
        assert!(env.set.is_empty());
    }

    #[test]
    fn env_option_sets_or_copies_variables() {
        let env = build(own(&[("TOKEN", "s3cr3t")]), &wanted(&["A=b=c", "TOKEN", "A=2", "E="]), &mut vec![])
            .unwrap();
        assert_eq!((env.values["A"].as_str(), env.values["TOKEN"].as_str()), ("2", "s3cr3t"));
        assert_eq!(env.values["E"], "");
        assert_eq!(env.set, ["A", "TOKEN", "E"]);
        let error = build(own(&[]), &wanted(&["TOKEN"]), &mut vec![]).unwrap_err();
        assert_eq!(error.message, "--env TOKEN: it is not set in your environment");
        assert!(build(own(&[]), &wanted(&["=x"]), &mut vec![]).is_err());
    }

    #[test]
    fn variable_that_is_not_utf_8_is_left_out_with_a_warning() {
        let mut warnings = vec![];
        let mine = vec![(OsString::from("ODD"), OsString::from_vec(vec![0xff]))].into_iter();
        assert!(build(mine, &[], &mut warnings).unwrap().values.is_empty());
        assert_eq!(warnings, ["the variable ODD is not UTF-8; the agent does not receive it"]);
    }
}
