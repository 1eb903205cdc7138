//! Resources that blocked threads waited on: the files, sockets, futexes and children that a
//! program sends, each once.

mod files;
mod futexes;
mod listeners;
mod sockets;

use bpf::types::{NO_OBJECT, ObjectEvent, ObjectKind};
use loader::{Kernel, OpenObject, Result};
use process::{Interner, Living, Process, Shares};
use profile::{Peer, Resource, Text};
use symbolize::Symbolizer;

use listeners::Listeners;

pub(crate) use futexes::{Futex, FutexPlaces};

/// Maximum number of resources kept.
const MOST_KEPT: usize = 1 << 16;
/// ID of all other resources; programs use this number for none ([`bpf::types::STACK_MISSED`]).
const OTHER: u64 = 1;

/// Resources that programs have sent so far, by ID.
pub struct Objects {
    known: Interner<Object, ()>,
    places: FutexPlaces,
    listeners: Listeners,
    /// Number of resources of each process.
    shares: Shares,
}

/// Resource on which a thread waited, as a program reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Object {
    /// The resource that the thread's system call concerns.
    FromCall(Resource<Box<str>>),
    /// The file of a page that the thread touched.
    Mapped(Resource<Box<str>>),
    /// A child, by its name.
    Child(Text),
    /// A futex.
    Futex(Futex),
    /// A resource that found no capacity.
    Other,
}

impl Objects {
    /// Returns an empty collection. `per_thread`: the profile distinguishes threads.
    #[must_use]
    pub fn new(per_thread: bool) -> Objects {
        let mut known = Interner::new();
        known.insert(OTHER, Object::Other, ());
        Objects {
            known,
            places: FutexPlaces::new(per_thread),
            listeners: Listeners::default(),
            shares: Shares::default(),
        }
    }

    /// Keeps a resource that a program sent, with the facts that can be found only now.
    pub fn add(&mut self, event: &ObjectEvent, symbolizer: &mut Symbolizer) {
        if self.known.first(event.id).is_some() {
            return;
        }
        let kept = self.known.id_count();
        if !self.shares.may_take(event.pid, 1, kept, MOST_KEPT) {
            self.shares.refuse();
            return;
        }
        self.shares.take(event.pid, 1);
        let object = match ObjectKind(event.object) {
            ObjectKind::OBJECT_FUTEX => Object::Futex(self.places.add(event, symbolizer)),
            ObjectKind::OBJECT_FILE => Object::FromCall(files::file(event)),
            ObjectKind::OBJECT_MAPPED => Object::Mapped(files::file(event)),
            ObjectKind::OBJECT_SOCKET => {
                let side = self.listeners.side(event);
                Object::FromCall(Resource::Socket(sockets::socket(event, side)))
            }
            ObjectKind::OBJECT_PIDFD => Object::FromCall(Resource::Process(pidfd(event))),
            ObjectKind::OBJECT_ANONYMOUS => Object::FromCall(files::anonymous(event)),
            _ => Object::Child(profile::text::comm(&event.name)),
        };
        self.known.insert(event.id, object, ());
    }

    /// Returns the first ID of the same resource, if that has arrived.
    #[must_use]
    pub fn first(&self, id: u64) -> Option<u64> {
        match self.known.first(id) {
            None if id == NO_OBJECT => Some(id),
            None => self.shares.has_refused().then_some(OTHER),
            first => first,
        }
    }

    /// Returns how many resources found no capacity.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.shares.refused()
    }

    /// Removes the shares of processes that have ended.
    pub fn forget_ended(&mut self, living: &Living) {
        self.shares.forget_ended(living);
    }

    /// Returns the resource of an ID.
    pub(crate) fn get(&self, id: u64) -> Option<&Object> {
        self.known.get(id)
    }

    /// Finds the names of the variables that futexes are in.
    pub fn resolve(&mut self, symbolizer: &mut Symbolizer) {
        self.places.resolve(symbolizer);
    }

    /// Returns the locations of futexes.
    pub(crate) fn places(&self) -> &FutexPlaces {
        &self.places
    }
}

/// Sets the constants by which programs send resources, and how waits ended, or not.
///
/// # Errors
/// Fails if the object has no such constants.
pub fn configure(object: &mut OpenObject, is_enabled: bool, kernel: &Kernel) -> Result<()> {
    let (first, last) = sockets::given_ports();
    object.set(bpf::constants::WANT_WAIT_ENDS, is_enabled)?;
    let distance = kernel.preempt_count_from_runqueue;
    object.set(bpf::constants::PREEMPT_COUNT_FROM_RUNQUEUE, distance)?;
    object.set(bpf::constants::WANT_OBJECTS, is_enabled)?;
    object.set(bpf::constants::FIRST_GIVEN_PORT, first)?;
    object.set(bpf::constants::LAST_GIVEN_PORT, last)
}

/// Returns the process of a pidfd. The kernel read the name during the wait, so a later process
/// with the same ID does not give its name.
fn pidfd(event: &ObjectEvent) -> Peer<Box<str>> {
    Peer {
        pid: (event.tid != 0).then_some(event.tid),
        comm: (event.name_length > 0).then(|| boxed(&profile::text::comm(&event.name))),
    }
}

/// Returns a process by its ID and, while it lives, its name.
fn process(pid: u32) -> Peer<Box<str>> {
    Peer {
        pid: Some(pid),
        comm: comm(&format!("/proc/{pid}/comm")).map(|name| boxed(&name)),
    }
}

fn boxed(name: &str) -> Box<str> {
    name.into()
}

/// Returns the name of a thread or process from its file `comm`.
fn comm(path: &str) -> Option<Text> {
    let name = std::fs::read(path).ok()?;
    Some(profile::text::comm(name.trim_ascii_end()))
}

/// Returns the process that has an event's file descriptors and addresses.
fn owner(event: &ObjectEvent) -> Process {
    Process {
        pid: event.pid,
        instance: event.instance,
    }
}

/// Returns an event's name: bytes that the target chose.
fn name(event: &ObjectEvent) -> &[u8] {
    &event.name[..event.name.len().min(event.name_length as usize)]
}
