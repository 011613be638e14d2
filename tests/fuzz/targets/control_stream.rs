//! The stream that tmux sends to a control client. The properties that must hold are in `swarm::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| swarm::fuzzing::control_stream(bytes));
