//! Finds the reasons why threads were blocked, from the functions of their stacks. Each stack is
//! evaluated once.

mod idleness;
mod kernel_functions;
mod schedulers;
mod user_functions;

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use bpf::types::WaitEnd;
use profile::{
    Detail, Id, Idleness, Name, Profile, Reason, Resource, Side, Stack, StackId, Text, ThreadId,
    Wait, WaitKind,
};
use symbolize::Frame;

use crate::objects::{Futex, Object, Objects};

use idleness::{Evidence, Site, Waiter};
use kernel_functions::{FAULT, FUTEX, Meaning, RECLAIM, SWAP, is_scheduler};
use schedulers::Schedulers;

/// Waits of parked threads: for anything, and for a lock of Java.
const PARKED: WaitKind = WaitKind::new(Reason::Condition, Detail::Park);
const PARKED_BY_LOCK: WaitKind = WaitKind::new(Reason::Lock, Detail::JavaLock);
/// Wait on a futex whose kind is not shown by user functions.
const FUTEX_OF_NO_KIND: WaitKind = WaitKind::new(Reason::Unknown, Detail::Futex);

/// Reasons for the stacks of a profile. `Key` identifies a kernel stack.
pub struct Reasons<Key> {
    by_kernel_stack: HashMap<Key, Option<Seen>>,
    /// Names of all threads.
    threads: HashMap<ThreadId, Text>,
    /// Waits that show whether threads had work.
    evidence: Evidence,
    schedulers: Schedulers,
    /// Number of intervals without a known reason, by the function in which the thread slept.
    unmatched: BTreeMap<String, u64>,
}

/// Place where a thread was blocked.
pub struct Place<'a, Key> {
    /// Stack of the thread.
    pub stack: Stack,
    /// Key of the kernel part of the stack.
    pub kernel: Key,
    /// ID of the resource.
    pub object: u64,
    /// All resources that threads waited on.
    pub objects: &'a Objects,
    /// ID of the thread.
    pub thread: ThreadId,
    /// Name of the thread.
    pub comm: Name,
    /// End of the wait, as a program reported it.
    pub end: WaitEnd,
}

impl<Key: Copy + Eq + Hash> Reasons<Key> {
    /// Returns an empty collection for a profile with these threads.
    #[must_use]
    pub fn new(threads: impl Iterator<Item = (ThreadId, Text)>) -> Reasons<Key> {
        Reasons {
            by_kernel_stack: HashMap::new(),
            threads: threads.collect(),
            evidence: Evidence::default(),
            schedulers: Schedulers::default(),
            unmatched: BTreeMap::new(),
        }
    }

    /// Returns the wait of a thread that was blocked at a place in `events` intervals. Returns
    /// `None` if kernel stacks are not captured. `sleep` returns the function that the leaf of the
    /// kernel stack called.
    pub fn wait(
        &mut self,
        profile: &mut Profile,
        place: &Place<'_, Key>,
        sleep: impl FnOnce() -> Option<Frame>,
        events: u64,
    ) -> Option<Wait> {
        if place.stack.kernel.is_empty() {
            return None;
        }
        let kind = self.kind(profile, place, sleep, events);
        let object = place.objects.get(place.object);
        let side = match object {
            Some(Object::FromCall(resource)) if is_for_call(kind.reason) => resource.side(),
            _ => Side::Unknown,
        };
        let user = place.stack.user;
        let idleness = if place.end != WaitEnd::WAIT_END_NONE
            && self.schedulers.wait_for_task(profile, user, kind.reason)
        {
            Some(Idleness::Idle)
        } else {
            idleness::idleness_of_wait(kind, side, place.end)
        };
        let waiter = Waiter {
            thread: Some(place.thread),
            comm: place.comm,
        };
        let site = Site { kind, user };
        self.evidence.add(waiter, site, idleness, place.end, events);
        let holder = place.futex().filter(|_| kind.reason == Reason::Lock);
        let holder = holder.and_then(|futex| futex.holder(is_for_shared_lock(kind)));
        let holder = holder.map(|holder| holder.in_profile(&mut profile.names));
        let resource = object.and_then(|object| self.resource(profile, place, object, kind));
        Some(Wait {
            resource: resource.map(|resource| profile.resources.id(resource)),
            holder,
            idleness: idleness.unwrap_or_default(),
            ..Wait::new(kind)
        })
    }

