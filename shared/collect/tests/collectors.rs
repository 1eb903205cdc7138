//! Tests of collectors without running programs. The tests write the counts into the maps and
//! variables. They need root.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bpf::types::{StackKey, Tally};
use bpf::{MapName, VariableName};
use collect::{
    CallGraph, ClockSession, Collected, Collector, Detail, Languages, Session, Sources,
    StackChoice, WakersShown, Walking,
};
use libbpf_rs::{MapCore, MapFlags};
use loader::{Kernel, LoadedObject, OpenObject, Samplers, Targets, monotonic_ns};
use plain::Plain;
use profile::{Profile, Rate, Unit, Weight};

/// User stacks, unwound by frame pointers.
const STACKS: StackChoice = StackChoice {
    user: true,
    kernel: false,
    walking: Walking {
        call_graph: CallGraph::Fp,
        max_stack: Walking::MAX_FRAMES,
        languages: Languages::Known,
        shows_runtime: false,
    },
    per_thread: false,
    per_process: true,
    detail: Detail::Names,
    sources: Sources::None,
    objects: false,
    thread_names: None,
    timeline_least_ns: None,
    recorder: None,
};

/// Start of a part of the window that the test does not outlast.
const NEVER: u64 = u64::MAX;

/// Process that is killed when the test ends.
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
    stacks.configure(&mut object).expect("constants");
    object.load().expect("load, as root")
}

fn get(object: &LoadedObject, variable: VariableName<u64>) -> u64 {
    object.variable(variable).unwrap().get()
}

fn bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: the value consists of integers without padding.
    unsafe { plain::as_bytes(value) }
}

/// Counts one event of a process.
fn count(object: &LoadedObject, map: MapName, pid: u32) {
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
        .name(
            Unit::Samples,
            WakersShown::No,
            profile::Window::default(),
            events,
        )
        .profile
}

/// The collector forgets IDs every 10 seconds, after it has taken their counts.
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
    while get(&object, bpf::variables::COUNTS_USED_EVEN) == 0 {
        sleep(Duration::from_millis(1));
    }
    drop(samplers);
    target.end();
    collector.take(None).unwrap();
    if begun.elapsed() < SWEEP_INTERVAL {
        assert_eq!(get(&object, bpf::variables::COUNTS_TURN), 0);
    }
    sleep(SWEEP_INTERVAL);
    collector.take(None).unwrap();
    assert_eq!(get(&object, bpf::variables::COUNTS_TURN), 1);
    let collected = collector.finish().unwrap();
    let events = collected.total().events;
    let missed = profile(collected).losses.stacks;
    assert!(missed < events, "{missed} of {events}");
}

/// User stacks, unwound with tables.
const WALKED: StackChoice = StackChoice {
    walking: Walking {
        call_graph: CallGraph::Auto,
        ..STACKS.walking
    },
    detail: Detail::Addresses,
    ..STACKS
};

/// Returns a target that sleeps. It has executed its program.
fn sleeper() -> Target {
    let sleeper = Target::start("sleep", &["1000"]);
    let stat = format!("/proc/{}/stat", sleeper.0.id());
    while !fs::read_to_string(&stat).unwrap().contains("(sleep) S ") {
        sleep(Duration::from_millis(1));
    }
    sleeper
}

/// Returns the ID and the command line of each process in a profile.
fn described(profile: &Profile) -> Vec<(u32, String)> {
    let processes = profile.processes.iter();
    processes
        .map(|process| (process.pid, process.command_line.join(" ")))
        .collect()
}

fn session<'a>(
    object: &'a LoadedObject,
    targets: &Targets,
    stacks: StackChoice,
) -> ClockSession<'a> {
    let kernel = Kernel::probe().unwrap();
    ClockSession::attach(object, &kernel, targets, stacks).unwrap()
}

#[test]
fn a_session_knows_its_targets_before_the_window() {
    let mut target = sleeper();
    let (pid, targets) = (target.0.id(), target.targets());
    let object = load(&bpf::offcputime::OBJECT, &targets, &WALKED);
    let mut session = session(&object, &targets, WALKED);
    target.end();
    session.open_window(monotonic_ns(), None);
    count(&object, bpf::maps::COUNTS_EVEN, pid);
    let profile = profile(session.close(monotonic_ns()).unwrap());
    assert_eq!(described(&profile), [(pid, "sleep 1000".to_owned())]);
}
