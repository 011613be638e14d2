//! The fault drill, for a moment.

use crate::world::{SWARM, World};

#[test]
fn the_books_are_right_after_twenty_seconds_of_faults() {
    let world = World::new();
    let mut drill = world.command("sh");
    drill.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/drill.sh"));
    drill.args(["--seconds", "20", "--workers", "6"]).env("SWARM", SWARM);
    let mut drill = world.start(drill);
    drill.until_says(&world, "the faults end");
    assert_eq!(drill.wait(&world), 0, "{}", drill.output());
}
