#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
//! Traces are read here by the numbers of Perfetto's schema, and states by the rules of its
//! `thread_state_tracker.cc` and `ftrace_sched_event_tracker.cc`.

use std::collections::BTreeMap;

use profile::{
    Detail, EndedBy, Interval, Reason, Resource, ThreadChange, ThreadEvent, ThreadId, TimedSample,
    Unit, Wait, WaitKind, Waker, Weight,
};
use proptest::prelude::*;

use super::*;
use crate::fixture::{blocked, stack};

/// Start of the window.
const START: u64 = 1_000_000;
const APP: ThreadId = ThreadId { pid: 10, tid: 10 };
const WORKER: ThreadId = ThreadId { pid: 10, tid: 11 };
const SHORT: ThreadId = ThreadId { pid: 10, tid: 12 };
const OTHER: ThreadId = ThreadId { pid: 20, tid: 21 };

fn shares(running_ns: u64, runnable_ns: u64, blocked_ns: u64) -> profile::Shares {
    profile::Shares {
        running_ns,
        runnable_ns,
        blocked_ns,
    }
}

fn row(thread: ThreadId, start: u64, shares: profile::Shares) -> Interval {
    Interval {
        thread,
        start_ns: START + start,
        shares,
        sample: None,
    }
}

/// Returns a window of 1000 ns, with a wait for a lock, a disk, several short stays, a gap, and
/// threads that end.
fn timeline() -> Profile {
    let mut profile = Profile::new(Unit::Nanoseconds);
    profile.meta.kernel = profile::text::comm(b"6.1.0-13-amd64");
    profile.meta.cpus = 2;
    profile.meta.window.start_ns = START;
    profile.meta.window.start_utc_ns = 1_700_000_000_000_000_000;
    profile.meta.window.length_ns = 1000;
    profile.losses.times = 3;
    let mut sample = |comm: &str, thread, user: &[&str], state, value, wait: Option<_>| {
        let comm = profile.names.text(comm);
        let stack = stack(&mut profile, user, &["schedule"]);
        let wait = wait.map(
            |(reason, detail, waker, resource): (_, _, ThreadId, &str)| {
                let waker = Waker {
                    comm: profile
                        .names
                        .text(if waker == APP { "app" } else { "other" }),
                    thread: Some(waker),
                    stack: self::stack(&mut profile, &["main", "unlock"], &["wake"]),
                };
                let resource = Resource::Described(profile.names.text(resource));
                let wait = Wait {
                    resource: Some(profile.resources.id(resource)),
                    ended_by: Some(EndedBy::Wakers(profile.wakers.id([waker].into()))),
                    ..Wait::new(WaitKind::new(reason, detail))
                };
                profile.waits.id(wait)
            },
        );
        let sample = profile::Sample {
            state: Some(state),
            wait,
            ..profile::Sample::new(comm, Some(thread), stack)
        };
        let weight = Weight {
            value,
            events: 2,
            ..Weight::default()
        };
        profile.add(sample, weight)
    };
    use profile::State::{Blocked, Runnable, Running};
    let lock = (Reason::Lock, Detail::Mutex, APP, "ledger");
    let disk = (Reason::DiskRead, Detail::PageCache, OTHER, "/var/data");
    let waits = sample(
        "worker",
        WORKER,
        &["main", "lock"],
        Blocked,
        300,
        Some(lock),
    );
    let ready = sample("worker", WORKER, &["main", "lock"], Runnable, 50, None);
    let reads = sample(
        "worker",
        WORKER,
        &["main", "read"],
        Blocked,
        200,
        Some(disk),
    );
    let runs = sample("worker", WORKER, &["main", "count"], Running, 251, None);
    let computes = sample("app", APP, &["main"], Running, 900, None);
    let short = sample("short", SHORT, &["start"], Running, 150, None);
    let with = |sample, row| Interval {
        sample: Some(sample),
        ..row
    };
    profile.times.intervals = vec![
        with(reads, row(WORKER, 800, shares(0, 0, 200))),
        row(APP, 600, shares(400, 0, 0)),
        row(WORKER, 600, shares(40, 10, 50)),
        row(SHORT, 200, shares(150, 0, 0)),
        with(ready, row(WORKER, 300, shares(0, 50, 0))),
        row(WORKER, 350, shares(250, 0, 0)),
        with(waits, row(WORKER, 0, shares(0, 0, 300))),
        row(APP, 500, shares(0, 100, 0)),
        row(APP, 0, shares(500, 0, 0)),
    ];
    let timed = |thread, cpu, time, sample| TimedSample {
        thread,
        cpu,
        time_ns: START + time,
        sample,
    };
    profile.times.timed_samples = vec![
        timed(WORKER, 1, 500, runs),
        timed(WORKER, 1, 400, runs),
        timed(APP, 0, 100, computes),
        timed(SHORT, 1, 250, short),
    ];
    let event = |thread, time, change| ThreadEvent {
        thread,
        time_ns: START + time,
        change,
    };
    let name = profile.names.text("worker");
    profile.times.thread_events = vec![
        event(SHORT, 200, ThreadChange::Started),
        event(SHORT, 350, ThreadChange::Ended),
        event(WORKER, 380, ThreadChange::Renamed(name)),
    ];
    profile
}

