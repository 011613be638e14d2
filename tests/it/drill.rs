//! The fault drill, for a moment: every book of it must be right. At length it is run by hand (`scripts/drill.sh`);
//! what it finds becomes a test of its own.

use crate::world::{SWARM, World};

#[test]
fn state_is_correct_after_every_fault_of_the_drill() {
    let world = World::new();
    let mut drill = world.command("sh");
    drill.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/drill.sh"));
    drill.args(["--seconds", "20", "--workers", "6"]).env("SWARM", SWARM);
    let mut drill = world.start(drill);
    drill.until_says(&world, "the faults end");
    drill.until_says(&world, "the books are read");
    let status = drill.wait(&world);
    let said = drill.output();
    assert_eq!(status, 0, "{said}");
    // Behind the second rule stand the checks, each with how often it was made and how often it failed.
    let rows = said.split(&"-".repeat(72)).nth(3).unwrap_or_default().trim();
    assert_eq!(rows.lines().count(), 24, "{said}");
    assert!(rows.lines().all(|row| row.split_whitespace().last() == Some("0")), "{said}");
}
