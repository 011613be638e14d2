//! Resource caps: how much memory, CPU time and how many processes a worker may use, and what enforces them.
//!
//! A cap holds for all processes of a run together. The wrapper in the pane enforces the caps; the client parses and
//! prints them. Deliberately absent: cgroups and resource limits themselves.

use serde::{Deserialize, Serialize};

use crate::model::is_default;
use crate::words::size;

/// The smallest memory cap, in bytes: less than a shell with a few tools needs.
pub const MIN_MEMORY_BYTES: u64 = 16 << 20;

/// The largest memory cap, in bytes.
const MAX_MEMORY_BYTES: u64 = 1 << 60;

/// The largest number of CPUs.
const MAX_CPUS: f64 = 4096.0;

/// The smallest number of processes: the agent, two of its sandbox, one of its network, and one command.
pub const MIN_PIDS: u32 = 5;

/// The largest number of processes: Linux has no larger pid.
pub const MAX_PIDS: u32 = 1 << 22;

/// The values that `--memory` accepts, for messages.
pub const MEMORY_FORM: &str = "a size of 16M to 1048576T, such as 200M, 1.5G or 8GiB";

/// The values that `--pids` accepts, for messages.
pub const PIDS_FORM: &str =
    "a whole number, 5 to 4194304 (an agent in a sandbox that runs one command has up to 5 processes)";

/// The values that `--cpus` accepts, for messages.
pub const CPUS_FORM: &str = "a number of CPUs from 0.01 to 4096, such as 1.5";

/// The caps of a worker; each is absent without a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caps {
    /// Bytes of memory.
    #[serde(skip_serializing_if = "is_default")]
    pub memory: Option<u64>,
    /// CPU time, in percent of one CPU.
    #[serde(skip_serializing_if = "is_default")]
    pub cpu_percent: Option<u32>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "is_default")]
    pub pids: Option<u32>,
    /// No iteration starts while the machine's memory pressure is above this, in percent.
    #[serde(skip_serializing_if = "is_default")]
    pub pressure: Option<u32>,
}

/// A part of [`Caps`] that is enforced while a run lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    /// [`Caps::memory`].
    Memory,
    /// [`Caps::cpu_percent`].
    Cpus,
    /// [`Caps::pids`].
    Pids,
}

/// The mechanism that enforces a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapMechanism {
    /// A cgroup in a scope that the systemd manager made for the run.
    SystemdScope,
    /// A cgroup below one that is delegated to this user (cgroup v2).
    Cgroup,
    /// A cgroup in the hierarchy of its controller (cgroup v1).
    CgroupV1,
    /// A resource limit, which holds for each process by itself.
    Rlimit,
}

crate::word_table!(
    pub CapMechanism,
    text,
    [
        (SystemdScope, "systemd scope"),
        (Cgroup, "cgroup"),
        (CgroupV1, "cgroup v1"),
        (Rlimit, "rlimit, for each process")
    ]
);

/// The mechanism of each cap that is in force in a run. A requested cap that is absent is not enforced.
pub type CapsInForce = std::collections::BTreeMap<Cap, CapMechanism>;

impl Caps {
    /// The caps to enforce while a run lives, with their limits as text.
    pub fn of_run(&self) -> Vec<(Cap, String)> {
        let memory = self.memory.map(|bytes| (Cap::Memory, format!("memory {}", size(bytes))));
        let cpus = self.cpu_percent.map(|percent| (Cap::Cpus, format!("cpus {}", cpus(percent))));
        let pids = self.pids.map(|pids| (Cap::Pids, format!("pids {pids}")));
        [memory, cpus, pids].into_iter().flatten().collect()
    }

    /// The caps for a person: `memory 200 MiB (cgroup), pids 100 (not in force)`. `in_force` is absent without a run.
    pub fn text(&self, in_force: Option<&CapsInForce>) -> String {
        let text = |(cap, limit): (Cap, String)| match in_force {
            None => limit,
            Some(by) => format!("{limit} ({})", by.get(&cap).map_or("not in force", |by| by.text())),
        };
        self.of_run().into_iter().map(text).collect::<Vec<_>>().join(", ")
    }

    /// The warning about caps that this machine does not enforce as requested.
    pub fn shortfall(&self, in_force: &CapsInForce) -> Option<String> {
        let is_short = |cap| in_force.get(&cap).is_none_or(|mechanism| *mechanism == CapMechanism::Rlimit);
        let short = Self {
            memory: self.memory.filter(|_| is_short(Cap::Memory)),
            cpu_percent: self.cpu_percent.filter(|_| is_short(Cap::Cpus)),
            pids: self.pids.filter(|_| is_short(Cap::Pids)),
            pressure: None,
        };
        let text = format!("swarm may use no cgroup here for: {}", short.text(Some(in_force)));
        (short != Self::default()).then_some(text)
    }
}

/// `2`, `1.5`, `0.25`.
pub fn cpus(percent: u32) -> String {
    (f64::from(percent) / 100.0).to_string()
}

/// Parses a size such as `200M`, `1.5G`, `8GiB` (powers of 1024) or a number of bytes. The error names [`MEMORY_FORM`].
pub fn parse_memory(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(10),
        "m" | "mb" | "mib" => Some(20),
        "g" | "gb" | "gib" => Some(30),
        "t" | "tb" | "tib" => Some(40),
        _ => None,
    };
    let bytes = number(digits).zip(unit).map(|(number, unit)| number * (1_u64 << unit) as f64);
    let range = MIN_MEMORY_BYTES as f64..=MAX_MEMORY_BYTES as f64;
    let bytes = bytes.filter(|bytes| range.contains(bytes));
    // The kernel counts whole pages.
    bytes.map(|bytes| bytes as u64 & !0xfff).ok_or_else(|| format!("give {MEMORY_FORM}"))
}

