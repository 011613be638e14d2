//! A stop within a session. What must hold is in `swarm::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| swarm::fuzzing::session_stop(bytes));
