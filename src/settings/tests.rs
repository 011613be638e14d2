//! Files in, settings or one error out.

use std::fs;

use proptest::prelude::*;
use swarm_state::model::PromptVia;
use swarm_state::quota::QuotaAgent;
use tempfile::TempDir;

use super::file::MAX_SETTINGS_BYTES;
use super::*;
use crate::files::file_name;

struct Fixture {
    dir: TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn load(&self, text: &str) -> Result<Settings> {
        let claude = Profile { name: "claude".into(), commands: vec!["claude".into()], ..Profile::generic() };
        let codex = Profile { name: "codex".into(), ..claude.clone() };
        let settings = Settings::load_over(vec![claude, codex], &self.file("c.toml", text), None, None);
        settings.map_err(|mut errors| errors.swap_remove(0).1)
    }

    /// The error of `text`, without the directory.
    fn error(&self, text: &str) -> String {
        let error = self.load(text).unwrap_err();
        error.message.replace(&format!("{}/", self.dir.path().display()), "")
    }
}

#[test]
fn missing_settings_files_give_the_defaults() {
    let dir = Fixture::new();
    let settings = Settings::load(&dir.path("none"), Some(&dir.path("no/ne")), None).unwrap();
    assert_eq!((settings.command, settings.files), (None, vec![]));
    let error = Settings::load(&dir.path("none"), None, Some(&dir.path("gone.toml"))).unwrap_err();
    assert!(error.message.contains("gone.toml': No such file"), "{error}");
    // Being there and not readable is not the same as not being there.
    assert!(Settings::load(dir.dir.path(), None, None).is_err());
}

