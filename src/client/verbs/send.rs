//! `swarm send`: type text into workers.

use std::io::Read;
use std::path::PathBuf;

use serde_json::json;
use swarm_state::model::WorkerName;

use crate::cli::Send;
use crate::client::batch::{BatchErrors, call_each, names};
use crate::client::connect::SLOW_TIMEOUT;
use crate::client::context::ClientContext;
use crate::error::{Error, Result};
use crate::out::CommandResult;
use crate::protocol::{Call, SendParams, Sent};

/// The longest text that is typed key by key.
const MAX_KEYS_BYTES: usize = 1000;

/// The receivers, and the source of the text.
#[derive(Debug, PartialEq, Eq)]
struct SendTarget {
    /// The worker; `None` for every live worker.
    to: Option<WorkerName>,
    source: TextSource,
}

#[derive(Debug, PartialEq, Eq)]
enum TextSource {
    Words(String),
    Stdin,
    File(PathBuf),
}

pub(super) async fn run(ctx: &ClientContext, args: Send) -> CommandResult {
    let target = parse(&args)?;
    let text = match target.source {
        TextSource::Words(text) => text,
        TextSource::Stdin => match text_of("standard input", std::io::stdin().lock().bytes().collect())? {
            // The text was probably lost on its way here, and an Enter alone could make the agent act.
            text if text.is_empty() => {
                return Err(Error::invalid("nothing to send: standard input is empty").into());
            }
            text => text,
        },
        TextSource::File(file) => text_of(&file.display().to_string(), std::fs::read(file))?,
    };
    if args.keys {
        refuse_as_keys(&text)?;
    }
    let all = target.to.is_none();
    let names = match target.to {
        Some(name) => vec![name.to_string()],
        None => names(ctx, &[], true, |w| w.status.is_live()).await?,
    };
    if names.is_empty() {
        return Err(Error::invalid("no live workers").hint("swarm ls").into());
    }
    let calls = names.into_iter().map(|name| {
        let (text, enter, keys) = (text.clone(), !args.no_enter, args.keys);
        (name.clone(), Call::Send(SendParams { name, text, enter, keys, no_answer: all }))
    });
    dropped(&text, args.keys).iter().for_each(|warning| ctx.out.warn(warning));
    let mut failures = BatchErrors::new(ctx.out, args.format, !all);
    for (name, answer) in call_each::<Sent>(ctx, calls, SLOW_TIMEOUT).await? {
        match answer {
            Ok(Sent { warnings }) => {
                if failures.is_json() {
                    failures.answer(&name, &json!({"warnings": warnings}), None)?;
                }
                warnings.iter().for_each(|text| ctx.out.warn(text));
            }
            Err(error) => failures.add(&name, error)?,
        }
    }
    failures.end()
}

/// Separates name and text. With `--all` the first word is text and not a name.
fn parse(args: &Send) -> Result<SendTarget> {
    let usage = |message: &str| Error::usage(message).hint("swarm send --help");
    let mut words: Vec<&str> = args.text.iter().map(String::as_str).collect();
    let to = match (&args.name, args.all) {
        (Some(name), false) => Some(WorkerName::new(name).map_err(|e| Error::usage(e.to_string()))?),
        (None, false) => return Err(usage("no worker given; give a name, or --all")),
        (name, true) => {
            words.splice(0..0, name.as_deref());
            None
        }
    };
    let source = match (words.as_slice(), &args.file) {
        ([], Some(file)) => TextSource::File(file.clone()),
        ([], None) => {
            return Err(usage("nothing to send: give a text, --file FILE, or - for standard input"));
        }
        (_, Some(_)) => return Err(usage("give either a text or --file, not both")),
        (["-"], None) => TextSource::Stdin,
        (words, None) => {
            let text = words.join(" ");
            // An empty text would press Enter, so a line end alone stays.
            let typed = match without_line_end(&text) {
                "" => &text,
                typed => typed,
            };
            TextSource::Words(typed.to_owned())
        }
    };
    Ok(SendTarget { to, source })
}

/// Refuses text that cannot be typed as keys: an Enter within the text would send its first part.
fn refuse_as_keys(text: &str) -> Result<()> {
    let hint = "send it without --keys";
    if text.contains(['\n', '\r']) {
        return Err(Error::invalid("--keys accepts one line, and the text has more").hint(hint));
    }
    if text.len() > MAX_KEYS_BYTES {
        return Err(Error::invalid(format!("--keys accepts at most {MAX_KEYS_BYTES} bytes")).hint(hint));
    }
    Ok(())
}

