//! `[hosts.NAME]`: the machines that commands can use through ssh, and those that run jobs of Slurm. The file of a
//! project cannot have this section.

use std::collections::BTreeMap;

use swarm_state::host::{ANY, HostName, HostSpec, LOCAL, is_destination};

use super::read::{Fault, SettingEntry};

/// Every key of `[hosts.NAME]`.
pub(super) const HOST_KEYS: [&str; 3] = ["args", "slurm", "ssh"];

/// Reads one section. Without a key, ssh gets the name.
pub(super) fn read(
    hosts: &mut BTreeMap<HostName, HostSpec>,
    section: &SettingEntry<'_>,
) -> Result<(), Fault> {
    let name = HostName::new(section.key).map_err(|error| section.fault(&format!("is an {error}")))?;
    if [ANY, LOCAL].contains(&name.as_str()) {
        return Err(section.fault("is a word of --on and cannot be the name of a host"));
    }
    let (mut ssh, mut is_slurm, mut args) = (None, false, None);
    section.each(|entry| match entry.key {
        "ssh" => {
            let destination = entry.text()?;
            if !is_destination(&destination) {
                return Err(entry.must_be("a destination of ssh, such as \"me@gpu1.example.org\""));
            }
            ssh = Some(destination);
            Ok(())
        }
        "slurm" => {
            is_slurm = entry.flag()?;
            Ok(())
        }
        "args" => {
            let words = entry.texts()?;
            if words.iter().any(|word| word.starts_with("--array") || word.starts_with("-a")) {
                return Err(entry.must_be("arguments of sbatch without --array: a worker is one job"));
            }
            args = Some(words);
            Ok(())
        }
        _ => Err(entry.unknown(&HOST_KEYS)),
    })?;
    if args.is_some() && !is_slurm {
        return Err(section.fault("has args without slurm = true"));
    }
    let slurm = is_slurm.then(|| args.unwrap_or_default());
    // Without a destination, the jobs of a Slurm host are submitted on this machine.
    let ssh = ssh.or_else(|| (!is_slurm).then(|| name.to_string()));
    hosts.insert(name, HostSpec { ssh, slurm });
    Ok(())
}