#[test]
fn only_a_regular_file_of_a_sane_size_is_read() {
    let dir = Fixture::new();
    nix::unistd::mkfifo(&dir.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("fifo", dir.path("link")).unwrap();
    for name in ["fifo", "link"] {
        let error = Settings::load(&dir.path("none"), Some(&dir.path(name)), None).unwrap_err();
        assert!(error.message.ends_with(&format!("{name}': it is not a regular file")), "{error}");
    }
    let line = "# a comment\n";
    let most = line.repeat(usize::try_from(MAX_SETTINGS_BYTES).unwrap() / line.len());
    let file = dir.file("long.toml", &most);
    assert!(Settings::load(&file, None, None).is_ok());
    let file = dir.file("long.toml", &format!("{most}{line}"));
    let error = Settings::load(&file, None, None).unwrap_err();
    assert!(error.message.ends_with("it is larger than 1048576 bytes"), "{error}");
}

#[test]
fn sizes_have_limits() {
    for (text, wanted) in
        [("20x5", Some((20, 5))), ("1000x500", Some((1000, 500))), ("19x5", None), ("20x4", None)]
    {
        assert_eq!(size(text), wanted, "{text}");
    }
    for text in ["1001x500", "1000x501", "200", "x", "200x", "-20x50", "200x50x1", "70000x50", ""] {
        assert_eq!(size(text), None, "{text}");
    }
}

#[test]
fn later_files_win_key_by_key() {
    let dir = Fixture::new();
    fs::create_dir(dir.path("proj")).unwrap();
    let user = dir.file(
        "user.toml",
        "command = [\"claude\"]\n[ralph]\nmax_iterations = 5\ninactivity_timeout = \"5m\"\nquestion_timeout = 0\nprompt_file = \"/p/P.md\"\n",
    );
    let local =
        dir.file("proj/swarm.toml", "ralph.prompt_file = \"sub/PROMPT.md\"\nralph.max_iterations = 7\n");
    let explicit = dir.file("x.toml", "[ralph]\nmax_iterations = 0x10\ndone_pattern = 'All \\w+ done'\n");
    let settings = Settings::load(&user, Some(&local), Some(&explicit)).unwrap();
    assert_eq!(settings.command, Some(vec!["claude".to_owned()]));
    assert_eq!(
        settings.ralph,
        RalphDefaults {
            prompt_file: Some(dir.path("proj/sub/PROMPT.md")),
            max_iterations: Some(16),
            inactivity_timeout: Some(300),
            question_timeout: Some(0),
            done_pattern: Some("All \\w+ done".into()),
            reviewer: None,
        }
    );
    assert_eq!(settings.files, [user, local, explicit]);
}

/// A file, and its error.
const FAULTS: &[(&str, &str)] = &[
    (
        "[ralph]\n\nmax_iteration = 5",
        "c.toml:3: unknown key 'ralph.max_iteration' (did you mean 'max_iterations'?)",
    ),
    ("x = 1", "c.toml:1: unknown key 'x'"),
    (
        "max_iterations = 1",
        "c.toml:1: unknown key 'max_iterations' (this key belongs in [ralph] or [ralph_loop])",
    ),
    ("[ralph]\nmax_cost = 1", "c.toml:2: unknown key 'ralph.max_cost' (this key belongs in [ralph_loop])"),
    ("[tmux]\nready = []", "c.toml:2: unknown key 'tmux.ready' (this key belongs in [agents.NAME])"),
    (
        "[ralph]\ncommand = []",
        "c.toml:2: unknown key 'ralph.command' (this key belongs in [notify] or the top level, above all sections)",
    ),
    ("[agent.claude]\nready = []", "c.toml:1: unknown key 'agent' (did you mean 'agents'?)"),
    ("[agents.claude]\nredy = []", "c.toml:2: unknown key 'agents.claude.redy' (did you mean 'ready'?)"),
    ("[ralph]\nmax_iterations = 0", "c.toml:2: 'ralph.max_iterations' must be a whole number, at least 1"),
    ("[ralph]\nmax_iterations = -3", "c.toml:2: 'ralph.max_iterations' must be a whole number, at least 1"),
    (
        "[ralph]\nmax_iterations = \"9\"",
        "c.toml:2: 'ralph.max_iterations' must be a whole number, at least 1",
    ),
    ("[ralph]\nmax_iterations = 5000000000", "c.toml:2: 'ralph.max_iterations' is too large: 5000000000"),
    (
        "[ralph]\ninactivity_timeout = 1.5",
        "c.toml:2: 'ralph.inactivity_timeout' must be a number of seconds or a text like \"90s\", \"10m\" or \"8h\", at least 1s",
    ),
    (
        "[ralph]\nquestion_timeout = \"1x\"",
        "c.toml:2: 'ralph.question_timeout' must be a number of seconds or a text like \"90s\", \"10m\" or \"8h\"",
    ),
    ("[ralph]\ndone_pattern = \"\"", "c.toml:2: 'ralph.done_pattern' must not be empty"),
    ("[ralph]\nprompt_file = \"\"", "c.toml:2: 'ralph.prompt_file' must not be empty"),
    (
        "[runners.x]\ncommands = []",
        "c.toml:2: 'runners.x.commands' must be a list of commands, such as [\"mytests run\"]",
    ),
    ("ralph = 3", "c.toml:1: 'ralph' must be a table"),
    ("command = \"claude -p\"", "c.toml:1: 'command' must be a list like [\"claude\", \"-p\"]"),
    ("command = []", "c.toml:1: 'command' must name a command"),
    ("command = [\"\"]", "c.toml:1: 'command' must name a command"),
    ("[tmux]\nsize = \"200\"", "c.toml:2: 'tmux.size' must be a size like \"200x50\" (20x5 to 1000x500)"),
    (
        "[limits]\nmemory = 200",
        "c.toml:2: 'limits.memory' must be a size of 16M to 1048576T, such as 200M, 1.5G or 8GiB in quotes",
    ),
    (
        "[limits]\nmemory = \"1M\"",
        "c.toml:2: 'limits.memory' must be a size of 16M to 1048576T, such as 200M, 1.5G or 8GiB in quotes",
    ),
    ("[limits]\ncpus = 0", "c.toml:2: 'limits.cpus' must be a number of CPUs from 0.01 to 4096, such as 1.5"),
    (
        "[limits]\ncpus = \"2\"",
        "c.toml:2: 'limits.cpus' must be a number of CPUs from 0.01 to 4096, such as 1.5",
    ),
    (
        "[limits]\npids = 3",
        "c.toml:2: 'limits.pids' must be a whole number, 5 to 4194304 (an agent in a sandbox that runs one command has up to 5 processes)",
    ),
    ("[quota.claude]\npark_at = 0", "c.toml:2: 'quota.claude.park_at' must be a whole number, 1 to 100"),
    ("[quota.claude]\npark_at = 101", "c.toml:2: 'quota.claude.park_at' must be a whole number, 1 to 100"),
    ("[quota.codex]\npark_at = \"90\"", "c.toml:2: 'quota.codex.park_at' must be a whole number, 1 to 100"),
    ("[quota.claude]\npark = 90", "c.toml:2: unknown key 'quota.claude.park'"),
    (
        "[quota.aider]\npark_at = 90",
        "c.toml:1: 'quota.aider' names an agent that does not report its limits (claude and codex do)",
    ),
    (
        "[quota]\npark_at = 90",
        "c.toml:2: 'quota.park_at' names an agent that does not report its limits (claude and codex do)",
    ),
    ("[limits]\npressure = 101", "c.toml:2: 'limits.pressure' must be a whole number, 1 to 100"),
    ("[tmux]\nsize = \"1x1\"", "c.toml:2: 'tmux.size' must be a size like \"200x50\" (20x5 to 1000x500)"),
    (
        "[agents.x]\nprompt_via = \"pipe\"",
        "c.toml:2: 'agents.x.prompt_via' must be \"auto\", \"stdin\", \"arg\" or \"paste\"",
    ),
    ("[agents.x]\nready = [\n \"a\",\n \"\"]", "c.toml:4: 'agents.x.ready' must not be empty"),
    ("[agents.x]\nend_of_options = 1", "c.toml:2: 'agents.x.end_of_options' must be true or false"),
    (
        "[agents.x]\nstartup = [{ pattern = \"a\" }]",
        "c.toml:2: 'agents.x.startup' must be a list of tables { pattern = \"…\", what = \"…\" }",
    ),
    (
        "[[agents.x.startup]]\npattern = \"a\"\nwhats = \"b\"",
        "c.toml:3: unknown key 'agents.x.startup.whats' (did you mean 'what'?)",
    ),
    (
        "[ralph_loop]\nmax_iterations = 101",
        "c.toml:2: 'ralph_loop.max_iterations' must be a whole number, 1 to 100",
    ),
    (
        "[ralph_loop]\nmax_iterations = 0",
        "c.toml:2: 'ralph_loop.max_iterations' must be a whole number, 1 to 100",
    ),
    (
        "[ralph_loop]\nmax_context = 101",
        "c.toml:2: 'ralph_loop.max_context' must be a whole number, 1 to 100",
    ),
    (
        "[ralph_loop]\nmax_cost = 0.0",
        "c.toml:2: 'ralph_loop.max_cost' must be an amount of US dollars, more than 0, as in 2.50",
    ),
    (
        "[ralph_loop]\nmax_cost = \"3\"",
        "c.toml:2: 'ralph_loop.max_cost' must be an amount of US dollars, more than 0, as in 2.50",
    ),
    (
        "[ralph_loop]\nmax_time = 0",
        "c.toml:2: 'ralph_loop.max_time' must be a number of seconds or a text like \"90s\", \"10m\" or \"8h\", at least 1s",
    ),
    (
        "[ralph_loop]\nmax_time = \"0m\"",
        "c.toml:2: 'ralph_loop.max_time' must be a number of seconds or a text like \"90s\", \"10m\" or \"8h\", at least 1s",
    ),
    ("[ralph_loop]\ncompletion_tag = \"\"", "c.toml:2: 'ralph_loop.completion_tag' must not be empty"),
    ("[ralph_loop]\n\nagent = \"build\"", "c.toml:3: 'ralph_loop.agent' names an unknown agent"),
    (
        "[ralph_loop]\nmax_itrations = 1",
        "c.toml:2: unknown key 'ralph_loop.max_itrations' (did you mean 'max_iterations'?)",
    ),
    ("[outage]\nlimits = []", "c.toml:2: unknown key 'outage.limits' (did you mean 'limit'?)"),
    ("[outage]\nlimit = \"x\"", "c.toml:2: 'outage.limit' must be a list of patterns"),
    ("[agents.x]\noutage = []", "c.toml:2: 'agents.x.outage' must be a table"),
    (
        "[agents.x.outage]\nlogins = []",
        "c.toml:2: unknown key 'agents.x.outage.logins' (did you mean 'login'?)",
    ),
    (
        "[agents.x]\ninput_price = -1",
        "c.toml:2: 'agents.x.input_price' must be a price in US dollars per million tokens, as in 2.50",
    ),
    // Two faults: the one that a reader meets first.
    ("[tmux]\nsize = 1\n[ralph]\nfoo = 1", "c.toml:2: 'tmux.size' must be a text"),
];

#[test]
fn settings_errors_name_file_line_and_key() {
    let dir = Fixture::new();
    for (text, message) in FAULTS {
        assert_eq!(dir.error(text), *message, "{text}");
    }
    for (text, line) in
        [("a = 1\nb = = 2", 2), ("[ralph]\nmax_iterations = 1\nmax_iterations = 2", 3), ("[", 1)]
    {
        assert!(dir.error(text).starts_with(&format!("c.toml:{line}: ")), "{}", dir.error(text));
    }
}

#[test]
fn all_faults_of_all_files_are_found_at_once() {
    let dir = Fixture::new();
    let user = dir.file("u.toml", "[tmux]\nsize = 1\n[ralph]\nfoo = 1\n[agents.x]\nready = 1\nbar = 1\n");
    let local = dir.file("l.toml", "command = [");
    let errors = Settings::load_all(&user, Some(&local), Some(&dir.path("none"))).unwrap_err();
    let places: Vec<_> = errors.iter().map(|(_, error)| error.message.split(": ").next().unwrap()).collect();
    let in_user = [2, 4, 6, 7].map(|line| format!("{}:{line}", user.display()));
    let missing = format!("cannot read settings file '{}'", dir.path("none").display());
    assert_eq!(places, [&in_user[..], &[format!("{}:1", local.display()), missing]].concat());
    assert_eq!(errors[1].1.hint.as_deref(), Some("for the keys: man swarm-config"));
}

#[test]
fn the_template_is_all_comments_and_valid_without_them() {
    let dir = Fixture::new();
    assert_eq!(dir.load(TEMPLATE).unwrap().values, []);
    let set: String = TEMPLATE
        .lines()
        .filter(|line| !line.starts_with("# "))
        .map(|line| line.replacen('#', "", 1) + "\n")
        .collect();
    let settings = dir.load(&set).unwrap();
    assert_eq!(settings.values.len(), set.matches(" = ").count());
    for (key, default) in keys() {
        let value = settings.values.iter().find(|value| value.key == key).map(|value| &value.value);
        assert!(
            value.is_none() || default.is_none() || value == default.as_ref(),
            "{key} is not at its default"
        );
    }
}

#[test]
fn every_value_has_its_file_and_line() {
    let dir = Fixture::new();
    let user = dir.file("u.toml", "command = [\n  'a',\n]\nralph.max_iterations = 5\n[agents.mine]\n");
    let local =
        dir.file("l.toml", "[agents.claude.outage]\nlimit = ['x']\n[agents.claude]\narg_flag = 'off'\n");
    let settings = Settings::load(&user, Some(&local), None).unwrap();
    let value = |v: &SettingValue| format!("{} {}:{} {}", v.key, file_name(&v.file), v.line, v.value);
    let values: Vec<_> = settings.values.iter().map(value).collect();
    assert_eq!(
        values,
        [
            "agents.mine u.toml:5 {}",
            "command u.toml:1 [\"a\"]",
            "ralph.max_iterations u.toml:4 5",
            "agents.claude.arg_flag l.toml:4 \"off\"",
            "agents.claude.outage l.toml:1 { limit = [\"x\"] }",
        ]
    );
}

#[test]
fn a_pattern_must_compile() {
    let dir = Fixture::new();
    for text in [
        "[ralph]\ndone_pattern = '('",
        "[agents.x]\nready = ['(']",
        "[agents.x]\npermission = [{ pattern = '(', what = 'w' }]",
        "[outage]\nlimit = ['(']",
        "[agents.x]\noutage = { login = ['('] }",
    ] {
        let error = dir.error(text);
        assert!(error.starts_with("c.toml:2: '") && error.contains("invalid pattern \"(\""), "{error}");
    }
}

#[test]
fn without_a_change_the_profiles_are_the_built_in_ones() {
    let dir = Fixture::new();
    assert_eq!(Settings::load(&dir.path("none"), None, None).unwrap().agents, swarm_state::profiles::table());
    let user = dir.file("u.toml", "[agents.generic]\nready = ['^go$']");
    let agents = Settings::load(&user, None, None).unwrap().agents;
    assert_eq!(agents.len(), swarm_state::profiles::table().len());
    let found = swarm_state::profiles::find(&agents, &["who-knows".to_owned()]);
    assert_eq!((found.name.as_str(), found.ready.as_slice()), ("generic", ["^go$".to_owned()].as_slice()));
}

#[test]
fn profiles_are_changed_key_by_key_and_come_first() {
    let dir = Fixture::new();
    let text = r#"
        [agents.codex]
        ready = ["^› "]
        interactive_via = "paste"
        startup = [{ pattern = "Sign in", what = "login" }]
        [agents.mine]
        prompt_via = "arg"
        arg_flag = "--task"
    "#;
    let agents = dir.load(text).unwrap().agents;
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["codex", "mine", "claude"]);
    let codex = &agents[0];
    assert_eq!(
        (codex.ready.as_slice(), codex.interactive_via),
        (["^› ".to_owned()].as_slice(), PromptVia::Paste)
    );
    assert_eq!((codex.startup[0].pattern.as_str(), codex.startup[0].what.as_str()), ("Sign in", "login"));
    assert_eq!(codex.commands, ["claude"], "an untouched field stays");
    let mine = &agents[1];
    assert_eq!(
        (mine.commands.as_slice(), mine.interactive_via),
        (["mine".to_owned()].as_slice(), PromptVia::Arg)
    );
    assert_eq!(mine.arg_flag.as_deref(), Some("--task"));
}

