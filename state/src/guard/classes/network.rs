//! Judges of commands that exchange data with other hosts.

use crate::guard::scene::Scene;
use crate::guard::starters::{is_shell, reads_input};

const DOWNLOADERS: [&str; 4] = ["curl", "wget", "fetch", "aria2c"];

const DECODERS: [&str; 4] = ["base64", "base32", "xxd", "openssl"];

const STDIN_INTERPRETERS: [&str; 6] = ["python", "python3", "perl", "ruby", "node", "php"];

/// Programs that copy bytes from and to a host.
const PIPES: [&str; 4] = ["nc", "ncat", "netcat", "telnet"];

/// Names of this machine.
const LOCAL_ADDRESSES: [&str; 5] = ["localhost", "127.", "0.0.0.0", "[::1]", "::1"];

fn is_local(text: &str) -> bool {
    let host = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    LOCAL_ADDRESSES.iter().any(|start| host.starts_with(start))
}

pub(super) fn sends_files(scene: &Scene<'_>) -> bool {
    if scene.words().any(is_local) {
        return false;
    }
    match scene.program() {
        "curl" => {
            let joined =
                scene.words().filter_map(|word| word.split_once('=').or(Some(word.split_at_checked(2)?)));
            let is_sent = scene.pairs().chain(joined).any(|(option, value)| match option {
                "-T" | "--upload-file" => !value.is_empty(),
                "-d" | "--data" | "--data-binary" | "--data-urlencode" | "--json" => value.starts_with('@'),
                "-F" | "--form" => value.contains("=@") || value.contains("=<"),
                _ => false,
            });
            is_sent || scene.substitutes(&["cat", "env", "printenv", "base64", "tar"])
        }
        "wget" => {
            scene.words().any(|word| word.starts_with("--post-file") || word.starts_with("--body-file"))
        }
        "nc" | "ncat" | "netcat" => {
            let is_fed =
                scene.command.redirects.iter().any(|input| !input.writes && input.file != "/dev/null");
            let is_probe = scene.has_letter('z') || scene.is_piped_from(&["echo", "printf"]);
            !is_probe && (is_fed || scene.earlier().next().is_some())
        }
        "scp" | "rsync" | "rclone" | "sftp" => {
            let mut operands: Vec<&str> = scene.operands().collect();
            let target = operands.pop().unwrap_or_default();
            let wide = ["/", "/etc", scene.place.home.as_str()];
            let is_wide = |word: &str| scene.path(word).is_some_and(|path| wide.contains(&path.as_str()));
            target.contains(':') && operands.into_iter().any(is_wide)
        }
        _ => false,
    }
}

pub(super) fn runs_download(scene: &Scene<'_>) -> bool {
    let (words, program) = (&scene.command.words, scene.program());
    let is_interpreter = STDIN_INTERPRETERS.contains(&program);
    let reads_pipe = reads_input(words) || is_interpreter && scene.words().all(|word| word == "-");
    let runs_words = is_shell(program) || ["eval", "source", "."].contains(&program) || is_interpreter;
    let of =
        |programs| reads_pipe && scene.is_piped_from(programs) || runs_words && scene.substitutes(programs);
    of(&DOWNLOADERS) || of(&DECODERS)
}

pub(super) fn opens_shell(scene: &Scene<'_>) -> bool {
    let program = scene.program();
    let has_socket = scene.command.redirects.iter().any(|redirect| {
        let host = redirect.file.strip_prefix("/dev/tcp/").or(redirect.file.strip_prefix("/dev/udp/"));
        host.is_some_and(|host| !is_local(host))
    });
    let starts = |program: &str| is_shell(program) || program == "exec";
    has_socket && starts(program)
        || is_shell(program) && scene.is_piped_from(&PIPES)
        || PIPES.contains(&program) && scene.is_piped_from(&["sh", "bash"])
}
