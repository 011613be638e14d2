//! `[hosts.NAME]`: the machines that commands can use through ssh. The file of a project cannot have this section.

use std::collections::BTreeMap;

use swarm_state::host::{ANY, HostName, LOCAL, is_destination};

use super::read::{Fault, SettingEntry};

/// Every key of `[hosts.NAME]`.
pub(super) const KEYS: [&str; 1] = ["ssh"];

/// Reads one section. Without a key, ssh gets the name.
pub(super) fn read(hosts: &mut BTreeMap<HostName, String>, section: &SettingEntry<'_>) -> Result<(), Fault> {
    let name = HostName::new(section.key).map_err(|error| section.fault(&format!("is an {error}")))?;
    if [ANY, LOCAL].contains(&name.as_str()) {
        return Err(section.fault("is a word of --on and cannot be the name of a host"));
    }
    let mut destination = name.to_string();
    section.each(|entry| match entry.key {
        "ssh" => {
            destination = entry.text()?;
            if is_destination(&destination) {
                Ok(())
            } else {
                Err(entry.must_be("a destination of ssh, such as \"me@gpu1.example.org\""))
            }
        }
        _ => Err(entry.unknown(&KEYS)),
    })?;
    hosts.insert(name, destination);
    Ok(())
}
