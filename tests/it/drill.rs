//! The fault drill, for a moment: that it runs, settles and keeps books. What it finds depends on the moment, so a find
//! is for who runs it at length (`scripts/drill.sh`), and becomes a test of its own.

use crate::world::{SWARM, World};

#[test]
fn the_drill_runs_its_faults_and_checks_its_books() {
    let world = World::new();
    let mut drill = world.command("sh");
    drill.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/drill.sh"));
    drill.args(["--seconds", "20", "--workers", "6"]).env("SWARM", SWARM);
    let mut drill = world.start(drill);
    drill.until_says(&world, "the faults end");
    let status = drill.wait(&world);
    let said = drill.output();
    // What must hold whatever the moment was.
    for check in [
        "never two at once",
        "no run starts twice",
        "each iteration starts once",
        "no panic",
        "no record was broken",
    ] {
        let row = said.lines().find(|line| line.starts_with(check));
        assert!(row.is_some_and(|row| row.split_whitespace().last() == Some("0")), "{check}: {said}");
    }
    assert!(status <= 1, "{}", drill.output());
}
