//! End-to-end tests: one binary, a private world for each test.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attach;
mod crash;
mod daemon;
mod disk;
mod docs;
mod follow;
mod prompts;
mod protocol;
mod ralph;
mod ralph_errors;
mod respawn;
mod restart;
mod settings;
mod spawn;
mod strange;
mod tidy;
mod tmux;
mod trees;
mod verbs;
mod worktrees;
mod world;
