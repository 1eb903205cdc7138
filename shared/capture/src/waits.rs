//! Converts resources and waits between a profile and the messages of a capture.

use std::net::{IpAddr, SocketAddr};

use super::Error;
use super::budget::Budget;
use super::proto::{self, resource::Kind};
use super::rows::{FRAME_BYTES, Known, Rows, optional, row};
use super::write::{number, optional as optional_number};
use profile::{
    EndedBy, Futex, Holder, Id, Idleness, Label, Labels, Name, Peer, Protocol, Reason, Resource,
    Side, Socket, ThreadId, Transport, Wait, WaitKind,
};

/// Bytes of text that a resource takes besides its names: two addresses with ports.
const ADDRESS_BYTES: u64 = 96;
/// Protocol numbers of `include/uapi/linux/in.h`.
const IPPROTO_TCP: u32 = 6;
const IPPROTO_UDP: u32 = 17;

/// Keys of the labels that describe waits in captures of version 1.
const REASON: &str = "reason";
const DETAIL: &str = "detail";
const OBJECT: &str = "object";
const HOLDER: &str = "holder";
const ENDED_BY: &str = "ended by";
const IDLENESS: &str = "idleness";
/// Label of sampled intervals in captures of version 1.
const SAMPLED: [&str; 2] = ["interval", "sampled"];

/// Meaning of a set of labels.
#[derive(Clone, Copy, Default)]
pub(super) struct LabelMeaning {
    pub(super) wait: Option<Id<Wait>>,
    pub(super) is_sampled: bool,
    pub(super) labels: Option<Id<Labels>>,
}

impl Rows {
    pub(super) fn take_resources(
        &mut self,
        resources: &[proto::Resource],
        budget: &mut Budget<'_>,
    ) -> Result<(), Error> {
        budget.take_rows::<Known<Resource>>(resources.len(), 0)?;
        for resource in resources {
            let resource = self.resource(resource)?;
            let mut text = ADDRESS_BYTES;
            let resource = resource.map(|name| {
                text += self.profile.names[*name].len() as u64;
                *name
            });
            self.resources.push(Known {
                row: self.profile.resources.id(resource),
                text,
                depth: 0,
            });
        }
        Ok(())
    }

    fn resource(&self, resource: &proto::Resource) -> Result<Resource, Error> {
        let name = |number| row(&self.names, number);
        let kind = resource.kind.as_ref();
        Ok(
            match *kind.ok_or(Error::Damaged("a resource is of no kind"))? {
                Kind::File(path) => Resource::File(name(path)?),
                Kind::FileNamed(file) => Resource::FileNamed(name(file)?),
                Kind::Pipe(pipe) => Resource::Pipe(name(pipe)?),
                Kind::Anonymous(kind) => Resource::Anonymous(name(kind)?),
                Kind::Internet(ref socket) => Resource::Socket(internet(socket)?),
                Kind::Unix(ref socket) => Resource::Socket(Socket::Unix {
                    transport: transport(socket.transport()),
                    path: optional(&self.names, socket.path)?,
                    peer: (socket.peer.as_ref())
                        .map(|peer| self.peer(peer))
                        .transpose()?,
                    side: side(socket.side()),
                }),
                Kind::Socket(proto::OtherSocket { family }) => {
                    Resource::Socket(other_socket(family))
                }
                Kind::Futex(ref variable) => Resource::Futex(Futex::Variable {
                    module: name(variable.module)?,
                    symbol: optional(&self.names, variable.symbol)?,
                    offset: variable.offset,
                }),
                Kind::FutexUsedBy(function) => Resource::Futex(Futex::UsedBy(name(function)?)),
                Kind::Process(ref peer) => Resource::Process(self.peer(peer)?),
                Kind::Child(comm) => Resource::Child(name(comm)?),
                Kind::Thread(comm) => Resource::Thread(name(comm)?),
                Kind::Object(class) => Resource::Object(name(class)?),
                Kind::Other(proto::Other {}) => Resource::Other,
                Kind::Described(text) => Resource::Described(name(text)?),
            },
        )
    }

    fn peer(&self, peer: &proto::Peer) -> Result<Peer, Error> {
        Ok(Peer {
            pid: (peer.pid != 0).then_some(peer.pid),
            comm: optional(&self.names, peer.comm)?,
        })
    }

