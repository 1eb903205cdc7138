//! Joins on-CPU samples, off-CPU times and thread clocks into one account of each thread's
//! life.
//!
//! Samples and off-CPU stacks show *where* a thread was, its clock shows *how long*. The
//! samples of a thread are scaled so that they add up to its measured running time. Its sampled
//! intervals are scaled, in each state, to the time that the measured intervals leave. Time
//! without a stack gets a frame of its own ([`marker::NO_SAMPLE`], [`marker::RUNNABLE_BELOW`],
//! [`marker::BLOCKED_BELOW`]). The widths of a thread then add up to its life, to the
//! microsecond.

mod accounts;
mod scaling;
mod timed_stacks;

use std::collections::{BTreeMap, BTreeSet};

pub use accounts::accounts;

use crate::import::Import;
use crate::merge::scaling::{Waits, Weighted, rounded, scaled, total};
use crate::merge::timed_stacks::settled;
use crate::name_order::NameOrder;
use crate::{
    Bursts, Id, Losses, Meta, Process, Profile, Sample, Stack, State, Table, Thread, ThreadId,
    Unit, Wait, Weight, marker,
};

/// Unit of widths, in ns. [`merge`] rounds to it once.
const MICROSECOND: u64 = 1_000;

/// The accounts of all threads.
#[derive(Clone, Debug)]
pub struct Merged {
    /// Profile to whose tables the stacks refer.
    pub profile: Profile,
    /// Threads with a clock, ordered by process and thread ID.
    pub threads: Vec<ThreadProfile>,
    /// Samples and times of threads without a clock.
    pub unclocked: Unclocked,
    /// Losses of the samples.
    pub on_cpu_lost: Losses,
    /// Losses of the off-CPU times.
    pub off_cpu_lost: Losses,
    /// Samples to which the profile's rows of time refer. The rows use places in this list
    /// until [`Merged::into_profile`].
    timed_stacks: Vec<Sample>,
}

/// Stacks of threads without a clock. Without a clock they cannot be scaled, so no sum and no flame
/// graph contains them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unclocked {
    /// Number of these threads.
    pub threads: u64,
    /// Number of their on-CPU samples.
    pub samples: u64,
    /// Their off-CPU time in ns.
    pub off_cpu_ns: u64,
}

/// Time of one thread ID in the window.
#[derive(Clone, Debug)]
pub struct ThreadProfile {
    /// The thread. If several threads had its ID, the clock has their sums, from the first start to
    /// the last end. The name is the name of the last thread.
    pub thread: Thread,
    /// Time lived inside the window in ns, without gaps between two lives.
    pub lifetime_ns: u64,
    /// Number of threads that had this ID, one after another.
    pub lives: u64,
    /// Number of on-CPU samples.
    pub samples: u64,
    /// Every stack with its time in ns, ordered by state and names. Times are rounded to whole
    /// microseconds, and add up to the three states of the clock.
    pub stacks: Vec<(Sample, Weight)>,
    /// Time without a stack.
    pub unseen: Unseen,
    /// Time whose stacks come from sampled intervals.
    pub sampled: Sampled,
    /// Stack of blocked intervals whose stacks were not kept.
    pub unseen_blocked: Stack,
    /// Off-CPU time, or samples, beyond the clock's time. The clock prevails: the stacks are
    /// scaled down to it.
    pub excess: Excess,
}

/// Clock time without a stack, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Running time of a thread without samples.
    pub running_ns: u64,
    /// Runnable time in intervals below the minimum.
    pub runnable_ns: u64,
    /// Blocked time in intervals below the minimum.
    pub blocked_ns: u64,
}

/// Clock time of sampled intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// Runnable time in ns.
    pub runnable_ns: u64,
    /// Blocked time in ns.
    pub blocked_ns: u64,
    /// Number of sampled intervals, runnable and blocked.
    pub intervals: u64,
}

/// Time that a thread spent at one stack in one state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StackTime {
    /// The stack, the state and the wait; without labels, and regardless of whether the
    /// intervals were sampled.
    pub sample: Sample,
    /// The wait, if the thread was blocked and the reason is known.
    pub wait: Option<Wait>,
    /// Time in ns.
    pub time_ns: u64,
    /// Standard error of the time in ns, from the random choice of samples. `None` if no
    /// samples are in it.
    pub error_ns: Option<f64>,
}

