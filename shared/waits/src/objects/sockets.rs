//! Sockets on which threads waited.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bpf::types::{ObjectEvent, SocketSide};
use profile::{Protocol, Side, Socket, Transport};

use super::{name as last_name, process};

/// Address families of `include/linux/socket.h`, and types of `include/linux/net.h`.
const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const AF_NETLINK: u16 = 16;
const SOCK_STREAM: u16 = 1;
const SOCK_DGRAM: u16 = 2;
/// Protocols of `include/uapi/linux/in.h`.
const IPPROTO_TCP: u16 = 6;
const IPPROTO_UDP: u16 = 17;

/// Returns the first and the last port of the range from which the kernel chooses ports.
pub(super) fn given_ports() -> (u32, u32) {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let range = range.unwrap_or_default();
    let mut ports = range.split_whitespace().map(str::parse);
    match (ports.next(), ports.next()) {
        (Some(Ok(first)), Some(Ok(last))) => (first, last),
        // Defaults of inet_init_net() in net/ipv4/af_inet.c.
        _ => (32768, 60999),
    }
}

/// Returns the socket of an event. `side` is the side of the connection that the socket is on.
pub(super) fn socket(event: &ObjectEvent, side: SocketSide) -> Socket<Box<str>> {
    let side = match side {
        SocketSide::SIDE_LISTENS => Side::Listens,
        SocketSide::SIDE_ASKS => Side::Asks,
        SocketSide::SIDE_ANSWERS => Side::Answers,
        _ => Side::Unknown,
    };
    match event.family {
        AF_UNIX => unix(event, side),
        AF_INET => internet(event, v4, side),
        AF_INET6 => internet(event, v6, side),
        AF_NETLINK => Socket::Netlink,
        family => Socket::Family(family),
    }
}

fn v4(bytes: &[u8; 16]) -> IpAddr {
    let [a, b, c, d, ..] = *bytes;
    Ipv4Addr::new(a, b, c, d).into()
}

fn v6(bytes: &[u8; 16]) -> IpAddr {
    Ipv6Addr::from(*bytes).to_canonical()
}

/// Returns an IPv4 or IPv6 socket. A program sends 0 for a port that the kernel chose.
fn internet(
    event: &ObjectEvent,
    address: impl Fn(&[u8; 16]) -> IpAddr,
    side: Side,
) -> Socket<Box<str>> {
    Socket::Internet {
        protocol: match event.protocol {
            IPPROTO_TCP => Protocol::Tcp,
            IPPROTO_UDP => Protocol::Udp,
            number => Protocol::Number(number),
        },
        local: SocketAddr::new(address(&event.local_address), event.local_port),
        remote: SocketAddr::new(address(&event.remote_address), event.remote_port),
        side,
    }
}

fn unix(event: &ObjectEvent, side: Side) -> Socket<Box<str>> {
    let path = match last_name(event) {
        // The name of an abstract socket begins with a NUL (unix(7)).
        [0, name @ ..] => format!("@{}", String::from_utf8_lossy(name)),
        path => {
            let path = path.split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(path).into_owned()
        }
    };
    Socket::Unix {
        transport: match event.socket_type {
            SOCK_STREAM => Transport::Stream,
            SOCK_DGRAM => Transport::Datagram,
            _ => Transport::Packet,
        },
        path: (!path.is_empty()).then(|| path.into()),
        peer: (event.peer_pid != 0).then(|| process(event.peer_pid)),
        side,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_ends_are_kept() {
        let mut event = ObjectEvent {
            family: AF_INET6,
            protocol: IPPROTO_TCP,
            local_port: 443,
            ..ObjectEvent::default()
        };
        event.local_address[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
        event.remote_address = Ipv6Addr::LOCALHOST.octets();
        let local = SocketAddr::from(([10, 0, 0, 1], 443));
        let expected = Socket::Internet {
            protocol: Protocol::Tcp,
            local,
            remote: (Ipv6Addr::LOCALHOST, 0).into(),
            side: Side::Answers,
        };
        assert_eq!(socket(&event, SocketSide::SIDE_ANSWERS), expected);
        event.protocol = 132;
        event.family = AF_INET;
        let socket = socket(&event, SocketSide::SIDE_UNKNOWN);
        let Socket::Internet { protocol, side, .. } = socket else {
            unreachable!("{socket:?}")
        };
        assert_eq!((protocol, side), (Protocol::Number(132), Side::Unknown));
    }

    #[test]
    fn local_sockets_are_paths_and_hostile_ones_are_no_more_than_text() {
        let path = |path: &[u8]| {
            let mut event = ObjectEvent {
                family: AF_UNIX,
                socket_type: SOCK_STREAM,
                name_length: path.len() as u32,
                ..ObjectEvent::default()
            };
            event.name[..path.len()].copy_from_slice(path);
            match socket(&event, SocketSide::SIDE_UNKNOWN) {
                Socket::Unix { path, peer, .. } => {
                    assert_eq!(peer, None);
                    path.map(String::from)
                }
                other => unreachable!("{other:?}"),
            }
        };
        assert_eq!(path(b"/run/a.sock\0").as_deref(), Some("/run/a.sock"));
        assert_eq!(path(b"\0abstract").as_deref(), Some("@abstract"));
        assert_eq!(path(b"/\xff").as_deref(), Some("/\u{fffd}"));
        assert_eq!(path(b""), None);
        for (socket_type, expected) in [
            (SOCK_STREAM, Transport::Stream),
            (SOCK_DGRAM, Transport::Datagram),
            (5, Transport::Packet),
        ] {
            let event = ObjectEvent {
                family: AF_UNIX,
                socket_type,
                ..ObjectEvent::default()
            };
            let socket = socket(&event, SocketSide::SIDE_LISTENS);
            let Socket::Unix {
                transport, side, ..
            } = socket
            else {
                unreachable!("{socket:?}")
            };
            assert_eq!((transport, side), (expected, Side::Listens));
        }
        let endless = ObjectEvent {
            name_length: u32::MAX,
            name: [b'x'; 112],
            ..ObjectEvent::default()
        };
        assert_eq!(last_name(&endless).len(), endless.name.len());
    }
}
