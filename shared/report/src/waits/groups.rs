//! Waits and stacks that form one row of a report: by kind and resource, with the places of the
//! threads, and the threads that held or released the resource.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use export::text::frames::wakers;
use export::text::numbers::{is_nearly_all, whole_percent};
use export::text::waits::{holder_text, kind_text, short_resource_text};
use profile::{EndedBy, Profile, Reason, Sample, Stack, State, Wait, Waker, Weight};

use crate::place::{place, waker_place};

/// Maximum number of holders named.
const HOLDERS: usize = 3;
/// Minimum share of the time, in per cent, of a waker that the report names.
const LEAST_WAKER: u64 = 20;

/// Waits or stacks that form one row of a report.
pub struct Group<'a> {
    profile: &'a Profile,
    /// Text of the kind: `lock: mutex`, `running`.
    pub kind: String,
    /// Text of the resource; empty if there is none.
    pub resource: String,
    /// Set for waits for locks, which threads release.
    is_lock: bool,
    /// Time in ns.
    pub time: u64,
    /// Number of waits that were measured one by one.
    pub waits: u64,
    longest: u64,
    stacks: BTreeMap<Stack, u64>,
    holders: BTreeMap<String, u64>,
    wakers: BTreeMap<Waker, u64>,
}

impl<'a> Group<'a> {
    /// Returns an empty group. `is_lock` is set for waits for locks.
    #[must_use]
    pub fn new(profile: &'a Profile, kind: String, resource: String, is_lock: bool) -> Group<'a> {
        Group {
            profile,
            kind,
            resource,
            is_lock,
            time: 0,
            waits: 0,
            longest: 0,
            stacks: BTreeMap::new(),
            holders: BTreeMap::new(),
            wakers: BTreeMap::new(),
        }
    }

    /// Returns an empty group of waits of one kind for one resource.
    #[must_use]
    pub fn of_wait(profile: &'a Profile, wait: &Wait) -> Group<'a> {
        let resource = wait.resource.map(|id| &profile.resources[id]);
        let resource = resource.map(|resource| short_resource_text(profile, resource));
        Group::new(
            profile,
            kind_text(profile, wait.kind),
            resource.unwrap_or_default().into_owned(),
            matches!(wait.kind.reason, Reason::Lock | Reason::KernelLock),
        )
    }

    /// Adds a sample of the profile. `wait` is the sample's wait.
    pub fn add(&mut self, sample: &Sample, wait: Option<&Wait>, weight: &Weight) {
        let time = weight.value;
        self.time = self.time.saturating_add(time);
        // A sampled interval stands for an unknown number of intervals. Samples on the CPU are no
        // waits.
        if !sample.is_sampled && sample.state == Some(State::Blocked) {
            self.waits = self.waits.saturating_add(weight.events);
            self.longest = self.longest.max(weight.longest);
        }
        let stack = self.stacks.entry(sample.stack).or_default();
        *stack = stack.saturating_add(time);
        if let Some(holder) = wait.and_then(|wait| wait.holder) {
            let holder = holder_text(self.profile, holder);
            let held = self.holders.entry(holder).or_default();
            *held = held.saturating_add(time);
        }
        let beside = wait.and_then(|wait| wait.ended_by);
        let beside = beside.and_then(|ended_by| match ended_by {
            EndedBy::Wakers(wakers) => self.profile.wakers[wakers].first(),
            EndedBy::Described(_) => None,
        });
        let waker = wakers(self.profile, sample).first().or(beside);
        if let Some(waker) = waker.filter(|waker| waker.thread.is_some()) {
            // Threads with the same name and stack are merged.
            let waker = Waker {
                thread: None,
                ..*waker
            };
            let ended = self.wakers.entry(waker).or_default();
            *ended = ended.saturating_add(time);
        }
    }

    /// Returns the longest of the waits that were measured one by one, in ns. Stacks are scaled down
    /// if they exceed the clock. Single waits are not scaled, so the longest can exceed the time.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.longest.min(self.time)
    }

    /// Returns the stack with most of the time, and its time in ns.
    #[must_use]
    pub fn stack(&self) -> Option<(Stack, u64)> {
        let stack = self.stacks.iter().max_by_key(|(_, time)| **time);
        stack.map(|(stack, time)| (*stack, *time))
    }

    /// Returns the text of the stack with most of the time, in at most `most` characters.
    #[must_use]
    pub fn place(&self, most: usize) -> String {
        self.stack()
            .map_or_else(String::new, |(stack, _)| place(self.profile, stack, most))
    }

    /// Returns the threads that held the resource with their times in ns, longest first.
    #[must_use]
    pub fn holders(&self) -> Vec<(&str, u64)> {
        let holders = self.holders.iter();
        let mut holders: Vec<(&str, u64)> = holders
            .map(|(holder, time)| (holder.as_str(), *time))
            .collect();
        holders.sort_by_key(|(_, time)| Reverse(*time));
        holders
    }

    /// Returns what the wakers of these waits do: they release a lock, or wake the thread.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        if self.is_lock { "released" } else { "woken" }
    }

