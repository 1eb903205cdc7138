//! Texts of waits, resources and wakers.

use std::borrow::Cow;
use std::net::SocketAddr;

use profile::{
    EndedBy, Futex, Holder, Peer, Profile, Protocol, Resource, Sample, Side, Socket, Transport,
    Wait, WaitKind, Waker,
};

use super::brief::{short_name, waker_text};

/// Returns the text of a kind of wait: `lock: mutex`.
pub fn kind_text(profile: &Profile, kind: WaitKind) -> String {
    format!(
        "{}: {}",
        kind.reason.name(),
        profile.detail_name(kind.detail)
    )
}

/// Returns the text of a wait with its resource: `lock: mutex, ledger_lock, held by writer`. The
/// text ends in `(idle)` or `(dormant)` if the wait held nothing up.
pub fn wait_text(profile: &Profile, wait: &Wait) -> String {
    let mut text = kind_text(profile, wait.kind);
    if let Some(resource) = wait.resource {
        text.push_str(", ");
        text.push_str(&resource_text(profile, &profile.resources[resource]));
    }
    if let Some(holder) = wait.holder {
        text.push_str(", held by ");
        text.push_str(&holder_text(profile, holder));
    }
    if wait.idleness.is_idle() {
        text.push_str(" (");
        text.push_str(wait.idleness.name());
        text.push(')');
    }
    text
}

/// Returns the text of a resource: a path, `tcp to 10.0.0.2:3306`, the variable of a lock.
pub fn resource_text<'a>(profile: &'a Profile, resource: &'a Resource) -> Cow<'a, str> {
    let names = &profile.names;
    match resource {
        Resource::File(name)
        | Resource::Pipe(name)
        | Resource::Anonymous(name)
        | Resource::Child(name)
        | Resource::Thread(name)
        | Resource::Object(name)
        | Resource::Described(name) => Cow::from(&*names[*name]),
        Resource::FileNamed(name) => format!("…/{}", names[*name]).into(),
        Resource::Socket(socket) => socket_text(profile, socket).into(),
        Resource::Futex(Futex::UsedBy(function)) => format!("in {}", names[*function]).into(),
        Resource::Futex(Futex::Variable {
            module,
            symbol,
            offset,
        }) => match symbol {
            Some(symbol) if *offset == 0 => Cow::from(&*names[*symbol]),
            _ => format!("{}+{offset:#x}", names[symbol.unwrap_or(*module)]).into(),
        },
        Resource::Process(peer) => match peer_text(profile, peer) {
            Some(process) => format!("pidfd of {process}").into(),
            None => "pidfd".into(),
        },
        Resource::Other => "other".into(),
    }
}

/// Returns the text of a resource as [`resource_text`] does, but with functions without arguments.
pub fn short_resource_text<'a>(profile: &'a Profile, resource: &'a Resource) -> Cow<'a, str> {
    match resource {
        Resource::Futex(Futex::UsedBy(function)) => {
            format!("in {}", short_name(&profile.names[*function])).into()
        }
        other => resource_text(profile, other),
    }
}

fn socket_text(profile: &Profile, socket: &Socket) -> String {
    match socket {
        Socket::Internet {
            protocol,
            local,
            remote,
            side,
        } => {
            let protocol = match protocol {
                Protocol::Tcp => Cow::from("tcp"),
                Protocol::Udp => "udp".into(),
                Protocol::Number(number) => format!("protocol {number}").into(),
            };
            let ends = ends_text(*local, *remote, *side);
            format!("{protocol} {ends}")
        }
        Socket::Unix {
            transport,
            path,
            peer,
            side,
        } => {
            let transport = match transport {
                Transport::Stream => "unix",
                Transport::Datagram => "unix datagrams",
                Transport::Packet => "unix packets",
            };
            let path = path.map(|path| &*profile.names[path]);
            let peer = peer.as_ref().and_then(|peer| peer_text(profile, peer));
            match (path, peer) {
                (path, _) if *side == Side::Listens => {
                    format!("{transport} listening on {}", path.unwrap_or_default())
                }
                (Some(path), _) => format!("{transport} {path}"),
                (None, Some(peer)) => format!("{transport} of {peer}"),
                (None, None) => format!("{transport} socket"),
            }
        }
        Socket::Netlink => "netlink socket".to_owned(),
        Socket::Family(family) => format!("socket of family {family}"),
    }
}

/// Returns the text of a connection's ends. The text leaves out a port that the kernel chose,
/// because the other end tells more.
fn ends_text(local: SocketAddr, remote: SocketAddr, side: Side) -> String {
    let from = remote.ip();
    match (local.port(), remote.port()) {
        _ if side == Side::Listens => format!("listening on {local}"),
        (0, 0) => "socket".to_owned(),
        (0, _) => format!("to {remote}"),
        (port, 0) if !from.is_unspecified() => format!(":{port} from {from}"),
        (_, 0) => format!("on {local}"),
        _ => format!("{local} to {remote}"),
    }
}

fn peer_text(profile: &Profile, peer: &Peer) -> Option<String> {
    let name = peer.comm.map(|comm| &profile.names[comm]);
    match (peer.pid, name) {
        (None, None) => None,
        (None, Some(name)) => Some(name.to_string()),
        (Some(pid), None) => Some(format!("process {pid}")),
        (Some(pid), Some(name)) => Some(format!("process {pid} ({name})")),
    }
}

