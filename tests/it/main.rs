//! Integration tests.

mod protocol;
mod tmux;
