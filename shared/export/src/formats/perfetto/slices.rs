//! Slices of the threads' tracks: blocked, runnable and mixed intervals with stacks, what the
//! threads waited for, and flows from wakers.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use profile::{Id, Labels, Profile, Sample, State, ThreadChange, ThreadEvent, Wait, Waker, Wakers};

use super::interning::Interner;
use super::lanes::{Lane, NOBODY, Row, waker};
use super::messages::{DebugAnnotation, INSTANT, SLICE_BEGIN, SLICE_END, TracePacket, TrackEvent};
use super::packets::{Packets, time};
use super::tracks::{PROFILE, Threads};
use crate::measure::state_name;
use crate::text::brief::waker_text;
use crate::text::waits::{kind_text, labels};

/// Category of intervals of several stays.
const MIXED: &str = "mixed";

/// A writer of the events on tracks.
pub(super) struct Slices<'a> {
    profile: &'a Profile,
    threads: &'a Threads,
    /// Names and annotations of the samples that wait alike.
    described: HashMap<Likeness, Described>,
    /// Annotations of wakers.
    wakers: HashMap<Id<Wakers>, DebugAnnotation>,
    flows: u64,
}

/// Fields of a sample on which its text depends.
type Likeness = (Option<State>, Option<Id<Wait>>, Option<Id<Labels>>, bool);

/// The number of a name, and annotations.
type Described = (u64, Rc<[DebugAnnotation]>);

