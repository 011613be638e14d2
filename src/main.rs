//! Placeholder: only the program that runs inside a pane.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    match (args.get(1), args.get(2)) {
        (Some(verb), Some(dir)) if verb == "__pane" => ExitCode::from(swarm::wrapper::main(Path::new(dir))),
        _ => ExitCode::from(2),
    }
}
