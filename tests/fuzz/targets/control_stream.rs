//! What tmux sends to a control client. What must hold is in `swarm::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| swarm::fuzzing::control_stream(bytes));