    /// Returns the waker that ended most of the time, its time in ns, and its place in at most
    /// `most` characters. The waker ended at least a fifth of the time.
    #[must_use]
    pub fn waker(&self, most: usize) -> Option<(&'a str, u64, String)> {
        let (waker, time) = self.main_waker()?;
        let place = waker_place(self.profile, waker, most);
        Some((&self.profile.names[waker.comm], time, place))
    }

    fn main_waker(&self) -> Option<(&Waker, u64)> {
        let waker = self.wakers.iter().max_by_key(|(_, time)| **time);
        let waker = waker.filter(|(_, time)| {
            u128::from(**time) * 100 >= u128::from(self.time) * u128::from(LEAST_WAKER)
        });
        waker.map(|(waker, time)| (waker, *time))
    }

    /// Returns the holders and the main waker, as far as they are known, in at most `most`
    /// characters.
    #[must_use]
    pub fn others(&self, most: usize) -> Option<String> {
        let holders = self.holders();
        let named = holders.iter().take(HOLDERS);
        let named: Vec<String> = named
            .map(|(holder, time)| format!("{holder} {}", whole_percent(*time, self.time)))
            .collect();
        let held = (!named.is_empty()).then(|| {
            let more = if holders.len() > HOLDERS { ", …" } else { "" };
            format!("held by {}{more}", named.join(", "))
        });
        let released = self.main_waker().map(|(waker, time)| {
            let verb = self.verb();
            let share = if is_nearly_all(time, self.time) {
                String::new()
            } else {
                format!("{} ", whole_percent(time, self.time))
            };
            let name = &self.profile.names[waker.comm];
            let before = format!("{share}{verb} by {name} in ");
            let used = before.chars().count();
            let used = used + held.as_ref().map_or(0, |held| held.chars().count() + 2);
            let place = waker_place(self.profile, waker, most.saturating_sub(used).max(20));
            format!("{before}{place}")
        });
        let parts: Vec<String> = held.into_iter().chain(released).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Groups in the order of their first samples, found by key.
pub struct Groups<'a, K> {
    groups: Vec<Group<'a>>,
    places: HashMap<K, usize>,
}

impl<'a, K: Hash + Eq> Groups<'a, K> {
    /// Returns no groups.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Groups<'a, K> {
        Groups {
            groups: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// Returns the group with this key; adds the group if it is new.
    pub fn group(&mut self, key: K, make: impl FnOnce() -> Group<'a>) -> &mut Group<'a> {
        let place = *self.places.entry(key).or_insert_with(|| {
            self.groups.push(make());
            self.groups.len() - 1
        });
        &mut self.groups[place]
    }

    /// Returns the groups, those with most time first.
    #[must_use]
    pub fn into_longest_first(self) -> Vec<Group<'a>> {
        let mut groups = self.groups;
        groups.sort_by(|one, other| {
            let key = |group: &Group<'_>| Reverse(group.time);
            key(one)
                .cmp(&key(other))
                .then_with(|| one.kind.cmp(&other.kind))
                .then_with(|| one.resource.cmp(&other.resource))
        });
        groups
    }
}
