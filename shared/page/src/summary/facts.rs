//! Figures of a profile that the first screen shows.

use std::collections::{BTreeMap, HashMap, HashSet};

use export::text::brief::short_name;
use export::text::numbers::duration;
use export::text::waits::short_resource_text;
use profile::merge::{ThreadProfile, accounts};
use profile::{
    Detail, FrameKind, Futex, Id, Process, Profile, Reason, Resource, Sample, Sampling, Stack,
    StackId, State, ThreadId, Unit, Wait, WaitKind, Weight, marker,
};
use report::{Counted, Group, Row, Split, counted};

/// Figures of a profile.
pub(super) struct Facts<'a> {
    pub(super) profile: &'a Profile,
    /// Name of the events that the profile counts; `None` if its values are times.
    pub(super) event: Option<&'a str>,
    /// Threads of user processes, those with most work first.
    pub(super) threads: Vec<ThreadFacts<'a>>,
    /// The kernel's own threads, if the whole machine was measured; those with most work first.
    pub(super) kernel_threads: Vec<ThreadFacts<'a>>,
    /// Number of user processes.
    pub(super) processes: usize,
    /// Time of the threads that were not idle; of all threads, if all were idle.
    pub(super) split: Split,
    /// Causes of these threads' time with work, longest first.
    pub(super) causes: Vec<Cause<'a>>,
    /// Blocked time of these threads that may be idle, longest first.
    pub(super) unknown: Vec<Cause<'a>>,
    /// Set if the profile has accounts of threads, which cover every state.
    pub(super) has_clocks: bool,
    /// Set if the reason of any wait is known.
    pub(super) has_reasons: bool,
    /// Time without a stack of its own, in ns: running, runnable, blocked.
    pub(super) unseen: [u64; 3],
}

/// A thread.
pub(super) struct ThreadFacts<'a> {
    pub(super) id: ThreadId,
    pub(super) name: &'a str,
    /// Name of the process: of its first thread.
    pub(super) process: &'a str,
    pub(super) split: Split,
    /// Time blocked with work to do, by reason, in ns.
    pub(super) reasons: BTreeMap<Reason, u64>,
}

impl ThreadFacts<'_> {
    pub(super) fn is_idle(&self) -> bool {
        self.split.is_idle()
    }
}

/// Something that threads spent time on.
pub(super) struct Cause<'a> {
    pub(super) state: State,
    /// Reason of the waits, if the threads were blocked and it is known.
    pub(super) reason: Option<Reason>,
    /// Name of the function that used the resource, if the resource has no name of its own.
    pub(super) function: Option<&'a str>,
    /// The time, the places and the wakers.
    pub(super) group: Group<'a>,
}

/// Samples with equal keys have one cause.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    /// The function that ran.
    Running(String),
    /// The limit that was used up; `None` means that all CPUs were busy.
    Runnable(Option<Detail>),
    Blocked(Option<(WaitKind, Option<String>)>),
}

