//! How processes are followed. These tests need root.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread::sleep;

use bpf::types::{StackDump, UnwindProcess};
use languages::python::{Interpreter, Version};
use libbpf_rs::{MapCore, MapFlags};
use loader::OpenObject;
use loader::iterators::copy;
use plain::Plain;
use symbolize::CodeSource;
use unwind::{Built, Segment, Table};

use super::space::FileTable;
use super::*;

/// Longer than any of this takes on any machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// One that is not there.
const NOBODY: Process = Process {
    pid: 10_000_000,
    instance: 1,
};

/// An object that is attached to nothing.
pub(super) fn loaded() -> LoadedObject {
    let mut object = OpenObject::new(&bpf::oncputime::OBJECT).unwrap();
    make_room_for_tables(&mut object, false).unwrap();
    object.load().unwrap()
}

/// What is in a map.
pub(super) fn found<T: Plain + Copy + Default>(
    object: &LoadedObject,
    map: &str,
    key: u32,
) -> Option<T> {
    let map = object.map(map).unwrap();
    copy(&map.lookup(&key.to_ne_bytes(), MapFlags::ANY).unwrap()?)
}

pub(super) fn unwinder(object: &LoadedObject) -> Unwinder<'_> {
    Unwinder::new(Walking::default(), object).unwrap().unwrap()
}

/// A process that has mapped all that it will, and sleeps until this is dropped.
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

fn has_tables(space: &Space) -> bool {
    let mappings = space.for_kernel();
    mappings.iter().any(|mapping| mapping.page_count > 0)
}

fn entry(object: &LoadedObject, process: Process) -> Option<UnwindProcess> {
    found(object, "unwind_processes", process.pid)
}

#[test]
fn a_process_that_is_prepared_has_its_tables() {
    let (object, sleeper) = (loaded(), Sleeper::start());
    let process = sleeper.process();
    let mut unwinder = unwinder(&object);
    unwinder.prepare(&[process], &mut Symbolizer::new(), PATIENCE);
    let space = unwinder.space(process).unwrap();
    assert!(has_tables(space));
    let entry = entry(&object, process).unwrap();
    assert_eq!(entry.instance, process.instance);

    let sources: HashSet<CodeSource> = space.code().iter().map(|code| code.source).collect();
    let tables = sources
        .into_iter()
        .filter_map(|source| unwinder.files.table(source));
    let sizes: Vec<usize> = tables.map(|file| file.built.table.size()).collect();
    let kib = sizes.iter().sum::<usize>().div_ceil(1024);
    let notes = unwinder.notes();
    assert_eq!(
        notes[0],
        format!("unwind tables: {} files, {kib} KiB", sizes.len())
    );
    assert!(
        !notes.iter().any(|note| note.contains(": 0 of ")),
        "{notes:?}"
    );
}

