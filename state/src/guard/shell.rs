//! Reads a command line as a shell would, into the commands that it would run.
//!
//! Quotes, variables that the same line sets, `$(…)`, backticks, `<(…)`, here-documents, redirections, `cd`, and
//! functions are followed. [`super::starters`] finds the command behind `sudo` or `sh -c TEXT`. The guard judges the
//! result. It reads any text and never fails: invalid text is read as far as possible.
//! Deliberately absent: running or expanding anything; a value that only a running shell has is [`UNKNOWN`].
//! [`crate::scripts`] has a smaller reader, which finds the programs of a check but not its redirections.

use std::collections::BTreeMap;

mod words;

use super::place::{UNKNOWN, resolve};
use crate::scripts::assignment;
use crate::words::base_name;

/// The maximum depth of nested commands.
const MAX_COMMAND_DEPTH: u8 = 12;

/// The maximum number of characters that are read, including nested texts that are read again.
const MAX_CHARS: usize = 1 << 18;

/// The maximum length of a variable's value; a longer one is unknown.
const MAX_VALUE_CHARS: usize = 4096;

/// Words before a command that start no program.
const RESERVED: [&str; 14] =
    ["if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "fi", "done", "esac", "function"];

/// A redirection: `>`, `>>`, `<`, and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) writes: bool,
    pub(super) file: String,
}

/// One command: its words after expansion, and the context that it runs in.
#[derive(Clone, Debug, Default)]
pub(super) struct ShellCommand {
    /// The command as it was written.
    pub(super) text: String,
    /// Its program and arguments, without assignments and starters.
    pub(super) words: Vec<String>,
    /// The programs that start it, such as `sudo`, `env` and `xargs`.
    pub(super) starters: Vec<String>,
    pub(super) redirects: Vec<Redirect>,
    /// Its here-document or here-string.
    pub(super) input: Option<String>,
    /// The programs whose output is part of its words.
    pub(super) substituted: Vec<String>,
    /// The directory that it runs in, if that is known.
    pub(super) dir: Option<String>,
}

impl ShellCommand {
    /// The name of its program without directories.
    pub(super) fn program(&self) -> &str {
        base_name(self.words.first().map_or("", String::as_str))
    }
}

/// Commands that are connected by `|`.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipeline {
    pub(super) text: String,
    pub(super) commands: Vec<ShellCommand>,
    /// Whether the shell does not wait for it.
    pub(super) background: bool,
}

/// The result of reading a line: every pipeline, also nested ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    pub(super) pipelines: Vec<Pipeline>,
    pub(super) functions: Vec<String>,
    /// The number of characters read so far.
    read: usize,
}

/// Reads a line that runs in `dir`. `vars` are the variables with a known value.
pub(super) fn read(line: &str, dir: &str, vars: BTreeMap<String, String>) -> Script {
    let mut script = Script::default();
    let mut reader = ShellReader::new(line, Some(dir.to_owned()), vars, &mut script, 0);
    reader.list(false);
    script
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CommandEnd {
    Pipe,
    End,
    Background,
    Open,
    Close,
}

/// A position in a text, and the state of the shell there.
pub(super) struct ShellReader<'a> {
    chars: Vec<char>,
    at: usize,
    /// The position after the next line break: behind the here-documents of this line.
    resume: usize,
    dir: Option<String>,
    vars: BTreeMap<String, String>,
    depth: u8,
    script: &'a mut Script,
}

impl<'a> ShellReader<'a> {
    fn new(
        text: &str,
        dir: Option<String>,
        vars: BTreeMap<String, String>,
        script: &'a mut Script,
        depth: u8,
    ) -> Self {
        let left = MAX_CHARS.saturating_sub(script.read);
        let chars: Vec<char> = text.chars().take(left).collect();
        script.read += chars.len();
        Self { chars, at: 0, resume: 0, dir, vars, depth, script }
    }