    /// Returns the kind of a wait. The thread's state, the kernel's functions, and for a futex the
    /// user functions decide.
    fn kind(
        &mut self,
        profile: &Profile,
        place: &Place<'_, Key>,
        sleep: impl FnOnce() -> Option<Frame>,
        events: u64,
    ) -> WaitKind {
        let stack = place.stack;
        let seen = *self.by_kernel_stack.entry(place.kernel).or_insert_with(|| {
            let sleep = sleep().map(|frame| frame.name);
            let mut functions: Vec<&str> = sleep.as_deref().into_iter().collect();
            functions.extend(names(profile, stack.kernel));
            from_kernel_functions(functions.into_iter())
        });
        let by_state = kind_from_state(place.end);
        if seen.is_none() && by_state.is_none() {
            let sleeper = names(profile, stack.kernel).find(|name| !is_scheduler(name));
            let sleeper = sleeper.unwrap_or_default().to_owned();
            *self.unmatched.entry(sleeper).or_default() += events;
        }
        let places = place.objects.places();
        let lived = |thread| self.threads.contains_key(&thread);
        let by_arguments = || {
            place
                .futex()
                .and_then(|futex| places.kind_by_arguments(futex, lived))
        };
        let kind = by_state.unwrap_or_else(|| kind(seen, names(profile, stack.user), by_arguments));
        if kind.reason == Reason::Runtime {
            return kind;
        }
        if kind == PARKED && place.futex().is_some_and(Futex::is_lock_object) {
            return PARKED_BY_LOCK;
        }
        // A stripped interpreter has no functions that show the lock of its threads.
        let may_be_shared = is_for_call(kind.reason) || kind == FUTEX_OF_NO_KIND;
        let futex = place.futex().filter(|_| may_be_shared);
        let shared = futex.and_then(|futex| places.shared_lock(futex));
        shared.unwrap_or(kind)
    }

    /// Returns the resource of a wait, if a wait of this kind can be for the object.
    fn resource(
        &self,
        profile: &mut Profile,
        place: &Place<'_, Key>,
        object: &Object,
        kind: WaitKind,
    ) -> Option<Resource> {
        let resource = match object {
            Object::FromCall(resource) => {
                // A call may have another file besides the pipe for which it waits. The descriptor
                // may also belong to another file by now.
                let is_pipe = matches!(resource, Resource::Pipe(_));
                let is_resource =
                    is_for_call(kind.reason) && (is_pipe || !is_pipe_detail(kind.detail));
                is_resource.then_some(resource)?
            }
            Object::Mapped(resource) => (kind.reason == Reason::PageFault).then_some(resource)?,
            Object::Child(name) => {
                let name = (kind.reason == Reason::Child).then_some(name)?;
                return Some(Resource::Child(profile.names.id(name.clone())));
            }
            Object::Other => return Some(Resource::Other),
            Object::Futex(futex) if kind.reason == Reason::Child => {
                let name = self.threads.get(&futex.joined())?;
                return Some(Resource::Thread(profile.names.id(name.clone())));
            }
            Object::Futex(futex) => return futex_resource(profile, place, futex, kind),
        };
        Some(resource.map(|name| profile.names.text(name)))
    }

    /// Decides whether threads had work if single waits do not show it. All samples must be in the
    /// profile. Returns the new number of each sample, in the order of the old numbers; `None` if
    /// no number changes.
    pub fn judge_idleness(
        &self,
        profile: &mut Profile,
    ) -> Option<Vec<Option<Id<profile::Sample>>>> {
        self.evidence.judge(profile)
    }