impl<'a> Slices<'a> {
    pub(super) fn new(profile: &'a Profile, threads: &'a Threads) -> Slices<'a> {
        Slices {
            profile,
            threads,
            described: HashMap::new(),
            wakers: HashMap::new(),
            flows: 0,
        }
    }

    /// Writes the window as a slice of the profile's track, with what is true of the whole file.
    pub(super) fn write_window(
        &self,
        interner: &mut Interner,
        packets: &mut Packets,
    ) -> io::Result<()> {
        let profile = self.profile;
        let meta = &profile.meta;
        let start_ns = meta.window.start_ns;
        let end_ns = start_ns.saturating_add(meta.window.length_ns);
        let name = match &*meta.tool {
            "" => "window".to_owned(),
            tool => format!("{tool} of {}", meta.targets),
        };
        let texts = [
            ("tool", format!("{} {}", meta.tool, meta.tool_version)),
            ("command line", meta.command_line.join(" ")),
            ("losses", profile.losses.to_string()),
        ];
        let texts = texts.iter();
        let mut annotations: Vec<_> = texts
            .map(|(key, text)| interner.annotation(key, text))
            .collect();
        let least_ns = meta.timeline_least_ns;
        annotations
            .extend(least_ns.map(|least| interner.count("shortest own interval, ns", least)));
        let window = TrackEvent {
            name_iid: interner.event(&name),
            debug_annotations: annotations,
            ..event(SLICE_BEGIN, PROFILE)
        };
        put(interner, packets, start_ns, window)?;
        let lost = profile.losses.times;
        let mut notes = Vec::new();
        if lost > 0 {
            notes.push(format!(
                "lost: {lost} rows of the timeline are gaps in the lanes"
            ));
        }
        if profile.times.is_empty() {
            notes.push("no timeline: samples have no times, and are at the start".to_owned());
        }
        for note in notes {
            let name_iid = interner.event(&note);
            let note = TrackEvent {
                name_iid,
                ..event(INSTANT, PROFILE)
            };
            put(interner, packets, start_ns, note)?;
        }
        put(interner, packets, end_ns, event(SLICE_END, PROFILE))
    }

    /// Writes the slices of a lane.
    pub(super) fn write(
        &mut self,
        lane: Lane,
        interner: &mut Interner,
        packets: &mut Packets,
    ) -> io::Result<()> {
        let track = self.threads.track(lane.thread);
        let mut rows = lane.rows().peekable();
        // Flow that ends in the next slice.
        let mut flow = None;
        while let Some(row) = rows.next() {
            if row.state() == Some(State::Running) {
                continue;
            }
            let slice = TrackEvent {
                terminating_flow_ids: flow.take().into_iter().collect(),
                ..self.slice(&row, track, interner)
            };
            put(interner, packets, row.start_ns, slice)?;
            put(interner, packets, row.end_ns, event(SLICE_END, track))?;
            let waker = lane.waker(&row);
            if waker != NOBODY {
                self.flows += 1;
                self.write_wake(lane, &row, waker, interner, packets)?;
                let is_followed = rows.peek().is_some_and(|next| {
                    next.start_ns == row.end_ns && next.state() != Some(State::Running)
                });
                if is_followed {
                    flow = Some(self.flows);
                } else {
                    let woken = TrackEvent {
                        name_iid: interner.event("woken"),
                        terminating_flow_ids: vec![self.flows],
                        ..event(INSTANT, track)
                    };
                    put(interner, packets, row.end_ns, woken)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the event that begins the slice of a row.
    fn slice(&mut self, row: &Row, track: u64, interner: &mut Interner) -> TrackEvent {
        let sample = row.sample.and_then(|id| self.profile.samples.row(id));
        let begin = event(SLICE_BEGIN, track);
        let Some(state) = row.state() else {
            let shares = &row.shares;
            let counts = [
                ("running, ns", shares.running_ns),
                ("runnable, ns", shares.runnable_ns),
                ("blocked, ns", shares.blocked_ns),
            ];
            let counts = counts.into_iter();
            return TrackEvent {
                category_iids: vec![interner.category(MIXED)],
                name_iid: interner.event(&format!("mostly {}", state_name(shares.largest()))),
                debug_annotations: counts.map(|(key, ns)| interner.count(key, ns)).collect(),
                ..begin
            };
        };
        let begin = TrackEvent {
            category_iids: vec![interner.category(state_name(state))],
            ..begin
        };
        let Some((sample, _)) = sample else {
            return TrackEvent {
                name_iid: interner.event(state_name(state)),
                ..begin
            };
        };
        let (name_iid, annotations) = self.describe(state, sample, interner);
        let mut annotations = annotations.to_vec();
        annotations.extend(self.waker(sample, interner));
        let callstack_iid = interner.stack(sample.stack);
        TrackEvent {
            name_iid,
            debug_annotations: annotations,
            callstack_iid,
            callstack_weight: callstack_iid.map(|_| row.shares.total_ns() as f64),
            ..begin
        }
    }

    fn describe(&mut self, state: State, sample: &Sample, interner: &mut Interner) -> Described {
        let profile = self.profile;
        let likeness = (Some(state), sample.wait, sample.labels, sample.is_sampled);
        let described = self.described.entry(likeness).or_insert_with(|| {
            let name = profile
                .wait(sample)
                .map(|wait| kind_text(profile, wait.kind));
            let labels = labels(profile, sample).into_iter();
            let annotations = labels.map(|(key, value)| interner.annotation(key, &value));
            let annotations = annotations.collect();
            let name = name.as_deref().unwrap_or(state_name(state));
            (interner.event(name), annotations)
        });
        described.clone()
    }

    /// Returns the annotation of a sample's waker, if the wait does not have it.
    fn waker(&mut self, sample: &Sample, interner: &mut Interner) -> Option<DebugAnnotation> {
        let profile = self.profile;
        let wakers = sample.wakers?;
        if profile
            .wait(sample)
            .is_some_and(|wait| wait.ended_by.is_some())
        {
            return None;
        }
        let first = profile.wakers[wakers].first()?;
        let annotation = self.wakers.entry(wakers);
        let annotation = annotation
            .or_insert_with(|| interner.annotation("ended by", &waker_text(profile, first)));
        Some(*annotation)
    }

    /// Writes the wake-up that ends a row on the track of the waker. The flow begins there.
    fn write_wake(
        &self,
        lane: Lane,
        row: &Row,
        place: u32,
        interner: &mut Interner,
        packets: &mut Packets,
    ) -> io::Result<()> {
        let sample = row.sample.and_then(|id| self.profile.samples.row(id));
        let waker: Option<&Waker> = sample.and_then(|(sample, _)| waker(self.profile, sample));
        let woken = self.threads.name_text(lane.thread);
        let wake = TrackEvent {
            name_iid: interner.event(&format!("wakes {woken}")),
            flow_ids: vec![self.flows],
            callstack_iid: waker.and_then(|waker| interner.stack(waker.stack)),
            ..event(INSTANT, self.threads.track(place))
        };
        put(interner, packets, row.end_ns, wake)
    }

    /// Writes an event in a thread's life.
    pub(super) fn write_event(
        &self,
        change: &ThreadEvent,
        interner: &mut Interner,
        packets: &mut Packets,
    ) -> io::Result<()> {
        let Some(thread) = self.threads.place(change.thread) else {
            return Ok(());
        };
        let names = &self.profile.names;
        let name_iid = match change.change {
            ThreadChange::Started => interner.event("started"),
            ThreadChange::Ended => interner.event("ended"),
            ThreadChange::Executed(name) => interner.event(&format!("executed {}", names[name])),
            ThreadChange::Renamed(name) => interner.event(&format!("renamed {}", names[name])),
        };
        let instant = TrackEvent {
            name_iid,
            ..event(INSTANT, self.threads.track(thread))
        };
        put(interner, packets, change.time_ns, instant)
    }
}

fn event(r#type: u32, track_uuid: u64) -> TrackEvent {
    TrackEvent {
        r#type,
        track_uuid,
        ..TrackEvent::default()
    }
}

fn put(
    interner: &mut Interner,
    packets: &mut Packets,
    time_ns: u64,
    event: TrackEvent,
) -> io::Result<()> {
    packets.put(TracePacket {
        timestamp: Some(time(time_ns)),
        interned_data: interner.take(),
        track_event: Some(event),
        ..TracePacket::default()
    })
}