#[test]
fn a_process_whose_mappings_change_stays_in_force() {
    let (object, sleeper) = (loaded(), Sleeper::start());
    let process = sleeper.process();
    let mut unwinder = unwinder(&object);
    unwinder.prepare(&[process], &mut Symbolizer::new(), PATIENCE);
    let known = unwinder.processes.get_mut(&process).unwrap();
    let mut code = known.space.as_ref().unwrap().code().to_vec();
    code.pop();
    known.awaited = Some(code.clone());
    unwinder.is_any_awaited = true;
    unwinder.publish(true);
    assert_eq!(unwinder.space(process).unwrap().code(), code);
    let entry = entry(&object, process).unwrap();
    assert_eq!(
        (entry.mappings >> 32, entry.generation),
        (code.len() as u64, 2)
    );
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
fn what_is_known_of_a_process_stays_when_it_ends() {
    let (object, sleeper) = (loaded(), Sleeper::start());
    let (process, mut symbolizer) = (sleeper.process(), Symbolizer::new());
    let mut unwinder = unwinder(&object);
    unwinder.prepare(&[process], &mut symbolizer, PATIENCE);
    drop(sleeper);
    unwinder.scan(process, &mut symbolizer);
    unwinder.publish(true);
    assert!(has_tables(unwinder.space(process).unwrap()));
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
    // Its copy is walked after that.
    assert_eq!(sweep(), [true, false, true]);
    assert_eq!(sweep(), [true, false, false]);
    // The files are those of the one that lives.
    assert_eq!(unwinder.files.size(), size);
}

#[test]
fn a_copy_is_walked_and_its_process_looked_at() {
    let (object, sleeper) = (loaded(), Sleeper::start());
    let (process, mut symbolizer) = (sleeper.process(), Symbolizer::new());
    let mut unwinder = unwinder(&object);
    assert!(unwinder.add_dump(dumped(10, process)).is_none());
    assert_eq!([10, 11].map(|id| unwinder.has_dump(id)), [true, false]);
    let (mut walked, begun) = (Vec::new(), Instant::now());
    while walked.is_empty() || unwinder.space(process).is_none() {
        walked.extend(unwinder.work(&mut symbolizer));
        assert!(begun.elapsed() < PATIENCE);
        sleep(Duration::from_millis(1));
    }
    let ids: Vec<u64> = walked.iter().map(|(dumped, _)| dumped.id).collect();
    assert_eq!((ids, unwinder.has_dump(10)), (vec![10], false));
    assert!(has_tables(unwinder.space(process).unwrap()));
}

#[test]
fn as_many_copies_are_allowed_as_do_not_wait() {
    let object = loaded();
    let mut unwinder = unwinder(&object);
    let most = MOST_DUMPS as i64;
    for waiting in 0..3 {
        unwinder.allowed -= ALLOW_INTERVAL;
        assert_eq!(unwinder.allowance(), Some(most - waiting));
        unwinder.add_dump(dumped(10 + waiting as u64, NOBODY));
    }
    // It is not time yet.
    unwinder.allowed += PATIENCE;
    assert_eq!(unwinder.allowance(), None);
}

#[test]
fn what_a_process_runs_now_is_wanted() {
    let object = loaded();
    let mut unwinder = unwinder(&object);
    let [older, newer] = [3, 4].map(|instance| Process { instance, ..NOBODY });
    for process in [older, newer, older] {
        unwinder.want(process);
    }
    assert!(unwinder.wanted.keys().eq([&newer]));
    // A copy of it still waits when it is wanted again.
    unwinder.add_dump(dumped(10, newer));
    unwinder.want(newer);
    assert!(unwinder.wanted[&newer]);
}

/// A process that was looked at, which took so long.
fn scanned(scanned: Instant, cost: Duration) -> Known {
    Known {
        space: None,
        placed: None,
        awaited: None,
        scanned,
        cost,
    }
}

#[test]
fn a_process_is_looked_at_again_after_a_pause_or_for_a_copy() {
    let object = loaded();
    let mut unwinder = unwinder(&object);
    let (now, cost) = (Instant::now(), Duration::from_secs(1));
    unwinder.processes.insert(NOBODY, scanned(now, cost));
    unwinder.want(NOBODY);
    assert_eq!(unwinder.most_wanted(now + cost), None);
    let later = now + cost * RESCAN_PAUSE;
    assert_eq!(unwinder.most_wanted(later), Some(NOBODY));
    unwinder.add_dump(dumped(10, NOBODY));
    assert_eq!(unwinder.most_wanted(now), Some(NOBODY));
}

#[test]
fn programs_that_begin_are_looked_at_when_it_is_time() {
    let object = loaded();
    let mut unwinder = unwinder(&object);
    let other = Process {
        pid: NOBODY.pid + 1,
        ..NOBODY
    };
    let (now, later) = (Instant::now(), Instant::now() + PATIENCE);
    unwinder.begun = vec![(now, NOBODY), (later, other)];
    unwinder.want_begun();
    assert_eq!(unwinder.begun, [(later, other)]);
    assert!(unwinder.wanted.keys().eq([&NOBODY]));
    // No more than there is room for, and not before they begin.
    for _ in 0..MOST_FIRST_LOOKS {
        unwinder.begins(other);
    }
    assert!(unwinder.begun.iter().all(|(at, _)| *at >= now));
    let looks = unwinder.begun.len();
    assert!(looks <= MOST_FIRST_LOOKS && looks + FIRST_LOOKS.len() > MOST_FIRST_LOOKS);
}

#[test]
fn programs_that_have_used_no_time_begin_when_they_are_let_go() {
    let object = loaded();
    let mut unwinder = unwinder(&object);
    let ours = Process {
        pid: std::process::id(),
        instance: 1,
    };
    while cpu_ticks(ours.pid) == 0 {}
    for process in [NOBODY, ours] {
        let known = scanned(Instant::now(), Duration::ZERO);
        unwinder.processes.insert(process, known);
    }
    unwinder.are_let_go();
    let begun: HashSet<Process> = unwinder.begun.iter().map(|(_, process)| *process).collect();
    assert_eq!(begun, HashSet::from([NOBODY]));
}

#[test]
fn time_to_look_at_processes_is_a_share_of_all_and_bounded() {
    let ms = Duration::from_millis(1);
    assert_eq!(saved(3 * ms, SCAN_SHARE * ms), 4 * ms);
    assert_eq!(saved(MOST_SAVED, SCAN_SHARE * ms), MOST_SAVED);
}

/// A process that has mapped an interpreter of this version, and nothing else.
fn with_python(unwinder: &mut Unwinder<'_>, version: Version) {
    let built = Arc::new(Built {
        table: Table::default(),
        segments: vec![Segment {
            offset: 0,
            address: 0,
            size: 4096,
        }],
        notes: unwind::Notes::default(),
    });
    let python = Interpreter {
        runtime: 64,
        version,
        evaluation: Default::default(),
    };
    let code = vec![CodeMapping {
        start: 0x10000,
        end: 0x11000,
        offset: 0,
        source: CodeSource::File(3),
    }];
    let file = |_| {
        Some(FileTable {
            built: Arc::clone(&built),
            python: Some(python),
            first_page: 0,
            page_count: 0,
        })
    };
    let space = Space::new(code, file);
    unwinder.interpreters.extend(space.python().cloned());
    let known = Known {
        space: Some(space),
        placed: None,
        awaited: None,
        scanned: Instant::now(),
        cost: Duration::ZERO,
    };
    unwinder.processes.insert(NOBODY, known);
}

/// The same word everywhere, or nothing.
struct Everywhere(Option<u64>);

impl Memory for Everywhere {
    fn word(&mut self, _: u64) -> Option<u64> {
        self.0
    }
}

#[test]
fn frames_of_python_are_those_of_its_threads_while_they_are_there() {
    let object = loaded();
    let mut unwinder = unwinder(&object);
    let version = Version {
        major: 3,
        minor: 11,
        free_threaded: false,
    };
    with_python(&mut unwinder, version);
    let versions = |found: Vec<Python>| {
        let versions = found.into_iter().map(|python| python.version);
        versions.collect::<Vec<_>>()
    };
    assert_eq!(versions(unwinder.take_interpreters()), [version]);
    assert_eq!(versions(unwinder.take_interpreters()), []);

    let dumped = dumped(10, NOBODY);
    let end = |frames: Option<PythonFrames>| frames.map(|frames| frames.chain.end);
    let read = |word| unwinder.python_frames(NOBODY, &dumped.owner, &mut Everywhere(word));
    assert_eq!(end(read(None)), Some(End::ReadFailed));
    // The interpreter has no threads yet.
    assert_eq!(end(read(Some(0))), None);
    // Whether its thread is still there, which cannot be read.
    let late = |id| unwinder.late_python_frames(&dumped, |_| id);
    assert_eq!(end(late(Some(10))), Some(End::ReadFailed));
    for id in [Some(11), None] {
        assert_eq!(end(late(id)), Some(End::NotRead));
    }
}

#[test]
fn cpu_time_is_what_a_process_has_used() {
    let (ours, begun) = (std::process::id(), Instant::now());
    while cpu_ticks(ours) == 0 {
        assert!(begun.elapsed() < PATIENCE);
    }
    assert_eq!(cpu_ticks(NOBODY.pid), 0);
}
