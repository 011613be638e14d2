//! Judges that need more than a rule.

use crate::guard::scene::Scene;

/// Settings of git that name a program or change where git connects to.
const GIT_KEYS: [&str; 14] = [
    "core.hookspath",
    "core.fsmonitor",
    "core.sshcommand",
    "core.pager",
    "core.editor",
    "core.askpass",
    "alias.",
    "credential.",
    "filter.",
    "url.",
    "include",
    "gpg.",
    "http.proxy",
    "http.sslverify",
];

/// Statements that delete a database or its contents.
const DROPS: [&str; 5] = ["drop database", "drop schema", "drop table", "truncate table", "dropdatabase("];

pub(super) fn escalates(scene: &Scene<'_>) -> bool {
    scene.command.starters.iter().any(|starter| ["sudo", "doas", "pkexec"].contains(&starter.as_str()))
}

pub(super) fn configures_git(scene: &Scene<'_>) -> bool {
    let mut operands = scene.operands();
    if scene.program() != "git" || operands.next() != Some("config") {
        return false;
    }
    let key = operands.find(|word| *word != "set").unwrap_or_default().to_ascii_lowercase();
    let has = |start: &str| scene.words().any(|word| word.starts_with(start));
    let changes =
        operands.next().is_some() && !has("--get") || has("--unset") || has("--remove") || has("--edit");
    let is_wide = scene.words().any(|word| ["--global", "--system"].contains(&word));
    let is_program = GIT_KEYS.iter().any(|start| key.starts_with(start));
    changes && (is_wide || is_program)
}

/// A function that starts itself twice, in the background.
pub(super) fn is_fork_bomb(scene: &Scene<'_>) -> bool {
    let own = scene.program();
    let is_again = scene.pipeline.commands.iter().filter(|command| command.program() == own).count() > 1;
    scene.pipeline.background && is_again && scene.functions.iter().any(|name| name == own)
}

pub(super) fn drops_database(scene: &Scene<'_>) -> bool {
    const CLIENTS: [&str; 7] = ["psql", "mysql", "mariadb", "sqlcmd", "cockroach", "mongosh", "mongo"];
    let drops = |text: &str| {
        let text = text.to_ascii_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        DROPS.iter().any(|words| text.contains(words))
    };
    let printed = scene.printed();
    let mut texts = scene.words().chain(scene.command.input.as_deref()).chain(printed.as_deref());
    CLIENTS.contains(&scene.program()) && texts.any(drops)
}