/// Parses a number of CPUs into percent of one CPU. The error names [`CPUS_FORM`].
pub fn parse_cpus(text: &str) -> Result<u32, String> {
    let cpus = number(text).filter(|cpus| (0.01..=MAX_CPUS).contains(cpus));
    cpus.map(|cpus| (cpus * 100.0).round() as u32).ok_or_else(|| format!("give {CPUS_FORM}"))
}

/// Parses a number of processes. The error names [`PIDS_FORM`].
pub fn parse_pids(text: &str) -> Result<u32, String> {
    let pids = text.parse().ok().filter(|pids| (MIN_PIDS..=MAX_PIDS).contains(pids));
    pids.ok_or_else(|| format!("give {PIDS_FORM}"))
}

/// A decimal number without a sign and an exponent.
fn number(text: &str) -> Option<f64> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|_| is_plain)
}

/// The kernel's `avg10` of `some` in a pressure file, in percent: the share of the last ten seconds in which some
/// process waited for memory.
pub fn pressure(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_a_floor_and_a_maximum() {
        for (text, bytes) in [
            ("200M", Some(200 << 20)),
            ("200m", Some(200 << 20)),
            ("200MiB", Some(200 << 20)),
            ("1.5G", Some(1536 << 20)),
            ("8GB", Some(8 << 30)),
            ("2t", Some(2 << 40)),
            ("16M", Some(16 << 20)),
            ("16777217", Some(16 << 20)),
            ("15M", None),
            ("200", None),
            ("0", None),
            ("-1G", None),
            ("1e12", None),
            ("G", None),
            ("", None),
            ("8 GiB", None),
            ("8X", None),
            ("1..5G", None),
            ("99999999T", None),
            ("infG", None),
        ] {
            assert_eq!(parse_memory(text).ok(), bytes, "{text}");
        }
        for text in ["0", "99999999999T"] {
            let form = "give a size of 16M to 1048576T, such as 200M, 1.5G or 8GiB";
            assert_eq!(parse_memory(text).unwrap_err(), form);
        }
        assert_eq!(
            (parse_memory("1048576T"), parse_memory("1048577T").is_err()),
            (Ok(MAX_MEMORY_BYTES), true)
        );
    }

    #[test]
    fn an_agent_can_start_with_the_smallest_number_of_processes() {
        for (text, pids) in
            [("4", None), ("5", Some(5)), ("4194304", Some(MAX_PIDS)), ("4194305", None), ("x", None)]
        {
            assert_eq!(parse_pids(text).ok(), pids, "{text}");
        }
        let form = "give a whole number, 5 to 4194304 (an agent in a sandbox that runs one command has up to 5 processes)";
        assert_eq!(parse_pids("1").unwrap_err(), form);
    }

    #[test]
    fn cpus_are_fractions_above_zero() {
        for (text, percent) in [
            ("1", Some(100)),
            ("1.5", Some(150)),
            ("0.01", Some(1)),
            ("4096", Some(409_600)),
            ("0", None),
            ("0.001", None),
            ("-1", None),
            ("5000", None),
            ("two", None),
            ("1e2", None),
        ] {
            assert_eq!(parse_cpus(text).ok(), percent, "{text}");
        }
    }

    #[test]
    fn sizes_and_cpus_as_text() {
        assert_eq!(
            [16 << 20, 200 << 20, 1 << 30, 8 << 30].map(size),
            ["16 MiB", "200 MiB", "1.0 GiB", "8.0 GiB"]
        );
        assert_eq!([1, 25, 100, 150].map(cpus), ["0.01", "0.25", "1", "1.5"]);
    }

    #[test]
    fn the_text_names_the_mechanism_of_each_cap() {
        let caps =
            Caps { memory: Some(200 << 20), cpu_percent: Some(150), pids: Some(9), pressure: Some(20) };
        assert_eq!(caps.text(None), "memory 200 MiB, cpus 1.5, pids 9");
        let by = |list: &[(Cap, CapMechanism)]| list.iter().copied().collect::<CapsInForce>();
        let all = by(&[
            (Cap::Memory, CapMechanism::Cgroup),
            (Cap::Cpus, CapMechanism::CgroupV1),
            (Cap::Pids, CapMechanism::SystemdScope),
        ]);
        let text = "memory 200 MiB (cgroup), cpus 1.5 (cgroup v1), pids 9 (systemd scope)";
        assert_eq!((caps.text(Some(&all)), caps.shortfall(&all)), (text.to_owned(), None));
        let some = by(&[(Cap::Memory, CapMechanism::Rlimit)]);
        let text =
            "memory 200 MiB (rlimit, for each process), cpus 1.5 (not in force), pids 9 (not in force)";
        let text = format!("swarm may use no cgroup here for: {text}");
        assert_eq!(caps.shortfall(&some), Some(text));
        assert_eq!(Caps::default().shortfall(&by(&[])), None);
    }

    #[test]
    fn memory_pressure_is_the_10_second_average_of_some() {
        let text =
            "some avg10=1.53 avg60=0.87 avg300=0.22 total=5\nfull avg10=9.00 avg60=0 avg300=0 total=1\n";
        assert_eq!(pressure(text), Some(1.53));
        for broken in ["", "full avg10=9.00", "some avg60=1", "some avg10=x"] {
            assert_eq!(pressure(broken), None, "{broken}");
        }
    }
}
