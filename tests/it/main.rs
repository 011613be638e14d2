//! Integration tests.

mod crash;
mod protocol;
mod tmux;
mod world;
