//! Collectors of objects whose programs do not run: what these would have counted a test puts
//! into their maps and variables. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bpf::types::{Losses, StackKey, Tally, Thread};
use collect::{
    CallGraph, ClockSession, Collected, Collector, Detail, Languages, Question, SamplingSession,
    Session, Sources, SpanCollector, StackChoice, WakersShown, Walking,
};
use libbpf_rs::{MapCore, MapFlags};
use loader::{CgroupMount, Kernel, LoadedObject, OpenObject, Samplers, Targets, monotonic_ns};
use plain::Plain;
use profile::spans::{Apart, Kind, Scale};
use profile::{Profile, Rate, Unit, Weight};

/// User stacks by frame pointers.
const STACKS: StackChoice = StackChoice {
    user: true,
    kernel: false,
    walking: Walking {
        call_graph: CallGraph::Fp,
        max_stack: Walking::MOST_FRAMES,
        languages: Languages::Known,
        native_python: false,
    },
    per_thread: false,
    per_process: true,
    detail: Detail::Names,
    sources: Sources::None,
    objects: false,
    of_anyone: false,
    thread_names: None,
};

const SECOND: u64 = 1_000_000_000;
/// When a part of the window begins that is not over before the test is.
const NEVER: u64 = u64::MAX;

/// A process that is ended with the test.
struct Target(Child);

impl Target {
    fn start(program: &str, argument: &[&str]) -> Target {
        let mut command = Command::new(program);
        Target(command.args(argument).spawn().expect(program))
    }

    fn targets(&self) -> Targets {
        Targets::new(vec![self.0.id()], vec![])
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.end();
    }
}

fn load(object: &bpf::Object, targets: &Targets, stacks: &StackChoice) -> LoadedObject {
    let kernel = Kernel::probe().expect("the kernel's BTF");
    let mut object = OpenObject::new(object).expect("an object");
    targets.configure(&mut object, &kernel).expect("constants");
    stacks.configure(&mut object, targets).expect("constants");
    object.load().expect("load, as root")
}

fn sampling() -> LoadedObject {
    let ours = Targets::new(vec![std::process::id()], vec![]);
    load(&bpf::oncputime::OBJECT, &ours, &STACKS)
}

fn set(object: &LoadedObject, variable: &str, value: u64) {
    object.variable(variable).unwrap().set(value);
}

fn get(object: &LoadedObject, variable: &str) -> u64 {
    object.variable(variable).unwrap().get()
}

fn bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: integers without padding.
    unsafe { plain::as_bytes(value) }
}

/// Counts an event of a process.
fn count(object: &LoadedObject, map: &str, pid: u32) {
    let key = StackKey {
        pid,
        ..StackKey::default()
    };
    let tally = Tally {
        events: 1,
        ..Tally::default()
    };
    let map = object.map(map).unwrap();
    map.update(bytes(&key), bytes(&tally), MapFlags::ANY)
        .unwrap();
}

fn profile(collected: Collected) -> Profile {
    let events = |tally: &Tally| {
        let weight = Weight {
            value: tally.events,
            ..Weight::default()
        };
        vec![(None, weight)]
    };
    collected
        .name(Unit::Samples, WakersShown::No, events)
        .profile
}

#[test]
fn the_window_closes_when_that_is_told() {
    let object = sampling();
    let mut collector = Collector::new(&object, &STACKS).unwrap();
    let window = || ["window_start", "window_stop"].map(|name| get(&object, name));
    collector.open_window(5, None);
    assert_eq!(window(), [5, 0]);
    collector.open_window(5, Some(7));
    assert_eq!(window(), [5, 7]);
    for (stop, expected) in [(Some(9), 9), (None, 9)] {
        collector.take(stop).unwrap();
        assert_eq!(window(), [5, expected]);
    }
}

