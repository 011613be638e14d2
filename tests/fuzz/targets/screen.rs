//! A screen, with the pattern and the prompt it is read with. What must hold is in `swarm::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| swarm::fuzzing::screen(bytes));
