//! The help of `swarm ui`, and the list of its keys, which the interface shows too.

pub(super) const UI_LONG_ABOUT: &str = "\
Show all workers and act on them, full screen.

The list starts with the workers that need you. Then come those that failed or are lost, that work, that are parked, \
and that finished since you last looked. The rest (killed, or finished and seen) is hidden until you press Space. \
A finished worker counts as seen after you selected it for a second, named it in status, why, report or attach, or swarm report listed it.

The panel on the right shows the selected worker: why it is in its state, its screen, its log, the changes of its \
last iteration, and a report. A window of fewer than 72 columns shows the list or the panel.

If your settings have remote hosts, their workers are in the list too, with the host before the name. The keys act on \
that host. The workers of a host that does not answer stay in the list and are marked.

Each action is a verb of swarm, and : runs any verb. Quitting changes nothing: workers go on.

If the daemon does not answer, the screen stays, the first line shows the reason, and swarm connects again.";

pub(crate) const UI_KEYS: [(&str, &str); 28] = [
    ("Up Down k j", "select the worker above or below"),
    ("g G", "select the first or the last worker"),
    ("Tab S-Tab", "select the next or the previous worker that needs you"),
    ("Space", "show or hide the rest: killed, or finished and seen"),
    ("/", "filter by name, status, cause or tag; Esc ends it"),
    ("Left Right", "show the page before or after"),
    ("v", "show the worker's screen"),
    ("w", "why: explain the worker's state"),
    ("l", "log: show the worker's output"),
    ("d", "diff: show the changes of the last iteration"),
    ("o", "report: show the iterations of a loop"),
    ("the same again", "give the page the whole window; Esc returns to the list"),
    ("PgUp PgDn", "scroll the page"),
    ("Enter", "attach: open the worker's window; Ctrl-B, then D returns"),
    ("y n", "allow or deny the request that the worker's panel shows"),
    ("a", "always allow it; for a question: type the answer"),
    ("m", "message: type a text into the worker"),
    ("p", "pause a loop after this iteration"),
    ("r", "resume a loop"),
    ("x", "interrupt: press Ctrl-C in the worker"),
    ("K", "kill the worker, after a question"),
    ("R", "respawn: start the worker again with the same settings"),
    ("e", "edit the prompt of a loop of this machine in $EDITOR"),
    ("f", "freeze: pause all loops here; once paused: resume them"),
    ("s", "spawn a worker; the last command line is there to edit"),
    (":", "run any verb of swarm; Esc ends it"),
    ("?", "show or hide the keys"),
    ("q", "quit; the workers go on"),
];

pub(super) fn after() -> String {
    let width = UI_KEYS.iter().map(|(keys, _)| keys.len()).max().unwrap_or(0);
    let lines = UI_KEYS.map(|(keys, text)| format!("  {keys:<width$}  {text}"));
    format!("Keys:\n{}", lines.join("\n"))
}