/// A value of a field, by its wire type.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Varint(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// A message: its fields in their order.
#[derive(Clone, Debug)]
struct Message<'a>(Vec<(u32, Value<'a>)>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

impl<'a> Message<'a> {
    fn read(mut bytes: &'a [u8]) -> Message<'a> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let mut take = |length: usize| {
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                value
            };
            let value = match tag & 7 {
                1 => Value::Fixed(u64::from_le_bytes(take(8).try_into().unwrap())),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Value::Bytes(value)
                }
                0 => Value::Varint(varint(&mut bytes)),
                other => panic!("wire type {other}"),
            };
            fields.push(((tag >> 3) as u32, value));
        }
        Message(fields)
    }

    fn values(&self, number: u32) -> impl Iterator<Item = Value<'a>> + '_ {
        let fields = self.0.iter().filter(move |(of, _)| *of == number);
        fields.map(|(_, value)| *value)
    }

    fn all(&self, number: u32) -> Vec<Message<'a>> {
        let values = self.values(number);
        let messages = values.map(|value| match value {
            Value::Bytes(bytes) => Message::read(bytes),
            other => panic!("{other:?}"),
        });
        messages.collect()
    }

    fn get(&self, number: u32) -> Option<Message<'a>> {
        self.all(number).pop()
    }

    fn numbers(&self, number: u32) -> Vec<u64> {
        let values = self.values(number);
        let numbers = values.map(|value| match value {
            Value::Varint(number) => number,
            other => panic!("{other:?}"),
        });
        numbers.collect()
    }

    fn number(&self, number: u32) -> u64 {
        self.numbers(number).pop().unwrap_or(0)
    }

    fn text(&self, number: u32) -> String {
        match self.values(number).next() {
            Some(Value::Bytes(bytes)) => String::from_utf8(bytes.to_vec()).unwrap(),
            None => String::new(),
            other => panic!("{other:?}"),
        }
    }

    fn fixed(&self, number: u32) -> Vec<u64> {
        let values = self.values(number);
        let numbers = values.map(|value| match value {
            Value::Fixed(number) => number,
            other => panic!("{other:?}"),
        });
        numbers.collect()
    }
}

/// A row of Perfetto's table `thread_state`.
#[derive(Clone, Debug, PartialEq)]
struct StateRow {
    start: u64,
    length: Option<u64>,
    state: &'static str,
    cpu: Option<u64>,
    /// The waker, and whether it ran then.
    waker: Option<(u64, bool)>,
}

/// Tables that Perfetto derives from the switches and wake-ups of a trace.
#[derive(Default)]
struct Derived {
    states: BTreeMap<u64, Vec<StateRow>>,
    /// Switches that contradict the switch before on their CPU.
    contradictions: u32,
    /// Stays by CPU: thread, start, end.
    cpus: BTreeMap<u64, Vec<(u64, u64, Option<u64>)>>,
}

impl Derived {
    fn read(trace: &Message) -> Derived {
        let mut events = Vec::new();
        for packet in trace.all(1) {
            for bundle in packet.all(1) {
                let cpu = bundle.number(1);
                for event in bundle.all(2) {
                    events.push((event.number(1), cpu, events.len(), event));
                }
            }
        }
        events.sort_by_key(|(time, cpu, place, _)| (*time, *cpu, *place));
        let mut derived = Derived::default();
        for (time, cpu, _, event) in events {
            assert_eq!(event.numbers(2).len(), 1, "each event has a PID");
            if let Some(switch) = event.get(4) {
                derived.switch(time, cpu, &switch);
            }
            if let Some(waking) = event.get(20) {
                derived.waking(time, event.number(2), waking.number(2));
            }
        }
        derived
    }

