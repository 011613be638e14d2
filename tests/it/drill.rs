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
    drill.says("never two at once");
    drill.says("no run starts twice");
    assert!(status <= 1, "{}", drill.output());
}
