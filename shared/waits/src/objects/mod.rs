//! What blocked threads waited on: the files, sockets, futexes and children that a
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

/// Objects kept at most.
const MOST_KEPT: usize = 1 << 16;
/// The ID of all others; programs use it for none ([`bpf::types::STACK_MISSED`]).
const OTHER: u64 = 1;

/// Every object seen so far, by ID.
pub struct Objects {
    known: Interner<Object, ()>,
    places: FutexPlaces,
    listeners: Listeners,
    /// Objects of each process.
    shares: Shares,
}

/// What a program says that a thread waited on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Object {
    /// What the thread's system call is about.
    OfCall(Resource<Box<str>>),
    /// The file of a page that the thread touched.
    Mapped(Resource<Box<str>>),
    /// A child, by its name.
    Child(Text),
    /// A futex.
    Futex(Futex),
    /// One that found no room.
    Other,
}

impl Objects {
    /// Returns no objects. `per_thread`: threads are told apart.
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

    /// Keeps an object that a program sent, with what can be found out about it only now.
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
            ObjectKind::OBJECT_FUTEX => Object::Futex(self.places.see(event, symbolizer)),
            ObjectKind::OBJECT_FILE => Object::OfCall(files::file(event)),
            ObjectKind::OBJECT_MAPPED => Object::Mapped(files::file(event)),
            ObjectKind::OBJECT_SOCKET => {
                let side = self.listeners.side(event);
                Object::OfCall(Resource::Socket(sockets::socket(event, side)))
            }
            ObjectKind::OBJECT_PIDFD => Object::OfCall(Resource::Process(pidfd(event))),
            ObjectKind::OBJECT_ANONYMOUS => Object::OfCall(files::anonymous(event)),
            _ => Object::Child(profile::text::comm(&event.name)),
        };
        self.known.insert(event.id, object, ());
    }

    /// Returns the first ID of the same object, once that has come.
    #[must_use]
    pub fn first(&self, id: u64) -> Option<u64> {
        match self.known.first(id) {
            None if id == NO_OBJECT => Some(id),
            None => self.shares.has_refused().then_some(OTHER),
            first => first,
        }
    }

    /// Returns how many objects found no room.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.shares.refused()
    }

    /// Forgets the shares of processes that have ended.
    pub fn forget_ended(&mut self, living: &Living) {
        self.shares.forget_ended(living);
    }

    /// Returns what an ID stands for.
    pub(crate) fn get(&self, id: u64) -> Option<&Object> {
        self.known.get(id)
    }

    /// Names the variables that futexes are in.
    pub fn resolve(&mut self, symbolizer: &mut Symbolizer) {
        self.places.resolve(symbolizer);
    }

    /// Returns where futexes are.
    pub(crate) fn places(&self) -> &FutexPlaces {
        &self.places
    }
}

/// Tells programs whether objects are wanted, and how waits for them ended.
///
/// # Errors
/// The object has no such constants.
pub fn configure(object: &mut OpenObject, are_wanted: bool, kernel: &Kernel) -> Result<()> {
    let (first, last) = sockets::given_ports();
    object.set(bpf::constants::WANT_WAIT_ENDS, are_wanted)?;
    let distance = kernel.preempt_count_from_runqueue;
    object.set(bpf::constants::PREEMPT_COUNT_FROM_RUNQUEUE, distance)?;
    object.set(bpf::constants::WANT_OBJECTS, are_wanted)?;
    object.set(bpf::constants::FIRST_GIVEN_PORT, first)?;
    object.set(bpf::constants::LAST_GIVEN_PORT, last)
}

/// Returns the process of a pidfd. The kernel told the name during the wait, so no process that
/// uses the ID again lends its own.
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

/// The name of a thread or a process, of which `path` is the file `comm`.
fn comm(path: &str) -> Option<Text> {
    let name = std::fs::read(path).ok()?;
    Some(profile::text::comm(name.trim_ascii_end()))
}

/// The process whose file descriptors and addresses an event has.
fn owner(event: &ObjectEvent) -> Process {
    Process {
        pid: event.pid,
        instance: event.instance,
    }
}

/// What an event has for a name: bytes that the target chose.
fn name(event: &ObjectEvent) -> &[u8] {
    &event.name[..event.name.len().min(event.name_length as usize)]
}
