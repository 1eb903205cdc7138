//! Why a thread was blocked: worked out here and nowhere else, once for each stack, from
//! the functions that it waited in.

mod idleness;
mod kernel_functions;
mod user_functions;

use std::collections::{BTreeMap, HashMap};

use bpf::types::{SocketSide, WaitEnd};
use profile::{Detail, Idleness, Name, Profile, Reason, Stack, StackId, Text, ThreadId, Why};
use symbolize::Frame;

use crate::objects::{Futex, Object, Objects, PYTHON_RUNTIME};
use crate::stacks::Captured;

use idleness::{Evidence, Site, Who};
use kernel_functions::{FAULT, FUTEX, RECLAIM, SWAP, Says, is_scheduler};

/// What nothing is known of.
const UNKNOWN: (Reason, Detail) = (Reason::Unknown, Detail::Unknown);
/// What there was no room to tell apart.
const OTHER: &str = "other";
/// The lock that Python's threads take turns by.
const GIL: (Reason, Detail) = (Reason::Lock, Detail::Gil);
/// A futex of which user functions say nothing.
const FUTEX_OF_NO_KIND: (Reason, Detail) = (Reason::Unknown, Detail::Futex);

/// The reasons of the stacks of a profile.
#[derive(Default)]
pub(crate) struct Reasons {
    of_kernel: HashMap<Captured, Option<Seen>>,
    /// The names of the threads that there were.
    threads: HashMap<ThreadId, Text>,
    /// Whether they had work.
    evidence: Evidence,
    /// How often each function was where a thread slept that no row says anything of.
    unmatched: BTreeMap<String, u64>,
}

/// Where threads were blocked.
pub(crate) struct Place<'a> {
    pub(crate) stack: Stack,
    /// What its part of the stack was made of.
    pub(crate) kernel: Captured,
    /// What they waited on, by ID.
    pub(crate) object: u64,
    pub(crate) objects: &'a Objects,
    /// Who they are.
    pub(crate) thread: ThreadId,
    pub(crate) comm: Name,
    /// How their waits ended.
    pub(crate) end: WaitEnd,
}

impl Reasons {
    pub(crate) fn new(threads: impl Iterator<Item = (ThreadId, Text)>) -> Reasons {
        Reasons {
            threads: threads.collect(),
            ..Reasons::default()
        }
    }

