//! Futexes: their addresses, the threads that held them, and the kinds of waits that their
//! arguments show.

use std::collections::{HashMap, HashSet};

use bpf::types::{LOCK_LANGUAGE_SHIFT, ObjectEvent};
use languages::{Class, LANGUAGES, Language};
use process::Process;
use profile::{Detail, Reason, Table, Text, ThreadId, WaitKind};
use symbolize::{Data, Symbolizer, Variable};

use super::{Runtimes, comm, kernel_name, owner};

/// `FUTEX_WAIT` and `FUTEX_WAIT_BITSET` of `include/uapi/linux/futex.h`.
const WAITS: [u32; 2] = [0, WAIT_BITSET];
const WAIT_BITSET: u32 = 9;
/// Value of a mutex of glibc or Rust while a thread waits for it (`sysdeps/nptl/lowlevellock.h`,
/// `library/std/src/sys/sync/mutex/futex.rs`).
const LOCKED_WITH_WAITERS: u32 = 2;
/// Maximum offsets of a futex in a lock and in a condition variable, in bytes. The lock is
/// pthread_rwlock_t (`sysdeps/x86/nptl/bits/struct_rwlock.h`).
const FARTHEST_IN_LOCK: u64 = 12;
const FARTHEST_IN_CONDITION: u64 = 44;

/// Futex on which a thread waited.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Futex {
    process: Process,
    address: u64,
    /// Value that the thread expected in the futex, if this value has a meaning; otherwise 0.
    value: u32,
    data: Option<Data>,
    /// Thread that held the lock, if the value of the lock names this thread.
    holder: Option<Holder>,
    /// True if the lock has a condition variable, like the lock of an interpreter.
    has_condition: bool,
    /// Class of the object on which the thread waited, if a runtime has such objects.
    class: Option<Class<Text>>,
    /// Number of the language whose threads share the lock, if a program is certain of it; else 0.
    language: u32,
}

/// Thread that held a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holder {
    comm: Text,
    /// ID of the thread, if the profile distinguishes threads.
    thread: Option<ThreadId>,
    /// True if the process has the same name as the thread.
    shares_name: bool,
}

impl Holder {
    /// Converts the holder to a profile with these names.
    pub(crate) fn in_profile(&self, names: &mut Table<Text>) -> profile::Holder {
        profile::Holder {
            comm: names.id(self.comm.clone()),
            thread: self.thread,
            shares_name: self.shares_name,
        }
    }
}

impl Futex {
    /// Returns the thread that the wait joins. glibc's futex contains the ID of that thread, and 0
    /// once the thread has ended.
    pub(crate) fn joined(&self) -> ThreadId {
        ThreadId {
            pid: self.process.pid,
            tid: self.value,
        }
    }

    /// Returns the class of the object on which the thread waited.
    pub(crate) fn class(&self) -> Option<&Text> {
        self.class.as_ref().map(|class| &class.name)
    }

    /// Returns whether the thread waited for an object of a runtime that is a lock: by its class,
    /// or because a thread held it.
    pub(crate) fn is_lock_object(&self) -> bool {
        let class = self.class.as_ref();
        class.is_some_and(|class| class.is_lock || self.holder(true).is_some())
    }

    /// Returns whether a program is certain that the futex is a lock of a runtime. Such a lock is
    /// no variable.
    pub(crate) fn is_in_runtime(&self) -> bool {
        self.language != 0
    }

    /// Returns the thread that held the lock. `is_shared` says whether all threads of a runtime
    /// share the lock. The holder of a lock with a condition variable is known only for such a
    /// lock. The holder of a mutex is known only for other locks.
    pub(crate) fn holder(&self, is_shared: bool) -> Option<&Holder> {
        (self.has_condition == is_shared).then_some(self.holder.as_ref())?
    }
}

/// Locations of futexes, and the variables that contain them.
#[derive(Default)]
pub(crate) struct FutexPlaces {
    located: HashMap<(Process, u64), Option<Data>>,
    /// Futexes on which a thread waited in a way that excludes a mutex.
    no_locks: HashSet<(Process, u64)>,
    variables: HashMap<Data, Variable>,
    /// True if the profile distinguishes threads.
    per_thread: bool,
}

impl FutexPlaces {
    pub(super) fn new(per_thread: bool) -> FutexPlaces {
        FutexPlaces {
            per_thread,
            ..FutexPlaces::default()
        }
    }

    /// Locates a futex on which a thread waited, and returns it.
    pub(super) fn add(
        &mut self,
        event: &ObjectEvent,
        symbolizer: &mut Symbolizer,
        runtimes: &dyn Runtimes,
    ) -> Futex {
        let (process, address) = (owner(event), event.address);
        let language = event.operation >> LOCK_LANGUAGE_SHIFT;
        let operation = event.operation & ((1 << LOCK_LANGUAGE_SHIFT) - 1);
        if event.value != LOCKED_WITH_WAITERS || !WAITS.contains(&operation) {
            self.no_locks.insert((process, address));
        }
        let locate = || symbolizer.locate_data(process, address);
        let holder = match event.tid {
            0 => None,
            tid => self.thread(process.pid, tid, runtimes),
        };
        let place = self.located.entry((process, address));
        Futex {
            process,
            address,
            value: event.value,
            data: *place.or_insert_with(locate),
            holder,
            has_condition: operation == WAIT_BITSET,
            class: (event.class != 0)
                .then(|| runtimes.class(process, event.class))
                .flatten(),
            language,
        }
    }