#[test]
fn the_defaults_of_loop_are_read() {
    let text = "[ralph_loop]\nmax_iterations = 100\nmax_cost = 3\nmax_time = '1m'\nmax_context = 70\ncompletion_tag = 'DONE'\nagent = 'mine'\n\
                [agents.mine]\n";
    let defaults = LoopDefaults {
        max_iterations: Some(100),
        max_cost: Some(3_000_000),
        max_time: Some(60),
        max_context: Some(70),
        completion_tag: Some("DONE".into()),
        agent: Some("mine".into()),
    };
    assert_eq!(Fixture::new().load(text).unwrap().ralph_loop, defaults);
    assert_eq!(Fixture::new().load("").unwrap().ralph_loop, LoopDefaults::default());
}

#[test]
fn outage_wordings_of_an_agent_come_first_and_forbidden_before_others() {
    let text = "[outage]\noverload = ['b']\nforbidden = ['a']\n[agents.claude.outage]\nlimit = ['own']\n";
    let settings = Fixture::new().load(text).unwrap();
    let of = |name: &str| -> Vec<String> {
        let row = settings.agents.iter().find(|row| row.name == name).unwrap();
        row.outage.iter().map(|wording| format!("{} {}", wording.kind.word(), wording.pattern)).collect()
    };
    assert_eq!(of("claude"), ["limit own", "forbidden a", "overload b"]);
    assert_eq!(of("codex"), ["forbidden a", "overload b"]);
}