#[test]
fn both_maps_are_drained_by_turns_when_three_quarters_are_used() {
    let object = sampling();
    let mut collector = Collector::new(&object, &STACKS).unwrap();
    collector.begin_parts(NEVER);
    let most = u64::from(object.map("counts_even").unwrap().max_entries()) / 4 * 3;
    let is_empty = |map| object.map(map).unwrap().keys().next().is_none();
    for (map, are_odd) in [("counts_even", 0), ("counts_odd", 1), ("counts_even", 0)] {
        count(&object, map, 1);
        set(&object, "counts_used", most - 1);
        collector.take(None).unwrap();
        assert_eq!(get(&object, "counts_are_odd"), are_odd);
        assert!(!is_empty(map), "{map}");
        set(&object, "counts_used", most);
        collector.take(None).unwrap();
        assert_eq!(get(&object, "counts_are_odd"), 1 - are_odd);
        assert!(is_empty(map), "{map}");
        assert_eq!(get(&object, "counts_used"), 0);
    }
    let collected = collector.finish().unwrap();
    assert_eq!(collected.total().events, 3);
}

#[test]
fn a_part_of_the_window_ends_with_what_was_counted_in_it() {
    let object = sampling();
    let mut collector = Collector::new(&object, &STACKS).unwrap();
    let long_ago = monotonic_ns() - SECOND;
    collector.open_window(long_ago, None);
    collector.take(None).unwrap();
    assert_eq!(get(&object, "counts_are_odd"), 0, "nothing was counted");
    set(&object, "counts_used", 1);
    collector.begin_parts(long_ago);
    collector.take(None).unwrap();
    assert_eq!(get(&object, "counts_are_odd"), 1);
    // Nobody had come before.
    set(&object, "counts_used", 1);
    collector.begin_parts(NEVER);
    collector.take(None).unwrap();
    assert_eq!(get(&object, "counts_are_odd"), 1);
}

/// Every 10 seconds IDs are forgotten. What was counted under them is taken before.
#[test]
fn stacks_of_a_process_that_ended_stay_when_ids_are_forgotten() {
    const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
    let mut target = Target::start("sh", &["-c", "while :; do :; done"]);
    let object = load(&bpf::oncputime::OBJECT, &target.targets(), &STACKS);
    let kernel = Kernel::probe().unwrap();
    let _links = target.targets().fill(&object, &kernel).unwrap();
    let begun = Instant::now();
    let mut collector = Collector::new(&object, &STACKS).unwrap();
    collector.open_window(1, None);
    collector.begin_parts(NEVER);
    let samplers = Samplers::attach(&object, None, Rate::Frequency(997), None).unwrap();
    while get(&object, "counts_used") == 0 {
        sleep(Duration::from_millis(1));
    }
    drop(samplers);
    target.end();
    collector.take(None).unwrap();
    if begun.elapsed() < SWEEP_INTERVAL {
        assert_eq!(get(&object, "counts_are_odd"), 0);
    }
    sleep(SWEEP_INTERVAL);
    collector.take(None).unwrap();
    assert_eq!(get(&object, "counts_are_odd"), 1);
    let collected = collector.finish().unwrap();
    let events = collected.total().events;
    let missed = profile(collected).losses.stacks;
    assert!(missed < events, "{missed} of {events}");
}

/// User stacks by tables.
const WALKED: StackChoice = StackChoice {
    walking: Walking {
        call_graph: CallGraph::Auto,
        ..STACKS.walking
    },
    detail: Detail::Addresses,
    ..STACKS
};

/// One that has its command line.
fn sleeper() -> Target {
    let sleeper = Target::start("sleep", &["1000"]);
    let stat = format!("/proc/{}/stat", sleeper.0.id());
    while !fs::read_to_string(&stat).unwrap().contains("(sleep) S ") {
        sleep(Duration::from_millis(1));
    }
    sleeper
}

/// The processes that are told of, with their command lines.
fn told(profile: &Profile) -> Vec<(u32, String)> {
    let processes = profile.processes.iter();
    processes
        .map(|process| (process.pid, process.command_line.join(" ")))
        .collect()
}

#[test]
fn a_target_is_told_of_that_ends_before_its_first_stack_comes() {
    let mut target = sleeper();
    let (pid, targets) = (target.0.id(), target.targets());
    let object = load(&bpf::oncputime::OBJECT, &targets, &WALKED);
    let mut collector = Collector::new(&object, &WALKED).unwrap();
    collector.prepare(&targets).unwrap();
    target.end();
    count(&object, "counts_even", pid);
    let profile = profile(collector.finish().unwrap());
    assert_eq!(told(&profile), [(pid, "sleep 1000".to_owned())]);
}

