//! Python's `re` syntax -> the syntax of the matchers beneath [`super::Pattern`].
//!
//! Only constructs that Python writes differently are rewritten; the matcher checks the rest.

/// A pattern in the matchers' syntax.
#[derive(Default)]
pub(super) struct Translation {
    pub strict: String,
    /// For each character of `strict`, its position in the source.
    pub origin: Vec<usize>,
    /// The pattern without its anchors.
    pub loose: String,
    /// `strict` and `loose` differ.
    pub anchored: bool,
    /// The pattern repeats something.
    pub varying: bool,
    /// The pattern has a construct that the linear matcher reads differently (`a++`).
    pub backtracks: bool,
}

/// Translates a pattern. Never fails: an invalid construct stays, and the matcher refuses it.
pub(super) fn translate(source: &str) -> Translation {
    let mut t = Translator { chars: source.chars().collect(), ..Translator::default() };
    while let Some(c) = t.next() {
        let quantified = std::mem::take(&mut t.quantified);
        match c {
            '\\' => t.escape(false),
            '[' => t.class(),
            '(' => t.group(),
            '{' => t.brace(),
            '}' => t.push("\\}"),
            '^' => t.anchor("^"),
            '$' => t.anchor("$"),
            '#' if t.verbose => while t.next().is_some_and(|c| c != '\n') {},
            '*' | '+' | '?' => {
                t.done.backtracks |= quantified && c == '+';
                t.done.varying |= c != '?';
                t.quantified = !quantified;
                t.push(c.encode_utf8(&mut [0; 4]));
            }
            c => t.push(c.encode_utf8(&mut [0; 4])),
        }
    }
    t.done
}

#[derive(Default)]
struct Translator {
    chars: Vec<char>,
    at: usize,
    /// The first character of the current piece.
    from: usize,
    /// The previous piece was a quantifier.
    quantified: bool,
    /// `(?x)` was seen.
    verbose: bool,
    done: Translation,
}

impl Translator {
    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.from = self.at;
        self.at += 1;
        Some(c)
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn push(&mut self, text: &str) {
        self.done.loose.push_str(text);
        self.push_strict(text);
    }

    fn push_strict(&mut self, text: &str) {
        self.done.strict.push_str(text);
        self.done.origin.extend(text.chars().map(|_| self.from));
    }

    fn anchor(&mut self, text: &str) {
        self.done.anchored = true;
        self.push_strict(text);
    }

    fn hex(&mut self, code: u32) {
        self.push(&format!("\\x{{{code:x}}}"));
    }

    /// After a backslash.
    fn escape(&mut self, in_class: bool) {
        let Some(c) = self.peek(0) else { return self.push("\\") };
        self.at += 1;
        match c {
            'Z' if !in_class => self.anchor("\\z"),
            'A' | 'b' | 'B' if !in_class => self.anchor(&format!("\\{c}")),
            'b' => self.push("\\x08"),
            '0'..='7' if self.is_octal(c, in_class) => {
                let mut code = c.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.peek(0).and_then(|c| c.to_digit(8)) else { break };
                    code = code * 8 + digit;
                    self.at += 1;
                }
                self.hex(code);
            }
            '<' | '>' => self.push(c.encode_utf8(&mut [0; 4])),
            c if c.is_whitespace() || c.is_control() => self.hex(c as u32),
            c if !c.is_ascii() => self.push(c.encode_utf8(&mut [0; 4])),
            c => self.push(&format!("\\{c}")),
        }
    }

    /// Python's rule: a leading zero, or three octal digits; in a class always.
    fn is_octal(&self, first: char, in_class: bool) -> bool {
        let octal = |ahead| self.peek(ahead).is_some_and(|c| c.is_digit(8));
        first == '0' || in_class || (first <= '3' && octal(0) && octal(1))
    }

    /// After `[`. A bracket inside is a literal in Python, and there are no set operations.
    fn class(&mut self) {
        self.push("[");
        if self.peek(0) == Some('^') {
            self.next();
            self.push("^");
        }
        let (mut first, mut after_dash) = (true, false);
        while let Some(c) = self.next() {
            let dash = c == '-' && !first && !after_dash;
            match c {
                ']' if !first => return self.push("]"),
                '\\' => self.escape(true),
                '-' if dash => self.push("-"),
                ']' | '[' | '&' | '~' | '-' | '#' => self.push(&format!("\\{c}")),
                c if c.is_whitespace() => self.hex(c as u32),
                c => self.push(c.encode_utf8(&mut [0; 4])),
            }
            (first, after_dash) = (false, dash);
        }
    }

    /// After `(`: removes comments and flags without effect here, and keeps the rest.
    fn group(&mut self) {
        if self.peek(0) != Some('?') {
            return self.push("(");
        }
        if self.peek(1) == Some('#') {
            if let Some(len) = self.chars[self.at..].iter().position(|&c| c == ')') {
                self.at += len + 1;
                return;
            }
            return self.push("(");
        }
        let flags: String =
            self.chars[self.at + 1..].iter().take_while(|c| "aiLmsux-".contains(**c)).collect();
        let end = self.peek(1 + flags.len());
        if flags.is_empty() || !matches!(end, Some(':' | ')')) {
            return self.push("(");
        }
        self.verbose |= flags.split('-').next().is_some_and(|on| on.contains('x'));
        let kept: String = flags.chars().filter(|c| !matches!(c, 'a' | 'L' | 'u')).collect();
        let kept = kept.trim_end_matches('-');
        self.at += 2 + flags.len();
        match (kept.is_empty(), end) {
            (true, Some(')')) => {}
            (_, Some(')')) => self.push(&format!("(?{kept})")),
            _ => self.push(&format!("(?{kept}:")),
        }
    }

    /// After `{`: a quantifier if it reads like one, else a literal.
    fn brace(&mut self) {
        let inner: String = self.chars[self.at..].iter().take_while(|c| **c != '}').take(24).collect();
        let closed = self.peek(inner.chars().count()) == Some('}');
        let (low, high) = inner.split_once(',').unwrap_or((&inner, ""));
        let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        if !closed || inner.is_empty() || !digits(low) || !digits(high) {
            return self.push("\\{");
        }
        let low = if low.is_empty() { "0" } else { low };
        let text = if inner.contains(',') { format!("{{{low},{high}}}") } else { format!("{{{low}}}") };
        self.push(&text);
        self.at += inner.len() + 1;
        self.quantified = true;
        self.done.varying = true;
    }
}
