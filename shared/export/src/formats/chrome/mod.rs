//! Chrome's trace events (catapult's "Trace Event Format"): a lane for each thread, with slices
//! for its intervals, arrows from wakers to the threads that they woke, and CPU samples.
//!
//! Each event is on a line of its own. Times are in µs since the start of the timeline, with
//! three decimals. What the readers show decides details:
//!
//! - Firefox Profiler shows the argument `detail` of a slice, and no other.
//! - An arrow ends in the slice that its lane has at that time. Perfetto reads events of one time
//!   in the order of the file, so the slice comes first.
//! - Perfetto, Chrome and Firefox Profiler read CPU samples as V8's profiles. speedscope shows
//!   either these or slices: slices if the first event has no `cat`.

mod samples;
#[cfg(test)]
mod tests;
mod writer;

use std::io::{self, Write};

use profile::{
    EndedBy, Interval, Profile, RequestSpan, Sample, Stack, State, ThreadChange, ThreadId,
};

use self::samples::Samples;
use self::writer::{Arguments, Event, Writer};
use crate::format::{Format, Needs};
use crate::lanes::{LaneNames, Lanes, Origin, lack, waker};
use crate::measure::state_name;
use crate::text::brief::brief;
use crate::text::frames::thread_field;
use crate::text::options::{Ids, Options, Written};
use crate::text::waits::{ended_by_text, holder_text, kind_text, resource_text, wait_text};

/// The format of Chrome's trace events.
pub struct Chrome;

impl Format for Chrome {
    fn name(&self) -> &'static str {
        "chrome"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".trace.json"]
    }

    fn readers(&self) -> &'static str {
        "Perfetto, Chrome, Firefox Profiler, speedscope: the states of each thread over time"
    }

    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            reasons: true,
            wakers: true,
            times: true,
            ..Needs::NAMES
        }
    }

    fn write(
        &self,
        profile: &Profile,
        _options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        let timeline = Timeline {
            profile,
            lanes: Lanes::new(profile),
            origin: Origin::new(profile),
        };
        let mut writer = Writer::new(profile, writer);
        timeline.write_names(&mut writer)?;
        timeline.write_lack(&mut writer)?;
        let mut samples = Samples::new(profile, timeline.origin);
        let (mut arrows, mut tracks) = (0, 0);
        for &thread in timeline.lanes.threads() {
            timeline.write_intervals(thread, &mut arrows, &mut writer)?;
            timeline.write_events(thread, &mut writer)?;
            timeline.write_requests(thread, &mut tracks, &mut writer)?;
            samples.write(thread, timeline.lanes.timed_samples(thread), &mut writer)?;
        }
        writer.finish(timeline.origin)?;
        Ok(Written::default())
    }
}

struct Timeline<'a> {
    profile: &'a Profile,
    lanes: Lanes<'a>,
    origin: Origin,
}

