//! Integration tests.

mod crash;
mod daemon;
mod disk;
mod docs;
mod prompts;
mod protocol;
mod tmux;
mod trees;
mod world;
mod worktrees;
