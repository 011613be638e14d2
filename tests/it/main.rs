//! Integration tests.

mod tmux;
