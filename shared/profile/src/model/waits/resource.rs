//! Resources: what threads wait on.

use std::convert::Infallible;
use std::net::SocketAddr;

use crate::Name;

/// What a thread waits on. `N` is how names are kept: in a profile by number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource<N = Name> {
    /// A file, by its path.
    File(N),
    /// A file of which only the last component of the path is known.
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
    /// A thread of the same process that is joined, by its name.
    Thread(N),
    /// One of the resources beyond the limit of those that are told apart.
    Other,
    /// A resource in the words of a capture of version 1.
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
    /// A socket of IPv4 or IPv6. Port 0 stands for a port that the kernel chose, and for none.
    Internet {
        /// The protocol.
        protocol: Protocol,
        /// The address and port of this end.
        local: SocketAddr,
        /// The address and port of the other end.
        remote: SocketAddr,
        /// The side of the connection.
        side: Side,
    },
    /// A Unix domain socket.
    Unix {
        /// How it passes data on.
        transport: Transport,
        /// Its path; `@name` if that is in no file system.
        path: Option<N>,
        /// The process at the other end.
        peer: Option<Peer<N>>,
        /// The side of the connection.
        side: Side,
    },
    /// A netlink socket.
    Netlink,
    /// A socket of another family, by the family's number in the kernel.
    Family(u16),
}

/// A protocol of IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Another protocol, by its number at IANA.
    Number(u16),
}

/// How a Unix domain socket passes data on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// A stream of bytes.
    Stream,
    /// Datagrams.
    Datagram,
    /// Packets in their order.
    Packet,
}

/// The side of a connection that a socket is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Not known.
    #[default]
    Unknown,
    /// It listens: what comes is a new connection.
    Listens,
    /// It connected: what comes was asked for.
    Asks,
    /// It was connected to: what comes is new work.
    Answers,
}

/// Where a futex is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Futex<N = Name> {
    /// In a variable of a mapped file.
    Variable {
        /// The file's name.
        module: N,
        /// The variable, if it has a symbol.
        symbol: Option<N>,
        /// Bytes from the variable, or from the file's load address, to the lock or the
        /// condition variable that the futex is a part of.
        offset: u64,
    },
    /// In memory that has no name: the function that waited.
    UsedBy(N),
}

impl<N> Resource<N> {
    /// Returns the resource with each name replaced.
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
            Resource::Other => Resource::Other,
            Resource::Described(text) => Resource::Described(replace(text)?),
        })
    }

    /// Returns the resource with each name replaced.
    pub fn map<M>(&self, mut replace: impl FnMut(&N) -> M) -> Resource<M> {
        let Ok(mapped) = self.try_map(|name| Ok::<M, Infallible>(replace(name)));
        mapped
    }

    /// Returns the side of the connection, if the resource is a socket of one.
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
