//! Slices of the threads' tracks: blocked, runnable and mixed intervals with stacks, what the
//! threads waited for, and flows from wakers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use profile::{
    Id, Labels, Profile, RequestSpan, Sample, Stack, State, ThreadChange, ThreadEvent, Wait, Waker,
    Wakers,
};

use super::interning::Interner;
use super::lanes::{Lane, NOBODY, Row};
use super::messages::{DebugAnnotation, INSTANT, SLICE_BEGIN, SLICE_END, TracePacket, TrackEvent};
use super::packets::{Packets, time};
use super::tracks::{PROFILE, Threads, Uuids};
use crate::lanes::{lack, waker};
use crate::measure::state_name;
use crate::text::brief::brief;
use crate::text::frames::thread_field;
use crate::text::options::Ids;
use crate::text::title::title;
use crate::text::waits::{ended_by_text, holder_text, kind_text, resource_text};

/// Category of intervals of several stays.
const MIXED: &str = "mixed";

/// A writer of the events on tracks.
pub(super) struct Slices<'a> {
    profile: &'a Profile,
    threads: &'a Threads,
    /// Names and annotations of samples that have the same text.
    described: HashMap<Likeness, Described>,
    flows: u64,
}

/// Fields of a sample on which its text depends, and its state.
type Likeness = (
    State,
    Option<Id<Wait>>,
    Option<Id<Wakers>>,
    Option<Id<Labels>>,
    bool,
);

/// The number of a name, and annotations.
type Described = (u64, Rc<[DebugAnnotation]>);

impl<'a> Slices<'a> {
    pub(super) fn new(profile: &'a Profile, threads: &'a Threads) -> Slices<'a> {
        Slices {
            profile,
            threads,
            described: HashMap::new(),
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
            name_iid: interner.event(&title(profile)),
            debug_annotations: annotations,
            ..event(SLICE_BEGIN, PROFILE)
        };
        put(interner, packets, start_ns, window)?;
        if let Some(lack) = lack(profile) {
            let lack = TrackEvent {
                name_iid: interner.event(&lack),
                ..event(INSTANT, PROFILE)
            };
            put(interner, packets, start_ns, lack)?;
        }
        put(interner, packets, end_ns, event(SLICE_END, PROFILE))
    }

    /// Writes the slices of a lane.
    pub(super) fn write(
        &mut self,
        lane: &Lane,
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
            if row.waker != NOBODY {
                self.flows += 1;
                self.write_wake(lane, &row, interner, packets)?;
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
        let callstack_iid = interner.stack(sample.stack);
        TrackEvent {
            name_iid,
            debug_annotations: annotations.to_vec(),
            callstack_iid,
            callstack_weight: callstack_iid.map(|_| row.shares.total_ns() as f64),
            ..begin
        }
    }

    fn describe(&mut self, state: State, sample: &Sample, interner: &mut Interner) -> Described {
        let profile = self.profile;
        let likeness = (
            state,
            sample.wait,
            sample.wakers,
            sample.labels,
            sample.is_sampled,
        );
        let described = self.described.entry(likeness).or_insert_with(|| {
            let name = profile.wait(sample);
            let name = name.map(|wait| kind_text(profile, wait.kind));
            let name = name.as_deref().unwrap_or(state_name(state));
            let annotations = annotations(profile, sample).into_iter();
            let annotations = annotations.map(|(key, value)| interner.annotation(key, &value));
            let annotations = annotations.collect();
            (interner.event(name), annotations)
        });
        described.clone()
    }

    /// Writes the wake-up that ends a row on the track of the waker. The flow begins there.
    fn write_wake(
        &self,
        lane: &Lane,
        row: &Row,
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
            ..event(INSTANT, self.threads.track(row.waker))
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
            ThreadChange::Started => interner.event("thread started"),
            ThreadChange::Ended => interner.event("thread ended"),
            ThreadChange::Executed(name) => interner.event(&format!("executed {}", names[name])),
            ThreadChange::Renamed(name) => interner.event(&format!("renamed to {}", names[name])),
        };
        let instant = TrackEvent {
            name_iid,
            ..event(INSTANT, self.threads.track(thread))
        };
        put(interner, packets, change.time_ns, instant)
    }

    /// Writes a request span. Spans may overlap, so each has a track.
    pub(super) fn write_request(
        &self,
        span: &RequestSpan,
        uuids: &mut Uuids,
        interner: &mut Interner,
        packets: &mut Packets,
    ) -> io::Result<()> {
        let Some(thread) = self.threads.place(span.thread) else {
            return Ok(());
        };
        let profile = self.profile;
        let track = uuids.write(self.threads.track(thread), "requests", packets)?;
        let parent = span
            .parent
            .and_then(|id| profile.times.request_spans.get(id));
        let parent =
            parent.map(|parent| interner.annotation("parent", &profile.names[parent.name]));
        let begin = TrackEvent {
            category_iids: vec![interner.category("request")],
            name_iid: interner.event(&profile.names[span.name]),
            debug_annotations: parent.into_iter().collect(),
            ..event(SLICE_BEGIN, track)
        };
        put(interner, packets, span.start_ns, begin)?;
        put(interner, packets, span.end_ns, event(SLICE_END, track))
    }
}

/// Returns what is known of a sample beside its stack, as keys and texts.
fn annotations<'a>(profile: &'a Profile, sample: &Sample) -> Vec<(&'a str, Cow<'a, str>)> {
    let mut annotations: Vec<(&str, Cow<'_, str>)> = Vec::new();
    let wait = profile.wait(sample);
    if let Some(wait) = wait {
        annotations.push(("wait", kind_text(profile, wait.kind).into()));
        let resource = wait.resource.map(|resource| &profile.resources[resource]);
        let resource = resource.map(|resource| resource_text(profile, resource));
        annotations.extend(resource.map(|resource| ("resource", resource)));
        let holder = wait.holder.map(|holder| holder_text(profile, holder));
        annotations.extend(holder.map(|holder| ("holder", holder.into())));
        annotations.push(("idleness", wait.idleness.name().into()));
    }
    if let Some(waker) = waker(profile, sample) {
        let text = thread_field(profile, waker.comm, waker.thread, Ids::Thread);
        annotations.push(("waker", text.into()));
        if waker.stack != Stack::default() {
            annotations.push(("waker_stack", brief(profile, waker.stack).into()));
        }
    } else if let Some(ended_by) = wait.and_then(|wait| wait.ended_by) {
        annotations.push(("waker", ended_by_text(profile, ended_by).into()));
    }
    if sample.is_sampled {
        annotations.push(("interval", "sampled".into()));
    }
    let labels = sample
        .labels
        .map_or(&[][..], |labels| &profile.labels[labels]);
    annotations.extend(labels.iter().map(|label| {
        let [key, value] = [label.key, label.value].map(|name| &*profile.names[name]);
        (key, value.into())
    }));
    annotations
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