#[test]
fn prices_are_dollars_a_million_tokens() {
    let text = "[agents.codex]\ninput_price = 1.25\ncached_price = 0\noutput_price = 10\n";
    let codex = Fixture::new().load(text).unwrap().agents.remove(0);
    let prices = (codex.input_price, codex.cached_price, codex.output_price);
    assert_eq!(prices, (Some(1_250_000), Some(0), Some(10_000_000)));
    assert!(codex.knows_cost());
}

#[test]
fn limits_are_read() {
    let text = "[limits]\nmemory = \"1.5G\"\ncpus = 0.5\npids = 9\npressure = 20\n";
    let limits = Fixture::new().load(text).unwrap().limits;
    let wanted = Caps { memory: Some(1536 << 20), cpu_percent: Some(50), pids: Some(9), pressure: Some(20) };
    assert_eq!(limits, wanted);
    assert_eq!(Fixture::new().load("[limits]\ncpus = 2").unwrap().limits.cpu_percent, Some(200));
}

#[test]
fn daemon_settings_are_read() {
    let dir = Fixture::new();
    let daemon = |text: &str| dir.load(text).map(|settings| settings.daemon.resume_after_shutdown);
    assert_eq!(daemon("[daemon]\nresume_after_shutdown = true").unwrap(), Some(true));
    assert_eq!(daemon("[daemon]").unwrap(), None);
    let error = daemon("[daemon]\nresume_after_shutdown = 1").unwrap_err();
    assert!(error.message.ends_with("c.toml:2: 'daemon.resume_after_shutdown' must be true or false"));
}