/// The warning for characters that could press keys; the daemon drops them.
fn dropped(text: &str, keys: bool) -> Option<String> {
    let kept = |c: char| matches!(c, '\n' | '\r') || c == '\t' && !keys;
    match text.chars().filter(|&c| c.is_control() && !kept(c)).count() {
        0 => None,
        1 => Some("1 control character of the text is not sent".to_owned()),
        n => Some(format!("{n} control characters of the text are not sent")),
    }
}

/// Returns the text of a file without its last line end.
fn text_of(what: &str, bytes: std::io::Result<Vec<u8>>) -> Result<String> {
    let bytes = bytes.map_err(|e| Error::system(format!("cannot read {what}"), e))?;
    let text = String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{what} is not valid UTF-8")))?;
    Ok(without_line_end(&text).to_owned())
}

/// Returns the text without its last line end, since Enter is pressed separately.
fn without_line_end(text: &str) -> &str {
    text.strip_suffix("\r\n").or(text.strip_suffix('\n')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::error::ErrorCode;

    fn typed(args: &[&str]) -> Result<SendTarget> {
        let cli = Cli::try_parse_from(["swarm", "send"].iter().chain(args)).unwrap();
        let Command::Send(args) = cli.command else { panic!("not send") };
        parse(&args)
    }

    fn words(args: &[&str]) -> (Option<String>, String) {
        let target = typed(args).unwrap();
        let TextSource::Words(text) = target.source else { panic!("{target:?}") };
        (target.to.map(String::from), text)
    }

    #[test]
    fn text_is_sent_as_it_was_typed() {
        let a = Some("a".to_owned());
        assert_eq!(words(&["a", "run", "it  again"]), (a.clone(), "run it  again".into()));
        assert_eq!(words(&["a", "- [ ] task"]), (a.clone(), "- [ ] task".into()));
        assert_eq!(words(&["a", "--help-me", "--no-enter"]), (a.clone(), "--help-me --no-enter".into()));
        assert_eq!(words(&["a", "-x"]), (a.clone(), "-x".into()));
        assert_eq!(words(&["--no-enter", "a", ""]), (a.clone(), String::new()));
        assert_eq!(words(&["a", "--no-enter", "y"]), (a, "y".into()));
        assert_eq!(words(&["--all", "hello", "you"]), (None, "hello you".into()));
        assert_eq!(words(&["--all", "- [ ] x"]), (None, "- [ ] x".into()));
    }

    #[test]
    fn the_sources_exclude_each_other() {
        assert_eq!(typed(&["a", "-"]).unwrap().source, TextSource::Stdin);
        let file = || TextSource::File("f".into());
        assert_eq!(typed(&["--file", "f", "a"]).unwrap().source, file());
        assert_eq!(typed(&["--file", "f", "--all"]).unwrap(), SendTarget { to: None, source: file() });
        for wrong in [&["a"][..], &["--all"], &["--file", "f", "a", "text"]] {
            assert_eq!(typed(wrong).unwrap_err().code, ErrorCode::Usage, "{wrong:?}");
        }
        for name in ["", "a/b", "-rf"] {
            assert_eq!(typed(&[name, "x"]).unwrap_err().code, ErrorCode::Usage, "{name}");
        }
    }

    #[test]
    fn text_sent_as_keys_is_one_short_line() {
        assert!(refuse_as_keys("/compact keep the plan").is_ok() && refuse_as_keys("").is_ok());
        for wrong in ["/compact\nnow", "a\r", &"x".repeat(1001)] {
            assert!(refuse_as_keys(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dropped_control_characters_are_counted() {
        let count = |text, keys| dropped(text, keys).unwrap_or_default();
        assert_eq!((count("a\tb\r\nc", false), count("é", true)), (String::new(), String::new()));
        assert_eq!(count("a\tb", true), "1 control character of the text is not sent");
        assert_eq!(count("\x1b[31ma\0\u{9b}", false), "3 control characters of the text are not sent");
    }

    #[test]
    fn one_trailing_newline_is_removed() {
        for (text, kept) in [("y\n", "y"), ("y\r\n", "y"), ("y\n\n", "y\n"), ("y\r", "y\r")] {
            assert_eq!(words(&["a", text]).1, kept);
            assert_eq!(text_of("f", Ok(text.into())).unwrap(), kept);
        }
        assert_eq!(text_of("f", Ok(b"\n".to_vec())).unwrap(), "");
        assert_eq!(words(&["a", "\n"]).1, "\n", "an empty text would press Enter");
        assert!(text_of("f", Ok(vec![0xff])).unwrap_err().message.contains("not valid UTF-8"));
    }
}
