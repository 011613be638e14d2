//! Changes to an agent's command: the places for added options, and the options of its own sandbox.

use super::profile::{Profile, program};

impl Profile {
    /// Returns the index for a flag that the subcommand must accept too: directly after the program and its subcommand.
    /// A flag that makes the program run once, such as `-p`, may be followed by its value.
    pub fn place_of_flags(&self, cmd: &[String]) -> usize {
        let is_subcommand = |arg: &String| !arg.starts_with('-') && self.one_shot.contains(arg);
        let after = cmd.iter().take_while(|arg| *arg != "--").position(is_subcommand);
        after.unwrap_or_else(|| program(cmd)).saturating_add(1).min(cmd.len())
    }

    /// Returns the index at which a flag can be inserted directly after the program.
    pub fn place_of_program(&self, cmd: &[String]) -> usize {
        program(cmd).saturating_add(1).min(cmd.len())
    }

    /// The command without the CLI's own sandbox.
    pub fn command_without_sandbox(&self, cmd: &[String]) -> Vec<String> {
        let flags = &self.sandbox.sandbox_flags;
        let end = cmd.iter().position(|arg| arg == "--").unwrap_or(cmd.len());
        let (mut kept, mut skip) = (vec![], false);
        for (at, arg) in cmd.iter().enumerate() {
            if std::mem::take(&mut skip) {
                continue;
            }
            let found = flags.iter().filter(|_| at < end).find_map(|flag| match flag.strip_suffix('=') {
                Some(name) if arg == name => Some(true),
                Some(_) if arg.starts_with("--") && arg.starts_with(flag.as_str()) => Some(false),
                None if arg == flag => Some(false),
                _ => None,
            });
            match found {
                Some(has_value) => skip = has_value,
                None => kept.push(arg.clone()),
            }
        }
        let at = self.place_of_flags(&kept);
        kept.splice(at..at, self.sandbox.sandbox_args.iter().cloned());
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::super::{find, table};

    #[test]
    fn option_of_the_agents_own_sandbox_is_turned_off() {
        for (typed, wanted) in [
            ("codex exec --full-auto x", "codex exec -c sandbox_mode=\"danger-full-access\" x"),
            ("codex -s workspace-write x", "codex -c sandbox_mode=\"danger-full-access\" x"),
            ("codex exec --sandbox=read-only", "codex exec -c sandbox_mode=\"danger-full-access\""),
            ("codex -- --sandbox x", "codex -c sandbox_mode=\"danger-full-access\" -- --sandbox x"),
            ("gemini -s --yolo", "gemini --yolo"),
            ("claude -p -s", "claude -p -s"),
        ] {
            let cmd: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            assert_eq!(find(&table(), &cmd).command_without_sandbox(&cmd).join(" "), wanted);
        }
    }
}
