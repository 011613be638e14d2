//! Reads the words of a command: quotes, variables and substitutions.

use super::{Pipeline, ShellCommand, ShellReader, is_name};
use crate::guard::place::{SOME, UNKNOWN};

impl ShellReader<'_> {
    /// Reads one word. A variable without quotes can make several of it, or none.
    pub(super) fn word(&mut self, command: &mut ShellCommand) -> Vec<String> {
        let (mut words, mut word, start) = (vec![], None::<String>, self.at);
        while let Some(c) = self.peek(0) {
            match c {
                ';' | '&' | '|' | ')' => break,
                c if c.is_whitespace() => break,
                '(' if !word.as_ref().is_some_and(|word| word.ends_with('=')) => break,
                '<' | '>' if self.peek(1) != Some('(') => break,
                '<' | '>' | '(' => {
                    self.at += 1 + usize::from(c != '(');
                    word.get_or_insert_default().push_str("/dev/fd/");
                    self.substitution(command);
                }
                '\\' => {
                    self.at += 2;
                    let escaped = self.chars.get(self.at - 1).filter(|c| **c != '\n');
                    word.get_or_insert_default().extend(escaped);
                }
                '\'' => {
                    self.at += 1;
                    word.get_or_insert_default().push_str(&self.take_while(|c| c != '\''));
                    self.at += 1;
                }
                '"' => {
                    self.at += 1;
                    let text = self.quoted(command);
                    word.get_or_insert_default().push_str(&text);
                }
                '$' | '`' => {
                    let value = self.value(command);
                    let mut parts = value.split([' ', '\t', '\n']);
                    word.get_or_insert_default().push_str(parts.next().unwrap_or_default());
                    for part in parts {
                        words.extend(word.replace(part.to_owned()).filter(|word| !word.is_empty()));
                    }
                }
                '~' if self.at == start && self.peek(1).is_none_or(|c| c == '/' || !is_name(c)) => {
                    self.at += 1;
                    word.get_or_insert_default().push_str(self.known("HOME"));
                }
                c => {
                    self.at += 1;
                    word.get_or_insert_default().push(c);
                }
            }
        }
        // A character that fits nowhere must not stop the reader.
        self.at += usize::from(self.at == start);
        words.extend(word);
        words
    }

    /// Reads up to the closing double quote or the end.
    pub(super) fn quoted(&mut self, command: &mut ShellCommand) -> String {
        let mut text = String::new();
        while let Some(c) = self.peek(0) {
            match c {
                '"' => {
                    self.at += 1;
                    break;
                }
                '\\' => {
                    self.at += 2;
                    let escaped = self.chars.get(self.at - 1).copied().unwrap_or('\\');
                    let keeps = !"$`\"\\\n".contains(escaped);
                    text.extend(
                        keeps.then_some('\\').into_iter().chain(Some(escaped).filter(|c| *c != '\n')),
                    );
                }
                '$' | '`' => text.push_str(&self.value(command)),
                c => {
                    self.at += 1;
                    text.push(c);
                }
            }
        }
        text
    }

    pub(super) fn known(&self, name: &str) -> &str {
        self.vars.get(name).map_or("\u{e000}", String::as_str)
    }

    /// The value of the `$…` or the backticks that begin here.
    fn value(&mut self, command: &mut ShellCommand) -> String {
        if self.eat('`') {
            let mut text = String::new();
            while let Some(c) = self.peek(0).filter(|c| *c != '`') {
                let is_escape = c == '\\' && self.peek(1) == Some('`');
                text.push(if is_escape { '`' } else { c });
                self.at += 1 + usize::from(is_escape);
            }
            self.at += 1;
            let before = self.script.pipelines.len();
            self.nested(&text);
            return self.output_of(before, command);
        }
        self.at += 1;
        match (self.peek(0), self.peek(1)) {
            (Some('('), Some('(')) => {
                while self.at < self.chars.len() && !(self.eat(')') && self.eat(')')) {
                    self.at += usize::from(self.peek(0) != Some(')'));
                }
                SOME.to_string()
            }
            (Some('('), _) => {
                self.at += 1;
                self.substitution(command)
            }
            (Some('{'), _) => {
                self.at += 1;
                self.braces()
            }
            (Some('\''), _) => {
                self.at += 1;
                let text = self.take_while(|c| c != '\'');
                self.at += 1;
                text
            }
            (Some('"'), _) => String::new(),
            (Some(c), _) if is_name(c) && !c.is_ascii_digit() => {
                let name = self.take_while(is_name);
                self.known(&name).to_owned()
            }
            (Some('$' | '#' | '?'), _) => {
                self.at += 1;
                SOME.to_string()
            }
            (Some(c), _) if c.is_ascii_digit() || "@*!-".contains(c) => {
                self.at += 1;
                UNKNOWN.to_string()
            }
            _ => "$".to_owned(),
        }
    }

    /// The value of `${…}`.
    fn braces(&mut self) -> String {
        let name = self.take_while(is_name);
        let mut depth = 1;
        let from = self.at;
        while let Some(c) = self.peek(0) {
            depth += i32::from(c == '{') - i32::from(c == '}');
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        let change = self.text(from, self.at.saturating_sub(1));
        match (self.vars.get(&name), change.trim_start_matches(':').chars().next()) {
            (Some(value), None | Some('-' | '?' | '=')) => value.clone(),
            (None, Some('?')) => SOME.to_string(),
            (None, Some('-' | '=')) if !change.contains(['$', '`']) => {
                change.trim_start_matches(':').chars().skip(1).collect()
            }
            (None | Some(_), _) => UNKNOWN.to_string(),
        }
    }

    /// Reads the commands up to the closing bracket, and returns their output.
    fn substitution(&mut self, command: &mut ShellCommand) -> String {
        let before = self.script.pipelines.len();
        self.list(true);
        self.output_of(before, command)
    }

    /// The output of the pipelines since `before`, as far as it is known without running them.
    fn output_of(&self, before: usize, command: &mut ShellCommand) -> String {
        let pipelines = self.script.pipelines.get(before..).unwrap_or_default();
        let programs = pipelines.iter().flat_map(|pipeline| &pipeline.commands);
        command.substituted.extend(programs.map(|inner| inner.program().to_owned()));
        let [Pipeline { commands, .. }] = pipelines else { return UNKNOWN.to_string() };
        let [inner] = commands.as_slice() else { return UNKNOWN.to_string() };
        let words: Vec<&str> = inner.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["echo" | "printf", words @ ..] => words.join(" "),
            ["mktemp", ..] => format!("/tmp/{SOME}"),
            ["pwd", ..] => inner.dir.clone().unwrap_or_else(|| SOME.to_string()),
            ["git", "rev-parse", "--show-toplevel"] => self.known("PROJECT").to_owned(),
            ["which" | "realpath" | "readlink", .., path] => (*path).to_owned(),
            ["dirname", path] => format!("{path}/.."),
            ["command", "-v", path] => (*path).to_owned(),
            _ => UNKNOWN.to_string(),
        }
    }
}
