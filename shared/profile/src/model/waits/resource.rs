//! Resources on which threads wait.

use std::convert::Infallible;
use std::net::SocketAddr;

use crate::Name;

/// A resource on which a thread waits. `N` is the type of names: in a profile, their numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource<N = Name> {
    /// A file, by its path.
    File(N),
    /// A file, by the last component of its path, if only that is known.
    FileNamed(N),
    /// A pipe, by its path or as `pipe:[inode]`.
    Pipe(N),
    /// A file without a path, by the kernel's name for its kind, such as `eventfd`.
    Anonymous(N),
    /// A socket.
    Socket(Socket<N>),
    /// A word in memory that user space waits on with futex(2).
    Futex(Futex<N>),
    /// A process that a pidfd refers to.
    Process(Peer<N>),
    /// A child, by the name of its main thread.
    Child(N),
    /// A thread of the same process, by its name. The waiting thread joins it.
    Thread(N),
    /// An object of a language's runtime, by the name of its class.
    Object(N),
    /// Any resource beyond the limit of resources that the tool distinguishes.
    Other,
    /// Description of a resource, from a capture of version 1.
    Described(N),
}

/// A process, by its ID and name, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer<N = Name> {
    /// The process ID.
    pub pid: Option<u32>,
    /// The name of its main thread.
    pub comm: Option<N>,
}

/// A socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Socket<N = Name> {
    /// An IPv4 or IPv6 socket. Port 0 stands for no port, and for a port that the kernel chose.
    Internet {
        /// The protocol.
        protocol: Protocol,
        /// Address and port of this end.
        local: SocketAddr,
        /// Address and port of the other end.
        remote: SocketAddr,
        /// Side of the connection.
        side: Side,
    },
    /// A Unix domain socket.
    Unix {
        /// Way in which the socket transmits data.
        transport: Transport,
        /// Path of the socket. `@name` is an abstract name, outside file systems.
        path: Option<N>,
        /// Process at the other end.
        peer: Option<Peer<N>>,
        /// Side of the connection.
        side: Side,
    },
    /// A netlink socket.
    Netlink,
    /// A socket of another family, by the family's number in Linux.
    Family(u16),
}

/// A protocol of IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Another protocol, by the number that IANA assigned.
    Number(u16),
}

/// Way in which a Unix domain socket transmits data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// A stream of bytes.
    Stream,
    /// Datagrams.
    Datagram,
    /// Packets in order (`SOCK_SEQPACKET`).
    Packet,
}

/// Side of a connection on which a socket is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The side is unknown.
    #[default]
    Unknown,
    /// The socket listens, and receives new connections.
    Listens,
    /// The socket connected to the other end, and receives answers.
    Asks,
    /// The other end connected to the socket, and sends new work.
    Answers,
}

/// Place of a futex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Futex<N = Name> {
    /// The futex is in a variable of a mapped file.
    Variable {
        /// Name of the file.
        module: N,
        /// Name of the variable, if it has a symbol.
        symbol: Option<N>,
        /// Bytes from the variable to the lock or condition variable that contains the futex;
        /// without a symbol, bytes from the file's load address.
        offset: u64,
    },
    /// The futex is in memory without a name: the function that waited.
    UsedBy(N),
}

impl<N> Resource<N> {
    /// Replaces each name.
    ///
    /// # Errors
    /// The first error of `replace`.
    pub fn try_map<M, E>(
        &self,
        mut replace: impl FnMut(&N) -> Result<M, E>,
    ) -> Result<Resource<M>, E> {
        Ok(match self {
            Resource::File(path) => Resource::File(replace(path)?),
            Resource::FileNamed(name) => Resource::FileNamed(replace(name)?),
            Resource::Pipe(name) => Resource::Pipe(replace(name)?),
            Resource::Anonymous(name) => Resource::Anonymous(replace(name)?),
            Resource::Socket(socket) => Resource::Socket(socket.try_map(replace)?),
            Resource::Futex(Futex::UsedBy(function)) => {
                Resource::Futex(Futex::UsedBy(replace(function)?))
            }
            Resource::Futex(Futex::Variable {
                module,
                symbol,
                offset,
            }) => Resource::Futex(Futex::Variable {
                module: replace(module)?,
                symbol: symbol.as_ref().map(replace).transpose()?,
                offset: *offset,
            }),
            Resource::Process(peer) => Resource::Process(peer.try_map(replace)?),
            Resource::Child(comm) => Resource::Child(replace(comm)?),
            Resource::Thread(comm) => Resource::Thread(replace(comm)?),
            Resource::Object(class) => Resource::Object(replace(class)?),
            Resource::Other => Resource::Other,
            Resource::Described(text) => Resource::Described(replace(text)?),
        })
    }

    /// Replaces each name.
    pub fn map<M>(&self, mut replace: impl FnMut(&N) -> M) -> Resource<M> {
        let Ok(mapped) = self.try_map(|name| Ok::<M, Infallible>(replace(name)));
        mapped
    }

    /// Returns the side of the connection, or `Unknown` if the resource is not a connected
    /// socket.
    #[must_use]
    pub fn side(&self) -> Side {
        match self {
            Resource::Socket(Socket::Internet { side, .. } | Socket::Unix { side, .. }) => *side,
            _ => Side::Unknown,
        }
    }
}

impl<N> Socket<N> {
    fn try_map<M, E>(&self, mut replace: impl FnMut(&N) -> Result<M, E>) -> Result<Socket<M>, E> {
        Ok(match self {
            Socket::Internet {
                protocol,
                local,
                remote,
                side,
            } => Socket::Internet {
                protocol: *protocol,
                local: *local,
                remote: *remote,
                side: *side,
            },
            Socket::Unix {
                transport,
                path,
                peer,
                side,
            } => Socket::Unix {
                transport: *transport,
                path: path.as_ref().map(&mut replace).transpose()?,
                peer: peer
                    .as_ref()
                    .map(|peer| peer.try_map(replace))
                    .transpose()?,
                side: *side,
            },
            Socket::Netlink => Socket::Netlink,
            Socket::Family(family) => Socket::Family(*family),
        })
    }
}

impl<N> Peer<N> {
    fn try_map<M, E>(&self, replace: impl FnMut(&N) -> Result<M, E>) -> Result<Peer<M>, E> {
        Ok(Peer {
            pid: self.pid,
            comm: self.comm.as_ref().map(replace).transpose()?,
        })
    }
}
