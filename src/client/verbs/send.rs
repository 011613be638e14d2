//! `swarm send`, `swarm interrupt` and `swarm eof`: keys for workers.

use std::io::Read;
use std::path::Path;

use swarm_state::model::WorkerName;

use crate::cli::Send;
use crate::client::batch::{BatchErrors, call_each, live_workers};
use crate::client::connect::SLOW;
use crate::client::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::out::CommandResult;
use crate::protocol::{Call, SendParams, Sent};

/// The longest text that is typed key by key.
const MAX_KEYS_BYTES: usize = 1000;

/// To whom, and where the text comes from.
#[derive(Debug, PartialEq, Eq)]
struct Letter {
    /// `None`: every live worker.
    to: Option<WorkerName>,
    source: Source,
}

#[derive(Debug, PartialEq, Eq)]
enum Source {
    Words(String),
    Stdin,
    File,
}

pub(super) async fn run(ctx: &Context, args: Send) -> CommandResult {
    let letter = parse(&args)?;
    let text = match (letter.source, &args.file) {
        (Source::Words(text), _) => text,
        (Source::Stdin, _) => match text_of("standard input", read_stdin())? {
            // An agent that gets an Enter for a text that was lost on its way here would act on that.
            text if text.is_empty() => {
                return Err(Error::invalid("nothing to send: standard input is empty").into());
            }
            text => text,
        },
        (Source::File, Some(file)) => text_of(&file.display().to_string(), read(file))?,
        (Source::File, None) => return Err(Error::new(ErrorCode::Internal, "no file to send").into()),
    };
    if args.keys {
        refuse_as_keys(&text)?;
    }
    let all = letter.to.is_none();
    let names = match letter.to {
        Some(name) => vec![name.to_string()],
        None => live_workers(ctx).await?,
    };
    if names.is_empty() {
        return Err(Error::invalid("there is no live worker to send to").hint("swarm ls").into());
    }
    let calls = names.into_iter().map(|name| {
        let (text, enter, keys) = (text.clone(), !args.no_enter, args.keys);
        (name.clone(), Call::Send(SendParams { name, text, enter, keys, no_answer: all }))
    });
    let mut failures = BatchErrors::new(ctx.out, !all);
    for (name, answer) in call_each::<Sent>(ctx, calls, SLOW).await? {
        match answer {
            Ok(Sent { warnings }) => warnings.iter().for_each(|text| ctx.out.warn(text)),
            Err(error) => failures.add(&name, error)?,
        }
    }
    failures.end()
}

/// What was meant: with `--all` the first word is text, not a name.
fn parse(args: &Send) -> Result<Letter> {
    let usage = |message: &str| Error::new(ErrorCode::Usage, message).hint("swarm send --help");
    let mut words: Vec<&str> = args.text.iter().map(String::as_str).collect();
    let to = match (&args.name, args.all) {
        (Some(name), false) => {
            Some(WorkerName::new(name).map_err(|e| Error::new(ErrorCode::Usage, e.to_string()))?)
        }
        (None, false) => return Err(usage("say which worker, or --all")),
        (name, true) => {
            words.splice(0..0, name.as_deref());
            None
        }
    };
    let source = match (words.as_slice(), &args.file) {
        ([], Some(_)) => Source::File,
        ([], None) => {
            return Err(usage("nothing to send: give a text, --file FILE, or - for standard input"));
        }
        (_, Some(_)) => return Err(usage("give either a text or --file, not both")),
        (["-"], None) => Source::Stdin,
        (words, None) => Source::Words(words.join(" ")),
    };
    Ok(Letter { to, source })
}

/// Keys are one line: Enter within the text would send its first part off.
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

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    std::fs::read(file)
}

fn read_stdin() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Text without the one line end at its end: Enter is pressed by itself.
fn text_of(what: &str, bytes: std::io::Result<Vec<u8>>) -> Result<String> {
    let bytes = bytes.map_err(|e| Error::system(format!("cannot read {what}"), e))?;
    let mut text = String::from_utf8(bytes)
        .map_err(|_| Error::invalid(format!("{what} is no text (it is not UTF-8)")))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn typed(args: &[&str]) -> Result<Letter> {
        let cli = Cli::try_parse_from(["swarm", "send"].iter().chain(args)).unwrap();
        let Command::Send(args) = cli.command else { panic!("not send") };
        parse(&args)
    }

    fn words(args: &[&str]) -> (Option<String>, String) {
        let letter = typed(args).unwrap();
        let Source::Words(text) = letter.source else { panic!("{letter:?}") };
        (letter.to.map(String::from), text)
    }

    #[test]
    fn text_is_taken_as_it_was_typed() {
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
        assert_eq!(typed(&["a", "-"]).unwrap().source, Source::Stdin);
        assert_eq!(typed(&["--file", "f", "a"]).unwrap().source, Source::File);
        assert_eq!(typed(&["--file", "f", "--all"]).unwrap(), Letter { to: None, source: Source::File });
        for wrong in [&["a"][..], &["--all"], &["--file", "f", "a", "text"]] {
            assert_eq!(typed(wrong).unwrap_err().code, ErrorCode::Usage, "{wrong:?}");
        }
        for name in ["", "a/b", "-rf"] {
            assert_eq!(typed(&[name, "x"]).unwrap_err().code, ErrorCode::Usage, "{name}");
        }
    }

    #[test]
    fn keys_are_one_short_line() {
        assert!(refuse_as_keys("/compact keep the plan").is_ok() && refuse_as_keys("").is_ok());
        for wrong in ["/compact\nnow", "a\r", &"x".repeat(1001)] {
            assert!(refuse_as_keys(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_line_end_goes() {
        assert_eq!(text_of("f", Ok(b"a\n\n".to_vec())).unwrap(), "a\n");
        assert_eq!(text_of("f", Ok(b"a\r\n".to_vec())).unwrap(), "a");
        assert!(text_of("f", Ok(vec![0xff])).unwrap_err().message.contains("not UTF-8"));
    }
}