    fn switch(&mut self, time: u64, cpu: u64, switch: &Message) {
        let (left, next) = (switch.number(2), switch.number(6));
        let stays = self.cpus.entry(cpu).or_default();
        if let Some(last) = stays.last_mut() {
            if last.0 == left {
                last.2 = Some(time);
            } else {
                self.contradictions += 1;
            }
        }
        stays.push((next, time, None));
        let state = match switch.number(4) {
            0 => "R",
            1 => "S",
            2 => "D",
            0x10 => "X",
            0x200 => "unknown",
            other => panic!("{other}"),
        };
        self.close(left, time);
        self.open(left, time, state, None, None);
        self.close(next, time);
        self.open(next, time, "Running", Some(cpu), None);
    }

    fn waking(&mut self, time: u64, waker: u64, woken: u64) {
        let last = self.states.get(&woken).and_then(|rows| rows.last());
        match last.map(|row| row.state) {
            Some("R" | "Running") => return,
            Some(_) => self.close(woken, time),
            None => {}
        }
        let waker_row = self.states.get(&waker).and_then(|rows| rows.last());
        let runs = waker_row.is_some_and(|row| row.state == "Running");
        self.open(woken, time, "R", None, Some((waker, runs)));
    }

    fn close(&mut self, thread: u64, time: u64) {
        if let Some(row) = self
            .states
            .get_mut(&thread)
            .and_then(|rows| rows.last_mut())
        {
            row.length = Some(time - row.start);
        }
    }

    fn open(
        &mut self,
        thread: u64,
        start: u64,
        state: &'static str,
        cpu: Option<u64>,
        waker: Option<(u64, bool)>,
    ) {
        if thread != 0 {
            self.states.entry(thread).or_default().push(StateRow {
                start,
                length: None,
                state,
                cpu,
                waker,
            });
        }
    }

    /// Returns the states of a thread as lines: start and end in the window, state, CPU, waker.
    fn lines(&self, thread: ThreadId) -> Vec<String> {
        let rows = self.states[&u64::from(thread.tid)].iter();
        let lines = rows.map(|row| {
            let start = row.start - START;
            let end = row.length.map(|length| (start + length).to_string());
            let end = end.unwrap_or_default();
            let cpu = row.cpu.map_or(String::new(), |cpu| format!(" on {cpu}"));
            let waker = row.waker.map_or(String::new(), |(waker, runs)| {
                format!(" by {waker}{}", if runs { ", running" } else { "" })
            });
            format!("{start}..{end} {}{cpu}{waker}", row.state)
        });
        lines.collect()
    }
}

/// Interned rows of a trace by number.
#[derive(Default)]
struct Interned<'a>(BTreeMap<(u32, u64), Message<'a>>);

impl<'a> Interned<'a> {
    fn add(&mut self, packet: &Message<'a>) {
        for rows in packet.all(12) {
            for (field, value) in &rows.0 {
                let Value::Bytes(bytes) = value else {
                    panic!("{value:?}")
                };
                let row = Message::read(bytes);
                let before = self.0.insert((*field, row.number(1)), row);
                assert!(before.is_none(), "interned twice");
            }
        }
    }

    fn text(&self, field: u32, iid: u64) -> String {
        self.0[&(field, iid)].text(2)
    }

    /// Returns a stack, root first.
    fn stack(&self, iid: u64) -> String {
        let frames = self.0[&(7, iid)].numbers(2).into_iter();
        let names = frames.map(|frame| self.text(5, self.0[&(6, frame)].number(2)));
        names.collect::<Vec<_>>().join(";")
    }
}

fn written(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = Perfetto.write(profile, &Options::default(), &mut bytes);
    written.unwrap();
    bytes
}

