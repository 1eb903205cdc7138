//! Resources that threads were blocked on: a line of figures, the stack, and the threads that held
//! or released the resource.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io;

use export::text::cut::cut_middle;
use export::text::frames::wakers;
use export::text::numbers::{duration, is_nearly_all, whole_percent};
use export::text::waits::{holder_text, kind_text, short_resource_text};
use profile::{EndedBy, Profile, Reason, Sample, Stack, State, Wait, Waker, Weight};

use super::page::Page;
use crate::Row;
use crate::place::{place, waker_place};
use crate::waits::split::{Counted, counted};

/// Maximum rows of a list.
const LISTED: usize = 6;
/// Maximum rows of time of unknown idleness.
const UNKNOWN_LISTED: usize = 3;
/// Maximum number of holders named.
const HOLDERS: usize = 3;
/// Minimum share of the time, in per cent, of a waker that the report names.
const LEAST_WAKER: u64 = 20;
/// Width of the figures, in characters.
const FIGURES: usize = 34;
/// Indentation of the lines below a row, in characters.
const INDENT: usize = 5;

/// Waits or stacks that form one row.
struct Group<'a> {
    profile: &'a Profile,
    kind: String,
    resource: String,
    /// Set for waits for locks, which threads release.
    is_lock: bool,
    time: u64,
    /// Number of waits that were measured one by one. `longest` is the longest of them, in ns.
    waits: u64,
    longest: u64,
    stacks: BTreeMap<Stack, u64>,
    holders: BTreeMap<String, u64>,
    wakers: BTreeMap<Waker, u64>,
}

