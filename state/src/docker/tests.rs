use super::*;
use crate::network::parse_hosts;
use crate::profiles::{find, table};

fn text(call: &[String]) -> String {
    call.join(" ")
}

#[test]
fn sandbox_name_is_the_path_with_underscores() {
    for (path, name) in [
        ("/Users/a/my project", "ralph-_Users_a_my_project"),
        ("/tmp/test-project", "ralph-_tmp_test-project"),
        ("/a/b.c_d-e", "ralph-_a_b.c_d-e"),
        ("/a/é:ß", "ralph-_a____"),
    ] {
        assert_eq!(sandbox_name(Path::new(path)), name);
    }
}

#[test]
fn only_the_complete_name_matches_the_list() {
    let list = "SANDBOX        AGENT   STATUS   WORKSPACE\nralph-_a_b2    claude  running  /a/b2\n";
    assert!(is_listed(list, "ralph-_a_b2"));
    assert!(!is_listed(list, "ralph-_a_b") && !is_listed("", "x"));
}

#[test]
fn docker_calls_have_the_documented_form() {
    let dirs = [
        Workspace::writable(Path::new("/w/p")),
        Workspace::writable(Path::new("/h/.dclaude_state")),
        Workspace { path: "/docs".into(), is_read_only: true },
    ];
    let options = ["-p".to_owned(), "OK".to_owned()];
    for (call, wanted) in [
        (list_call(), "sandbox ls"),
        (create_call("n", "claude", &dirs), "sandbox create --name n claude /w/p /h/.dclaude_state /docs:ro"),
        (run_call("n", &options), "sandbox run n -- -p OK"),
        (stop_call("n"), "sandbox stop n"),
        (exec_call("n", "/w/p", None), "sandbox exec -w /w/p n"),
        (exec_call("n", "/w/p", Some("/f")), "sandbox exec -w /w/p --env-file /f n"),
        (script_call("n", true, "cat", &["a b"]), "sandbox exec -i n sh -c cat swarm a b"),
        (script_call("n", false, "true", &[]), "sandbox exec n sh -c true"),
        (
            link_call("n", "/h/it's/s", &[".claude".to_owned(), ".claude.json".to_owned()]),
            "sandbox exec -u root n bash -c set -e\nSTATE_DIR='/h/it'\\''s/s'\n\
             rm -rf /home/agent/.claude /home/agent/.claude.json\n\
             ln -s \"$STATE_DIR/.claude\" /home/agent/.claude\n\
             ln -s \"$STATE_DIR/.claude.json\" /home/agent/.claude.json\n\
             chown -h agent:agent /home/agent/.claude /home/agent/.claude.json 2>/dev/null || true\n",
        ),
        (
            identity_call("n", DEFAULT_IDENTITY, "m"),
            "sandbox exec n bash -c set -e\ngit config --global user.email 'ralph@localhost'\n\
             git config --global user.name 'Ralph Loop'\nprintf '%s\\n' 'm' >/home/agent/.swarm-setup\n",
        ),
        (mark_call("n"), "sandbox exec n sh -c cat /home/agent/.swarm-setup 2>/dev/null || true"),
    ] {
        assert_eq!(text(&call), wanted);
    }
}

#[test]
fn a_setup_counts_only_for_the_same_directories() {
    let dirs = |path: &str| [Workspace::writable(Path::new(path))];
    let mark = setup_mark(&dirs("/a/b"), "1");
    for (printed, state) in [
        (format!("{mark}\n"), SetupState::Complete),
        (String::new(), SetupState::Missing),
        (setup_mark(&dirs("/a/b"), "0"), SetupState::Missing),
        // Both have the name `ralph-_a_b`.
        (setup_mark(&dirs("/a_b"), "1"), SetupState::OtherWorkspaces),
    ] {
        assert_eq!(SetupState::of(&printed, &mark), state, "{printed:?}");
    }
}

#[test]
fn the_network_is_limited_by_a_command_for_the_user() {
    let hosts =
        [parse_hosts("api.anthropic.com").unwrap(), parse_hosts("*.example.com:8443").unwrap()].concat();
    let command = |net| network_command("n", net, &hosts);
    assert_eq!(command(SandboxNet::On), None);
    let deny = "docker sandbox network proxy n --policy deny";
    assert_eq!(command(SandboxNet::Off).as_deref(), Some(deny));
    let allow = format!("{deny} --allow-host api.anthropic.com --allow-host '*.example.com:8443'");
    assert_eq!(command(SandboxNet::Allow), Some(allow));
    assert_eq!(
        allow_command("n", &hosts[..1]),
        "docker sandbox network proxy n --allow-host api.anthropic.com"
    );
}

#[test]
fn unsupported_options_are_obstacles() {
    let why = |cmd: &str, reviewer: Option<&str>, caps: Caps, rooms: RoomGates| {
        let cmd: Vec<String> = cmd.split(' ').map(str::to_owned).collect();
        let profile = find(&table(), &cmd);
        let reviewer = reviewer.map(|name| find(&table(), &[name.to_owned()]));
        let needs = DockerNeeds {
            profile: &profile,
            cmd: &cmd,
            reviewer: reviewer.as_ref(),
            caps: &caps,
            rooms: &rooms,
            is_parallel: false,
        };
        needs.obstacle().map(|(why, _)| why).unwrap_or_default()
    };
    let plain = |cmd| why(cmd, None, Caps::default(), RoomGates::default());
    for good in ["claude -p", "/usr/bin/claude", "codex exec", "gemini -p"] {
        assert_eq!(plain(good), "", "{good}");
    }
    assert!(plain("sh -c true").starts_with("Docker Sandbox has no template for"));
    assert!(plain("env A=1 claude").starts_with("the command starts with 'env'"));
    assert_eq!(why("claude", Some("claude"), Caps::default(), RoomGates::default()), "");
    let other = why("claude", Some("codex"), Caps::default(), RoomGates::default());
    assert_eq!(other, "the reviewer cannot run in a sandbox of 'claude'");
    let caps = Caps { memory: Some(1 << 30), ..Caps::default() };
    assert_eq!(why("claude", None, caps, RoomGates::default()), "--memory has no effect in a Docker sandbox");
    let rooms = RoomGates { clean_check: true, ..RoomGates::default() };
    assert_eq!(
        why("claude", None, Caps::default(), rooms),
        "--clean-check has no effect in a Docker sandbox"
    );
}

#[test]
fn a_static_program_has_no_interpreter() {
    const X86_64: u16 = 62;
    let elf = |kinds: &[u8]| {
        let mut bytes = vec![0; 64 + 56 * kinds.len()];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[18], bytes[32], bytes[54], bytes[56]) = (62, 64, 56, u8::try_from(kinds.len()).unwrap());
        for (index, kind) in kinds.iter().enumerate() {
            bytes[64 + 56 * index] = *kind;
        }
        bytes
    };
    assert!(is_static_linux_program(&elf(&[6, 1, 1]), X86_64));
    assert!(!is_static_linux_program(&elf(&[6, 3, 1]), X86_64));
    assert!(!is_static_linux_program(&elf(&[1]), 183), "another architecture");
    assert!(!is_static_linux_program(&elf(&[1])[..66], X86_64), "cut off");
    for other in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01", b"\xcf\xfa\xed\xfe"] {
        assert!(!is_static_linux_program(other, X86_64));
    }
}
