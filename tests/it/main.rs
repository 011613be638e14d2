//! Integration tests.

mod crash;
mod docs;
mod protocol;
mod tmux;
mod trees;
mod world;
