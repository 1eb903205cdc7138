//! Tests of following processes. They need root.
#![allow(clippy::unwrap_used)]

use std::process::{Child, Command};
use std::thread::sleep;

use bpf::MapName;
use bpf::types::{StackDump, UnwindProcess};
use libbpf_rs::{MapCore, MapFlags};
use loader::OpenObject;
use loader::iterators::copy;
use plain::Plain;

use super::*;

/// Maximum time of a step. No step takes nearly as long on any machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Process that does not exist.
const NOBODY: Process = Process {
    pid: 10_000_000,
    instance: 1,
};

/// Returns an object whose programs are not attached.
pub(super) fn loaded() -> LoadedObject {
    let mut object = OpenObject::new(&bpf::oncputime::OBJECT).unwrap();
    make_room_for_tables(&mut object).unwrap();
    object.load().unwrap()
}

/// Returns the value of a map's key.
pub(super) fn found<T: Plain + Copy + Default>(
    object: &LoadedObject,
    map: MapName,
    key: u32,
) -> Option<T> {
    let map = object.map(map).unwrap();
    copy(&map.lookup(&key.to_ne_bytes(), MapFlags::ANY).unwrap()?)
}

fn unwinder(object: &LoadedObject) -> Unwinder<'_> {
    Unwinder::new(Walking::default(), object).unwrap().unwrap()
}

/// Process that has mapped all its libraries, and sleeps until this value is dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Sleeper {
        let sleeper = Sleeper(Command::new("sleep").arg("1000").spawn().unwrap());
        let stat = format!("/proc/{}/stat", sleeper.0.id());
        while !fs::read_to_string(&stat).unwrap().contains("(sleep) S ") {
            sleep(Duration::from_millis(1));
        }
        sleeper
    }

    fn process(&self) -> Process {
        Process {
            pid: self.0.id(),
            instance: 5,
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn dumped(id: u64, process: Process) -> Dumped {
    let mut event = StackDump {
        hash: id,
        pid: process.pid,
        instance: process.instance,
        ..StackDump::default()
    };
    event.owner.pid = NOBODY.pid;
    Dumped::from_event(&event, &[])
}

fn entry(object: &LoadedObject, process: Process) -> Option<UnwindProcess> {
    found(object, bpf::maps::UNWIND_PROCESSES, process.pid)
}

#[test]
fn a_process_that_runs_something_else_by_now_has_no_tables() {
    let (object, sleeper) = (loaded(), Sleeper::start());
    let process = sleeper.process();
    let mut unwinder = unwinder(&object);
    unwinder.prepare(&[process], &mut Symbolizer::new(), PATIENCE);
    unwinder.newest.insert(process.pid, process.instance + 1);
    let known = unwinder.processes.get_mut(&process).unwrap();
    known.awaited = Some(Vec::new());
    unwinder.is_any_awaited = true;
    unwinder.publish(true);
    assert_eq!(entry(&object, process), None);
}

#[test]
fn tables_of_a_process_are_given_back_when_it_has_ended() {
    let (object, mut symbolizer) = (loaded(), Symbolizer::new());
    let [lives, ends, with_dump] = [(); 3].map(|()| Sleeper::start());
    let processes = [&lives, &ends, &with_dump].map(Sleeper::process);
    let mut unwinder = unwinder(&object);
    unwinder.prepare(&processes, &mut symbolizer, PATIENCE);
    let size = unwinder.files.size();
    drop((ends, with_dump));
    unwinder.dumps.add(dumped(10, processes[2]));
    let mut sweep = || {
        unwinder.swept -= SWEEP_INTERVAL;
        unwinder.work(&mut symbolizer);
        let are_known = processes.map(|process| unwinder.space(process).is_some());
        let are_there = processes.map(|process| entry(&object, process).is_some());
        assert_eq!(are_known, are_there);
        are_known
    };
    // The first sweep keeps the process of the dump. The dump is unwound after it.
    assert_eq!(sweep(), [true, false, true]);
    assert_eq!(sweep(), [true, false, false]);
    // The remaining files belong to the process that lives.
    assert_eq!(unwinder.files.size(), size);
}
