//! End-to-end tests: one binary, a private world for each test.

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