impl StackTime {
    /// Returns whether the thread had no work during this time.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.wait.is_some_and(|wait| wait.idleness.is_idle())
    }
}

/// Stacks that contradict the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excess {
    /// Number of samples of a thread that never ran according to its clock.
    pub samples: u64,
    /// Off-CPU time above the clock's, in ns.
    pub off_cpu_ns: u64,
}

impl Excess {
    /// Returns whether stacks and clock disagree by more than rounding.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.samples > 0 || self.off_cpu_ns >= MICROSECOND
    }
}

impl ThreadProfile {
    /// Returns the sum of the widths in ns, a multiple of 1,000.
    #[must_use]
    pub fn accounted_ns(&self) -> u64 {
        total(&self.stacks)
    }

    /// Returns the accounted time as a share of the thread's life, both in whole microseconds.
    /// Returns `None` if the life is shorter than a microsecond.
    #[must_use]
    pub fn coverage(&self) -> Option<f64> {
        let lifetime = self.lifetime_ns / MICROSECOND;
        let accounted = self.accounted_ns() / MICROSECOND;
        (lifetime > 0).then(|| accounted as f64 / lifetime as f64)
    }

    /// Returns the stack with most blocked time. Stacks with pending work take precedence over idle
    /// stacks. Intervals too short to keep their stacks do not count.
    #[must_use]
    pub fn longest_blocked(&self, profile: &Profile) -> Option<StackTime> {
        let stacks = self.stack_times(profile).into_iter();
        stacks
            .filter(|stack| stack.sample.state == Some(State::Blocked))
            .filter(|stack| stack.sample.stack != self.unseen_blocked)
            .max_by_key(|stack| (!stack.is_idle(), stack.time_ns))
    }

    /// Returns every stack with its time in each state, whether measured or sampled, ordered by
    /// state and names. `profile` has the tables to which the stacks refer.
    #[must_use]
    pub fn stack_times(&self, profile: &Profile) -> Vec<StackTime> {
        let times = self.stacks.iter().map(|(sample, weight)| {
            let is_sampled = sample.state == Some(State::Running) || sample.is_sampled;
            let variance = weight.variance().filter(|_| is_sampled);
            StackTime {
                sample: Sample {
                    is_sampled: false,
                    labels: None,
                    ..*sample
                },
                wait: profile.wait(sample).copied(),
                time_ns: weight.value,
                error_ns: variance.map(f64::sqrt),
            }
        });
        let mut times: Vec<StackTime> = times.collect();
        times.dedup_by(|stack, sum| {
            let is_same = stack.sample == sum.sample;
            if is_same {
                sum.time_ns += stack.time_ns;
                sum.error_ns = match (sum.error_ns, stack.error_ns) {
                    (Some(one), Some(other)) => Some(one.hypot(other)),
                    (one, other) => one.or(other),
                };
            }
            is_same
        });
        times
    }
}