    pub(super) fn take_waits(
        &mut self,
        waits: &[proto::Wait],
        budget: &mut Budget<'_>,
    ) -> Result<(), Error> {
        budget.take_rows::<Known<Wait>>(waits.len(), 0)?;
        for wait in waits {
            let detail = row(&self.names, wait.detail)?;
            let resource = optional(&self.resources, wait.resource)?;
            let wakers = optional(&self.wakers, wait.wakers)?;
            let described = optional(&self.names, wait.ended_by)?;
            let holder = wait.holder.as_ref();
            let holder = holder.map(|holder| self.holder(holder)).transpose()?;
            let names = [Some(detail), described, holder.map(|holder| holder.comm)];
            let names = names.into_iter().flatten();
            let texts = names.map(|name| FRAME_BYTES + self.name_length(name) as u64);
            let texts = texts.chain(resource.map(|resource| resource.text));
            let text = texts
                .chain(wakers.map(|wakers| wakers.text))
                .fold(FRAME_BYTES, u64::saturating_add);
            let ended_by = (wakers.map(|wakers| EndedBy::Wakers(wakers.row)))
                .or(described.map(EndedBy::Described));
            let new = Wait {
                kind: WaitKind::new(reason(wait.reason()), self.profile.detail(detail)),
                resource: resource.map(|resource| resource.row),
                holder,
                ended_by,
                idleness: idleness(wait.idleness()),
            };
            self.waits.push(Known {
                row: self.profile.waits.id(new),
                text,
                depth: 0,
            });
        }
        Ok(())
    }

    fn holder(&mut self, holder: &proto::Holder) -> Result<Holder, Error> {
        let thread = ThreadId {
            pid: holder.pid,
            tid: holder.tid,
        };
        Ok(Holder {
            comm: self.thread_name(holder.comm)?,
            thread: (thread != ThreadId::default()).then_some(thread),
            shares_name: holder.shares_name,
        })
    }

    /// Interprets the labels of a capture of version 1. Labels of a wait that this version does
    /// not know stay labels.
    pub(super) fn interpret_labels(&mut self, mut labels: Vec<Label>) -> LabelMeaning {
        let all = labels.len();
        let names = &self.profile.names;
        let is_sampled_label =
            |label: &Label| [&*names[label.key], &*names[label.value]] == SAMPLED;
        labels.retain(|label| !is_sampled_label(label));
        let is_sampled = labels.len() < all;
        let mut rest = Vec::new();
        let [
            mut reason,
            mut detail,
            mut object,
            mut holder,
            mut ended_by,
            mut idleness,
        ] = [None; 6];
        for label in &labels {
            let known = match &*names[label.key] {
                REASON => &mut reason,
                DETAIL => &mut detail,
                OBJECT => &mut object,
                HOLDER => &mut holder,
                ENDED_BY => &mut ended_by,
                IDLENESS => &mut idleness,
                _ => {
                    rest.push(*label);
                    continue;
                }
            };
            *known = known.or(Some(label.value));
        }
        let kind = self.kind_named(reason, detail);
        let wait = kind.map(|kind| Wait {
            kind,
            resource: object.map(|text| self.profile.resources.id(Resource::Described(text))),
            holder: holder.map(|comm| Holder {
                comm,
                thread: None,
                shares_name: false,
            }),
            ended_by: ended_by.map(EndedBy::Described),
            idleness: idleness
                .and_then(|name| Idleness::named(&self.profile.names[name]))
                .unwrap_or_default(),
        });
        if wait.is_none() {
            rest = labels;
        }
        LabelMeaning {
            wait: wait.map(|wait| self.profile.waits.id(wait)),
            is_sampled,
            labels: (!rest.is_empty()).then(|| self.profile.labels.id(rest.into())),
        }
    }

    fn kind_named(&self, reason: Option<Name>, detail: Option<Name>) -> Option<WaitKind> {
        let reason = &*self.profile.names[reason?];
        let reason = Reason::ALL.into_iter().find(|known| known.name() == reason);
        Some(WaitKind::new(reason?, self.profile.detail(detail?)))
    }
}

fn internet(socket: &proto::InternetSocket) -> Result<Socket, Error> {
    let protocol = match socket.protocol {
        IPPROTO_TCP => Protocol::Tcp,
        IPPROTO_UDP => Protocol::Udp,
        number => Protocol::Number(port(number)?),
    };
    Ok(Socket::Internet {
        protocol,
        local: SocketAddr::new(address(&socket.local_address)?, port(socket.local_port)?),
        remote: SocketAddr::new(address(&socket.remote_address)?, port(socket.remote_port)?),
        side: side(socket.side()),
    })
}

fn port(number: u32) -> Result<u16, Error> {
    u16::try_from(number).map_err(|_| Error::Damaged("a port is none"))
}

fn address(bytes: &[u8]) -> Result<IpAddr, Error> {
    let v4 = || <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    v4().or_else(|_| v6())
        .map_err(|_| Error::Damaged("an address is none"))
}