#[test]
fn only_the_users_file_can_relax_the_guard() {
    let dir = Fixture::new();
    let guard = dir.load("[guard]\nallow = ['sudo .*']\noff = true").unwrap().guard;
    assert_eq!(guard, GuardSettings { allow: Some(vec!["sudo .*".into()]), off: Some(true) });
    let error = dir.error("[guard]\nallow = ['(']");
    assert!(error.starts_with("c.toml:2: 'guard.allow' holds an invalid pattern"), "{error}");
    let (user, local) =
        (dir.file("user.toml", "[guard]\noff = false"), dir.file("swarm.toml", "guard.off = true"));
    for (local, explicit) in [(Some(&*local), None), (None, Some(&*local))] {
        let error = Settings::load(&user, local, explicit).unwrap_err();
        assert!(
            error.message.ends_with("swarm.toml:1: 'guard.off' is accepted only in the user's settings file")
        );
        assert_eq!(error.hint, Some(format!("move it to {}", user.display())));
    }
    let empty = dir.file("empty.toml", "[guard]");
    assert!(Settings::load(&user, Some(&empty), None).is_err());
}

#[test]
fn park_at_is_accepted_only_in_the_users_file() {
    let dir = Fixture::new();
    let park_at =
        dir.load("[quota.claude]\npark_at = 90\n[quota.codex]\npark_at = 100").unwrap().quota.park_at;
    assert_eq!(park_at, [(QuotaAgent::Claude, 90), (QuotaAgent::Codex, 100)].into());
    let (user, local) = (dir.file("user.toml", ""), dir.file("swarm.toml", "[quota.claude]\npark_at = 100"));
    let error = Settings::load(&user, Some(&local), None).unwrap_err().message;
    let end = "swarm.toml:2: 'quota.claude.park_at' is accepted only in the user's settings file";
    assert!(error.ends_with(end), "{error}");
}

