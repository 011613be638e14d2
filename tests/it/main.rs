//! Integration tests.

mod docs;
mod tmux;
