//! End-to-end tests: one binary, a private world for each test.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod crash;
mod docs;
mod follow;
mod protocol;
mod ralph;
mod ralph_errors;
mod settings;
mod spawn;
mod tmux;
mod verbs;
mod world;
