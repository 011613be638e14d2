//! swarm's data types and decisions.
//!
//! This crate is pure: it has no clock, touches no file, socket, process or environment variable, and does not know
//! tokio. Time is an argument, and an action is a returned value, so that decisions can be tested in
//! microseconds. `cargo check -p swarm-state` by itself proves that no feature of the workspace leaks a clock into it.
//!
//! # Glossary
//!
//! One word for one thing, in code, help, man pages and messages. Other words are those of tmux, git, systemd and Rust.
//!
//! * **worker** – a named thing that swarm supervises: a spec, a tmux window, a history
//! * **spec** – the user's request when the worker was spawned
//! * **run** – one life of the agent process inside a worker, numbered from 1 (the generation)
//! * **loop** – the outer ralph loop of a worker: run after run, each with a fresh context
//! * **iteration** – a run that belongs to a loop
//! * **gate** – a condition that must hold before a loop is complete: done pattern, promise, checks
//! * **check** – a gate that is a shell command; it passes when it exits with 0
//! * **done pattern** – a regular expression that must match in new output of the agent
//! * **promise** – the exact text `<promise>TOKEN</promise>`; **claim** – its outcome at the end of an iteration
//! * **verdict** – the state of all gates at the end of one run
//! * **baseline** – the results of all checks, and the tree, before the first iteration
//! * **excused** – a check that failed in the baseline and need not pass (`--allow-preexisting`)
//! * **watched file** – a file whose change needs approval before an iteration counts
//! * **layer** – one way to detect a check that passes without the work; **proof** – the result of testing it
//! * **task list** – `tasks.json`; **story** – an entry in it; **mode** – implement, review or review-fix
//! * **coordinator** – the worker of `--jobs`: it starts a worker for each story and merges their branches into its
//!   own, the **integration branch**
//! * **canary** – a test that must fail, added by swarm to prove that a check can fail
//! * **replay** – a run of checks in a room with old files, which must fail
//! * **held-out check** – a check whose files the agent cannot see, run last
//! * **room** – a temporary checkout of a snapshot, outside the agent's tree, in which swarm runs checks
//! * **runner** – a program that runs tests, such as pytest or `cargo test`
//! * **budget** – a limit that ends a loop: iterations, time, cost, tokens, failures, no progress
//! * **failure** – an iteration that did not do its work; **backoff** – the wait after it
//! * **outage** – a usage limit, an overloaded API or a failed login; not a failure
//! * **quota** – the usage limits of an account; **account** – an agent with its configuration directory;
//!   **park** – the wait of all its loops until a reset
//! * **cause** – why a worker or loop is in its state, as data; the text is derived from it
//! * **advice** – the next step that swarm suggests to a person, derived from the cause
//! * **attention** – how urgently a worker needs a person, as a group: needs you, failed or lost, working, …
//! * **notification** – a message about a worker's state that leaves the terminal; **digest** – one for several states
//! * **stop reason** – why a worker has finished, as data; **end** – its class, as results and exit statuses report it
//! * **finished** – a worker or loop that has ended and does not start again by itself
//! * **held** – a worker that a person types into or **holds** by command; swarm leaves it alone until its **release**
//! * **paused** – a loop that starts no iteration until it is resumed
//! * **lost** – a worker whose tmux server went away; its end is unknown
//! * **orphan** – a pane that belongs to no current run; **survivor** – a process that outlives its run
//! * **sweep** – removing what a daemon that died left behind: orphans, rooms, processes of checks
//! * **mark** – an empty file that records a kill or a pause while the worker's record cannot be written
//! * **incarnation** – a number that differs between the workers that had the same name one after another
//! * **notice** – an event of a worker, as the daemon sends it to subscribers
//! * **profile** – the facts about one agent CLI; **marker** – a pattern in it for a state of the screen
//! * **reading** – the result of reading one captured screen; **fingerprint** – its hash, which shows activity
//! * **ink** – the characters of a text without spaces, frames and marks, for comparing wrapped text
//! * **echo** – the agent's input as its own screen repeats it; it never counts as output
//! * **delivery** – typing a text into an agent's input box until the agent has accepted it
//! * **dialog** – a question on the screen that swarm leaves to a person
//! * **cap** – a limit of memory, CPU time or processes that the kernel enforces on a worker
//! * **pressure** – the share of time in which processes wait for memory (PSI)
//! * **one-shot** – a command of an agent that does one task and exits, such as `claude -p`
//! * **contract** – the text for the agent: the prompt of an iteration, or the text that a Stop hook feeds back
//! * **ledger** – the records of a loop's iterations on disk
//! * **transcript** – the file in which an agent CLI records its session
//! * **hook** – a program that an agent CLI calls at an event; **host** – the CLI that called it
//! * **session loop** – a loop within one agent session, which the session's Stop hook keeps going
//! * **turn** – the agent's work between two prompts; **stop** – the event at its end
//! * **ceiling** – the limit of turns of a session loop
//! * **book** – swarm's own data about a session loop, in addition to its state file
//! * **do-it loop** – a session loop on a project's contract instead of a task
//! * **effect** – an action that the engine requests; **event** – a fact that the daemon reports to it
//! * **allow list** – the hosts that a sandboxed worker may reach through swarm's **proxy**
//! * **owner** – the daemon that swarm's directory belongs to; **machine** – a host, its boot and its process namespace
//! * **remote host** – a machine that runs a daemon of its own and is reached through ssh
//! * **predecessor** – the Python swarm whose files swarm still reads
//!
//! # Reading order
//!
//! 1. [`model`], [`spec`] and [`caps`]: the nouns, and the user's request
//! 2. [`engine`]: a worker as states x events -> effects
//! 3. [`gates`], [`check_result`], [`rooms`], [`proof`], [`proof_summary`], [`promise`], [`budget`], [`outage`],
//!    [`quota`]: when a loop is complete, must end or has to wait; [`test_gates`], [`canary`], [`inventory`]: whether a
//!    check runs its tests
//! 4. [`ends`], [`cause`], [`advice`], [`attention`], [`notice`], [`words`]: why it is in its state, what it needs, and
//!    the text for people; [`notify`]: which states are announced to a person, and when; [`morning`]: what happened to
//!    all workers in a period; [`attached`]: panes that a person types into
//! 5. [`screen`], [`pattern`], [`profiles`], [`delivery`]: captured screens and typing
//! 6. [`transcript`], [`hook`], [`answer`], [`context`]: what an agent records, reports and asks, and how full its
//!    context is
//! 7. [`contract`], [`template`], [`ledger`], [`scripts`], [`runners`]: the text of an iteration, its record, the files
//!    and test runners of its checks
//! 8. [`session`]: loops within one agent session; [`tasks`]: task lists and the review of their stories
//! 9. [`sandbox`], [`docker`], [`network`]: what the processes of a worker can see, write and reach; [`guard`]:
//!    dangerous tool calls of agents without a sandbox
//! 10. [`host`], [`slurm`]: remote hosts, the failures of ssh, and jobs of Slurm
//! 11. [`mod@format`], [`owner`], [`reconcile`], [`ignored`], [`removal`]: disk formats, the daemon that may use a
//!     directory, restarts of the daemon, removing worktrees
#![deny(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod advice;
pub mod answer;
pub mod attached;
pub mod attention;
pub mod budget;
pub mod canary;
pub mod caps;
pub mod cause;
pub mod check_result;
pub mod context;
pub mod contract;
pub mod delivery;
pub mod docker;
pub mod ends;
pub mod engine;
pub mod format;
pub mod gates;
pub mod guard;
pub mod hook;
pub mod host;
pub mod ignored;
pub mod inventory;
pub mod ledger;
pub mod model;
pub mod morning;
pub mod network;
pub mod notice;
pub mod notify;
pub mod outage;
pub mod owner;
pub mod pattern;
pub mod profiles;
pub mod promise;
pub mod proof;
pub mod proof_summary;
pub mod quota;
pub mod reconcile;
pub mod removal;
pub mod replay;
pub mod rooms;
pub mod runners;
pub mod sandbox;
pub mod screen;
pub mod scripts;
pub mod session;
pub mod slurm;
pub mod spec;
pub mod tasks;
pub mod template;
pub mod test_gates;
pub mod transcript;
pub mod words;