impl<'a> Group<'a> {
    fn new(profile: &'a Profile, kind: String, resource: String, is_lock: bool) -> Group<'a> {
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

    fn of_wait(profile: &'a Profile, wait: &Wait) -> Group<'a> {
        let resource = wait.resource.map(|id| &profile.resources[id]);
        let resource = resource.map(|resource| short_resource_text(profile, resource));
        Group::new(
            profile,
            kind_text(profile, wait.kind),
            resource.unwrap_or_default().into_owned(),
            matches!(wait.kind.reason, Reason::Lock | Reason::KernelLock),
        )
    }

    fn add(&mut self, sample: &Sample, wait: Option<&Wait>, weight: &Weight) {
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

    /// Returns the text of the stack with most of the time.
    fn place(&self, most: usize) -> String {
        let stack = self.stacks.iter().max_by_key(|(_, time)| **time);
        stack.map_or_else(String::new, |(stack, _)| place(self.profile, *stack, most))
    }

    /// Returns the holders and the main waker, as far as they are known.
    fn others(&self, most: usize) -> Option<String> {
        let mut holders: Vec<(&String, &u64)> = self.holders.iter().collect();
        holders.sort_by_key(|(_, time)| Reverse(**time));
        let named = holders.iter().take(HOLDERS);
        let named: Vec<String> = named
            .map(|(holder, time)| format!("{holder} {}", whole_percent(**time, self.time)))
            .collect();
        let held = (!named.is_empty()).then(|| {
            let more = if holders.len() > HOLDERS { ", …" } else { "" };
            format!("held by {}{more}", named.join(", "))
        });
        let waker = self.wakers.iter().max_by_key(|(_, time)| **time);
        let waker = waker.filter(|(_, time)| {
            u128::from(**time) * 100 >= u128::from(self.time) * u128::from(LEAST_WAKER)
        });
        let released = waker.map(|(waker, time)| {
            let verb = if self.is_lock { "released" } else { "woken" };
            let share = if is_nearly_all(*time, self.time) {
                String::new()
            } else {
                format!("{} ", whole_percent(*time, self.time))
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
struct Groups<'a, K> {
    groups: Vec<Group<'a>>,
    places: HashMap<K, usize>,
}

impl<'a, K: std::hash::Hash + Eq> Groups<'a, K> {
    fn new() -> Groups<'a, K> {
        Groups {
            groups: Vec::new(),
            places: HashMap::new(),
        }
    }

    fn group(&mut self, key: K, make: impl FnOnce() -> Group<'a>) -> &mut Group<'a> {
        let place = *self.places.entry(key).or_insert_with(|| {
            self.groups.push(make());
            self.groups.len() - 1
        });
        &mut self.groups[place]
    }

    fn into_longest_first(self) -> Vec<Group<'a>> {
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

/// Writes the waits that held threads up, and the waits of unknown idleness. Writes nothing if
/// there are none of either.
pub(super) fn write_waits<'a>(
    rows: impl Iterator<Item = &'a Row<'a>>,
    of_several: bool,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let (mut waiting, mut unknown) = (Groups::new(), Groups::new());
    for row in rows {
        for (sample, weight) in &row.thread.stacks {
            let Some(wait) = row.profile.wait(sample) else {
                continue;
            };
            if sample.state != Some(State::Blocked) {
                continue;
            }
            let groups = match counted(wait, of_several) {
                Counted::Waiting => &mut waiting,
                Counted::Unknown => &mut unknown,
                Counted::Idle => continue,
            };
            // Resources with the same text are merged: connections of one kind, files of one name.
            let resource = wait.resource.map(|id| &row.profile.resources[id]);
            let resource = resource.map(|resource| short_resource_text(row.profile, resource));
            let group = groups.group((wait.kind, resource), || Group::of_wait(row.profile, wait));
            group.add(sample, Some(wait), weight);
        }
    }
    write_groups(
        "WAITS, without idle ones",
        &waiting.into_longest_first(),
        LISTED,
        page,
    )?;
    write_groups(
        "BLOCKED, idle or waiting",
        &unknown.into_longest_first(),
        UNKNOWN_LISTED,
        page,
    )
}

/// Writes the stacks of one thread, in every state.
pub(super) fn write_stacks(row: &Row<'_>, page: &mut Page<'_>) -> io::Result<()> {
    let mut groups = Groups::new();
    for (sample, weight) in &row.thread.stacks {
        let wait = row.profile.wait(sample);
        // Waits that differ only in their wakers are merged. Stacks that differ only in their
        // kernel frames are merged, too.
        let alike = wait.map(|wait| (wait.kind, wait.resource, wait.idleness));
        let Stack { user, kernel } = sample.stack;
        let place = (!user.is_empty()).then_some(user).ok_or(kernel);
        let key = (sample.state, alike, place);
        let group = groups.group(key, || {
            let named = |kind: &str| Group::new(row.profile, kind.to_owned(), String::new(), false);
            match (sample.state, wait) {
                (Some(State::Running), _) => named("running"),
                (Some(State::Runnable), None) => named("waiting for a CPU"),
                (_, None) => named("blocked"),
                (_, Some(wait)) => {
                    let mut group = Group::of_wait(row.profile, wait);
                    if counted(wait, false) == Counted::Idle {
                        group.kind.push_str(" (idle)");
                    }
                    group
                }
            }
        });
        group.add(sample, wait, weight);
    }
    let mut groups = groups.into_longest_first();
    groups.retain(|group| group.time > 0);
    write_groups("STACKS", &groups, LISTED, page)
}

/// Writes a heading, a row for each of the first groups, and one row for the others.
fn write_groups(
    heading: &str,
    groups: &[Group<'_>],
    listed: usize,
    page: &mut Page<'_>,
) -> io::Result<()> {
    if groups.is_empty() {
        return Ok(());
    }
    let whole = groups.iter().map(|group| group.time);
    let whole = whole.fold(0, u64::saturating_add);
    let counts = |group: &&Group<'_>| u128::from(group.time) * 200 >= u128::from(whole);
    let counted = groups.iter().take_while(counts).count();
    // A single remaining group has its own row, because a row "1 more" would tell less.
    let listed = if counted == listed + 1 && groups.len() == counted {
        counted
    } else {
        counted.min(listed)
    };
    let (shown, others) = groups.split_at(listed);
    let kinds = shown.iter().map(|group| group.kind.chars().count());
    let resources = shown.iter().map(|group| group.resource.chars().count());
    let room = page.width() - FIGURES - 1;
    let kind = kinds.max().unwrap_or(0).min(room / 2);
    let name = kind + 2 + resources.max().unwrap_or(0);
    let name = name.max(30).min(room);
    page.blank()?;
    page.line(&format!(
        "{heading:<width$}{:>9}{:>7}{:>8}{:>10}",
        "total",
        "share",
        "waits",
        "longest",
        width = name + 1
    ))?;
    for group in shown {
        let resource = name.saturating_sub(kind + 2);
        let text = format!(
            "{:<kind$}  {}",
            cut_middle(&group.kind, kind),
            cut_middle(&group.resource, resource)
        );
        // Stacks are scaled down if they exceed the clock. Single waits are not scaled, so the
        // longest wait can exceed the time.
        let longest = group.longest.min(group.time);
        write_figures(&text, name, group.time, whole, (group.waits, longest), page)?;
        let room = page.width() - INDENT;
        page.line_once(&format!("{:INDENT$}{}", "", group.place(room)))?;
        if let Some(others) = group.others(room) {
            page.line_once(&format!("{:INDENT$}{others}", ""))?;
        }
    }
    if others.is_empty() {
        return Ok(());
    }
    let time = others.iter().map(|group| group.time);
    let waits = others.iter().map(|group| group.waits);
    let longest = others.iter().map(|group| group.longest).max();
    write_figures(
        &format!("{} more", others.len()),
        name,
        time.fold(0, u64::saturating_add),
        whole,
        (waits.fold(0, u64::saturating_add), longest.unwrap_or(0)),
        page,
    )
}

fn write_figures(
    text: &str,
    width: usize,
    time: u64,
    whole: u64,
    (waits, longest): (u64, u64),
    page: &mut Page<'_>,
) -> io::Result<()> {
    let (waits, longest) = match waits {
        0 => (String::new(), String::new()),
        waits => (waits.to_string(), duration(longest)),
    };
    page.line(&format!(
        " {text:<width$}{:>9}{:>7}{waits:>8}{longest:>10}",
        duration(time),
        whole_percent(time, whole),
    ))
}
