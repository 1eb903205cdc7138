//! Markers of intervals, events and requests.

use profile::{Interval, RequestSpan, State, ThreadChange, ThreadEvent};

use super::known::{Known, Lane};
use super::{Threads, UNKNOWN, category};
use crate::firefox::file::{Category, Kind, Marker, ThreadHandle, Value};

impl Threads<'_> {
    /// Adds the marker of an interval.
    pub(super) fn add_interval(&mut self, lane: &mut Lane, interval: &Interval) {
        let state = interval.state();
        let shares = interval.shares;
        let unknown = Value::Text(self.file.text(UNKNOWN));
        let known = interval.sample.and_then(|id| self.known(lane, id, state));
        let values;
        let (kind, name) = match state {
            _ if shares.is_mixed() => {
                let times = [shares.running_ns, shares.runnable_ns, shares.blocked_ns];
                let [running, runnable, blocked] = times.map(Value::Number);
                values = [running, runnable, blocked, unknown];
                (Kind::Short, "Short intervals")
            }
            State::Running => return,
            State::Runnable => {
                let waker = known.map(|known| [known.waker, known.waker_stack].map(Value::Text));
                let [waker, waker_stack] = waker.unwrap_or([unknown; 2]);
                values = [waker, waker_stack, unknown, unknown];
                (Kind::Runnable, "Runnable")
            }
            State::Blocked => {
                values = known.map_or([unknown; 4], |known| {
                    let Known {
                        wait,
                        resource,
                        waker,
                        waker_stack,
                        ..
                    } = known;
                    [wait, resource, waker, waker_stack].map(Value::Text)
                });
                (Kind::Blocked, "Blocked")
            }
        };
        let marker = Marker {
            kind,
            name,
            category: known.map_or(category(state), |known| known.category),
            start_ns: self.origin.since(interval.start_ns),
            end_ns: Some(self.origin.since(interval.end_ns())),
            values: &values,
            stack: known.and_then(|known| known.stack),
        };
        self.file.marker(lane.handle, &marker);
    }

    /// Adds the marker of an event in the life of a thread.
    pub(super) fn add_event(&mut self, handle: ThreadHandle, event: &ThreadEvent) {
        let (name, thread_name) = match event.change {
            ThreadChange::Started => ("Started", None),
            ThreadChange::Ended => ("Ended", None),
            ThreadChange::Executed(name) => ("Executed", Some(name)),
            ThreadChange::Renamed(name) => ("Renamed", Some(name)),
        };
        let thread_name = match thread_name {
            Some(name) => &self.profile.names[name],
            None => self.names.thread(event.thread).unwrap_or(UNKNOWN),
        };
        let marker = Marker {
            kind: Kind::Change,
            name,
            category: Category::Other,
            start_ns: self.origin.since(event.time_ns),
            end_ns: None,
            values: &[Value::Text(self.file.text(thread_name))],
            stack: None,
        };
        self.file.marker(handle, &marker);
    }

    /// Adds the marker of a request span.
    pub(super) fn add_request(&mut self, handle: ThreadHandle, span: &RequestSpan) {
        let spans = &self.profile.times.request_spans;
        let parent = span.parent.and_then(|parent| spans.get(parent));
        let parent = parent.map_or("", |parent| &self.profile.names[parent.name]);
        let marker = Marker {
            kind: Kind::Request,
            name: &self.profile.names[span.name],
            category: Category::Other,
            start_ns: self.origin.since(span.start_ns),
            end_ns: Some(self.origin.since(span.end_ns)),
            values: &[Value::Text(self.file.text(parent))],
            stack: None,
        };
        self.file.marker(handle, &marker);
    }

    /// Adds a marker over the whole window that says what the timeline lacks.
    pub(super) fn add_remark(&mut self, handle: ThreadHandle, lack: &str) {
        let marker = Marker {
            kind: Kind::Remark,
            name: "Timeline",
            category: Category::Other,
            start_ns: 0,
            end_ns: Some(self.profile.meta.window.length_ns),
            values: &[Value::Text(self.file.text(lack))],
            stack: None,
        };
        self.file.marker(handle, &marker);
    }
}