#[test]
fn notifications_are_only_in_the_users_file() {
    let dir = Fixture::new();
    let text = "[notify]\nclasses = ['ended']\ndelay = 0\ncommand = ['say', '']\ndesktop = true\n\
        ntfy = 'https://ntfy.sh/t'\nwebhook = 'http://[::1]:80'\nsecret_file = 'key'\nquiet = '22:00-07:00'";
    let notify = dir.load(text).unwrap().notify;
    let expected = NotifySettings {
        classes: Some(vec![swarm_state::notify::NotifyClass::Ended]),
        delay: Some(0),
        command: Some(vec!["say".into(), String::new()]),
        desktop: Some(true),
        ntfy: Some("https://ntfy.sh/t".into()),
        webhook: Some("http://[::1]:80".into()),
        secret_file: Some(dir.path("key")),
        quiet: swarm_state::notify::QuietHours::parse("22:00-07:00"),
    };
    assert_eq!(notify, expected);
    let (user, local) = (dir.file("user.toml", ""), dir.file("swarm.toml", "[notify]\ncommand = ['rm']"));
    for (local, explicit) in [(Some(&*local), None), (None, Some(&*local))] {
        let error = Settings::load(&user, local, explicit).unwrap_err();
        let end = "swarm.toml:2: 'notify.command' is accepted only in the user's settings file";
        assert!(error.message.ends_with(end), "{error}");
    }
}