/// Returns the events of tracks, the slices by track name, as lines.
fn events(trace: &Message) -> Vec<String> {
    let mut interned = Interned::default();
    let mut tracks = BTreeMap::new();
    let mut lines = Vec::new();
    for packet in trace.all(1) {
        interned.add(&packet);
        if let Some(track) = packet.get(60) {
            let thread = track.get(4);
            let name = thread.map_or_else(|| track.text(2), |thread| thread.text(5));
            assert_eq!(tracks.insert(track.number(1), name), None);
        }
        let Some(event) = packet.get(11) else {
            continue;
        };
        let track = &tracks[&event.number(11)];
        let time = packet.number(8) - START;
        let mut line = format!("{track} {time}");
        match event.number(9) {
            1 => line.push_str(" begin"),
            2 => line.push_str(" end"),
            3 => line.push_str(" instant"),
            other => panic!("{other}"),
        }
        if event.number(10) > 0 {
            line.push_str(&format!(" {:?}", interned.text(2, event.number(10))));
        }
        for category in event.numbers(3) {
            line.push_str(&format!(" ({})", interned.text(1, category)));
        }
        if event.number(56) > 0 {
            line.push_str(&format!(" {}", interned.stack(event.number(56))));
        }
        if let Some(Value::Fixed(weight)) = event.values(57).next() {
            line.push_str(&format!(" weight {}", f64::from_bits(weight)));
        }
        for note in event.all(4) {
            let value = match note.number(17) {
                0 => note.number(3).to_string(),
                text => interned.text(29, text),
            };
            line.push_str(&format!(" {}={value}", interned.text(3, note.number(1))));
        }
        for flow in event.fixed(47) {
            line.push_str(&format!(" -> flow {flow}"));
        }
        for flow in event.fixed(48) {
            line.push_str(&format!(" <- flow {flow}"));
        }
        lines.push(line);
    }
    lines
}

#[test]
fn perfetto_derives_states_and_wakers() {
    let bytes = written(&timeline());
    let derived = Derived::read(&Message::read(&bytes));
    assert_eq!(derived.contradictions, 0);
    assert_eq!(
        derived.lines(WORKER),
        [
            "0..0 Running on 2",
            "0..300 S",
            "300..350 R by 10, running",
            // The several short stays: 40 ns running, 50 ns blocked, 10 ns runnable.
            "350..640 Running on 1",
            "640..690 S",
            "690..700 R by 0",
            "700..700 Running on 2",
            "700..800 unknown",
            "800..800 Running on 2",
            "800.. D",
        ]
    );
    assert_eq!(
        derived.lines(APP),
        ["0..500 Running on 0", "500..600 R", "600.. Running on 0"]
    );
    assert_eq!(derived.lines(SHORT), ["200..350 Running on 1", "350.. X"]);
    // One switch between two threads that follow each other.
    let at = |time| START + time;
    assert_eq!(
        derived.cpus[&1],
        [
            (12, at(200), Some(at(350))),
            (11, at(350), Some(at(640))),
            (0, at(640), None)
        ]
    );
}

#[test]
fn slices_have_stacks_waits_and_flows() {
    let bytes = written(&timeline());
    let events = events(&Message::read(&bytes));
    let lines = |track: &str| -> Vec<&str> {
        let lines = events.iter().filter_map(|line| line.strip_prefix(track));
        lines.collect()
    };
    assert_eq!(
        lines("worker "),
        [
            "380 instant \"renamed to worker\"",
            "0 begin \"lock: mutex\" (blocked) main;lock;schedule weight 300 wait=lock: \
             mutex resource=ledger idleness=unknown waker=app-10/10 waker_stack=wake ← unlock ← main",
            "300 end",
            "300 begin \"runnable\" (runnable) main;lock;schedule weight 50 <- flow 1",
            "350 end",
            "600 begin \"mostly blocked\" (mixed) running, ns=40 runnable, ns=10 blocked, ns=50",
            "700 end",
            "800 begin \"disk read: page cache\" (blocked) main;read;schedule weight 200 \
             wait=disk read: page cache resource=/var/data idleness=unknown waker=other-20/21 \
             waker_stack=wake ← unlock ← main",
            "1000 end",
            "1000 instant \"woken\" <- flow 2",
        ]
    );
    assert_eq!(
        lines("app "),
        [
            "500 begin \"runnable\" (runnable)",
            "600 end",
            "300 instant \"wakes worker\" main;unlock;wake -> flow 1",
        ]
    );
    // A waker that is no target has a track too.
    assert_eq!(
        lines("other "),
        ["1000 instant \"wakes worker\" main;unlock;wake -> flow 2"]
    );
    assert_eq!(
        lines("short "),
        [
            "200 instant \"thread started\"",
            "350 instant \"thread ended\""
        ]
    );
    let file = lines("systemscope ");
    assert!(
        file[0].starts_with("0 begin") && file[2] == "1000 end",
        "{file:?}"
    );
    assert_eq!(
        file[1],
        "0 instant \"3 rows of the timeline were lost: their times are gaps\""
    );
}

