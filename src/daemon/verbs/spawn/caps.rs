//! Warnings about caps that limit nothing on this machine.

use swarm_state::caps::{Caps, cpus};
use swarm_state::words::{counted, size};

use crate::procs::memory_pressure;

pub(super) fn warnings(caps: &Caps) -> Vec<String> {
    let machine = (memory_bytes(), std::thread::available_parallelism().ok().map(usize::from));
    let unreported = caps.pressure.filter(|_| memory_pressure().is_none()).map(|_| {
        "limits.pressure has no effect: this kernel does not report memory pressure (start it with psi=1)"
            .to_owned()
    });
    above_machine(caps, machine).into_iter().chain(unreported).collect()
}

/// The warnings about caps above what the machine has: bytes of memory, and CPUs.
fn above_machine(caps: &Caps, (memory, count): (Option<u64>, Option<usize>)) -> Vec<String> {
    let memory =
        caps.memory.zip(memory).filter(|(cap, all)| cap > all).map(|(cap, all)| {
            format!("--memory {} limits nothing: this machine has {}", size(cap), size(all))
        });
    let count = count.and_then(|count| u32::try_from(count).ok());
    let is_above = |(percent, count): &(u32, u32)| *percent > count.saturating_mul(100);
    let cpus = caps.cpu_percent.zip(count).filter(is_above).map(|(percent, count)| {
        format!("--cpus {} limits nothing: this machine has {}", cpus(percent), counted(count, "CPU"))
    });
    memory.into_iter().chain(cpus).collect()
}

/// The memory of the machine, in bytes.
fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(total.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_caps_above_the_machine_are_reported() {
        let caps = |memory, cpu_percent| Caps { memory, cpu_percent, ..Caps::default() };
        let machine = (Some(8 << 30), Some(2));
        assert_eq!(above_machine(&caps(Some(8 << 30), Some(200)), machine), Vec::<String>::new());
        assert_eq!(
            above_machine(&caps(Some(9 << 30), Some(250)), machine),
            [
                "--memory 9.0 GiB limits nothing: this machine has 8.0 GiB",
                "--cpus 2.5 limits nothing: this machine has 2 CPUs"
            ]
        );
        assert_eq!(above_machine(&caps(Some(9 << 30), Some(250)), (None, None)), Vec::<String>::new());
    }
}