    /// Reads a text that a shell within this one would run.
    pub(super) fn nested(&mut self, text: &str) {
        let (dir, vars, depth) = (self.dir.clone(), self.vars.clone(), self.depth + 1);
        ShellReader::new(text, dir, vars, self.script, depth).list(false);
    }

    /// Adds a command that another one runs, such as the one after `find -exec`.
    pub(super) fn add(&mut self, command: ShellCommand) {
        let text = command.text.clone();
        self.script.pipelines.push(Pipeline { text, commands: vec![command], background: false });
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn eat(&mut self, c: char) -> bool {
        let is_there = self.peek(0) == Some(c);
        self.at += usize::from(is_there);
        is_there
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> String {
        let from = self.at;
        while self.peek(0).is_some_and(&is_part) {
            self.at += 1;
        }
        self.text(from, self.at)
    }

    /// The text between two positions, which may lie behind the end.
    fn text(&self, from: usize, to: usize) -> String {
        let to = to.min(self.chars.len());
        self.chars.get(from..to).unwrap_or_default().iter().collect()
    }

    /// Reads commands up to the end, or with `bracketed` up to a closing bracket.
    fn list(&mut self, bracketed: bool) {
        if self.depth >= MAX_COMMAND_DEPTH {
            self.at = self.chars.len();
            return;
        }
        self.depth += 1;
        let dir = self.dir.clone();
        let (mut line, mut start) = (Pipeline::default(), self.at);
        while self.at < self.chars.len() {
            let from = self.at;
            let (command, stop, end) = self.simple();
            if let Some(mut command) = self.finished(command) {
                command.text = self.text(from, end).trim().to_owned();
                self.expand(&mut command, line.commands.last());
                line.commands.push(command);
            }
            if stop == CommandEnd::Pipe {
                continue;
            }
            line.text = self.text(start, end).trim().to_owned();
            line.background = stop == CommandEnd::Background;
            // The words before a bracket that nothing opened are a pattern of `case`.
            if stop == CommandEnd::Close && !bracketed {
                line.commands.clear();
            }
            if !line.commands.is_empty() {
                self.script.pipelines.push(std::mem::take(&mut line));
            }
            if stop == CommandEnd::Open {
                self.list(true);
            }
            start = self.at;
            if stop == CommandEnd::Close && bracketed {
                break;
            }
        }
        // A `cd` within brackets has no effect after them.
        if bracketed {
            self.dir = dir;
        }
        self.depth -= 1;
    }

    /// Reads one simple command, the operator behind it, and where the command's text ends.
    fn simple(&mut self) -> (ShellCommand, CommandEnd, usize) {
        let mut command = ShellCommand { dir: self.dir.clone(), ..ShellCommand::default() };
        loop {
            let end = self.at;
            let Some(c) = self.peek(0) else { return (command, CommandEnd::End, end) };
            match (c, self.peek(1)) {
                ('\\', Some('\n')) => self.at += 2,
                ('\n', _) => {
                    self.at = (self.at + 1).max(self.resume);
                    return (command, CommandEnd::End, end);
                }
                (c, _) if c.is_whitespace() => self.at += 1,
                ('#', _) => drop(self.take_while(|c| c != '\n')),
                ('&', Some('>')) => self.at += 1,
                ('&', Some('&')) | ('|', Some('|')) | (';', _) => {
                    self.at += 1 + usize::from(c != ';');
                    return (command, CommandEnd::End, end);
                }
                ('&', _) => {
                    self.at += 1;
                    return (command, CommandEnd::Background, end);
                }
                ('|', next) => {
                    self.at += 1 + usize::from(next == Some('&'));
                    return (command, CommandEnd::Pipe, end);
                }
                ('(', Some(')')) => {
                    self.at += 2;
                    self.script.functions.extend(command.words.pop());
                    command.words.clear();
                }
                ('(', _) => {
                    self.at += 1;
                    return (command, CommandEnd::Open, end);
                }
                (')', _) => {
                    self.at += 1;
                    return (command, CommandEnd::Close, end);
                }
                ('<' | '>', next) if next != Some('(') => self.redirect(&mut command),
                _ => {
                    let words = self.word(&mut command);
                    let is_number = |word: &String| word.chars().all(|c| c.is_ascii_digit());
                    // The descriptor in `2>FILE`.
                    if !(matches!(self.peek(0), Some('<' | '>')) && words.iter().all(is_number)) {
                        command.words.extend(words);
                    }
                }
            }
        }
    }

    fn redirect(&mut self, command: &mut ShellCommand) {
        let operator = self.take_while(|c| "<>&|".contains(c));
        if operator == "<<" {
            return self.here_document(command);
        }
        self.eat('-');
        self.take_while(|c| c == ' ' || c == '\t');
        let file = self.word(command).concat();
        if operator == "<<<" {
            command.input = Some(file);
        } else if !file.is_empty() && !file.chars().all(|c| c.is_ascii_digit()) {
            command.redirects.push(Redirect { writes: operator.contains('>'), file });
        }
    }

    /// Reads the here-document whose operator ends here. Its text begins after the next line break.
    fn here_document(&mut self, command: &mut ShellCommand) {
        let strips = self.eat('-');
        self.take_while(|c| c == ' ' || c == '\t');
        let from = self.at;
        let mark = self.word(&mut ShellCommand::default()).concat();
        let is_quoted = self.text(from, self.at).contains(['\'', '"', '\\']);
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let line_end = rest.iter().position(|c| *c == '\n').map(|n| self.at + n + 1);
        let mut next = self.resume.max(line_end.unwrap_or(self.chars.len()));
        let mut body = String::new();
        while next < self.chars.len() {
            let rest = &self.chars[next..];
            let line: String = rest.iter().take_while(|c| **c != '\n').collect();
            next = (next + line.chars().count() + 1).min(self.chars.len());
            let line = if strips { line.trim_start_matches('\t') } else { &line };
            if line == mark {
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        self.resume = next;
        if !is_quoted && body.contains(['$', '`']) {
            // The shell expands it like a text in double quotes.
            let (dir, vars, depth) = (self.dir.clone(), self.vars.clone(), self.depth + 1);
            let mut inner = ShellReader::new(&body, dir, vars, self.script, depth);
            body = inner.quoted(command);
        }
        command.input = Some(body);
    }

    /// Removes words outside of the command, and changes variables and the directory. `None` if nothing is run.
    fn finished(&mut self, mut command: ShellCommand) -> Option<ShellCommand> {
        let first = command.words.iter().position(|word| !RESERVED.contains(&word.as_str()));
        command.words.drain(..first.unwrap_or(command.words.len()));
        if let [word, name, list, items @ ..] = command.words.as_slice()
            && word == "for"
            && list == "in"
        {
            self.vars.insert(name.clone(), items.join(" "));
            return None;
        }
        let own = command.words.iter().position(|word| assignment(word).is_none());
        let declares = ["export", "declare", "local", "readonly", "typeset"].contains(&command.program());
        if own.is_none() || declares {
            for (name, value) in command.words.iter().filter_map(|word| assignment(word)) {
                let is_short = value.len() <= MAX_VALUE_CHARS;
                let value = if is_short { value.to_owned() } else { UNKNOWN.to_string() };
                self.vars.insert(name.to_owned(), value);
            }
        }
        command.words.drain(..own.unwrap_or(command.words.len()));
        if ["cd", "pushd"].contains(&command.program()) {
            let to = command.words.iter().skip(1).find(|word| !word.starts_with('-') || *word == "-");
            let to = to.map_or(self.known("HOME").to_owned(), Clone::clone);
            self.dir = resolve(self.dir.as_deref(), &to).filter(|_| to != "-");
        }
        let is_empty = command.words.is_empty() && command.redirects.is_empty();
        (!is_empty).then_some(command)
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