#[test]
fn requests_have_tracks_of_their_own() {
    let bytes = written(&crate::timeline_fixture::timeline());
    let trace = Message::read(&bytes);
    let packets = trace.all(1).into_iter();
    let tracks: Vec<Message> = packets.filter_map(|packet| packet.get(60)).collect();
    let requests: Vec<_> = tracks
        .iter()
        .filter(|track| track.text(2) == "requests")
        .collect();
    assert_eq!(requests.len(), 2);
    for track in requests {
        let parent = tracks.iter().find(|it| it.number(1) == track.number(5));
        assert_eq!(parent.unwrap().get(4).unwrap().number(1), 7);
    }
    let events = events(&trace);
    let begun = events.iter().filter(|line| line.starts_with("requests "));
    assert!(
        begun.clone().any(|line| line.ends_with("(request)")),
        "{events:?}"
    );
    assert!(
        begun.clone().any(|line| line.contains(" parent=")),
        "{events:?}"
    );
}

/// Returns the stack samples of a trace as lines.
fn samples(trace: &Message) -> Vec<String> {
    let mut interned = Interned::default();
    let mut lines = Vec::new();
    for packet in trace.all(1) {
        interned.add(&packet);
        let Some(sample) = packet.get(135) else {
            continue;
        };
        let thread = &interned.0[&(48, sample.number(2))];
        let cpu = sample.numbers(4).pop();
        let cpu = cpu.map(|cpu| interned.0[&(49, cpu)].number(2));
        let counter = &interned.0[&(50, sample.number(10))];
        assert_eq!(counter.number(3), 1, "nanoseconds");
        let stack = sample.numbers(6).pop();
        lines.push(format!(
            "{} {}/{} on {cpu:?} {} {} {}",
            packet.number(8),
            thread.number(2),
            thread.number(3),
            stack.map_or(String::new(), |stack| interned.stack(stack)),
            counter.text(2),
            sample.number(11),
        ));
    }
    lines
}

#[test]
fn samples_have_their_parts_of_the_weight() {
    let bytes = written(&timeline());
    assert_eq!(
        samples(&Message::read(&bytes)),
        [
            "1000500 10/11 on Some(1) main;count;schedule running 125",
            "1000400 10/11 on Some(1) main;count;schedule running 126",
            // One of two rows is lost.
            "1000100 10/10 on Some(0) main;schedule running 450",
            "1000250 10/12 on Some(1) start;schedule running 75",
        ]
    );
}

#[test]
fn a_profile_without_a_timeline_has_its_sums() {
    let mut profile = blocked();
    profile.meta.window.start_ns = START;
    let bytes = written(&profile);
    let trace = Message::read(&bytes);
    let samples = samples(&trace);
    assert_eq!(samples.len(), 4);
    assert_eq!(
        samples[0],
        "1000000 7/8 on None main;wait(int; char);schedule time 2500999"
    );
    let notes = events(&trace);
    let note = "systemscope 0 instant \"no timeline";
    assert!(notes.iter().any(|line| line.starts_with(note)), "{notes:?}");
}

#[test]
fn clocks_and_the_kernel_are_told_first() {
    let mut profile = timeline();
    let head = |profile: &Profile| -> (Vec<(u64, u64)>, u64, String) {
        let bytes = written(profile);
        let packets = Message::read(&bytes).all(1);
        let clocks = packets[0].get(6).unwrap();
        let system = packets[1].get(45).unwrap().get(1).unwrap();
        let primary = clocks.number(2);
        let defaults = packets[2].get(59).unwrap();
        assert_eq!(defaults.number(58), primary);
        let clocks = clocks.all(1).into_iter();
        let clocks = clocks.map(|clock| (clock.number(1), clock.number(2)));
        (clocks.collect(), primary, system.text(3))
    };
    let (clocks, primary, release) = head(&profile);
    let utc = (1, 1_700_000_000_000_000_000);
    assert_eq!((clocks, primary), (vec![(3, START), (6, START), utc], 3));
    assert_eq!(release, "6.1.0-13-amd64");
    for kernel in ["", "4.4.0", "six", "6.1-rc1"] {
        profile.meta.kernel = profile::text::comm(kernel.as_bytes());
        assert_eq!(head(&profile).2, SOME_RELEASE, "{kernel}");
    }
}

