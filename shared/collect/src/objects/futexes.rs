//! Futexes: where they are, who held them, and what their arguments say they are for.

use std::collections::{HashMap, HashSet};

use bpf::types::ObjectEvent;
use profile::{Reason, ThreadId};
use symbolize::{Data, Process, Symbolizer, Variable};

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
            false => name,
        })
    }

    /// Names the variables.
    pub(super) fn resolve(&mut self, symbolizer: &mut Symbolizer) {
        let located = self.located.values().flatten().copied();
        self.variables = symbolizer.variables(located);
    }

    /// Has all futexes be in a variable of this name.
    #[cfg(test)]
    pub(super) fn call_all(&mut self, symbol: &str) {
        let located = self.located.values().flatten().copied();
        let variable = |data| {
            let variable = Variable {
                symbol: Some(symbol.to_owned()),
                offset: 40,
                module: String::new(),
            };
            (data, variable)
        };
        self.variables = located.map(variable).collect();
    }

    /// What a futex is for by its arguments, as some libraries use it. `lived` says which
    /// threads there were.
    pub(crate) fn says(
        &self,
        futex: &Futex,
        lived: impl Fn(ThreadId) -> bool,
    ) -> Option<(Reason, &'static str)> {
        if futex.value == LOCKED_WITH_WAITERS {
            // A counter is 2 now and then.
            let is_lock = !self.no_locks.contains(&(futex.process, futex.address));
            return is_lock.then_some((Reason::Lock, "mutex"));
        }
        let is_joined = futex.value != 0 && lived(futex.joined());
        is_joined.then_some((Reason::Child, "thread"))
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
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::thread::Builder;

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

    /// A futex of this process's own, in an array.
    static FUTEXES: [AtomicU32; 64] = [const { AtomicU32::new(0) }; 64];

    /// What the kernel would tell of one that is so many words into it.
    fn own(at: usize) -> ObjectEvent {
        ObjectEvent {
            pid: std::process::id(),
            address: FUTEXES[at].as_ptr() as u64,
            ..event(0, 1)
        }
    }

    #[test]
    fn a_futex_is_called_by_the_variable_that_it_is_in() {
        let (mut places, mut symbolizer) = (FutexPlaces::default(), Symbolizer::new());
        let words = [0, 3, 4, 11, 12];
        let futexes = words.map(|at| places.see(&own(at), &mut symbolizer));
        places.resolve(&mut symbolizer);
        // Whether it has a symbol is the linker's to decide.
        assert!(places.variable(&futexes[0], Reason::Lock).is_some());
        let variable = |symbol: Option<&str>, offset| Variable {
            symbol: symbol.map(str::to_owned),
            offset,
            module: "libpool.so".to_owned(),
        };
        for (futex, at) in futexes.iter().zip(words) {
            let data = futex.data.unwrap();
            assert!(places.variables.contains_key(&data));
            let offset = 4 * at as u64;
            places
                .variables
                .insert(data, variable(Some("pool"), offset));
        }
        let called = |reason| {
            let called = |futex: &Futex| places.variable(futex, reason).unwrap();
            futexes.each_ref().map(called)
        };
        // As far as a lock or a condition variable reaches it is the variable itself.
        let in_lock = ["pool", "pool", "pool+0x10", "pool+0x2c", "pool+0x30"];
        assert_eq!(called(Reason::Lock), in_lock);
        let in_condition = ["pool", "pool", "pool", "pool", "pool+0x30"];
        assert_eq!(called(Reason::Condition), in_condition);

        let data = futexes[1].data.unwrap();
        assert!(!places.is_gil(&futexes[1]));
        places
            .variables
            .insert(data, variable(Some(PYTHON_RUNTIME), 40));
        assert!(places.is_gil(&futexes[1]) && !places.is_gil(&futexes[0]));
        places.variables.insert(data, variable(None, 40));
        let stripped = places.variable(&futexes[1], Reason::Lock);
        assert_eq!(stripped.as_deref(), Some("libpool.so+0x28"));
        assert!(!places.is_gil(&futexes[1]));
    }

    #[test]
    fn a_lock_tells_who_holds_it() {
        let thread = Builder::new().name("holder".to_owned());
        thread.spawn(who_holds_a_lock).unwrap().join().unwrap();
    }

    /// On a thread that is called otherwise than its process.
    fn who_holds_a_lock() {
        let pid = std::process::id();
        let process = comm(&format!("/proc/{pid}/comm")).unwrap();
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        for per_thread in [false, true] {
            let mut places = FutexPlaces::new(per_thread);
            let mut symbolizer = Symbolizer::new();
            let mut held_by = |tid, operation| {
                let held = ObjectEvent {
                    tid,
                    operation,
                    ..own(0)
                };
                places.see(&held, &mut symbolizer)
            };
            // The first thread is called as the process is.
            let first = match per_thread {
                true => format!("{process}/{pid}"),
                false => process.clone(),
            };
            assert_eq!(held_by(pid, 0).holder(false), Some(&*first));
            assert_eq!(held_by(pid, 0).holder(true), None);
            // The mutex of a condition tells nothing by itself, and the other way round.
            assert_eq!(held_by(pid, WAIT_BITSET).holder(true), Some(&*first));
            assert_eq!(held_by(pid, WAIT_BITSET).holder(false), None);
            let holder = held_by(tid.cast_unsigned(), 0);
            assert_eq!(holder.holder(false), Some("holder"));
            assert_eq!(held_by(0, 0).holder(false), None);
            assert_eq!(held_by(u32::MAX, 0).holder(false), None);
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
        assert_eq!(says(&mutex), Some((Reason::Lock, "mutex")));
        assert_eq!(says(&counter), None);
        assert_eq!(says(&joined), Some((Reason::Child, "thread")));
        assert_eq!(says(&other), None);
        assert_eq!(
            (mutex.holder(false), places.variable(&mutex, Reason::Lock)),
            (None, None)
        );
    }
}