fn session<'a>(
    object: &'a LoadedObject,
    targets: &Targets,
    stacks: StackChoice,
) -> ClockSession<'a, Thread> {
    let kernel = Kernel::probe().unwrap();
    let charge = Box::new(|_: &Thread, tally, _: Option<&_>| Some((tally, 0)));
    ClockSession::attach(object, &kernel, targets, stacks, charge).unwrap()
}

#[test]
fn a_session_knows_its_targets_before_the_window() {
    let mut target = sleeper();
    let (pid, targets) = (target.0.id(), target.targets());
    let object = load(&bpf::offcputime::OBJECT, &targets, &WALKED);
    let mut session = session(&object, &targets, WALKED);
    target.end();
    session.open_window(monotonic_ns(), None);
    count(&object, "counts_even", pid);
    let profile = profile(session.close(monotonic_ns()).unwrap());
    assert_eq!(told(&profile), [(pid, "sleep 1000".to_owned())]);
}

#[test]
fn sessions_look_more_often_while_there_is_news_and_have_parts_from_the_first_target_on() {
    fn looks(object: &LoadedObject, session: &mut impl Session) {
        set(object, "news_ns", 0);
        let seldom = session.take_interval();
        set(object, "news_ns", NEVER);
        let often = session.take_interval();
        assert!(!often.is_zero() && often < seldom, "{often:?} {seldom:?}");
        set(object, "counts_used", 1);
        for (came, parts_are_over) in [(NEVER, 0), (monotonic_ns() - SECOND, 1)] {
            session.first_came(came);
            session.take(None).unwrap();
            assert_eq!(get(object, "counts_are_odd"), parts_are_over);
        }
    }
    let ours = Targets::new(vec![std::process::id()], vec![]);
    let object = load(&bpf::offcputime::OBJECT, &ours, &STACKS);
    looks(&object, &mut session(&object, &ours, STACKS));
    let (object, kernel) = (sampling(), Kernel::probe().unwrap());
    let rate = Rate::Frequency(1);
    let session = SamplingSession::attach(&object, &kernel, &ours, STACKS, None, rate, None);
    looks(&object, &mut session.unwrap());
}

#[test]
fn moves_that_are_noted_are_followed_up_to_now() {
    let root = CgroupMount::find().unwrap().cgroup("/").unwrap();
    let targets = Targets {
        cgroups: vec![root],
        ..Targets::default()
    };
    let object = load(&bpf::offcputime::OBJECT, &targets, &STACKS);
    let mut session = session(&object, &targets, STACKS);
    let before = monotonic_ns();
    // Whatever else moves on the machine.
    set(&object, "moves", 1 << 32);
    session.take(None).unwrap();
    assert!((before..=monotonic_ns()).contains(&get(&object, "moves_followed")));
}

#[test]
fn switches_that_programs_missed_are_counted_with_those_found_at_the_end() {
    let target = Target::start("sleep", &["1000"]);
    let targets = target.targets();
    let object = load(&bpf::offcputime::OBJECT, &targets, &STACKS);
    let mut session = session(&object, &targets, STACKS);
    session.open_window(monotonic_ns(), None);
    let lost = object.variable("lost").unwrap();
    lost.set(Losses {
        switches: 5,
        ..lost.get()
    });
    let collected = session.close(monotonic_ns()).unwrap();
    assert!(profile(collected).losses.events >= 5);
}

#[test]
fn sums_of_spans_are_read_when_half_of_their_room_is_used() {
    let ours = Targets::new(vec![std::process::id()], vec![]);
    let kernel = Kernel::probe().unwrap();
    let question = Question {
        kind: Kind::Running,
        apart: Some(Apart::Threads),
        scale: Scale::Microseconds,
    };
    let mut object = OpenObject::new(&bpf::cpudist::OBJECT).unwrap();
    ours.configure(&mut object, &kernel).unwrap();
    question.configure(&mut object).unwrap();
    let object = object.load().expect("load, as root");
    // Before its window nothing is counted.
    let mut collector = SpanCollector::attach(&object, question, &ours).unwrap();
    let half = u64::from(object.map("sums_even").unwrap().max_entries()) / 2;
    for (used, are_odd) in [(half - 1, 0), (half, 1), (0, 1), (half, 0)] {
        set(&object, "sums_used", used);
        collector.take().unwrap();
        assert_eq!(get(&object, "sums_are_odd"), are_odd);
    }
}