/// Joins measurements of the same threads in the same window: on-CPU stacks in samples, and
/// off-CPU stacks in ns with thread clocks. An off-CPU stack without a state counts as blocked.
#[must_use]
pub fn merge(on_cpu: &Profile, off_cpu: &Profile) -> Merged {
    let mut profile = Profile::new(Unit::Nanoseconds);
    describe(&mut profile, on_cpu, off_cpu);
    let [of_on_cpu, of_off_cpu] = [on_cpu, off_cpu].map(|from| Import::new(&mut profile, from));
    let period_ns = off_cpu.meta.lengths.map_or(0, |lengths| lengths.least);
    let mut accounts: BTreeMap<ThreadId, Account> = BTreeMap::new();
    for &row in &off_cpu.threads {
        let row = of_off_cpu.thread(row);
        match accounts.get_mut(&row.id) {
            Some(account) => account.add(row),
            None => {
                accounts.insert(row.id, Account::new(row));
            }
        }
    }
    let mut unclocked = Unclocked::default();
    let mut strangers = BTreeSet::new();
    let on_cpu_sample = |sample: &Sample| Sample {
        state: Some(State::Running),
        ..of_on_cpu.sample(*sample)
    };
    let off_cpu_sample = |sample: &Sample| Sample {
        state: sample.state.or(Some(State::Blocked)),
        ..of_off_cpu.sample(*sample)
    };
    for (sample, weight) in on_cpu.samples.iter() {
        let sample = on_cpu_sample(sample);
        match sample.thread.and_then(|id| accounts.get_mut(&id)) {
            Some(account) => account.running.push((sample, *weight)),
            None => {
                strangers.insert(sample.thread);
                unclocked.samples += weight.value;
            }
        }
    }
    for (sample, weight) in off_cpu.samples.iter() {
        let sample = off_cpu_sample(sample);
        match sample.thread.and_then(|id| accounts.get_mut(&id)) {
            Some(account) => {
                let waits = match sample.state {
                    Some(State::Runnable) => &mut account.runnable,
                    _ => &mut account.blocked,
                };
                waits.stacks_mut(sample.is_sampled).push((sample, *weight));
            }
            None => {
                strangers.insert(sample.thread);
                unclocked.off_cpu_ns += weight.value;
            }
        }
    }
    unclocked.threads = strangers.len() as u64;
    let mut timed: Table<Sample> = Table::default();
    of_on_cpu.add_times(&mut profile.times, &on_cpu.times, |id| {
        let (sample, _) = on_cpu.samples.row(id)?;
        Some(timed.id(on_cpu_sample(sample)))
    });
    of_off_cpu.add_times(&mut profile.times, &off_cpu.times, |id| {
        let (sample, _) = off_cpu.samples.row(id)?;
        Some(timed.id(off_cpu_sample(sample)))
    });
    let unseen = UnseenStacks::new(&mut profile);
    let order = NameOrder::new(&profile);
    let accounts = accounts.into_values();
    let threads: Vec<ThreadProfile> = accounts
        .map(|account| account.settle(period_ns, unseen, &order))
        .collect();
    let timed_stacks = settled(&timed, &threads, &order);
    Merged {
        timed_stacks,
        profile,
        threads,
        unclocked,
        on_cpu_lost: on_cpu.losses,
        off_cpu_lost: off_cpu.losses,
    }
}

/// Sets the circumstances that both profiles share.
fn describe(profile: &mut Profile, on_cpu: &Profile, off_cpu: &Profile) {
    let bursts = |from: &Profile, default| -> Vec<Bursts> {
        let rows = from.meta.bursts.iter().copied();
        let rows = rows.map(|bursts| Bursts {
            state: bursts.state.or(Some(default)),
            ..bursts
        });
        rows.collect()
    };
    profile.meta = Meta {
        tool: "wallclock".into(),
        sampling: on_cpu.meta.sampling.clone(),
        bursts: [
            bursts(on_cpu, State::Running),
            bursts(off_cpu, State::Blocked),
        ]
        .concat(),
        ..off_cpu.meta.clone()
    };
    for from in [on_cpu, off_cpu] {
        profile.losses += from.losses;
        profile.walk_ends += from.walk_ends;
    }
    let run = |process: &Process| (process.pid, process.start_ticks);
    let processes = on_cpu.processes.iter().chain(&off_cpu.processes);
    let processes: BTreeMap<_, _> = processes.map(|process| (run(process), process)).collect();
    profile.processes = processes.into_values().cloned().collect();
}

impl Merged {
    /// Returns the sample to which a row of the profile's times refers.
    #[must_use]
    pub fn timed_stack(&self, number: Id<Sample>) -> Option<&Sample> {
        self.timed_stacks.get(number.index())
    }

    /// Returns all threads as one profile in ns: every stack of a thread, in each state. The
    /// profile contains each sample to which a row of time refers, even if its value was
    /// rounded to 0 or its thread has no clock.
    #[must_use]
    pub fn into_profile(self) -> Profile {
        let mut profile = self.profile;
        for thread in self.threads {
            for (sample, weight) in thread.stacks {
                profile.add(sample, weight);
            }
            profile.threads.push(thread.thread);
        }
        let samples = self.timed_stacks.into_iter();
        let numbers: Vec<Id<Sample>> = samples.map(|it| profile.samples.id(it)).collect();
        let number = |timed: Id<Sample>| numbers.get(timed.index()).copied();
        profile.times.renumber_samples(number);
        profile
    }
}