/// Returns lanes of rows without gaps, with samples at any time.
fn any_lanes() -> impl Strategy<Value = Profile> {
    let shares =
        (0_u64..50, 0_u64..50, 0_u64..50, 0_u8..4).prop_map(
            |(run, ready, wait, kind)| match kind {
                0 => shares(run, 0, 0),
                1 => shares(0, ready, 0),
                2 => shares(0, 0, wait),
                _ => shares(run, ready, wait),
            },
        );
    let lane = prop::collection::vec(shares, 1..12);
    let lanes = prop::collection::vec(lane, 1..6);
    let samples = prop::collection::vec((0_usize..6, 0_u32..3, 0_u64..600), 0..12);
    (lanes, samples, any::<bool>()).prop_map(|(lanes, samples, is_woken)| {
        let mut profile = timeline();
        let waits = profile.times.intervals[6].sample;
        let sample = profile.times.timed_samples[0].sample;
        profile.times = profile::Times::default();
        let thread = |place: usize| ThreadId {
            pid: 10,
            tid: 10 + place as u32,
        };
        for (place, lane) in lanes.iter().enumerate() {
            let mut start = 0;
            for shares in lane {
                let is_wait = shares.largest() == profile::State::Blocked && !shares.is_mixed();
                profile.times.intervals.push(Interval {
                    sample: waits.filter(|_| is_woken && is_wait),
                    ..row(thread(place), start, *shares)
                });
                start += shares.total_ns();
            }
            profile.meta.window.length_ns = profile.meta.window.length_ns.max(start);
        }
        for (place, cpu, time) in samples {
            profile.times.timed_samples.push(TimedSample {
                thread: thread(place),
                cpu,
                time_ns: START + time,
                sample,
            });
        }
        profile
    })
}

proptest! {
    /// Whatever the rows are, the states have the times of the rows, and the CPUs do not
    /// contradict themselves.
    #[test]
    fn states_have_the_times_of_the_rows(profile in any_lanes()) {
        let bytes = written(&profile);
        let derived = Derived::read(&Message::read(&bytes));
        prop_assert_eq!(derived.contradictions, 0);
        let mut expected: BTreeMap<u64, (u64, profile::Shares)> = BTreeMap::new();
        for interval in profile.times.intervals.iter().filter(|it| it.length_ns() > 0) {
            let (end, sums) = expected.entry(interval.thread.tid.into()).or_default();
            *end = interval.end_ns();
            *sums += interval.shares;
        }
        for (thread, (end, expected)) in expected {
            let mut sums = profile::Shares::default();
            for row in &derived.states[&thread] {
                let length = row.length.unwrap_or_else(|| end.saturating_sub(row.start));
                match row.state {
                    "Running" => sums.running_ns += length,
                    "R" => sums.runnable_ns += length,
                    "S" | "D" => sums.blocked_ns += length,
                    other => prop_assert_eq!((other, length), ("unknown", 0)),
                }
            }
            prop_assert_eq!(sums, expected);
        }
    }

    /// Rows of any numbers do no harm.
    #[test]
    fn any_rows_are_written(
        rows in prop::collection::vec((any::<[u32; 3]>(), any::<[u64; 4]>(), 0_u8..5), 0..20),
    ) {
        let mut profile = timeline();
        let sample = profile.times.intervals[0].sample;
        for ([pid, tid, cpu], [start_ns, running, runnable, blocked], kind) in rows {
            // Some threads and times are those of other rows.
            let thread = match kind {
                0 | 1 => WORKER,
                2 => ThreadId { pid: 0, tid: 0 },
                _ => ThreadId { pid, tid },
            };
            let start_ns = start_ns >> (u32::from(kind) * 12);
            profile.times.intervals.push(Interval {
                thread,
                start_ns,
                shares: shares(running, runnable >> 20, blocked >> 40),
                sample,
            });
            if let Some(sample) = sample {
                profile.times.timed_samples.push(TimedSample { thread, cpu, time_ns: start_ns, sample });
            }
            let change = ThreadChange::Ended;
            profile.times.thread_events.push(ThreadEvent { thread, time_ns: running, change });
        }
        let bytes = written(&profile);
        for packet in Message::read(&bytes).all(1) {
            for bundle in packet.all(1) {
                prop_assert!(bundle.number(1) < 1024);
            }
        }
    }
}
