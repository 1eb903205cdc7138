//! Accounts of the threads of a profile that was measured, merged or read from a file.

use std::collections::HashMap;

use super::{Account, Excess, Merged, Sampled, ThreadProfile, Unclocked, Unseen, UnseenStacks};
use crate::{
    Clock, FrameKind, Losses, Name, Profile, Sample, Sampling, Stack, State, Thread, ThreadId,
    Unit, Weight, marker,
};

/// Returns the account of each thread, with all its samples, by process and thread ID. The samples
/// stay as they are. A sample without a state is blocked if the profile has times, and running if
/// it has samples.
///
/// If the profile has no clocks, the samples take their place: the time in each state is the sum of
/// the samples, or their number if they are no time. Samples without a thread then form a thread
/// for each name, with the process ID 0.
#[must_use]
pub fn accounts(profile: &Profile) -> Vec<ThreadProfile> {
    let mut threads: Vec<ThreadProfile> = Vec::new();
    let mut places: HashMap<ThreadId, usize> = HashMap::new();
    for row in &profile.threads {
        match places.get(&row.id) {
            Some(&place) => {
                let thread: &mut ThreadProfile = &mut threads[place];
                let mut account = Account {
                    lives: thread.lives,
                    lifetime_ns: thread.lifetime_ns,
                    ..Account::new(thread.thread)
                };
                account.add(*row);
                thread.thread = account.thread;
                thread.lives = account.lives;
                thread.lifetime_ns = account.lifetime_ns;
            }
            None => {
                places.insert(row.id, threads.len());
                threads.push(without_stacks(*row));
            }
        }
    }
    let has_clocks = !threads.is_empty();
    let (usual, each) = match profile.unit {
        Unit::Nanoseconds => (State::Blocked, 1),
        Unit::Samples => {
            let sampling = profile.meta.sampling.as_ref();
            (State::Running, sampling.map_or(1, Sampling::each))
        }
    };
    let mut nameless: HashMap<Name, u32> = HashMap::new();
    for (sample, weight) in profile.samples.iter() {
        let count = nameless.len() as u32;
        let id = sample.thread.unwrap_or_else(|| ThreadId {
            pid: 0,
            tid: *nameless.entry(sample.comm).or_insert(count),
        });
        let place = match places.get(&id) {
            Some(place) => *place,
            // Threads without a clock are in no sum.
            None if has_clocks => continue,
            None => {
                let clock = Clock {
                    ended_ns: profile.meta.window.length_ns,
                    ..Clock::default()
                };
                places.insert(id, threads.len());
                threads.push(without_stacks(Thread {
                    id,
                    comm: sample.comm,
                    clock,
                }));
                threads.len() - 1
            }
        };
        let thread = &mut threads[place];
        let state = sample.state.unwrap_or(usual);
        let value = weight.value.saturating_mul(each);
        let sample = Sample {
            state: Some(state),
            ..*sample
        };
        thread.count(profile, &sample, weight, value);
        if !has_clocks {
            thread.add_to_clock(state, value);
        }
        thread.stacks.push((sample, Weight { value, ..*weight }));
    }
    threads.sort_by_key(|thread| thread.thread.id);
    threads
}

fn without_stacks(thread: Thread) -> ThreadProfile {
    ThreadProfile {
        lifetime_ns: thread.clock.lifetime_ns(),
        thread,
        lives: 1,
        samples: 0,
        stacks: Vec::new(),
        unseen: Unseen::default(),
        sampled: Sampled::default(),
        unseen_blocked: Stack::default(),
        excess: Excess::default(),
    }
}

impl ThreadProfile {
    /// Counts a sample in the figures about samples.
    fn count(&mut self, profile: &Profile, sample: &Sample, weight: &Weight, value: u64) {
        match unseen(profile, sample) {
            Some(State::Running) => add(&mut self.unseen.running_ns, value),
            Some(State::Runnable) => add(&mut self.unseen.runnable_ns, value),
            Some(State::Blocked) => {
                add(&mut self.unseen.blocked_ns, value);
                self.unseen_blocked = sample.stack;
            }
            None if sample.state == Some(State::Running) => add(&mut self.samples, weight.events),
            None => {}
        }
        if sample.is_sampled {
            add(&mut self.sampled.intervals, weight.events);
            match sample.state {
                Some(State::Runnable) => add(&mut self.sampled.runnable_ns, value),
                _ => add(&mut self.sampled.blocked_ns, value),
            }
        }
    }

    fn add_to_clock(&mut self, state: State, value: u64) {
        let clock = &mut self.thread.clock;
        let sum = match state {
            State::Running => &mut clock.running_ns,
            State::Runnable => &mut clock.runnable_ns,
            State::Blocked => &mut clock.blocked_ns,
        };
        add(sum, value);
    }
}

fn add(sum: &mut u64, value: u64) {
    *sum = sum.saturating_add(value);
}

/// Returns the state whose time without a stack a sample is.
fn unseen(profile: &Profile, sample: &Sample) -> Option<State> {
    let (callers, leaf) = profile.stacks.node(sample.stack.user)?;
    let frame = &profile.frames[leaf];
    if frame.kind != FrameKind::Marker || !callers.is_empty() {
        return None;
    }
    match profile.name(frame) {
        marker::NO_SAMPLE => Some(State::Running),
        marker::RUNNABLE_BELOW => Some(State::Runnable),
        marker::BLOCKED_BELOW => Some(State::Blocked),
        _ => None,
    }
}

impl Merged {
    /// Returns whether a profile has the time of its threads in every state, as
    /// [`Merged::into_profile`] makes it.
    #[must_use]
    pub fn is_merged(profile: &Profile) -> bool {
        let mut samples = profile.samples.keys();
        profile.unit == Unit::Nanoseconds
            && !profile.threads.is_empty()
            && samples.any(|sample| sample.state == Some(State::Running))
    }

    /// Returns the accounts of a profile that [`Merged::into_profile`] made. The profile has the
    /// losses of both measurements in one sum, which become losses of the off-CPU times.
    #[must_use]
    pub fn from_profile(mut profile: Profile) -> Merged {
        let mut threads = accounts(&profile);
        // An account without blocked time has no such stack. No sample has this one.
        let unseen = UnseenStacks::new(&mut profile).blocked;
        for thread in &mut threads {
            thread.unseen_blocked = unseen;
        }
        let samples = std::mem::take(&mut profile.samples);
        profile.threads.clear();
        Merged {
            timed_stacks: samples.keys().copied().collect(),
            threads,
            unclocked: Unclocked::default(),
            on_cpu_lost: Losses::default(),
            off_cpu_lost: profile.losses,
            profile,
        }
    }
}
