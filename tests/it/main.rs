//! End-to-end tests: one binary, a private world for each test.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attach;
mod bench;
mod clean;
mod crash;
mod daemon;
mod disk;
mod docs;
mod doctor;
mod eof;
mod events;
mod follow;
mod outputs;
mod predecessor;
mod prompts;
mod protocol;
mod ralph;
mod ralph_errors;
mod respawn;
mod restart;
mod rotation;
mod runs;
mod settings;
mod siege;
mod spawn;
mod strange;
mod tidy;
mod tmux;
mod trees;
mod unit;
mod verbs;
mod waiting;
mod worktrees;
mod world;