    /// Why a thread was blocked at a place, in so many intervals; `None` where no stack of
    /// the kernel was asked for. `sleep` tells what the kernel stack's leaf called.
    pub(crate) fn why(
        &mut self,
        profile: &mut Profile,
        place: &Place<'_>,
        sleep: impl FnOnce() -> Option<Frame>,
        events: u64,
    ) -> Option<Why> {
        let stack = place.stack;
        if stack.kernel.is_empty() {
            return None;
        }
        let seen = *self.of_kernel.entry(place.kernel).or_insert_with(|| {
            let sleep = sleep().map(|frame| frame.name);
            let mut functions: Vec<&str> = sleep.as_deref().into_iter().collect();
            functions.extend(names(profile, stack.kernel));
            of_kernel(functions.into_iter())
        });
        let by_state = of_state(place.end);
        if seen.is_none() && by_state.is_none() {
            let sleeper = names(profile, stack.kernel).find(|name| !is_scheduler(name));
            let sleeper = sleeper.unwrap_or_default().to_owned();
            *self.unmatched.entry(sleeper).or_default() += events;
        }
        let object = place.objects.get(place.object);
        let futex = match object {
            Some(Object::Futex(futex)) => Some(futex),
            _ => None,
        };
        let lived = |thread| self.threads.contains_key(&thread);
        let says = |futex| place.objects.places().says(futex, lived);
        let by_arguments = || futex.and_then(says);
        let (mut reason, mut detail) =
            by_state.unwrap_or_else(|| reason(seen, names(profile, stack.user), by_arguments));
        // Stripped interpreters have no function that says so.
        if (is_of_call(reason) || (reason, detail) == FUTEX_OF_NO_KIND)
            && futex.is_some_and(|futex| place.objects.places().is_gil(futex))
        {
            (reason, detail) = GIL;
        }
        let side = match object {
            Some(Object::Socket { side, .. }) if is_of_call(reason) => *side,
            _ => SocketSide::SIDE_UNKNOWN,
        };
        let told = idleness::told((reason, detail), side, place.end);
        let object = object.and_then(|object| match object {
            Object::Pipe(name) => is_of_call(reason).then(|| name.to_string()),
            // A call may be given another file besides the pipe that it waits for, and a
            // descriptor may be another file's by now.
            Object::Called(name) | Object::Socket { name, .. } => {
                (is_of_call(reason) && !is_of_pipe(detail)).then(|| name.to_string())
            }
            Object::Mapped(name) => (reason == Reason::PageFault).then(|| name.to_string()),
            Object::Child(name) => (reason == Reason::Child).then(|| name.to_string()),
            Object::Other => Some(OTHER.to_owned()),
            Object::Futex(futex) if reason == Reason::Child => {
                self.threads.get(&futex.joined()).map(Text::to_string)
            }
            Object::Futex(futex) => told_futex(profile, stack, futex, place.objects, reason),
        });
        let is_gil = (reason, detail) == GIL;
        let who = Who {
            thread: Some(place.thread),
            comm: place.comm,
        };
        let site = Site {
            reason,
            detail,
            user: stack.user,
        };
        self.evidence.add(who, site, told, place.end, events);
        Some(Why {
            reason,
            detail,
            object: object.map(|object| profile.names.text(&object)),
            holder: (futex.filter(|_| reason == Reason::Lock))
                .and_then(|futex| futex.holder(is_gil))
                .map(|holder| profile.names.text(holder)),
            ended_by: None,
            idleness: told.unwrap_or_default(),
        })
    }

    /// Decides whether threads had work where single waits do not tell. To be called once
    /// all samples are there.
    pub(crate) fn judge_idleness(&self, profile: &mut Profile) {
        self.evidence.judge(profile);
    }