#[test]
fn a_url_has_https_and_no_password() {
    let dir = Fixture::new();
    for (url, fault) in [
        ("https://example.org/x?y=1#z", ""),
        ("https://example.org:8080", ""),
        ("http://localhost:1/x", ""),
        ("http://127.9.9.9", ""),
        ("http://example.org", "must be a URL that starts with https:// (http:// is only for this machine)"),
        (
            "http://localhost.example.org",
            "must be a URL that starts with https:// (http:// is only for this machine)",
        ),
        (
            "http://127.0.0.1.example.org",
            "must be a URL that starts with https:// (http:// is only for this machine)",
        ),
        (
            "http://localhost@example.org",
            "must not contain a user name or password; use 'notify.secret_file'",
        ),
        ("ftp://example.org", "must be a URL that starts with https://"),
        ("example.org", "must be a URL that starts with https://"),
        ("https://", "must be a URL with a host"),
        ("https://a b", "must be a URL that starts with https://"),
    ] {
        let file = format!("[notify]\nwebhook = '{url}'");
        let error = dir.load(&file).err().map(|error| error.message).unwrap_or_default();
        let place = format!("{}:2: 'notify.webhook' ", dir.path("c.toml").display());
        assert_eq!(error.strip_prefix(&*place).unwrap_or(&error), fault, "{url}");
    }
    for (line, fault) in [
        (
            "ntfy = 'https://ntfy.sh/'",
            "'notify.ntfy' must be the URL of a topic, as in \"https://ntfy.sh/TOPIC\"",
        ),
        ("quiet = '22-7'", "'notify.quiet' must be two times of day like \"22:00-07:00\""),
        ("classes = ['done']", "'notify.classes' must be a list of \"needs_you\", \"ended\" and \"fleet\""),
        (
            "delay = 'soon'",
            "'notify.delay' must be a number of seconds or a text like \"90s\", \"10m\" or \"8h\"",
        ),
        ("command = 'say'", "'notify.command' must be a list like [\"claude\", \"-p\"]"),
        ("comand = ['say']", "unknown key 'notify.comand' (did you mean 'command'?)"),
    ] {
        assert_eq!(dir.error(&format!("[notify]\n{line}")), format!("c.toml:2: {fault}"));
    }
}

#[test]
fn project_settings_cannot_open_the_sandbox_or_disable_the_guard() {
    let dir = Fixture::new();
    let user = dir.file("user.toml", "");
    for text in [
        "[agents.claude]\nhooks = 'off'",
        "[hosts.gpu1]\nssh = 'gpu1'",
        "[agents.claude]\nhosts = ['*.com']",
        "[agents.claude]\nstate_dirs = ['~/.ssh']",
        "[agents.claude]\nstate_locked = []",
        "[agents.claude]\ncommands = ['other']",
        "[agents.mine]\ncommands = ['mine', 'claude']",
        "[agents.mine]\nsandbox_flags = ['-s']",
    ] {
        let local = dir.file("swarm.toml", text);
        let error = Settings::load(&user, Some(&local), None).unwrap_err();
        assert!(
            error.message.ends_with("can only be in your own settings: an agent could change this file"),
            "{error}"
        );
        assert!(Settings::load(&local, None, None).is_ok(), "{text}");
    }
    let local =
        dir.file("swarm.toml", "[agents.mine]\ncommands = ['mine']\n[agents.claude]\ninput_price = 1");
    assert!(Settings::load(&user, Some(&local), None).is_ok());
}

#[test]
fn tmux_settings_are_read() {
    let dir = Fixture::new();
    let tmux = dir.load("\u{feff}[tmux]\nsize = \"120x40\"\nsource = \"my.conf\"").unwrap().tmux;
    assert_eq!(tmux, TmuxSettings { source: Some(dir.path("my.conf")), size: Some((120, 40)) });
}

