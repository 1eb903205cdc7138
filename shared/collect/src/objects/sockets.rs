//! What sockets are called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bpf::types::{ObjectEvent, SocketSide};

use super::{name as address, process};

/// `include/linux/socket.h`, and types of `include/linux/net.h`.
const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const AF_NETLINK: u16 = 16;
const SOCK_STREAM: u16 = 1;
const SOCK_DGRAM: u16 = 2;
/// `include/uapi/linux/in.h`
const IPPROTO_TCP: u16 = 6;
const IPPROTO_UDP: u16 = 17;

/// The ports that the kernel gives to whoever asks for none.
pub(super) fn given_ports() -> (u32, u32) {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let range = range.unwrap_or_default();
    let mut ports = range.split_whitespace().map(str::parse);
    match (ports.next(), ports.next()) {
        (Some(Ok(first)), Some(Ok(last))) => (first, last),
        // ipv4_default_init of net/ipv4/af_inet.c.
        _ => (32768, 60999),
    }
}

/// A socket in words, by its addresses.
pub(super) fn name(event: &ObjectEvent) -> String {
    match event.family {
        AF_UNIX => local(event),
        AF_INET => internet(event, [&event.local_address, &event.remote_address].map(v4)),
        AF_INET6 => internet(event, [&event.local_address, &event.remote_address].map(v6)),
        AF_NETLINK => "netlink socket".to_owned(),
        family => format!("socket of family {family}"),
    }
}

fn listens(event: &ObjectEvent) -> bool {
    u32::from(event.side) == SocketSide::SIDE_LISTENS.0
}

fn v4(bytes: &[u8; 16]) -> IpAddr {
    let [a, b, c, d, ..] = *bytes;
    Ipv4Addr::new(a, b, c, d).into()
}

fn v6(bytes: &[u8; 16]) -> IpAddr {
    Ipv6Addr::from(*bytes).to_canonical()
}

fn internet(event: &ObjectEvent, [local, remote]: [IpAddr; 2]) -> String {
    let protocol = match (event.protocol, event.socket_type) {
        (IPPROTO_TCP, _) => "tcp".to_owned(),
        (IPPROTO_UDP, _) => "udp".to_owned(),
        (protocol, _) => format!("protocol {protocol}"),
    };
    let at = SocketAddr::new(local, event.local_port);
    let to = SocketAddr::new(remote, event.remote_port);
    // A port that the kernel gave is left out by the program: the other end tells more.
    match (event.local_port, event.remote_port) {
        _ if listens(event) => format!("{protocol} listening on {at}"),
        (0, 0) => format!("{protocol} socket"),
        (0, _) => format!("{protocol} to {to}"),
        (port, 0) if !remote.is_unspecified() => format!("{protocol} :{port} from {remote}"),
        (_, 0) => format!("{protocol} on {at}"),
        _ => format!("{protocol} {at} to {to}"),
    }
}

fn local(event: &ObjectEvent) -> String {
    let what = match event.socket_type {
        SOCK_STREAM => "unix",
        SOCK_DGRAM => "unix datagrams",
        _ => "unix packets",
    };
    let path = match address(event) {
        // What is in no file system begins with a NUL: unix(7).
        [0, name @ ..] => format!("@{}", String::from_utf8_lossy(name)),
        path => {
            let path = path.split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(path).into_owned()
        }
    };
    let peer = match event.peer_pid {
        0 => None,
        pid => Some(process(pid)),
    };
    match (path.is_empty(), peer) {
        _ if listens(event) => format!("{what} listening on {path}"),
        (false, _) => format!("{what} {path}"),
        (true, Some(peer)) => format!("{what} of {peer}"),
        (true, None) => format!("{what} socket"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(local: u16, remote: u16) -> ObjectEvent {
        let bytes = |ip: [u8; 4]| {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&ip);
            bytes
        };
        ObjectEvent {
            family: AF_INET,
            socket_type: SOCK_STREAM,
            protocol: IPPROTO_TCP,
            local_port: local,
            remote_port: remote,
            local_address: bytes([10, 0, 0, 1]),
            remote_address: bytes([10, 0, 0, 2]),
            ..ObjectEvent::default()
        }
    }

    #[test]
    fn connections_are_told_by_the_end_that_somebody_chose() {
        let mut listening = tcp(80, 0);
        listening.side = SocketSide::SIDE_LISTENS.0 as u16;
        let mut unconnected = tcp(53, 0);
        unconnected.protocol = IPPROTO_UDP;
        unconnected.remote_address = [0; 16];
        let mut v6 = tcp(0, 443);
        v6.family = AF_INET6;
        v6.remote_address = Ipv6Addr::LOCALHOST.octets();
        for (event, expected) in [
            (tcp(0, 3306), "tcp to 10.0.0.2:3306"),
            (tcp(3306, 0), "tcp :3306 from 10.0.0.2"),
            (tcp(7000, 7001), "tcp 10.0.0.1:7000 to 10.0.0.2:7001"),
            (listening, "tcp listening on 10.0.0.1:80"),
            (unconnected, "udp on 10.0.0.1:53"),
            (v6, "tcp to [::1]:443"),
            (tcp(0, 0), "tcp socket"),
        ] {
            assert_eq!(name(&event), expected);
        }
    }

    #[test]
    fn local_sockets_are_paths_and_hostile_ones_are_no_more_than_text() {
        let of = |path: &[u8]| {
            let mut event = ObjectEvent {
                family: AF_UNIX,
                socket_type: SOCK_STREAM,
                name_length: path.len() as u32,
                ..ObjectEvent::default()
            };
            event.name[..path.len()].copy_from_slice(path);
            name(&event)
        };
        assert_eq!(of(b"/run/a.sock\0"), "unix /run/a.sock");
        assert_eq!(of(b"\0abstract"), "unix @abstract");
        assert_eq!(of(b"/\xff"), "unix /\u{fffd}");
        assert_eq!(of(b""), "unix socket");
        let on = |socket_type, side: SocketSide| {
            let mut event = ObjectEvent {
                family: AF_UNIX,
                socket_type,
                side: side.0 as u16,
                name_length: 2,
                ..ObjectEvent::default()
            };
            event.name[..2].copy_from_slice(b"/a");
            name(&event)
        };
        let unknown = SocketSide::SIDE_UNKNOWN;
        assert_eq!(on(SOCK_DGRAM, unknown), "unix datagrams /a");
        assert_eq!(on(5, unknown), "unix packets /a");
        let listens = SocketSide::SIDE_LISTENS;
        assert_eq!(on(SOCK_STREAM, listens), "unix listening on /a");
        let endless = ObjectEvent {
            name_length: u32::MAX,
            name: [b'x'; 112],
            ..ObjectEvent::default()
        };
        assert_eq!(address(&endless).len(), endless.name.len());
    }
}