    /// Returns a line that lists the functions without a known reason, if there are any.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        const MOST: usize = 20;
        let all = self.unmatched.iter().take(MOST);
        let all: Vec<String> = all
            .map(|(function, events)| format!("{function} ({events})"))
            .collect();
        let rest = self.unmatched.len().saturating_sub(MOST);
        (!all.is_empty()).then(|| {
            let rest = match rest {
                0 => String::new(),
                rest => format!(" and {rest} more"),
            };
            format!("no reason is known of waits in {}{rest}", all.join(", "))
        })
    }
}

impl<Key> Place<'_, Key> {
    fn futex(&self) -> Option<&Futex> {
        match self.objects.get(self.object) {
            Some(Object::Futex(futex)) => Some(futex),
            _ => None,
        }
    }
}

/// Returns the wait of a runnable thread that a limit kept off the CPU. Returns `None` if the
/// thread waited for a CPU. `end` is the end of the interval, as a program reported it.
#[must_use]
pub fn delay_wait(end: WaitEnd) -> Option<Wait> {
    let (kind, idleness) = limit(end)?;
    Some(Wait {
        idleness,
        ..Wait::new(kind)
    })
}

/// Returns the limit that kept a thread off its CPU, and whether the thread had work.
fn limit(end: WaitEnd) -> Option<(WaitKind, Idleness)> {
    let waiting = |detail| {
        let kind = WaitKind::new(Reason::Throttle, detail);
        Some((kind, Idleness::Waiting))
    };
    match end {
        WaitEnd::WAIT_END_QUOTA => waiting(Detail::CpuQuota),
        WaitEnd::WAIT_END_DEADLINE_BUDGET => waiting(Detail::DeadlineBudget),
        WaitEnd::WAIT_END_REAL_TIME => waiting(Detail::RealTimeLimit),
        // The thread has done its work of this period, and has called sched_yield(2).
        WaitEnd::WAIT_END_DEADLINE_PERIOD => {
            let kind = WaitKind::new(Reason::Sleep, Detail::UntilNextPeriod);
            Some((kind, Idleness::Idle))
        }
        _ => None,
    }
}

/// Returns the kind of a wait, if the state of the blocked thread alone shows it.
fn kind_from_state(end: WaitEnd) -> Option<WaitKind> {
    let stopped = |detail| Some(WaitKind::new(Reason::Stopped, detail));
    match end {
        WaitEnd::WAIT_END_STOPPED => stopped(Detail::BySignal),
        WaitEnd::WAIT_END_FROZEN => stopped(Detail::Frozen),
        _ => None,
    }
}

/// Returns whether a wait is for a lock whose holder the runtime knows.
fn is_for_shared_lock(kind: WaitKind) -> bool {
    kind.reason == Reason::Lock
        && matches!(
            kind.detail,
            Detail::Gil | Detail::Gvl | Detail::JavaLock | Detail::JavaMonitor
        )
}

/// Returns whether a wait can be for an object of a runtime.
fn has_object(kind: WaitKind) -> bool {
    matches!(
        kind.detail,
        Detail::JavaLock | Detail::JavaMonitor | Detail::Park
    )
}

/// Returns whether a wait is for the resource of the system call, and not for an obstacle such as a
/// kernel lock or memory.
fn is_for_call(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::KernelLock
            | Reason::PageFault
            | Reason::Memory
            | Reason::Stopped
            | Reason::Kernel
            | Reason::Unknown
    )
}

/// Returns whether only pipe functions have this detail.
fn is_pipe_detail(detail: Detail) -> bool {
    matches!(
        detail,
        Detail::PipeOpen | Detail::PipeRead | Detail::PipeSplice | Detail::PipeWrite
    )
}

/// Returns the resource of a futex: the variable that contains it, or the function that waited.
fn futex_resource<Key>(
    profile: &mut Profile,
    place: &Place<'_, Key>,
    futex: &Futex,
    kind: WaitKind,
) -> Option<Resource> {
    let places = place.objects.places();
    if let Some(class) = futex.class()
        && has_object(kind)
    {
        return Some(Resource::Object(profile.names.id(class.clone())));
    }
    let found = match kind.reason {
        // The lock of an interpreter has several words. None of them alone is the lock.
        Reason::Lock if futex.is_in_runtime() => return None,
        Reason::Lock if places.shared_lock(futex).is_some() => places.whole_variable(futex),
        Reason::Lock | Reason::Condition | Reason::Unknown => places.variable(futex, kind.reason),
        _ => return None,
    };
    let resource = match found {
        Some(variable) => Resource::Futex(variable),
        None if kind.reason == Reason::Unknown => return None,
        None => {
            let user = user_functions::user(names(profile, place.stack.user))?.to_owned();
            let user = profile.names.text(&user);
            return Some(Resource::Futex(profile::Futex::UsedBy(user)));
        }
    };
    Some(resource.map(|name| profile.names.text(name)))
}