/// Stacks for time without a stack.
#[derive(Clone, Copy)]
struct UnseenStacks {
    running: Stack,
    runnable: Stack,
    blocked: Stack,
}

impl UnseenStacks {
    fn new(profile: &mut Profile) -> UnseenStacks {
        UnseenStacks {
            running: profile.marker(marker::NO_SAMPLE),
            runnable: profile.marker(marker::RUNNABLE_BELOW),
            blocked: profile.marker(marker::BLOCKED_BELOW),
        }
    }
}

/// Measurements of one thread ID before they are scaled.
struct Account {
    thread: Thread,
    lifetime_ns: u64,
    lives: u64,
    running: Weighted,
    runnable: Waits,
    blocked: Waits,
}

impl Account {
    fn new(thread: Thread) -> Account {
        Account {
            lifetime_ns: thread.clock.lifetime_ns(),
            thread,
            lives: 1,
            running: Vec::new(),
            runnable: Waits::default(),
            blocked: Waits::default(),
        }
    }

    /// Adds another life of the thread ID.
    fn add(&mut self, row: Thread) {
        self.lifetime_ns += row.clock.lifetime_ns();
        self.lives += 1;
        let (sum, other) = (&mut self.thread.clock, row.clock);
        if other.ended_ns > sum.ended_ns {
            self.thread.comm = row.comm;
        }
        sum.started_ns = sum.started_ns.min(other.started_ns);
        sum.ended_ns = sum.ended_ns.max(other.ended_ns);
        sum.running_ns += other.running_ns;
        sum.runnable_ns += other.runnable_ns;
        sum.blocked_ns += other.blocked_ns;
        sum.voluntary += other.voluntary;
        sum.involuntary += other.involuntary;
    }

    /// Scales the stacks to the clock. Each sampled interval stands for `period_ns` of time.
    fn settle(self, period_ns: u64, markers: UnseenStacks, order: &NameOrder<'_>) -> ThreadProfile {
        let clock = self.thread.clock;
        let samples = total(&self.running);
        // A period that has begun may have a sample or none. The last interval of a life may be
        // open, and is then not sampled.
        let slack_ns = period_ns.saturating_mul(self.lives.saturating_mul(2));
        let runnable = self.runnable.settle(clock.runnable_ns, slack_ns, order);
        let blocked = self.blocked.settle(clock.blocked_ns, slack_ns, order);
        let unseen = Unseen {
            running_ns: if samples == 0 { clock.running_ns } else { 0 },
            runnable_ns: runnable.unseen_ns,
            blocked_ns: blocked.unseen_ns,
        };
        let sampled = Sampled {
            runnable_ns: runnable.sampled_ns,
            blocked_ns: blocked.sampled_ns,
            intervals: runnable.intervals + blocked.intervals,
        };
        let excess = Excess {
            samples: if clock.running_ns == 0 { samples } else { 0 },
            off_cpu_ns: runnable.excess_ns.saturating_add(blocked.excess_ns),
        };
        let mut stacks = scaled(self.running, clock.running_ns, order);
        stacks.extend(runnable.stacks);
        stacks.extend(blocked.stacks);
        // Rounding drops stacks without time.
        for (stack, state, time) in [
            (markers.running, State::Running, unseen.running_ns),
            (markers.runnable, State::Runnable, unseen.runnable_ns),
            (markers.blocked, State::Blocked, unseen.blocked_ns),
        ] {
            let sample = Sample {
                state: Some(state),
                ..Sample::new(self.thread.comm, Some(self.thread.id), stack)
            };
            let weight = Weight {
                value: time,
                ..Weight::default()
            };
            stacks.push((sample, weight));
        }
        ThreadProfile {
            thread: self.thread,
            lifetime_ns: self.lifetime_ns,
            lives: self.lives,
            samples,
            stacks: rounded(stacks, order),
            unseen,
            sampled,
            unseen_blocked: markers.blocked,
            excess,
        }
    }
}

#[cfg(test)]
mod tests;