fn other_socket(family: u32) -> Socket {
    /// `AF_NETLINK` of `include/linux/socket.h`.
    const NETLINK: u32 = 16;
    match u16::try_from(family) {
        Ok(family) if u32::from(family) != NETLINK => Socket::Family(family),
        Ok(_) => Socket::Netlink,
        Err(_) => Socket::Family(u16::MAX),
    }
}

pub(super) fn put_resource(resource: &Resource) -> proto::Resource {
    let kind = match resource {
        Resource::File(path) => Kind::File(number(*path)),
        Resource::FileNamed(name) => Kind::FileNamed(number(*name)),
        Resource::Pipe(name) => Kind::Pipe(number(*name)),
        Resource::Anonymous(name) => Kind::Anonymous(number(*name)),
        Resource::Socket(socket) => put_socket(socket),
        Resource::Futex(Futex::UsedBy(function)) => Kind::FutexUsedBy(number(*function)),
        Resource::Futex(Futex::Variable {
            module,
            symbol,
            offset,
        }) => Kind::Futex(proto::FutexVariable {
            module: number(*module),
            symbol: optional_number(*symbol),
            offset: *offset,
        }),
        Resource::Process(peer) => Kind::Process(put_peer(peer)),
        Resource::Child(comm) => Kind::Child(number(*comm)),
        Resource::Thread(comm) => Kind::Thread(number(*comm)),
        Resource::Object(class) => Kind::Object(number(*class)),
        Resource::Other => Kind::Other(proto::Other {}),
        Resource::Described(text) => Kind::Described(number(*text)),
    };
    proto::Resource { kind: Some(kind) }
}

fn put_socket(socket: &Socket) -> Kind {
    match socket {
        Socket::Internet {
            protocol,
            local,
            remote,
            side,
        } => Kind::Internet(proto::InternetSocket {
            protocol: match protocol {
                Protocol::Tcp => IPPROTO_TCP,
                Protocol::Udp => IPPROTO_UDP,
                Protocol::Number(number) => u32::from(*number),
            },
            local_address: put_address(local.ip()),
            local_port: local.port().into(),
            remote_address: put_address(remote.ip()),
            remote_port: remote.port().into(),
            side: put_side(*side).into(),
        }),
        Socket::Unix {
            transport,
            path,
            peer,
            side,
        } => Kind::Unix(proto::UnixSocket {
            transport: put_transport(*transport).into(),
            path: optional_number(*path),
            peer: peer.as_ref().map(put_peer),
            side: put_side(*side).into(),
        }),
        Socket::Netlink => Kind::Socket(proto::OtherSocket { family: 16 }),
        Socket::Family(family) => Kind::Socket(proto::OtherSocket {
            family: u32::from(*family),
        }),
    }
}

fn put_address(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn put_peer(peer: &Peer) -> proto::Peer {
    proto::Peer {
        pid: peer.pid.unwrap_or(0),
        comm: optional_number(peer.comm),
    }
}

/// Returns a wait as a message. `detail` is the number of the name of its detail.
pub(super) fn put_wait(wait: &Wait, detail: u32) -> proto::Wait {
    let (wakers, ended_by) = match wait.ended_by {
        None => (0, 0),
        Some(EndedBy::Wakers(wakers)) => (optional_number(Some(wakers)), 0),
        Some(EndedBy::Described(text)) => (0, optional_number(Some(text))),
    };
    proto::Wait {
        reason: put_reason(wait.kind.reason).into(),
        detail,
        resource: optional_number(wait.resource),
        holder: wait.holder.map(|holder| {
            let ThreadId { pid, tid } = holder.thread.unwrap_or_default();
            proto::Holder {
                comm: number(holder.comm),
                pid,
                tid,
                shares_name: holder.shares_name,
            }
        }),
        wakers,
        ended_by,
        idleness: put_idleness(wait.idleness).into(),
    }
}

/// Defines two functions that turn one enum into another and back.
macro_rules! enums {
    ($($ours:ident, $read:ident, $put:ident: $($variant:ident)*;)*) => {$(
        fn $read(message: proto::$ours) -> $ours {
            match message {
                $(proto::$ours::$variant => $ours::$variant,)*
            }
        }

        fn $put(ours: $ours) -> proto::$ours {
            match ours {
                $($ours::$variant => proto::$ours::$variant,)*
            }
        }
    )*};
}

enums! {
    Side, side, put_side: Unknown Listens Asks Answers;
    Idleness, idleness, put_idleness: Unknown Waiting Idle Dormant;
    Reason, reason, put_reason:
        Unknown Lock KernelLock Condition Child Events Network LocalIpc DiskRead DiskWrite
        PageFault Memory Throttle Sleep Stopped Device Kernel Runtime;
    Transport, transport, put_transport: Stream Datagram Packet;
}