impl Timeline<'_> {
    /// Writes the names of processes and threads.
    fn write_names(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        let names = LaneNames::new(self.profile);
        let mut last_pid = None;
        for &thread in self.lanes.threads() {
            let process = names.process(thread.pid);
            let process = process.filter(|_| last_pid != Some(thread.pid));
            last_pid = Some(thread.pid);
            let named = [
                ("process_name", process),
                ("thread_name", names.thread(thread)),
            ];
            for (what, name) in named {
                let Some(name) = name else { continue };
                writer.event(&Event::new("M", what, thread), |arguments| {
                    arguments.text("name", name);
                })?;
            }
        }
        Ok(())
    }

    /// Writes an event of the whole file that says what the timeline lacks.
    fn write_lack(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        let Some(lack) = lack(self.profile) else {
            return Ok(());
        };
        let thread = self.lanes.threads().first().copied();
        let event = Event {
            at_ns: Some(0),
            scope: Some("g"),
            ..Event::new("i", &lack, thread.unwrap_or_default())
        };
        writer.event(&event, |_| ())
    }

    /// Writes the intervals of a thread, and the arrows that end there. `arrows` counts all arrows.
    fn write_intervals(
        &self,
        thread: ThreadId,
        arrows: &mut u64,
        writer: &mut Writer<'_>,
    ) -> io::Result<()> {
        // End of the last interval, and the thread that ended it.
        let mut woken: Option<(u64, ThreadId)> = None;
        for interval in self.lanes.intervals(thread) {
            let row = interval.sample.and_then(|id| self.profile.samples.row(id));
            let sample = row.map(|(sample, _)| sample);
            self.write_slice(interval, sample, writer)?;
            if let Some((end_ns, from)) = woken
                && end_ns == interval.start_ns
                && self.lanes.has_intervals(from)
            {
                *arrows += 1;
                for (phase, thread) in [("s", from), ("f", thread)] {
                    let event = Event {
                        category: Some("wake-up"),
                        at_ns: Some(self.origin.since(end_ns)),
                        id: Some(*arrows),
                        ..Event::new(phase, "wake-up", thread)
                    };
                    writer.event(&event, |_| ())?;
                }
            }
            let waker = sample.and_then(|sample| waker(self.profile, sample));
            let waker = waker.filter(|_| interval.state() == State::Blocked);
            let waker = waker.and_then(|waker| waker.thread);
            woken = waker.map(|waker| (interval.end_ns(), waker));
        }
        Ok(())
    }

    fn write_slice(
        &self,
        interval: &Interval,
        sample: Option<&Sample>,
        writer: &mut Writer<'_>,
    ) -> io::Result<()> {
        let profile = self.profile;
        let shares = interval.shares;
        let state = state_name(interval.state());
        let wait = sample.and_then(|sample| profile.wait(sample));
        let name = match wait {
            _ if shares.is_mixed() => format!("mostly {state}"),
            Some(wait) => format!("{state}: {}", kind_text(profile, wait.kind)),
            None => state.to_owned(),
        };
        let event = Event {
            category: Some(state),
            at_ns: Some(self.origin.since(interval.start_ns)),
            length_ns: Some(interval.length_ns()),
            ..Event::new("X", &name, interval.thread)
        };
        writer.event(&event, |arguments| {
            if shares.is_mixed() {
                let detail = format!(
                    "running {} ns, runnable {} ns, blocked {} ns",
                    shares.running_ns, shares.runnable_ns, shares.blocked_ns
                );
                arguments.text("detail", &detail);
                arguments.number("running_ns", shares.running_ns);
                arguments.number("runnable_ns", shares.runnable_ns);
                arguments.number("blocked_ns", shares.blocked_ns);
            }
            if let Some(sample) = sample {
                self.describe(sample, arguments);
            }
        })
    }

    /// Adds the wait, the waker, the stacks and the labels of a sample.
    fn describe(&self, sample: &Sample, arguments: &mut Arguments<'_>) {
        let profile = self.profile;
        let waker = waker(profile, sample);
        let wait = profile.wait(sample);
        let described = wait.and_then(|wait| wait.ended_by);
        let described = described.filter(|by| matches!(by, EndedBy::Described(_)));
        let waker_text = waker.map(|waker| {
            let thread = waker.thread;
            thread_field(profile, waker.comm, thread, Ids::Thread)
        });
        let waker_text = waker_text.or_else(|| described.map(|by| ended_by_text(profile, by)));
        if let Some(wait) = wait {
            let mut detail = wait_text(profile, wait);
            if let Some(waker) = &waker_text {
                detail.push_str(", ended by ");
                detail.push_str(waker);
            }
            arguments.text("detail", &detail);
            arguments.text("wait", &kind_text(profile, wait.kind));
            if let Some(resource) = wait.resource {
                let resource = &profile.resources[resource];
                arguments.text("resource", &resource_text(profile, resource));
            }
            if let Some(holder) = wait.holder {
                arguments.text("holder", &holder_text(profile, holder));
            }
            arguments.text("idleness", wait.idleness.name());
        }
        if let Some(text) = &waker_text {
            arguments.text("waker", text);
        }
        if let Some(waker) = waker.filter(|waker| waker.stack != Stack::default()) {
            arguments.text("waker_stack", &brief(profile, waker.stack));
        }
        arguments.stack("stack", sample.stack);
        if sample.is_sampled {
            arguments.text("interval", "sampled");
        }
        if let Some(labels) = sample.labels {
            // A label may have the key of an argument.
            let labels = profile.labels[labels].iter();
            let labels = labels.map(|label| {
                let [key, value] = [label.key, label.value].map(|name| &*profile.names[name]);
                (key, value)
            });
            arguments.texts("labels", labels);
        }
    }

    /// Writes the events in the life of a thread.
    fn write_events(&self, thread: ThreadId, writer: &mut Writer<'_>) -> io::Result<()> {
        for event in self.lanes.events(thread) {
            let names = &self.profile.names;
            let name = match event.change {
                ThreadChange::Started => "thread started".to_owned(),
                ThreadChange::Ended => "thread ended".to_owned(),
                ThreadChange::Executed(name) => format!("executed {}", names[name]),
                ThreadChange::Renamed(name) => format!("renamed to {}", names[name]),
            };
            let event = Event {
                category: Some("thread"),
                at_ns: Some(self.origin.since(event.time_ns)),
                scope: Some("t"),
                ..Event::new("i", &name, thread)
            };
            writer.event(&event, |_| ())?;
        }
        Ok(())
    }

    /// Writes the request spans of a thread. They overlap its slices, so each has a track. `tracks`
    /// counts all tracks.
    fn write_requests(
        &self,
        thread: ThreadId,
        tracks: &mut u64,
        writer: &mut Writer<'_>,
    ) -> io::Result<()> {
        let spans = &self.profile.times.request_spans;
        let name = |span: &RequestSpan| &*self.profile.names[span.name];
        for span in self.lanes.requests(thread) {
            *tracks += 1;
            let parent = span.parent.and_then(|parent| spans.get(parent));
            for (phase, at_ns) in [("b", span.start_ns), ("e", span.end_ns)] {
                let event = Event {
                    category: Some("request"),
                    at_ns: Some(self.origin.since(at_ns)),
                    id: Some(*tracks),
                    ..Event::new(phase, name(span), thread)
                };
                writer.event(&event, |arguments| {
                    if let Some(parent) = parent {
                        arguments.text("parent", name(parent));
                    }
                })?;
            }
        }
        Ok(())
    }
}
