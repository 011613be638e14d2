//! `scripts/install.sh`: installs into a private HOME with a cargo that copies the program under test, and removes it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::world::{Ran, SWARM, World};

/// `rustc --version`, `cargo install` and the fpath of zsh, as far as the script needs them.
const TOOL: &str = "#!/bin/sh
case $1 in
    install) mkdir -p ~/.cargo/bin && cp \"$SWARM\" ~/.cargo/bin/swarm ;;
    uninstall) rm ~/.cargo/bin/swarm ;;
    -ic) echo ~/.zfunc ;;
    --version) echo 'rustc 1.99.0' ;;
esac
";

fn install(world: &World, args: &[&str], path: &str) -> Ran {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/install.sh");
    let mut command = world.command("sh");
    command.arg(script).args(args).env("SWARM", SWARM).env("PATH", path).env("SHELL", "/bin/bash");
    world.run(command)
}

/// The regular files below the home directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let files = walkdir::WalkDir::new(dir).into_iter().map(Result::unwrap);
    files.filter(|entry| entry.file_type().is_file()).map(|entry| entry.into_path()).collect()
}

#[test]
fn installation_is_found_and_can_be_removed() {
    let world = World::new();
    let (home, tools) = (world.path("home"), world.path("tools"));
    fs::create_dir(&tools).unwrap();
    fs::create_dir(home.join(".zfunc")).unwrap();
    for tool in ["cargo", "rustc", "zsh"] {
        fs::write(tools.join(tool), TOOL).unwrap();
        fs::set_permissions(tools.join(tool), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let _ = world.start_daemon();
    let release = swarm::protocol::RELEASE;
    let ran = install(&world, &[], &path).ok().says(&format!("installed swarm {release}"));
    let line = format!("add this line to ~/.bashrc:  export PATH=\"{}/.cargo/bin:$PATH\"", home.display());
    let _ = ran.says(&line).says("swarm daemon restart");
    let path = format!("{}/.cargo/bin:{path}", home.display());
    let mut man = world.command("man");
    man.args(["-w", "5", "swarm-config"]).env("PATH", &path);
    if std::process::Command::new("man").arg("--version").output().is_ok() {
        let page = home.join(".cargo/share/man/man5/swarm-config.5");
        assert_eq!(world.run(man).ok().out.trim_end(), page.to_str().unwrap());
    }
    for script in [".local/share/bash-completion/completions/swarm", ".zfunc/_swarm"] {
        assert!(home.join(script).exists(), "{script}");
    }

    let ran = install(&world, &["--uninstall"], &path).code(1);
    let _ = ran.warns("a daemon runs").warns("swarm daemon stop");
    let _ = world.swarm(&["daemon", "stop"]).ok();
    let kept = world.swarm_dir();
    let _ = install(&world, &["--uninstall"], &path).ok().says(&format!("kept {}", kept.display()));
    assert_eq!(files(&home), Vec::<PathBuf>::new());
    assert!(kept.exists());
}
