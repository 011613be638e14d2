//! The benchmark runs and prints its tables. What they say is not this machine's to judge.

use crate::world::{SWARM, World};

#[test]
fn the_benchmark_prints_its_tables() {
    let world = World::new();
    let mut bench = world.command("sh");
    bench.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/bench.sh")).arg("--quick").env("SWARM", SWARM);
    let ran = world.run(bench).ok();
    for text in ["machine", "tmux ", "load", "CPU, microseconds", "exit->start", "captures  400", "wake-ups"]
    {
        assert!(ran.out.contains(text), "no {text:?}: {}{}", ran.out, ran.err);
    }
    let row = |words: &[&str]| {
        ran.out.lines().any(|line| line.split_whitespace().take(2).eq(words.iter().copied()))
    };
    assert!(row(&["2", "idle"]) && row(&["2", "all"]), "{}", ran.out);
    // Not a speed: that the exit statuses are right holds on any machine.
    assert!(ran.out.contains("kills     3 of 3 with the right code"), "{}{}", ran.out, ran.err);
}