/// Returns the functions of a part of a stack, from leaf to root.
fn names(profile: &Profile, part: StackId) -> impl Iterator<Item = &str> {
    let frames = profile.stacks.leaf_first(part);
    frames.map(|frame| profile.name(&profile.frames[frame]))
}

/// Returns the kind of a wait from the kernel's functions. For a futex, user functions decide, or
/// else the arguments of the futex.
fn kind<'a>(
    seen: Option<Seen>,
    user: impl Iterator<Item = &'a str>,
    by_arguments: impl FnOnce() -> Option<WaitKind>,
) -> WaitKind {
    match seen {
        Some(Seen::Kind(kind)) => kind,
        Some(Seen::Futex) => user_functions::wait_kind(user)
            .or_else(by_arguments)
            .unwrap_or(FUTEX_OF_NO_KIND),
        None => WaitKind::UNKNOWN,
    }
}

/// Meaning of a kernel stack.
#[derive(Clone, Copy)]
enum Seen {
    Kind(WaitKind),
    /// Wait on a futex. Only user space knows its purpose.
    Futex,
}

/// Returns the meaning of the kernel functions of a stack, which are from leaf to root.
fn from_kernel_functions<'a>(functions: impl Iterator<Item = &'a str>) -> Option<Seen> {
    let (mut found, mut primitive) = (None, None);
    let (mut is_fault, mut is_swap, mut is_reclaim, mut is_futex) = (false, false, false, false);
    let (mut writes, mut sleeps) = (false, true);
    for function in functions {
        // Compilers add suffixes to names, as in `do_poll.constprop.0`.
        let function = function.split('.').next().unwrap_or(function);
        if is_scheduler(function) {
            continue;
        }
        let meaning = kernel_functions::meaning(function);
        match meaning {
            Some(Meaning::For(reason, detail)) => {
                found = found.or(Some(WaitKind::new(reason, detail)));
            }
            Some(Meaning::IfItSleeps(reason, detail)) if sleeps => {
                found = found.or(Some(WaitKind::new(reason, detail)));
            }
            Some(Meaning::Primitive(_, Detail::Writes)) => writes = true,
            Some(Meaning::Primitive(reason, detail)) => {
                primitive = primitive.or(Some(WaitKind::new(reason, detail)));
            }
            Some(Meaning::IfItSleeps(..)) | None => {}
        }
        sleeps &= matches!(meaning, Some(Meaning::Primitive(Reason::Kernel, _)));
        is_fault |= FAULT.contains(&function);
        is_swap |= SWAP.contains(&function);
        is_reclaim |= RECLAIM.contains(&function);
        is_futex |= FUTEX.contains(&function);
    }
    let kind = match found.or(primitive) {
        Some(WaitKind {
            reason: Reason::DiskRead,
            detail: Detail::Direct,
        }) if writes => WaitKind::new(Reason::DiskWrite, Detail::Direct),
        Some(kind) => kind,
        None if is_reclaim => WaitKind::UNKNOWN,
        None => return is_futex.then_some(Seen::Futex),
    };
    // The cause of the wait decides, except for a kernel lock that the thread waits for on the way.
    Some(Seen::Kind(match kind.reason {
        Reason::KernelLock => kind,
        _ if is_reclaim => WaitKind::new(Reason::Memory, Detail::Reclaim),
        Reason::DiskRead if is_fault && is_swap => WaitKind::new(Reason::PageFault, Detail::Swap),
        Reason::DiskRead if is_fault => WaitKind::new(Reason::PageFault, Detail::File),
        _ => kind,
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
