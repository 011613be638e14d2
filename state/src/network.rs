//! The network of a sandboxed worker: the hosts that its agent may reach, and why a request is refused.
//!
//! The proxy of a worker asks for each request, first with the name and then with each address behind it. Deliberately
//! absent: resolving names, connections, and the proxy's protocol.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A host as a request names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestHost {
    /// A name, in lower case, without a dot at its end.
    Name(String),
    /// A literal address. An IPv4 address in IPv6 notation is the IPv4 address.
    Address(IpAddr),
}

/// Host and port of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestTarget {
    /// The host.
    pub host: RequestHost,
    /// The port; never 0.
    pub port: u16,
}

impl RequestTarget {
    /// Reads `HOST:PORT` or `[IPV6]:PORT`. Without a port, `default_port` counts; `None` if the text is not a host.
    pub fn parse(authority: &str, default_port: Option<u16>) -> Option<Self> {
        let (host, port) = split_port(authority)?;
        let port = port.or(default_port).filter(|port| *port != 0)?;
        Some(Self { host: parse_host(host)?, port })
    }
}

impl fmt::Display for RequestTarget {
    /// In the notation of an entry of the list: without a port where entries need none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            RequestHost::Name(name) => write!(f, "{name}")?,
            RequestHost::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            RequestHost::Address(address) => write!(f, "{address}")?,
        }
        if DEFAULT_PORTS.contains(&self.port) { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// The ports of an entry that names none.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// One entry of the list: `HOST`, `*.HOST` (all names below it) or an address, with `:PORT` if that is not 80 or 443.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowedHost {
    host: RequestHost,
    below: bool,
    port: Option<u16>,
}

impl AllowedHost {
    fn covers(&self, target: &RequestTarget) -> bool {
        let port_fits = match self.port {
            Some(port) => port == target.port,
            None => DEFAULT_PORTS.contains(&target.port),
        };
        let host_fits = match (&self.host, &target.host) {
            (RequestHost::Name(ours), RequestHost::Name(theirs)) if self.below => {
                theirs.strip_suffix(ours.as_str()).is_some_and(|left| left.len() > 1 && left.ends_with('.'))
            }
            (ours, theirs) => !self.below && ours == theirs,
        };
        port_fits && host_fits
    }
}

impl FromStr for AllowedHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "'{text}' is not a host: write a name, *.NAME or an address, with :PORT if it is not 80 or 443"
            )
        };
        let (rest, below) = text.strip_prefix("*.").map_or((text, false), |rest| (rest, true));
        let (host, port) = split_port(rest).ok_or_else(refused)?;
        let host = parse_host(host).ok_or_else(refused)?;
        let is_address = matches!(host, RequestHost::Address(_));
        if port == Some(0) || (below && is_address) {
            return Err(refused());
        }
        Ok(Self { host, below, port })
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.below {
            write!(f, "*.")?;
        }
        // Any default port leaves the port out.
        let target = RequestTarget { host: self.host.clone(), port: DEFAULT_PORTS[0] };
        write!(f, "{target}")?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

crate::words::serde_text!(AllowedHost, String, AllowedHost::from_str, AllowedHost::to_string);

/// Package registries and code hosts by a short name, with their hosts.
const REGISTRIES: [(&str, &[&str]); 6] = [
    ("cargo", &["index.crates.io", "static.crates.io", "crates.io"]),
    ("debian", &["deb.debian.org", "security.debian.org"]),
    ("github", &["github.com", "api.github.com", "codeload.github.com", "*.githubusercontent.com"]),
    ("go", &["proxy.golang.org", "sum.golang.org"]),
    ("npm", &["registry.npmjs.org"]),
    ("pypi", &["pypi.org", "files.pythonhosted.org"]),
];

/// Reads an entry of the list, or the short name of a registry (several entries). Errors are texts for people.
pub fn parse_hosts(text: &str) -> Result<Vec<AllowedHost>, String> {
    match REGISTRIES.iter().find(|(name, _)| *name == text) {
        Some((_, hosts)) => hosts.iter().map(|host| host.parse()).collect(),
        None => text.parse().map(|host| vec![host]),
    }
}

/// Why the proxy refuses a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostRefusal {
    /// No entry of the list covers the host.
    NotListed,
    /// The name leads to an address inside this machine or its networks.
    PrivateAddress(IpAddr),
}

/// The hosts that an agent may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(pub Vec<AllowedHost>);

impl AllowList {
    /// Whether the host of a request is listed; if not, [`HostRefusal::NotListed`].
    pub fn admits(&self, target: &RequestTarget) -> Result<(), HostRefusal> {
        if self.0.iter().any(|entry| entry.covers(target)) { Ok(()) } else { Err(HostRefusal::NotListed) }
    }

    /// Whether a listed host may be reached at this address; if not, [`HostRefusal::PrivateAddress`]. Only a literal
    /// address in the list leads into private networks: whoever controls a name's zone could point the name at them.
    pub fn admits_address(target: &RequestTarget, address: IpAddr) -> Result<(), HostRefusal> {
        let literal = matches!(target.host, RequestHost::Address(_));
        if literal || is_public(address) { Ok(()) } else { Err(HostRefusal::PrivateAddress(address)) }
    }
}

/// Splits `HOST[:PORT]`; `None` if the port is not a number.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        return match port.strip_prefix(':') {
            Some(port) => Some((host, Some(port_number(port)?))),
            None => port.is_empty().then_some((host, None)),
        };
    }
    match text.split_once(':') {
        None => Some((text, None)),
        Some((_, port)) if port.contains(':') => Some((text, None)),
        Some((host, port)) => Some((host, Some(port_number(port)?))),
    }
}

/// Digits only: the parser of numbers also accepts a sign.
fn port_number(text: &str) -> Option<u16> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn parse_host(text: &str) -> Option<RequestHost> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(RequestHost::Address(address.to_canonical()));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let last = name.rsplit('.').next()?;
    // Resolvers read `127.1`, `2130706433` and `0x7f.1` as addresses.
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    (name.len() <= 253 && !is_number && name.split('.').all(is_label)).then_some(RequestHost::Name(name))
}

/// Whether an address belongs to the public internet: neither to this machine, nor to private, shared or special
/// networks (IANA's special-purpose registries), nor to an IPv4 address inside an IPv6 one.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 0
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b)))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Global unicast, without Teredo and other special ranges of 2001::/23, documentation, and 6to4.
    (0x2000..0x4000).contains(&a)
        && !(a == 0x2001 && (b < 0x200 || b == 0xdb8))
        && a != 0x2002
        && !(a == 0x3fff && b < 0x1000)
}

#[cfg(test)]
mod tests;
