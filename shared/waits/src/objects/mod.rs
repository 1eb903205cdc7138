//! Resources on which blocked threads waited: files, sockets, futexes and children. Programs send
//! each of them once.

mod files;
mod futexes;
mod listeners;
mod sockets;

use bpf::types::{COMM_LENGTH, NO_OBJECT, ObjectEvent, ObjectKind};
use languages::Class;
use loader::{Kernel, OpenObject, Result};
use process::{Interner, Living, Process, Shares};
use profile::{Peer, Resource, Text, ThreadId};
use symbolize::Symbolizer;

use listeners::Listeners;

pub(crate) use futexes::{Futex, FutexPlaces};

/// Maximum number of resources that are kept.
const MAX_KEPT: usize = 1 << 16;
/// ID of all further resources. No resource of a program has this ID, which is
/// [`bpf::types::STACK_MISSED`].
const OTHER: u64 = 1;

/// Facts that runtimes of languages have about the threads and objects of their processes.
pub trait Runtimes {
    /// Returns the name of a thread, as it is printed. `comm` is the kernel's name.
    fn thread_name(&self, thread: ThreadId, comm: &[u8; COMM_LENGTH]) -> Text;

    /// Returns the class at an address in a process; `None` if it cannot be read.
    fn class(&self, process: Process, class: u64) -> Option<Class<Text>>;
}

/// Resources that programs have sent, by ID.
pub struct Objects {
    known: Interner<Object, ()>,
    places: FutexPlaces,
    listeners: Listeners,
    /// Number of resources that each process takes.
    shares: Shares,
}

/// Resource on which a thread waited, as a program reported it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Object {
    /// Resource of the thread's system call.
    FromCall(Resource<Box<str>>),
    /// File of a page that the thread touched.
    Mapped(Resource<Box<str>>),
    /// Child process, by name.
    Child(Text),
    /// Futex.
    Futex(Futex),
    /// Resource beyond the capacity.
    Other,
}

impl Objects {
    /// Returns an empty collection. `per_thread` says whether the profile distinguishes threads.
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

    /// Adds a resource that a program sent, with facts that can be found only now. `runtimes`
    /// are those of all processes.
    pub fn add(
        &mut self,
        event: &ObjectEvent,
        symbolizer: &mut Symbolizer,
        runtimes: &dyn Runtimes,
    ) {
        if self.known.first(event.id).is_some() {
            return;
        }
        let kept = self.known.id_count();
        if !self.shares.may_take(event.pid, 1, kept, MAX_KEPT) {
            self.shares.refuse();
            return;
        }
        self.shares.take(event.pid, 1);
        let object = match ObjectKind(event.object) {
            ObjectKind::OBJECT_FUTEX => Object::Futex(self.places.add(event, symbolizer, runtimes)),
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

    /// Returns the first of the IDs that stand for the same resource, if the resource has arrived.
    #[must_use]
    pub fn first(&self, id: u64) -> Option<u64> {
        match self.known.first(id) {
            None if id == NO_OBJECT => Some(id),
            None => self.shares.has_refused().then_some(OTHER),
            first => first,
        }
    }

    /// Returns the number of resources that exceeded the capacity.
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

    /// Finds the names of the variables that contain futexes.
    pub fn resolve(&mut self, symbolizer: &mut Symbolizer) {
        self.places.resolve(symbolizer);
    }

    /// Returns the locations of futexes.
    pub(crate) fn places(&self) -> &FutexPlaces {
        &self.places
    }
}

/// Sets the constants that say whether programs send resources and the ends of waits.
///
/// # Errors
/// The object has no such constants.
pub fn configure(object: &mut OpenObject, is_enabled: bool, kernel: &Kernel) -> Result<()> {
    let (first, last) = sockets::given_ports();
    object.set(bpf::constants::WANT_WAIT_ENDS, is_enabled)?;
    let distance = kernel.preempt_count_from_runqueue;
    object.set(bpf::constants::PREEMPT_COUNT_FROM_RUNQUEUE, distance)?;
    object.set(bpf::constants::WANT_OBJECTS, is_enabled)?;
    object.set(bpf::constants::FIRST_GIVEN_PORT, first)?;
    object.set(bpf::constants::LAST_GIVEN_PORT, last)
}

/// Returns the process of a pidfd. The kernel read its name during the wait, so the name is not
/// that of a later process with the same ID.
fn pidfd(event: &ObjectEvent) -> Peer<Box<str>> {
    Peer {
        pid: (event.tid != 0).then_some(event.tid),
        comm: (event.name_length > 0).then(|| boxed(&profile::text::comm(&event.name))),
    }
}

/// Returns a process by its ID, with its name if the process lives.
fn process(pid: u32) -> Peer<Box<str>> {
    Peer {
        pid: Some(pid),
        comm: comm(&format!("/proc/{pid}/comm")).map(|name| boxed(&name)),
    }
}

fn boxed(name: &str) -> Box<str> {
    name.into()
}

/// Reads the name of a thread or process from its file `comm`.
fn comm(path: &str) -> Option<Text> {
    Some(profile::text::comm(&kernel_name(path)?))
}

/// Reads the name of a thread or process in the kernel's format.
fn kernel_name(path: &str) -> Option<[u8; COMM_LENGTH]> {
    let mut name = std::fs::read(path).ok()?;
    name.pop_if(|last| *last == b'\n');
    let mut comm = [0; COMM_LENGTH];
    let length = name.len().min(COMM_LENGTH - 1);
    comm[..length].copy_from_slice(&name[..length]);
    Some(comm)
}

/// Returns the process to which the file descriptors and addresses of an event belong.
fn owner(event: &ObjectEvent) -> Process {
    Process {
        pid: event.pid,
        instance: event.instance,
    }
}

/// Returns the name in an event. The target can choose its bytes.
fn name(event: &ObjectEvent) -> &[u8] {
    &event.name[..event.name.len().min(event.name_length as usize)]
}
