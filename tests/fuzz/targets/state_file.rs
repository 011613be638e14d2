//! A file of state. What must hold is in `swarm::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| swarm::fuzzing::state_file(bytes));