    /// What is to be said of stacks whose reason is not known.
    pub(crate) fn note(&self) -> Option<String> {
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

/// Why a thread that could run did not, where that is not for want of a CPU. `end` is what a
/// program says of the interval.
pub(crate) fn of_delay(end: WaitEnd) -> Option<Why> {
    let (reason, detail, idleness) = limit(end)?;
    Some(Why {
        reason,
        detail,
        object: None,
        holder: None,
        ended_by: None,
        idleness,
    })
}

/// The limit that kept a thread off its CPU, and whether the thread had work.
pub(crate) fn limit(end: WaitEnd) -> Option<(Reason, Detail, Idleness)> {
    let waiting = |detail| Some((Reason::Throttle, detail, Idleness::Waiting));
    match end {
        WaitEnd::WAIT_END_QUOTA => waiting(Detail::CpuQuota),
        WaitEnd::WAIT_END_DEADLINE_BUDGET => waiting(Detail::DeadlineBudget),
        WaitEnd::WAIT_END_REAL_TIME => waiting(Detail::RealTimeLimit),
        // It has done what it had to, and says so: sched_yield(2).
        WaitEnd::WAIT_END_DEADLINE_PERIOD => {
            Some((Reason::Sleep, Detail::UntilNextPeriod, Idleness::Idle))
        }
        _ => None,
    }
}

/// The reason that the state of a blocked thread tells, wherever it was.
fn of_state(end: WaitEnd) -> Option<(Reason, Detail)> {
    match end {
        WaitEnd::WAIT_END_STOPPED => Some((Reason::Stopped, Detail::BySignal)),
        WaitEnd::WAIT_END_FROZEN => Some((Reason::Stopped, Detail::Frozen)),
        _ => None,
    }
}

/// Whether a wait is for what the system call is about, and not for what came in its way: a
/// lock of the kernel's, or memory.
fn is_of_call(reason: Reason) -> bool {
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

/// Whether what a wait was in particular is said by the functions of pipes alone.
fn is_of_pipe(detail: Detail) -> bool {
    matches!(
        detail,
        Detail::PipeOpen | Detail::PipeRead | Detail::PipeSplice | Detail::PipeWrite
    )
}

/// What a futex is called: the variable that it is in, or who waits there.
fn told_futex(
    profile: &Profile,
    stack: Stack,
    futex: &Futex,
    objects: &Objects,
    reason: Reason,
) -> Option<String> {
    let variable = || objects.places().variable(futex, reason);
    match reason {
        // It is several words, none of which is a lock by itself.
        Reason::Lock if objects.places().is_gil(futex) => Some(PYTHON_RUNTIME.to_owned()),
        Reason::Lock | Reason::Condition => variable().or_else(|| {
            let user = user_functions::user(names(profile, stack.user))?;
            Some(format!("in {user}"))
        }),
        Reason::Unknown => variable(),
        _ => None,
    }
}

/// The functions of a part of a stack, leaf first.
fn names(profile: &Profile, part: StackId) -> impl Iterator<Item = &str> {
    let frames = profile.stacks.leaf_first(part);
    frames.map(|frame| profile.name(&profile.frames[frame]))
}

/// The reason, and what it was in particular.
fn reason<'a>(
    seen: Option<Seen>,
    user: impl Iterator<Item = &'a str>,
    by_arguments: impl FnOnce() -> Option<(Reason, Detail)>,
) -> (Reason, Detail) {
    match seen {
        Some(Seen::Reason(reason, detail)) => (reason, detail),
        Some(Seen::Futex) => user_functions::says(user)
            .or_else(by_arguments)
            .unwrap_or(FUTEX_OF_NO_KIND),
        None => UNKNOWN,
    }
}

/// What the kernel's functions tell.
#[derive(Clone, Copy)]
enum Seen {
    Reason(Reason, Detail),
    /// Which user space knows the purpose of.
    Futex,
}

/// What these functions tell, leaf first.
fn of_kernel<'a>(functions: impl Iterator<Item = &'a str>) -> Option<Seen> {
    let (mut said, mut primitive) = (None, None);
    let (mut is_fault, mut is_swap, mut is_reclaim, mut is_futex) = (false, false, false, false);
    let (mut writes, mut sleeps) = (false, true);
    for function in functions {
        // What compilers make of one: `do_poll.constprop.0`.
        let function = function.split('.').next().unwrap_or(function);
        if is_scheduler(function) {
            continue;
        }
        let says = kernel_functions::says(function);
        match says {
            Some(Says::For(reason, detail)) => said = said.or(Some((reason, detail))),
            Some(Says::IfItSleeps(reason, detail)) if sleeps => {
                said = said.or(Some((reason, detail)));
            }
            Some(Says::Primitive(_, Detail::Writes)) => writes = true,
            Some(Says::Primitive(reason, detail)) => {
                primitive = primitive.or(Some((reason, detail)));
            }
            Some(Says::IfItSleeps(..)) | None => {}
        }
        sleeps &= matches!(says, Some(Says::Primitive(Reason::Kernel, _)));
        is_fault |= FAULT.contains(&function);
        is_swap |= SWAP.contains(&function);
        is_reclaim |= RECLAIM.contains(&function);
        is_futex |= FUTEX.contains(&function);
    }
    let seen = match said.or(primitive) {
        Some((Reason::DiskRead, Detail::Direct)) if writes => (Reason::DiskWrite, Detail::Direct),
        Some(seen) => seen,
        None if is_reclaim => UNKNOWN,
        None => return is_futex.then_some(Seen::Futex),
    };
    // For whose sake: a lock that is waited for on the way stays one.
    let (reason, detail) = match seen.0 {
        Reason::KernelLock => seen,
        _ if is_reclaim => (Reason::Memory, Detail::Reclaim),
        Reason::DiskRead if is_fault && is_swap => (Reason::PageFault, Detail::Swap),
        Reason::DiskRead if is_fault => (Reason::PageFault, Detail::File),
        _ => seen,
    };
    Some(Seen::Reason(reason, detail))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
