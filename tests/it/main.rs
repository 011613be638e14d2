//! Integration tests.

mod follow;
mod ralph;
mod ralph_errors;
mod settings;
mod spawn;
mod tmux;
mod verbs;
mod world;
