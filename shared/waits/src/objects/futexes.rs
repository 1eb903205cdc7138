//! Futexes: where they are, who held them, and what their arguments say they are for.

use std::collections::{HashMap, HashSet};

use bpf::types::ObjectEvent;
use languages::LANGUAGES;
use process::Process;
use profile::{Detail, Reason, Table, Text, ThreadId, WaitKind};
use symbolize::{Data, Symbolizer, Variable};

use super::{comm, owner};

/// FUTEX_WAIT and FUTEX_WAIT_BITSET of `include/uapi/linux/futex.h`.
const WAITS: [u32; 2] = [0, WAIT_BITSET];
const WAIT_BITSET: u32 = 9;
/// What a mutex of glibc's, or of Rust's, is while somebody waits for it:
/// `sysdeps/nptl/lowlevellock.h`, `library/std/src/sys/sync/mutex/futex.rs`.
const LOCKED_WITH_WAITERS: u32 = 2;
/// How far into a lock its futexes are at most, in bytes: those of pthread_rwlock_t
/// (`sysdeps/x86/nptl/bits/struct_rwlock.h`); and into a condition variable.
const FARTHEST_IN_LOCK: u64 = 12;
const FARTHEST_IN_CONDITION: u64 = 44;

/// A futex that somebody waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Futex {
    process: Process,
    address: u64,
    /// What it had to be for the thread to wait, where that tells something; else 0.
    value: u32,
    data: Option<Data>,
    /// The thread that held the lock, if the lock told which.
    holder: Option<Holder>,
    /// Whether the lock has a condition, as that of an interpreter's threads.
    has_condition: bool,
}

/// A thread that held a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holder {
    comm: Text,
    /// The thread, where threads are told apart.
    thread: Option<ThreadId>,
    /// Whether the process has the same name.
    shares_name: bool,
}

impl Holder {
    /// Returns the holder in a profile with these names.
    pub(crate) fn in_profile(&self, names: &mut Table<Text>) -> profile::Holder {
        profile::Holder {
            comm: names.id(self.comm.clone()),
            thread: self.thread,
            shares_name: self.shares_name,
        }
    }
}

impl Futex {
    /// The thread that is joined, if one is: the futex is its ID, and 0 from its end on.
    pub(crate) fn joined(&self) -> ThreadId {
        ThreadId {
            pid: self.process.pid,
            tid: self.value,
        }
    }

    /// The thread that held it: what a mutex tells is of no worth where the futex is that of
    /// a condition, and the other way round.
    pub(crate) fn holder(&self, is_gil: bool) -> Option<&Holder> {
        (self.has_condition == is_gil).then_some(self.holder.as_ref())?
    }
}

/// What is known of futexes' addresses.
#[derive(Default)]
pub(crate) struct FutexPlaces {
    located: HashMap<(Process, u64), Option<Data>>,
    /// Those that somebody waited for otherwise than for a mutex.
    no_locks: HashSet<(Process, u64)>,
    variables: HashMap<Data, Variable>,
    /// Whether threads are told apart.
    per_thread: bool,
}

impl FutexPlaces {
    pub(super) fn new(per_thread: bool) -> FutexPlaces {
        FutexPlaces {
            per_thread,
            ..FutexPlaces::default()
        }
    }

    /// Takes in a futex that somebody waited for.
    pub(super) fn see(&mut self, event: &ObjectEvent, symbolizer: &mut Symbolizer) -> Futex {
        let (process, address) = (owner(event), event.address);
        if event.value != LOCKED_WITH_WAITERS || !WAITS.contains(&event.operation) {
            self.no_locks.insert((process, address));
        }
        let locate = || symbolizer.locate_data(process, address);
        let holder = match event.tid {
            0 => None,
            tid => self.thread(process.pid, tid),
        };
        let place = self.located.entry((process, address));
        Futex {
            process,
            address,
            value: event.value,
            data: *place.or_insert_with(locate),
            holder,
            has_condition: event.operation == WAIT_BITSET,
        }
    }

    fn thread(&self, pid: u32, tid: u32) -> Option<Holder> {
        let name = comm(&format!("/proc/{pid}/task/{tid}/comm"))?;
        let process = self.per_thread.then(|| comm(&format!("/proc/{pid}/comm")));
        Some(Holder {
            thread: self.per_thread.then_some(ThreadId { pid, tid }),
            shares_name: process.flatten().as_ref() == Some(&name),
            comm: name,
        })
    }

    /// Names the variables.
    pub(super) fn resolve(&mut self, symbolizer: &mut Symbolizer) {
        let located = self.located.values().flatten().copied();
        self.variables = symbolizer.variables(located);
    }

    /// What a futex is for by its arguments, as some libraries use it. `lived` says which
    /// threads there were.
    pub(crate) fn says(&self, futex: &Futex, lived: impl Fn(ThreadId) -> bool) -> Option<WaitKind> {
        if futex.value == LOCKED_WITH_WAITERS {
            // A counter is 2 now and then.
            let is_lock = !self.no_locks.contains(&(futex.process, futex.address));
            return is_lock.then_some(WaitKind::new(Reason::Lock, Detail::Mutex));
        }
        let is_joined = futex.value != 0 && lived(futex.joined());
        is_joined.then_some(WaitKind::new(Reason::Child, Detail::Thread))
    }

    /// Whether a futex is of the lock that all threads of a language's runtime share.
    pub(crate) fn is_gil(&self, futex: &Futex) -> bool {
        let variable = futex.data.and_then(|data| self.variables.get(&data));
        let symbol = variable.and_then(|variable| variable.symbol.as_deref());
        let mut languages = LANGUAGES.iter();
        symbol.is_some() && languages.any(|language| language.locks().global == symbol)
    }

    /// Returns the variable that a futex is in, if it is in one, for a wait with this reason. The
    /// offset is that of the lock or the condition variable, which the futex is a part of.
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

    /// Returns the variable that a futex is in, if it is in one, as a whole.
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
    use super::*;

    const PROCESS: Process = Process {
        pid: u32::MAX,
        instance: 1,
    };

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
        let mut see = |address, value| places.see(&event(address, value), &mut symbolizer);
        let [mutex, counter, _, joined, other] = [
            see(0x1000, 2),
            see(0x2000, 2),
            see(0x2000, 0),
            see(0x3000, 77),
            see(0x4000, 78),
        ];
        let lived = |thread: ThreadId| (thread.pid, thread.tid) == (PROCESS.pid, 77);
        let says = |futex: &Futex| places.says(futex, lived);
        let kind = |reason, detail| Some(WaitKind::new(reason, detail));
        assert_eq!(says(&mutex), kind(Reason::Lock, Detail::Mutex));
        assert_eq!(says(&counter), None);
        assert_eq!(says(&joined), kind(Reason::Child, Detail::Thread));
        assert_eq!(says(&other), None);
        assert_eq!(
            (mutex.holder(false), places.variable(&mutex, Reason::Lock)),
            (None, None)
        );
    }
}