impl<'a> Facts<'a> {
    pub(super) fn new(profile: &'a Profile) -> Facts<'a> {
        let accounts = accounts(profile);
        let of_kernel: HashSet<u32> = kernel_processes(&profile.processes);
        let mut names: HashMap<u32, &'a str> = HashMap::new();
        for account in &accounts {
            let id = account.thread.id;
            let name = &*profile.names[account.thread.comm];
            let first = names.entry(id.pid).or_insert(name);
            if id.pid == id.tid {
                *first = name;
            }
        }
        let is_of_user = |pid: &&u32| !of_kernel.contains(pid);
        let processes = names.keys().filter(is_of_user).count();
        let of_several = processes > 1;
        let (mut kernel_threads, mut threads): (Vec<_>, Vec<_>) = (accounts.iter())
            .map(|account| {
                let facts = thread_facts(profile, account, of_several, &names);
                (facts, account)
            })
            .partition(|(facts, _)| of_kernel.contains(&facts.id.pid));
        // Threads with the same work stay in the order of their IDs.
        for threads in [&mut kernel_threads, &mut threads] {
            threads.sort_by_key(|(facts, _)| std::cmp::Reverse(facts.split.work()));
        }
        let are_all_idle = threads.iter().all(|(facts, _)| facts.is_idle());
        let counts = |facts: &ThreadFacts<'_>| are_all_idle || !facts.is_idle();
        let mut causes = Causes::new(profile, of_several);
        let mut split = Split::default();
        let mut unseen = [0_u64; 3];
        for (facts, account) in &threads {
            let of_thread = account.unseen;
            let of_thread = [
                of_thread.running_ns,
                of_thread.runnable_ns,
                of_thread.blocked_ns,
            ];
            for (sum, time) in unseen.iter_mut().zip(of_thread) {
                *sum = sum.saturating_add(time);
            }
            if counts(facts) {
                split = split + facts.split;
                causes.add(account);
            }
        }
        let (causes, unknown) = causes.into_longest_first(&split);
        let sampling = profile.meta.sampling.as_ref();
        Facts {
            profile,
            event: match (profile.unit, sampling) {
                (Unit::Nanoseconds, _) => None,
                (Unit::Samples, None) => Some("samples"),
                (Unit::Samples, Some(sampling)) if sampling.nanoseconds().is_some() => None,
                (Unit::Samples, Some(Sampling { event, .. })) => Some(event),
            },
            threads: threads.into_iter().map(|(facts, _)| facts).collect(),
            kernel_threads: kernel_threads.into_iter().map(|(facts, _)| facts).collect(),
            processes,
            split,
            causes,
            unknown,
            has_clocks: !profile.threads.is_empty(),
            has_reasons: !profile.waits.is_empty(),
            unseen,
        }
    }

    /// Returns the number of idle threads.
    pub(super) fn idle_threads(&self) -> usize {
        let threads = self.threads.iter();
        threads.filter(|thread| thread.is_idle()).count()
    }

    /// Returns the idle time of all threads, in ns.
    pub(super) fn idle_ns(&self) -> u64 {
        let idle = self.threads.iter().map(|thread| thread.split.idle);
        idle.fold(0, u64::saturating_add)
    }

    /// Returns the text of a value of the profile: a time, or a number of events.
    pub(super) fn amount(&self, value: u64) -> String {
        match self.event {
            None => duration(value),
            Some(_) => value.to_string(),
        }
    }

    /// Returns the share of the CPUs' time that each program ran, in ns, most first.
    pub(super) fn programs(&self) -> Vec<(&'a str, u64)> {
        let mut programs: BTreeMap<&str, u64> = BTreeMap::new();
        for thread in self.threads.iter().chain(&self.kernel_threads) {
            let ran = programs.entry(thread.process).or_default();
            *ran = ran.saturating_add(thread.split.running);
        }
        let mut programs: Vec<(&str, u64)> = programs.into_iter().collect();
        programs.sort_by_key(|(_, ran)| std::cmp::Reverse(*ran));
        programs
    }

    /// Returns the time of all CPUs in the window, in ns; 0 if their number is unknown.
    pub(super) fn cpu_ns(&self) -> u64 {
        let meta = &self.profile.meta;
        meta.window.length_ns.saturating_mul(u64::from(meta.cpus))
    }
}

fn kernel_processes(processes: &[Process]) -> HashSet<u32> {
    let processes = processes.iter();
    let of_kernel = processes.filter(|process| process.is_kernel_thread);
    of_kernel.map(|process| process.pid).collect()
}

fn thread_facts<'a>(
    profile: &'a Profile,
    account: &ThreadProfile,
    of_several: bool,
    names: &HashMap<u32, &'a str>,
) -> ThreadFacts<'a> {
    let row = Row {
        profile,
        thread: account,
        role: "",
    };
    let mut reasons = BTreeMap::new();
    for (sample, weight) in &account.stacks {
        if let Some(wait) = profile.wait(sample)
            && sample.state == Some(State::Blocked)
            && counted(wait, of_several) == Counted::Waiting
        {
            let time: &mut u64 = reasons.entry(wait.kind.reason).or_default();
            *time = time.saturating_add(weight.value);
        }
    }
    let id = account.thread.id;
    ThreadFacts {
        id,
        name: &profile.names[account.thread.comm],
        process: names.get(&id.pid).copied().unwrap_or_default(),
        split: Split::new(&row, of_several),
        reasons,
    }
}

/// Collects causes.
struct Causes<'a> {
    profile: &'a Profile,
    of_several: bool,
    causes: Vec<Cause<'a>>,
    /// Places in `causes`.
    places: HashMap<(Key, bool), usize>,
    /// Set for the causes of time that may be idle, in the order of `causes`.
    is_unknown: Vec<bool>,
    /// Names of the functions that ran, by the user stack and, without one, the kernel stack.
    functions: HashMap<Stack, String>,
}

impl<'a> Causes<'a> {
    fn new(profile: &'a Profile, of_several: bool) -> Causes<'a> {
        Causes {
            profile,
            of_several,
            causes: Vec::new(),
            places: HashMap::new(),
            is_unknown: Vec::new(),
            functions: HashMap::new(),
        }
    }

    fn add(&mut self, account: &ThreadProfile) {
        for (sample, weight) in &account.stacks {
            let wait = self.profile.wait(sample);
            let counted = wait.map(|wait| counted(wait, self.of_several));
            match (sample.state, counted) {
                (Some(State::Running), _) => {
                    let function = self.function(sample.stack);
                    let key = Key::Running(function.clone());
                    let make = |profile| cause(profile, State::Running, function);
                    self.put(key, false, make, sample, wait, weight);
                }
                (_, Some(Counted::Idle)) => {}
                (Some(State::Runnable), _) => {
                    let limit = wait.map(|wait| wait.kind.detail);
                    let make = |profile: &'a Profile| {
                        let text = limit.map_or("", |detail| profile.detail_name(detail));
                        cause(profile, State::Runnable, text.to_owned())
                    };
                    self.put(Key::Runnable(limit), false, make, sample, wait, weight);
                }
                (_, Some(counted)) => {
                    if let Some(wait) = wait {
                        let is_unknown = counted == Counted::Unknown;
                        self.add_blocked(sample, wait, weight, is_unknown);
                    }
                }
                (_, None) => {
                    let make = |profile| cause(profile, State::Blocked, String::new());
                    self.put(Key::Blocked(None), true, make, sample, wait, weight);
                }
            }
        }
    }

