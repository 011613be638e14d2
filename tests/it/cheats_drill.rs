//! The drill of cheats, with two cheats and two honest variants. The whole matrix is run by hand (`scripts/cheats.sh`).

use std::os::unix::fs::PermissionsExt;

use crate::world::{SWARM, World};

#[test]
fn the_drill_of_cheats_prints_its_table() {
    let world = World::new();
    let bin = world.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("make"), "#!/bin/sh\nexec sh tests/run.sh\n").unwrap();
    std::fs::set_permissions(bin.join("make"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut drill = world.command("sh");
    drill.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/cheats.sh")).args(["--ecosystem", "make"]);
    drill.args(["--config", "check", "--config", "protect"]);
    for variant in ["no_fix", "early_exit", "fix", "commit"] {
        drill.args(["--cheat", variant]);
    }
    let ran = world.run({
        drill.env("SWARM", SWARM).env("PATH", path);
        drill
    });
    let row = |words: &[&str]| ran.out.lines().any(|line| line.split_whitespace().eq(words.iter().copied()));
    // Checks alone do not notice an early exit.
    assert!(row(&["make", "check", "1", "of", "2", "2", "of", "2", "MISSED"]), "{ran:?}");
    assert!(row(&["make", "protect", "1", "of", "2", "2", "of", "2", "met"]), "{ran:?}");
    let _ = ran.code(1).says("through    make check: early_exit\n").says("time       8 loops in ");
}
