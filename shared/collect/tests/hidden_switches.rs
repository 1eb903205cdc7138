//! Context switches that no program sees, as on some virtual machines. The tests detach the
//! programs for a while. They need root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

use bpf::types::{STACK_MISSED, StackKey, Tally, Thread};
use collect::CallGraph;
use libbpf_rs::{Link, MapCore, MapFlags};
use loader::{LoadedObject, OpenObject, monotonic_ns};
use plain::Plain;

/// Time for which the target computes, and time for which the test lets it sleep.
const SPIN: Duration = Duration::from_millis(600);
const REST: Duration = Duration::from_millis(200);

/// Lock that lets one test run at a time. Each test needs one CPU for its target and another for
/// itself.
static TURN: Mutex<()> = Mutex::new(());

/// Process that computes for a while each time the test sends it a word.
struct Target {
    child: Child,
    words: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Target {
    fn start() -> Target {
        let script = format!(
            "import sys, time\nfor line in sys.stdin:\n end = time.monotonic() + {}\n while time.monotonic() < end: pass\n print('done', flush=True)",
            SPIN.as_secs_f64()
        );
        let mut command = Command::new("python3");
        command.args(["-c", &script]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        // A real-time priority keeps other threads from taking the target's CPU. Such a switch
        // would be hidden, too.
        let first = libc::sched_param { sched_priority: 1 };
        // SAFETY: the process is our child, and the pointer is valid.
        unsafe { libc::sched_setscheduler(child.id().cast_signed(), libc::SCHED_FIFO, &first) };
        let words = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Target {
            child,
            words,
            answers,
        }
    }

    fn compute(&mut self) {
        self.words.write_all(b"go\n").unwrap();
    }

    fn is_asleep(&self) -> bool {
        let stat = format!("/proc/{}/stat", self.child.id());
        fs::read_to_string(stat).unwrap().contains(") S ")
    }

    /// Waits until the target sleeps again.
    fn wait(&mut self) {
        self.answers.read_line(&mut String::new()).unwrap();
        while !self.is_asleep() {
            sleep(Duration::from_millis(1));
        }
    }

    /// Returns the number of times that the target got a CPU.
    fn turns(&self) -> u64 {
        self.booked(2)
    }

    /// Returns the running time of the target, in ns.
    fn ran(&self) -> u64 {
        self.booked(0)
    }

    fn booked(&self, field: usize) -> u64 {
        let path = format!("/proc/{}/schedstat", self.child.id());
        let text = fs::read_to_string(path).unwrap();
        text.split_whitespace().nth(field).unwrap().parse().unwrap()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read<T: Plain + Copy + Default>(bytes: &[u8]) -> T {
    let mut value = T::default();
    plain::copy_from_bytes(&mut value, bytes).expect("enough bytes");
    value
}

fn attach(object: &LoadedObject) -> Vec<Link> {
    object
        .attach(&[bpf::programs::SCHED_SWITCH, bpf::programs::SCHED_WAKING])
        .unwrap()
}

/// Returns the target's clock. The map has only one clock, because the target has one thread.
fn clock(object: &LoadedObject) -> Thread {
    let threads = object.map(bpf::maps::THREADS).unwrap();
    let key = threads.keys().next().expect("a clock");
    let value = threads.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    read(&value)
}

fn hidden(object: &LoadedObject) -> u64 {
    object
        .variable(bpf::variables::LOST)
        .unwrap()
        .get()
        .switches
}

/// Runs `deaf` in between two times in which programs see the target. Returns the target's clock
/// before and after, the number of hidden switches that were found, and the counts.
///
/// Repeats the run if it proves nothing:
/// - The target was preempted, which is a hidden switch, too.
/// - The target finished before the programs were detached or attached again.
/// - The machine itself hid the switches around the sleep, so nothing shows the sleep.
fn around(
    deaf: impl Fn(&mut Target, &dyn Fn() -> Vec<Link>, Vec<Link>) -> Option<Vec<Link>>,
) -> (Thread, Thread, u64, Vec<(StackKey, Tally)>) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..20 {
        let mut target = Target::start();
        let mut object = OpenObject::new(&bpf::offcputime::OBJECT).unwrap();
        object
            .set(bpf::constants::WANT_KERNEL_STACKS, false)
            .unwrap();
        object
            .set(bpf::constants::CALL_GRAPH, CallGraph::Fp.mode())
            .unwrap();
        object
            .set(bpf::constants::ONLY_PID, target.child.id())
            .unwrap();
        object
            .set(bpf::constants::TARGETS_NAMED_NS, monotonic_ns())
            .unwrap();
        let object = object.load().expect("load, as root");
        object
            .variable(bpf::variables::WINDOW_START)
            .unwrap()
            .set(1_u64);
        let links = attach(&object);
        // From here on the target has a clock.
        target.compute();
        target.wait();
        let (before, hidden_before) = (clock(&object), hidden(&object));
        let ran_before = target.ran();
        let Some(links) = deaf(&mut target, &|| attach(&object), links) else {
            continue;
        };
        let hidden = hidden(&object) - hidden_before;
        drop(links);
        let after = clock(&object);
        let awake = (after.running + after.runnable) - (before.running + before.runnable);
        if hidden == 0 && awake > target.ran() - ran_before + nanoseconds(REST) / 2 {
            continue;
        }
        let counts = object.map(bpf::maps::COUNTS_EVEN).unwrap();
        let sums = counts.keys().map(|key| {
            let value = counts.lookup(&key, MapFlags::ANY).unwrap().unwrap();
            (read(&key), read(&value))
        });
        return (before, after, hidden, sums.collect());
    }
    panic!("too late or disturbed each time");
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap()
}

#[test]
fn an_arrival_is_found_by_the_time_run() {
    if available_parallelism().unwrap().get() < 2 {
        return;
    }
    let (before, after, hidden, _) = around(|target, attach, links| {
        drop(links);
        let turns = target.turns();
        target.compute();
        sleep(SPIN / 3);
        // The target computes. Programs will see it leave its CPU.
        let links = attach();
        let once = target.turns() == turns + 1 && !target.is_asleep();
        target.wait();
        once.then_some(links)
    });
    assert!(hidden >= 1, "{hidden} switches: {before:?}\n{after:?}");
    let running = after.running - before.running;
    assert!(running >= nanoseconds(SPIN) / 2, "{before:?}\n{after:?}");
}

#[test]
fn a_departure_is_found_by_the_time_run() {
    if available_parallelism().unwrap().get() < 2 {
        return;
    }
    let (before, after, hidden, sums) = around(|target, attach, links| {
        target.compute();
        sleep(SPIN / 3);
        let turns = target.turns();
        drop(links);
        let once = target.turns() == turns && !target.is_asleep();
        target.wait();
        sleep(REST);
        // The target sleeps. Programs will see its wake-up.
        let links = attach();
        target.compute();
        target.wait();
        once.then_some(links)
    });
    assert!(hidden >= 1, "{hidden} switches: {before:?}\n{after:?}");
    let blocked = after.blocked - before.blocked;
    assert!(blocked >= nanoseconds(REST), "{before:?}\n{after:?}");
    let missed = sums.iter().filter(|(key, _)| key.user == STACK_MISSED);
    let blocked: u64 = missed.map(|(_, tally)| tally.blocked).sum();
    assert!(blocked >= nanoseconds(REST), "{sums:?}");
}
