//! The slash commands that a person types into an agent, such as `/ralph-loop`.
//!
//! Used by the prompt hook, which runs them, and by [`super::queue`], which searches queued messages for a cancel.
//! Deliberately absent: the arguments ([`super::words`]).

use crate::session::state::SessionKind;

/// The action of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Starts a loop of this kind.
    Start(SessionKind),
    /// Ends the session's loop.
    Cancel,
}

/// Every command, with and without the plugin's name in front.
const COMMANDS: [(&str, Command); 8] = [
    ("/ralph-loop", Command::Start(SessionKind::Ralph)),
    ("/swarm:ralph-loop", Command::Start(SessionKind::Ralph)),
    ("/ulw-loop", Command::Start(SessionKind::Ulw)),
    ("/swarm:ulw-loop", Command::Start(SessionKind::Ulw)),
    ("/do-it:ralph", Command::Start(SessionKind::DoIt)),
    ("/cancel-ralph", Command::Cancel),
    ("/swarm:cancel-ralph", Command::Cancel),
    ("/do-it:cancel-ralph", Command::Cancel),
];

impl Command {
    /// The command that a prompt starts with, and the text after it; `None` for any other prompt.
    pub fn of(prompt: &str) -> Option<(Self, &str)> {
        let text = prompt.trim_start();
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (word, rest) = text.split_at_checked(end)?;
        COMMANDS.iter().find(|(name, _)| *name == word).map(|(_, command)| (*command, rest.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_command_is_recognized_only_at_the_start() {
        assert_eq!(
            Command::of("/ralph-loop \"x\" -n 3"),
            Some((Command::Start(SessionKind::Ralph), "\"x\" -n 3"))
        );
        assert_eq!(Command::of(" /ulw-loop\ta\nb"), Some((Command::Start(SessionKind::Ulw), "a\nb")));
        assert_eq!(Command::of("/do-it:ralph 30"), Some((Command::Start(SessionKind::DoIt), "30")));
        assert_eq!(Command::of("/cancel-ralph"), Some((Command::Cancel, "")));
        for text in ["", "/ralph", "/ralph-loops x", "please /ralph-loop x", "ralph-loop x", "/do-it:build"] {
            assert_eq!(Command::of(text), None, "{text}");
        }
    }
}
