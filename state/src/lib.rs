//! What swarm knows and decides.
//!
//! This crate is pure: it has no clock, touches no file, socket, process or environment variable, and
//! does not know tokio. Time comes in as an argument, what should happen goes out as a value, so that
//! whatever swarm decides can be tested in microseconds. `cargo check -p swarm-state` by itself proves
//! that no feature of the workspace leaks a clock into it.
//!
//! # Glossary
//!
//! One word for one thing, here and in every message:
//!
//! * **worker** – a named thing swarm looks after: a spec, a tmux window, a history
//! * **run** – one life of the agent process inside a worker, numbered from 1 (the generation)
//! * **loop** – the outer ralph loop of a worker: run after run, each with a fresh context
//! * **iteration** – a run that belongs to a loop
//! * **gate** – a condition that must hold before a loop is complete
//! * **budget** – a limit that ends a loop
//! * **session loop** – the other kind of loop: one agent session, kept going by its own Stop hook
//! * **promise** – the exact text `<promise>TOKEN</promise>`
//! * **profile** – what swarm knows of one agent CLI
//! * **notice** – something that happened, as the daemon tells those who listen
//!
//! # Reading order
//!
//! [`model`] (the nouns), [`spec`] (what a user asked for), [`engine`] (the heart: states x events -> effects), [`gates`] and [`budget`]
//! (what the heart asks and counts), [`screen`] and [`profiles`] (what a captured screen means),
//! [`reconcile`] (what a fresh daemon makes of what it finds), [`notice`] (what is told, and in which
//! words), [`mod@format`] (what is on disk); [`transcript`] and [`promise`] (what an agent said and what it claims),
//! [`contract`] (what it is told), [`ledger`] (what each iteration came to), [`scripts`] (which files a check
//! runs), [`outage`] (what is nobody's failure), [`ends`] (how a loop ended, for people and scripts), [`cause`] and
//! [`advice`] (why a worker is in its state, and the next step); [`hook`] (what
//! an agent CLI tells its hooks), [`session`] (the loop within one session); [`ignored`] and [`removal`] (what is lost
//! with a worktree).
#![deny(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod words;

pub mod model;

pub mod spec;

pub mod engine;

pub mod gates;

pub mod budget;

pub mod pattern;

pub mod screen;

pub mod delivery;

pub mod profiles;

pub mod reconcile;

pub mod notice;

pub mod format;

pub mod template;

pub mod transcript;

pub mod promise;

pub mod contract;

pub mod outage;

pub mod ledger;

pub mod scripts;

pub mod ends;

pub mod cause;

pub mod advice;

pub mod ignored;

pub mod removal;

pub mod hook;

pub mod session;
