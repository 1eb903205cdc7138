//! Futexes: where they are, who held them, and what their arguments say they are for.

use std::collections::{HashMap, HashSet};

use bpf::types::ObjectEvent;
use process::Process;
use profile::{Detail, Reason, ThreadId};
use symbolize::{Data, Symbolizer, Variable};

use super::{comm, owner};

/// The variable that Python's global lock is in.
pub(crate) const PYTHON_RUNTIME: &str = "_PyRuntime";
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
    /// The name of the thread that held it, if the lock told which.
    holder: Option<Box<str>>,
    /// Whether the lock has a condition, as that of Python's interpreters.
    has_condition: bool,
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
    pub(crate) fn holder(&self, is_gil: bool) -> Option<&str> {
        (self.has_condition == is_gil).then_some(self.holder.as_deref())?
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
            holder: holder.map(Into::into),
            has_condition: event.operation == WAIT_BITSET,
        }
    }

    /// A thread's name; of one that is called as its process is, where threads are told
    /// apart, its number as well.
    fn thread(&self, pid: u32, tid: u32) -> Option<String> {
        let name = comm(&format!("/proc/{pid}/task/{tid}/comm"))?;
        let tells_nothing = || comm(&format!("/proc/{pid}/comm")).as_ref() == Some(&name);
        Some(match self.per_thread && tells_nothing() {
            true => format!("{name}/{tid}"),
            false => name.into(),
        })
    }

    /// Names the variables.
    pub(super) fn resolve(&mut self, symbolizer: &mut Symbolizer) {
        let located = self.located.values().flatten().copied();
        self.variables = symbolizer.variables(located);
    }

    /// What a futex is for by its arguments, as some libraries use it. `lived` says which
    /// threads there were.
    pub(crate) fn says(
        &self,
        futex: &Futex,
        lived: impl Fn(ThreadId) -> bool,
    ) -> Option<(Reason, Detail)> {
        if futex.value == LOCKED_WITH_WAITERS {
            // A counter is 2 now and then.
            let is_lock = !self.no_locks.contains(&(futex.process, futex.address));
            return is_lock.then_some((Reason::Lock, Detail::Mutex));
        }
        let is_joined = futex.value != 0 && lived(futex.joined());
        is_joined.then_some((Reason::Child, Detail::Thread))
    }

    /// Whether a futex is of Python's global interpreter lock: among its own variables the
    /// interpreter has no other condition, and no other mutex of the C library's
    /// (`struct _gil_runtime_state` of `Include/internal/pycore_gil.h`).
    pub(crate) fn is_gil(&self, futex: &Futex) -> bool {
        let variable = futex.data.and_then(|data| self.variables.get(&data));
        variable.is_some_and(|variable| variable.symbol.as_deref() == Some(PYTHON_RUNTIME))
    }

    /// The variable that a futex is in, if it is in one: `pool`, `slots+0x40`, and without
    /// symbols `libm.so.6+0x1234`.
    pub(crate) fn variable(&self, futex: &Futex, reason: Reason) -> Option<String> {
        let variable = self.variables.get(&futex.data?)?;
        let farthest = match reason {
            Reason::Condition => FARTHEST_IN_CONDITION,
            _ => FARTHEST_IN_LOCK,
        };
        Some(match &variable.symbol {
            Some(symbol) if variable.offset <= farthest => symbol.clone(),
            Some(symbol) => format!("{symbol}+{:#x}", variable.offset),
            None => format!("{}+{:#x}", variable.module, variable.offset),
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
        assert_eq!(says(&mutex), Some((Reason::Lock, Detail::Mutex)));
        assert_eq!(says(&counter), None);
        assert_eq!(says(&joined), Some((Reason::Child, Detail::Thread)));
        assert_eq!(says(&other), None);
        assert_eq!(
            (mutex.holder(false), places.variable(&mutex, Reason::Lock)),
            (None, None)
        );
    }
}