/// A new field of the profile needs a line in the table of keys.
#[test]
fn the_table_of_keys_covers_the_profile() {
    // A field that is left out of the serde form while it says nothing must say something here.
    let profile = Profile {
        bare_one_shot: true,
        session_flag: Some("--session".into()),
        session_own: vec!["--resume".into()],
        tells_cost: true,
        hold: Some(60),
        record_args: vec!["--json".into()],
        permission_flags: vec!["--yes".into()],
        permission_files: vec![".agent.toml".into()],
        unattended_args: vec!["--yes".into()],
        root_variable: Some("IN_CONTAINER".into()),
        chat_flag: Some("--chat".into()),
        input: vec!["(?P<input>.)".into()],
        error: vec!["(?P<error>.)".into()],
        hides_input: true,
        one_shot_takes_prompt: true,
        hooks: swarm_state::profiles::HookStyle::Claude,
        model_flag: Some("--model".into()),
        input_price: Some(1),
        cached_price: Some(1),
        output_price: Some(1),
        outage: swarm_state::outage::common(),
        sandbox: swarm_state::profiles::SandboxProfile {
            state_dirs: vec!["~/.agent".into()],
            state_locked: vec!["hooks/".into()],
            state_readable: vec!["~/.agentrc".into()],
            state_copies: vec!["~/.agent.json".into()],
            hosts: vec!["api.example.org".into()],
            sandbox_flags: vec!["--sandbox".into()],
            sandbox_args: vec!["--no-sandbox".into()],
            docker_template: Some("agent".into()),
            docker_state: vec![".agent".into()],
        },
        ..Profile::generic()
    };
    let profile = serde_json::to_value(profile).unwrap();
    let mut fields: Vec<&str> = profile.as_object().unwrap().keys().map(String::as_str).collect();
    let mut reached: Vec<&str> =
        agents::AGENT_KEYS.iter().map(|(_, field, _)| *field).chain(["name"]).collect();
    fields.sort_unstable();
    reached.sort_unstable();
    reached.dedup();
    assert_eq!(reached, fields);
}

#[test]
fn deep_nesting_is_an_error() {
    let dir = Fixture::new();
    assert!(dir.error(&format!("command = {}", "[".repeat(100_000))).starts_with("c.toml:1: "));
    assert!(dir.error(&"a.".repeat(50_000)).starts_with("c.toml:1: "));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_settings_do_not_panic(text in "\\PC*|([a-z\\[\\]={}\"'.0-9\n]|ralph|agents|max_iterations)*") {
        let dir = Fixture::new();
        if let Err(error) = dir.load(&text) {
            prop_assert!(error.message.contains("c.toml:"), "{}", error);
        }
    }
}

#[test]
fn hosts_have_a_name_and_a_destination() {
    let dir = Fixture::new();
    let load = |text: &str| Settings::load(&dir.file("user.toml", text), None, None);
    let hosts = load("[hosts.gpu1]\n[hosts.gpu2]\nssh = 'me@gpu2.example.org'").unwrap().hosts;
    let hosts: Vec<(&str, Option<&str>)> =
        hosts.iter().map(|(name, host)| (name.as_str(), host.ssh.as_deref())).collect();
    assert_eq!(hosts, [("gpu1", Some("gpu1")), ("gpu2", Some("me@gpu2.example.org"))]);
    let text = "[hosts.lab]\nslurm = true\nargs = ['-p', 'agents']\n[hosts.far]\nslurm = true\nssh = 'login'";
    let hosts = load(text).unwrap().hosts;
    let found: Vec<_> = hosts.values().map(|host| (host.ssh.as_deref(), host.slurm.clone())).collect();
    assert_eq!(found, [(Some("login"), Some(vec![])), (None, Some(vec!["-p".into(), "agents".into()]))]);
    for (text, wanted) in [
        ("[hosts.any]", "cannot be the name of a host"),
        ("[hosts.local]", "cannot be the name of a host"),
        ("[hosts.'a b']", "invalid host name 'a b'"),
        ("[hosts.a]\nssh = '-oProxyCommand=x'", "must be a destination of ssh"),
        ("[hosts.a]\nshh = 'a'", "did you mean 'ssh'?"),
        ("[hosts.a]\nslurm = 'yes'", "must be true or false"),
        ("[hosts.a]\nslurm = true\nargs = '-p agents'", "must be a list of texts"),
        ("[hosts.a]\nslurm = true\nargs = ['-p', 1]", "must be a text"),
        ("[hosts.a]\nslurm = true\nargs = ['--array=1-3']", "a worker is one job"),
        ("[hosts.a]\nargs = ['-p']", "has args without slurm = true"),
        ("hosts = 'a'", "must be a table"),
    ] {
        let error = load(text).unwrap_err();
        assert!(error.message.contains(wanted), "{text}: {error}");
    }
}
