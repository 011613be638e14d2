//! The networks between a client and its hosts: loopback, or a link to a network namespace.
//!
//! A link can lose the host's packets without a sign of it, as a stalled network does: the host sends them to a network
//! card that does not exist. Making one takes root.

use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Printed where the system permits no namespaces.
pub(crate) const SKIPPED: &str = "skipped: no network can be made here: it takes root, ip and namespaces";

/// The network of a host.
pub(crate) struct Network {
    /// The host's address.
    pub(crate) address: String,
    link: Option<Link>,
}

/// A pair of virtual network cards, one of them in a namespace.
struct Link {
    /// Keeps the namespace until its standard input is closed.
    holder: Child,
    /// The name of the card on the client's side, and of the other one.
    cards: (String, String),
    /// The client's address.
    client: String,
}

fn is_ok(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

impl Network {
    /// The host is this machine.
    pub(crate) fn loopback() -> Self {
        Self { address: "127.0.0.1".to_owned(), link: None }
    }

    /// The host has a network namespace. `None` where that is not possible.
    pub(crate) fn namespace() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        // Addresses for tests of network devices. Tests that run at the same time have other process ids.
        let subnet = |host: u32| format!("198.18.{}.{}", pid % 250, (number * 4 + host) % 256);
        let cards = (format!("sw{pid}c{number}"), format!("sw{pid}h{number}"));
        let mut holder = Command::new("unshare");
        // The namespace exists once the program prints.
        holder.args(["-n", "sh", "-c", "echo ready; exec cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = holder.stderr(Stdio::null()).spawn().ok()?;
        let mut ready = [0; 6];
        let is_ready = holder.stdout.as_mut().map(|out| std::io::Read::read_exact(out, &mut ready));
        let holder_pid = holder.id().to_string();
        let link = Link { holder, cards, client: subnet(1) };
        is_ready?.ok()?;
        let network = Self { address: subnet(2), link: Some(link) };
        let link = network.link.as_ref()?;
        let (near, far) = (link.cards.0.as_str(), link.cards.1.as_str());
        let (client, host) = (format!("{}/30", link.client), format!("{}/30", network.address));
        let add = ["link", "add", near, "type", "veth", "peer", "name", far, "netns", &holder_pid];
        let is_made = is_ok(Command::new("ip").args(add))
            && is_ok(Command::new("ip").args(["addr", "add", &client, "dev", near]))
            && is_ok(Command::new("ip").args(["link", "set", near, "up"]))
            && is_ok(network.command("ip").args(["addr", "add", &host, "dev", far]))
            && is_ok(network.command("ip").args(["link", "set", "lo", "up"]))
            && is_ok(network.command("ip").args(["link", "set", far, "up"]));
        is_made.then_some(network)
    }

    /// A command in the host's network.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let Some(link) = &self.link else { return Command::new(program) };
        let mut command = Command::new("nsenter");
        command.args(["-t", &link.holder.id().to_string(), "-n", "--"]).arg(program);
        command
    }

    /// Loses all packets of the host from now on.
    #[track_caller]
    pub(crate) fn stall(&self) {
        let link = self.link.as_ref().unwrap();
        let mut ip = self.command("ip");
        ip.args(["neigh", "replace", &link.client, "lladdr", "02:00:00:00:00:01", "dev", &link.cards.1]);
        assert!(is_ok(ip.args(["nud", "permanent"])));
    }

    /// Ends a stall.
    #[track_caller]
    pub(crate) fn resume(&self) {
        let link = self.link.as_ref().unwrap();
        assert!(is_ok(self.command("ip").args(["neigh", "del", &link.client, "dev", &link.cards.1])));
    }

    /// The processes in the host's namespace.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let Some(link) = &self.link else { return vec![] };
        let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let own = namespace(&link.holder.id().to_string());
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str().map(str::to_owned));
        let inside = pids.filter(|pid| own.is_some() && namespace(pid) == own);
        inside.filter_map(|pid| pid.parse().ok()).filter(|pid| *pid != link.holder.id()).collect()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        is_ok(Command::new("ip").args(["link", "del", &self.cards.0]));
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}