    fn thread(&self, pid: u32, tid: u32, runtimes: &dyn Runtimes) -> Option<Holder> {
        let name = kernel_name(&format!("/proc/{pid}/task/{tid}/comm"))?;
        let name = runtimes.thread_name(ThreadId { pid, tid }, &name);
        let process = self.per_thread.then(|| comm(&format!("/proc/{pid}/comm")));
        Some(Holder {
            thread: self.per_thread.then_some(ThreadId { pid, tid }),
            shares_name: process.flatten().as_ref() == Some(&name),
            comm: name,
        })
    }

    /// Finds the names of the variables that contain futexes.
    pub(super) fn resolve(&mut self, symbolizer: &mut Symbolizer) {
        let located = self.located.values().flatten().copied();
        self.variables = symbolizer.variables(located);
    }

    /// Returns the kind of a wait, if the arguments of the futex show it. The rules are those of
    /// glibc and Rust. `lived` returns whether a thread was seen.
    pub(crate) fn kind_by_arguments(
        &self,
        futex: &Futex,
        lived: impl Fn(ThreadId) -> bool,
    ) -> Option<WaitKind> {
        if futex.value == LOCKED_WITH_WAITERS {
            // A counter can also have the value 2. Other waits at the same address show that it is
            // no lock.
            let is_lock = !self.no_locks.contains(&(futex.process, futex.address));
            return is_lock.then_some(WaitKind::new(Reason::Lock, Detail::Mutex));
        }
        let is_joined = futex.value != 0 && lived(futex.joined());
        is_joined.then_some(WaitKind::new(Reason::Child, Detail::Thread))
    }

    /// Returns the kind of a wait for the lock that all threads of a language's runtime share, if
    /// the futex belongs to such a lock.
    pub(crate) fn shared_lock(&self, futex: &Futex) -> Option<WaitKind> {
        let variable = futex.data.and_then(|data| self.variables.get(&data));
        let symbol = variable.and_then(|variable| variable.symbol.as_deref());
        let is_owner = |language: &&&dyn Language| {
            language.number() == futex.language
                || symbol.is_some() && language.locks().global == symbol
        };
        let detail = LANGUAGES.iter().find(is_owner)?.locks().shared?;
        Some(WaitKind::new(Reason::Lock, detail))
    }

    /// Returns the variable that contains a futex, if there is one, for a wait with this reason.
    /// The offset is that of the lock or condition variable that contains the futex.
    pub(crate) fn variable(&self, futex: &Futex, reason: Reason) -> Option<profile::Futex<&str>> {
        let variable = self.variables.get(&futex.data?)?;
        let farthest = match reason {
            Reason::Condition => FARTHEST_IN_CONDITION,
            _ => FARTHEST_IN_LOCK,
        };
        let is_first = variable.symbol.is_some() && variable.offset <= farthest;
        Some(profile::Futex::Variable {
            module: &variable.module,
            symbol: variable.symbol.as_deref(),
            offset: if is_first { 0 } else { variable.offset },
        })
    }

    /// Returns the variable that contains a futex, if there is one, with offset 0.
    pub(crate) fn whole_variable(&self, futex: &Futex) -> Option<profile::Futex<&str>> {
        let variable = self.variables.get(&futex.data?)?;
        Some(profile::Futex::Variable {
            module: &variable.module,
            symbol: variable.symbol.as_deref(),
            offset: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use bpf::types::COMM_LENGTH;

    use super::*;

    const PROCESS: Process = Process {
        pid: u32::MAX,
        instance: 1,
    };

    struct NoRuntimes;

    impl Runtimes for NoRuntimes {
        fn thread_name(&self, _thread: ThreadId, comm: &[u8; COMM_LENGTH]) -> Text {
            profile::text::comm(comm)
        }

        fn class(&self, _process: Process, _class: u64) -> Option<Class<Text>> {
            None
        }
    }

    fn event(address: u64, value: u32) -> ObjectEvent {
        ObjectEvent {
            pid: PROCESS.pid,
            instance: PROCESS.instance,
            address,
            value,
            ..ObjectEvent::default()
        }
    }

    #[test]
    fn arguments_tell_mutexes_and_joined_threads() {
        let (mut places, mut symbolizer) = (FutexPlaces::default(), Symbolizer::new());
        let mut add =
            |address, value| places.add(&event(address, value), &mut symbolizer, &NoRuntimes);
        let [mutex, counter, _, joined, other] = [
            add(0x1000, 2),
            add(0x2000, 2),
            add(0x2000, 0),
            add(0x3000, 77),
            add(0x4000, 78),
        ];
        let lived = |thread: ThreadId| (thread.pid, thread.tid) == (PROCESS.pid, 77);
        let kind_of = |futex: &Futex| places.kind_by_arguments(futex, lived);
        let kind = |reason, detail| Some(WaitKind::new(reason, detail));
        assert_eq!(kind_of(&mutex), kind(Reason::Lock, Detail::Mutex));
        assert_eq!(kind_of(&counter), None);
        assert_eq!(kind_of(&joined), kind(Reason::Child, Detail::Thread));
        assert_eq!(kind_of(&other), None);
        assert_eq!(
            (mutex.holder(false), places.variable(&mutex, Reason::Lock)),
            (None, None)
        );
    }
}
