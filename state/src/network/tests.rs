use proptest::prelude::*;

use super::*;

fn list(entries: &[&str]) -> AllowList {
    AllowList(entries.iter().map(|entry| entry.parse().unwrap()).collect())
}

fn target(text: &str) -> RequestTarget {
    RequestTarget::parse(text, None).unwrap_or_else(|| panic!("{text} is not a host"))
}

#[test]
fn only_listed_hosts_are_admitted() {
    let list =
        list(&["api.example.org", "*.cdn.example", "git.example:9418", "10.1.2.3:8080", "[fd00::1]:80"]);
    for admitted in [
        "api.example.org:443",
        "API.Example.ORG:80",
        "api.example.org.:443",
        "a.cdn.example:443",
        "a.b.cdn.example:443",
        "git.example:9418",
        "10.1.2.3:8080",
        "[::ffff:10.1.2.3]:8080",
        "[fd00::1]:80",
    ] {
        assert_eq!(list.admits(&target(admitted)), Ok(()), "{admitted}");
    }
    for refused in [
        "example.org:443",
        "x.api.example.org:443",
        "api.example.org.evil.example:443",
        "evilapi.example.org:443",
        "api.example.org:22",
        "cdn.example:443",
        "evilcdn.example:443",
        "git.example:443",
        "10.1.2.3:443",
        "10.1.2.30:8080",
        "[fd00::2]:80",
        "127.0.0.1:443",
    ] {
        assert_eq!(list.admits(&target(refused)), Err(HostRefusal::NotListed), "{refused}");
    }
}

#[test]
fn allowed_name_never_resolves_to_a_private_network() {
    for address in [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "2001::1",
        "2001:db8::1",
        "3fff::1",
        "fec0::1",
        "::7f00:1",
    ] {
        let address: IpAddr = address.parse().unwrap();
        let refusal = AllowList::admits_address(&target("name.example:443"), address);
        assert_eq!(refusal, Err(HostRefusal::PrivateAddress(address)), "{address}");
        let literal = RequestTarget { host: RequestHost::Address(address), port: 443 };
        assert_eq!(AllowList::admits_address(&literal, address), Ok(()), "the list has {address} itself");
    }
    for address in
        ["1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.255", "2606:4700::1"]
    {
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(AllowList::admits_address(&target("name.example:443"), address), Ok(()), "{address}");
    }
}

#[test]
fn address_in_an_unusual_notation_is_not_a_name() {
    for text in [
        "127.1:80",
        "2130706433:80",
        "0x7f000001:80",
        "0x7f.1:80",
        "017700000001:80",
        "1.2.3.4.5:80",
        "a.1:80",
        "a.0x1:80",
    ] {
        assert_eq!(RequestTarget::parse(text, None), None, "{text}");
    }
}

#[test]
fn malformed_hosts_are_refused() {
    for text in [
        "",
        ":443",
        "a",
        "a:",
        "a:0",
        "a:65536",
        "a:+80",
        "a:80:80",
        "a b:80",
        "a/b:80",
        "a@b:80",
        "ä.example:80",
        "a..b:80",
        ".a:80",
        "[::1:80",
        "[a]:80",
        "[::1]80",
        "a\n:80",
        "a\0:80",
        "*.a:80",
    ] {
        assert_eq!(RequestTarget::parse(text, None), None, "{text:?}");
    }
    assert_eq!(target("[::1]:8080").port, 8080);
    assert_eq!(RequestTarget::parse("a.example", Some(80)).unwrap().port, 80);
}

#[test]
fn entries_are_written_as_they_are_read() {
    for text in [
        "a.example",
        "*.a.example",
        "a.example:22",
        "10.0.0.1",
        "10.0.0.1:22",
        "[::1]",
        "[::1]:22",
        "*.a.example:22",
    ] {
        let entry: AllowedHost = text.parse().unwrap();
        assert_eq!(entry.to_string(), text);
        assert_eq!(serde_json::to_string(&entry).unwrap(), format!("\"{text}\""));
    }
    assert_eq!("A.Example.".parse::<AllowedHost>().unwrap().to_string(), "a.example");
    assert_eq!("::1".parse::<AllowedHost>().unwrap().to_string(), "[::1]");
    for text in [
        "",
        "*",
        "*.",
        "*.10.0.0.1",
        "a.*.example",
        "a:x",
        "a:0",
        "https://a.example",
        "a.example/x",
        "*.*.a",
    ] {
        let error = text.parse::<AllowedHost>().unwrap_err();
        assert!(error.starts_with(&format!("'{text}' is not a host")), "{error}");
    }
}

#[test]
fn registry_name_expands_to_its_hosts() {
    for (name, hosts) in REGISTRIES {
        let read: Vec<String> = parse_hosts(name).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(read, hosts, "{name}");
    }
    assert_eq!(parse_hosts("a.example").unwrap(), ["a.example".parse().unwrap()]);
    assert!(parse_hosts("a b").is_err());
}

proptest! {
    #[test]
    fn written_target_parses_to_itself_and_is_admitted_only_if_listed(text in "\\PC{0,40}") {
        if let Some(target) = RequestTarget::parse(&text, Some(443)) {
            let written = target.to_string();
            prop_assert_eq!(RequestTarget::parse(&written, Some(target.port)), Some(target.clone()));
            let own = AllowList(vec![written.parse().unwrap()]);
            prop_assert_eq!(own.admits(&target), Ok(()));
            prop_assert_eq!(AllowList::default().admits(&target), Err(HostRefusal::NotListed));
        }
    }
}