    fn add_blocked(&mut self, sample: &Sample, wait: &Wait, weight: &Weight, is_unknown: bool) {
        let profile = self.profile;
        let resource = wait.resource.map(|id| &profile.resources[id]);
        let text = resource.map(|resource| short_resource_text(profile, resource).into_owned());
        let key = Key::Blocked(Some((wait.kind, text)));
        let make = |profile: &'a Profile| Cause {
            state: State::Blocked,
            reason: Some(wait.kind.reason),
            function: match resource {
                Some(Resource::Futex(Futex::UsedBy(function))) => Some(&profile.names[*function]),
                _ => None,
            },
            group: Group::of_wait(profile, wait),
        };
        self.put(key, is_unknown, make, sample, Some(wait), weight);
    }

    fn put(
        &mut self,
        key: Key,
        is_unknown: bool,
        make: impl FnOnce(&'a Profile) -> Cause<'a>,
        sample: &Sample,
        wait: Option<&Wait>,
        weight: &Weight,
    ) {
        let place = *self.places.entry((key, is_unknown)).or_insert_with(|| {
            self.causes.push(make(self.profile));
            self.is_unknown.push(is_unknown);
            self.causes.len() - 1
        });
        self.causes[place].group.add(sample, wait, weight);
    }

    /// Returns the name of the function that ran; empty if there was no sample. It is the innermost interpreted function, or else the
    /// innermost function of the program, or else of the kernel.
    fn function(&mut self, stack: Stack) -> String {
        let profile = self.profile;
        let part = if stack.user.is_empty() {
            stack.kernel
        } else {
            stack.user
        };
        let key = Stack {
            user: part,
            kernel: StackId::EMPTY,
        };
        let name = self.functions.entry(key).or_insert_with(|| {
            let frames = || profile.stacks.leaf_first(part);
            let is_interpreted = |frame: &Id<profile::Frame>| {
                matches!(profile.frames[*frame].kind, FrameKind::Interpreted(_))
            };
            let frame = frames().find(is_interpreted).or_else(|| frames().next());
            let name = frame.map(|frame| profile.name(&profile.frames[frame]));
            let name = name.filter(|name| *name != marker::NO_SAMPLE);
            name.map(short_name).unwrap_or_default()
        });
        name.clone()
    }

    /// Returns the causes, and those of time that may be idle, longest first. Running and runnable
    /// time that the profile has no samples of is a cause as well.
    fn into_longest_first(mut self, split: &Split) -> (Vec<Cause<'a>>, Vec<Cause<'a>>) {
        for (state, whole) in [
            (State::Running, split.running),
            (State::Runnable, split.runnable),
        ] {
            let of_state = self.causes.iter().filter(|cause| cause.state == state);
            let known = of_state.fold(0, |sum: u64, cause| sum.saturating_add(cause.group.time));
            let rest = whole.saturating_sub(known);
            // Times are rounded to microseconds, and their sums are off by less for each thread.
            if rest > whole / 100 {
                let mut cause = cause(self.profile, state, String::new());
                cause.group.time = rest;
                self.causes.push(cause);
                self.is_unknown.push(false);
            }
        }
        let pairs = self.causes.into_iter().zip(self.is_unknown);
        let pairs = pairs.filter(|(cause, _)| cause.group.time > 0);
        let (unknown, known): (Vec<_>, Vec<_>) = pairs.partition(|(_, is_unknown)| *is_unknown);
        let sorted = |pairs: Vec<(Cause<'a>, bool)>| {
            let mut causes: Vec<Cause<'_>> = pairs.into_iter().map(|(cause, _)| cause).collect();
            causes.sort_by(|one, other| {
                let texts =
                    |cause: &Cause<'_>| (cause.group.kind.clone(), cause.group.resource.clone());
                (other.group.time.cmp(&one.group.time)).then_with(|| texts(one).cmp(&texts(other)))
            });
            causes
        };
        (sorted(known), sorted(unknown))
    }
}

/// Returns a cause without a reason. `what` is the function that ran, or the limit.
fn cause(profile: &Profile, state: State, what: String) -> Cause<'_> {
    Cause {
        state,
        reason: None,
        function: None,
        group: Group::new(profile, String::new(), what, false),
    }
}