/// Returns the name of the thread that held a resource. Its ID follows if `shares_name` is set.
pub fn holder_text(profile: &Profile, holder: Holder) -> String {
    let name = &profile.names[holder.comm];
    match holder.thread {
        Some(thread) if holder.shares_name => format!("{name}/{}", thread.tid),
        _ => name.to_string(),
    }
}

/// Returns the waker of a wait, and its stack.
pub fn ended_by_text(profile: &Profile, ended_by: EndedBy) -> String {
    match ended_by {
        EndedBy::Described(text) => profile.names[text].to_string(),
        EndedBy::Wakers(wakers) => {
            let waker: Option<&Waker> = profile.wakers[wakers].first();
            waker.map_or_else(String::new, |waker| waker_text(profile, waker))
        }
    }
}

/// Returns the keys and values of a sample's wait, and its labels.
pub(crate) fn labels<'a>(profile: &'a Profile, sample: &Sample) -> Vec<(&'a str, Cow<'a, str>)> {
    let mut labels: Vec<(&str, Cow<'_, str>)> = Vec::new();
    if let Some(wait) = profile.wait(sample) {
        labels.push(("reason", wait.kind.reason.name().into()));
        labels.push(("detail", profile.detail_name(wait.kind.detail).into()));
        let resource = wait.resource.map(|resource| &profile.resources[resource]);
        let resource = resource.map(|resource| resource_text(profile, resource));
        labels.extend(resource.map(|resource| ("object", resource)));
        let holder = (wait.holder).map(|holder| holder_text(profile, holder));
        labels.extend(holder.map(|holder| ("holder", holder.into())));
        let ended_by = (wait.ended_by).map(|ended_by| ended_by_text(profile, ended_by));
        labels.extend(ended_by.map(|waker| ("ended by", waker.into())));
        labels.push(("idleness", wait.idleness.name().into()));
    }
    if sample.is_sampled {
        labels.push(("interval", "sampled".into()));
    }
    let others = sample
        .labels
        .map_or(&[][..], |labels| &profile.labels[labels]);
    labels.extend(others.iter().map(|label| {
        let [key, value] = [label.key, label.value].map(|name| &*profile.names[name]);
        (key, value.into())
    }));
    labels
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use profile::Unit;

    use super::*;

    fn text(resource: &Resource<&str>) -> String {
        let mut profile = Profile::new(Unit::Nanoseconds);
        let resource = resource.map(|name| profile.names.text(name));
        resource_text(&profile, &resource).into_owned()
    }

    fn internet(
        protocol: Protocol,
        [local, remote]: [(IpAddr, u16); 2],
        side: Side,
    ) -> Resource<&'static str> {
        Resource::Socket(Socket::Internet {
            protocol,
            local: local.into(),
            remote: remote.into(),
            side,
        })
    }

    #[test]
    fn connections_are_told_by_the_end_that_somebody_chose() {
        let [here, there] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let tcp = |local, remote| {
            let ends = [(here, local), (there, remote)];
            internet(Protocol::Tcp, ends, Side::Unknown)
        };
        let nobody = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
        for (resource, expected) in [
            (tcp(0, 3306), "tcp to 10.0.0.2:3306"),
            (tcp(3306, 0), "tcp :3306 from 10.0.0.2"),
            (tcp(7000, 7001), "tcp 10.0.0.1:7000 to 10.0.0.2:7001"),
            (
                internet(Protocol::Tcp, [(here, 80), (nobody, 0)], Side::Listens),
                "tcp listening on 10.0.0.1:80",
            ),
            (
                internet(Protocol::Udp, [(here, 53), (nobody, 0)], Side::Unknown),
                "udp on 10.0.0.1:53",
            ),
            (
                internet(Protocol::Tcp, [(v6, 0), (v6, 443)], Side::Asks),
                "tcp to [::1]:443",
            ),
            (tcp(0, 0), "tcp socket"),
        ] {
            assert_eq!(text(&resource), expected);
        }
    }

    #[test]
    fn local_resources_read_as_people_name_them() {
        let unix = |path, pid, side| {
            Resource::Socket(Socket::Unix {
                transport: Transport::Stream,
                path,
                peer: Some(Peer {
                    pid,
                    comm: Some("db"),
                }),
                side,
            })
        };
        let variable = |symbol, offset| {
            Resource::Futex(Futex::Variable {
                module: "libm.so.6",
                symbol,
                offset,
            })
        };
        let process = |pid, comm| Resource::Process(Peer { pid, comm });
        for (resource, expected) in [
            (unix(Some("/run/a"), Some(7), Side::Asks), "unix /run/a"),
            (unix(None, Some(7), Side::Unknown), "unix of process 7 (db)"),
            (
                unix(Some("@a"), None, Side::Listens),
                "unix listening on @a",
            ),
            (variable(Some("pool"), 0), "pool"),
            (variable(Some("slots"), 0x40), "slots+0x40"),
            (variable(None, 0x1234), "libm.so.6+0x1234"),
            (Resource::Futex(Futex::UsedBy("book")), "in book"),
            (process(None, None), "pidfd"),
            (process(None, Some("db")), "pidfd of db"),
            (process(Some(7), Some("db")), "pidfd of process 7 (db)"),
            (Resource::FileNamed("log"), "…/log"),
        ] {
            assert_eq!(text(&resource), expected);
        }
    }
}
