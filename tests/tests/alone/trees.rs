//! Processes that targets fork: all of them, from their birth to their end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use systemscope_tests::printed::clocks;
use systemscope_tests::printed::output::assert_close;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Finished, Tool, Turn, Workload};

/// Forks children, one of which forks, too. Who waits for one says how long the kernel
/// booked it as running, with those that it has waited for.
const FAMILY: &str = r#"
import os, time
def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
def child(body):
    pid = os.fork()
    if not pid:
        body()
        os._exit(0)
    return pid
def wait_for(pid):
    usage = os.wait4(pid, 0)[2]
    booked = (usage.ru_utime + usage.ru_stime) * 1e9
    print(pid, os.getpid(), int(booked), flush=True)
def grandchild():
    busy(0.3)
    time.sleep(0.2)
def parent():
    busy(0.4)
    wait_for(child(grandchild))
first = child(parent)
second = child(lambda: time.sleep(0.5))
busy(0.5)
wait_for(first)
wait_for(second)
"#;

struct Told {
    pid: u32,
    parent: u32,
    /// With the children that it has waited for.
    booked_ns: u64,
}

/// What the family said.
fn told(finished: &Finished) -> Vec<Told> {
    let stdout = String::from_utf8_lossy(&finished.stdout);
    let lines = stdout.lines().map(|line| {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap().parse::<u64>().unwrap();
        Told {
            pid: next() as u32,
            parent: next() as u32,
            booked_ns: next(),
        }
    });
    lines.collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_process_of_a_command_is_there_from_exec_on() {
    let _turn = Turn::take();
    let folder = scratch();
    let finished = Tool::new("wallclock")
        .args("-o run.json -- sh -c")
        .arg(format!("sleep 0.5; python3 -c '{FAMILY}'; exit 3"))
        .in_folder(folder.path())
        .run();
    assert_eq!(finished.code, Some(3), "{}", finished.stderr);
    let profile = json(&folder.path().join("run.json"));
    let threads = profile["threads"].as_array().unwrap();
    let family = told(&finished);
    assert_eq!(family.len(), 3);
    let running = |pid: u32| -> u64 {
        let of_it = |thread: &&Value| thread["pid"] == pid;
        let thread = threads.iter().find(of_it);
        let thread = thread.unwrap_or_else(|| panic!("{pid} is not in {threads:#?}"));
        let field = |name: &str| thread[name].as_u64().unwrap();
        let life = field("ended_ns") - field("started_ns");
        let sum = field("running_ns") + field("runnable_ns") + field("blocked_ns");
        assert_eq!(sum, life);
        field("running_ns")
    };
    for told in &family {
        let children = family.iter().filter(|other| other.parent == told.pid);
        let of_children: u64 = children.map(|child| running(child.pid)).sum();
        let tolerance = told.booked_ns / 100 + 1_000_000;
        let running = running(told.pid) + of_children;
        assert_close("running", running, told.booked_ns, tolerance);
    }
    // Each with its command line and its parent.
    let processes = profile["processes"].as_array().unwrap();
    let lines: BTreeMap<u64, (u64, String)> = (processes.iter())
        .map(|process| {
            let words = process["command_line"].as_array().unwrap();
            let words: Vec<_> = words.iter().map(|word| word.as_str().unwrap()).collect();
            let field = |name: &str| process[name].as_u64().unwrap();
            (field("pid"), (field("parent"), words.join(" ")))
        })
        .collect();
    for told in &family {
        let (parent, line) = &lines[&told.pid.into()];
        assert_eq!(*parent, u64::from(told.parent), "{line}");
        assert!(line.contains("python3 -c"), "{line}");
    }
    assert!(
        lines.values().any(|(_, line)| line == "sleep 0.5"),
        "{lines:#?}"
    );
    assert!(
        lines
            .values()
            .any(|(_, line)| line.starts_with("sh -c sleep 0.5;")),
        "{lines:#?}"
    );
}

#[test]
fn the_loader_is_in_the_picture() {
    let _turn = Turn::take();
    let folder = scratch();
    let finished = Tool::new("oncputime")
        .args("-F 4999 -o seen.folded -- python3 -c")
        .arg("import ctypes, ssl, sqlite3")
        .in_folder(folder.path())
        .run();
    finished.succeeded();
    let folded = fs::read_to_string(folder.path().join("seen.folded")).unwrap();
    let loader = [
        "_dl_start",
        "dl_main",
        "_dl_map_object",
        "_dl_relocate_object",
        "_dl_lookup_symbol_x",
    ];
    assert!(
        loader.iter().any(|function| folded.contains(function)),
        "{folded}"
    );
}

#[test]
fn without_children_a_command_is_alone() {
    let _turn = Turn::take();
    let folder = scratch();
    let finished = Tool::new("offcputime")
        .args("--no-children -o folded --clocks clocks -- sh -c")
        .arg("sleep 0.2; echo $$")
        .in_folder(folder.path())
        .run()
        .succeeded();
    let rows = clocks::read(&folder.path().join("clocks"));
    let seen: Vec<u32> = rows.iter().map(|row| row.pid).collect();
    let shell: u32 = String::from_utf8_lossy(&finished.stdout)
        .trim()
        .parse()
        .unwrap();
    assert_eq!(seen, [shell]);
}

#[test]
fn a_fork_storm_is_all_there() {
    let _turn = Turn::take();
    let folder = scratch();
    let mut storm = Workload::start("storm", &[20_000, 2, 2]);
    let mut outside = Workload::start("storm", &[1_000, 3, 1]);
    let mut running = Tool::new("offcputime")
        .pid(storm.pid())
        .args("--children --clocks clocks -o folded -U")
        .in_folder(folder.path())
        .start_measuring();
    outside.go();
    storm.go();
    storm.wait_done();
    let forked = storm.told("processes");
    assert!(running.is_running());
    running.signal(Signal::INT);
    let finished = running.finish_within(PATIENCE).succeeded();
    let rows = clocks::read(&folder.path().join("clocks"));
    let processes: BTreeSet<(u32, u64)> = (rows.iter())
        .filter(|row| row.pid != storm.pid())
        .map(|row| (row.pid, row.started_ns))
        .collect();
    assert!(rows.iter().all(|row| row.pid != outside.pid()));
    // What is lost is counted: on a machine that keeps up nothing is.
    let seen = processes.len() as u64;
    println!("{forked} forked in 2 s, {seen} seen; {}", finished.stderr);
    assert_eq!(seen, forked);
}

#[test]
fn workers_are_whole_whoever_forked_them_and_when() {
    let _turn = Turn::take();
    let folder = scratch();
    // Two workers are there before, and each is replaced while it is measured.
    let script = r#"
import os, signal, sys, time
def worker():
    pid = os.fork()
    if not pid:
        while True:
            end = time.process_time() + 0.02
            while time.process_time() < end:
                pass
            time.sleep(0.02)
    print(pid, flush=True)
    return pid
workers = [worker(), worker()]
sys.stdin.readline()
for _ in range(2):
    time.sleep(0.4)
    for index, pid in enumerate(workers):
        workers[index] = worker()
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
for pid in workers:
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
"#;
    let mut server = std::process::Command::new("python3")
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    sleep(Duration::from_millis(500));
    let tool = Tool::new("offcputime")
        .pid(server.id())
        .args("--children --clocks clocks -o folded")
        .in_folder(folder.path())
        .start_measuring();
    drop(server.stdin.take());
    let output = server.wait_with_output().unwrap();
    // Nobody of the tree is left.
    tool.finish_within(PATIENCE).succeeded();
    let workers = String::from_utf8(output.stdout).unwrap();
    let workers: Vec<u32> = workers.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(workers.len(), 6);
    let rows = clocks::read(&folder.path().join("clocks"));
    for (index, pid) in workers.iter().enumerate() {
        let row = rows.iter().find(|row| row.pid == *pid);
        let row = row.unwrap_or_else(|| panic!("worker {index}, {pid}, is not in {rows:#?}"));
        assert_eq!(row.accounted_ns(), row.lifetime_ns());
        // Each lives for a round, of 400 ms at least, but the last two.
        let least = if index < 4 { 390_000_000 } else { 0 };
        assert!(row.lifetime_ns() >= least, "worker {index}: {row:?}");
    }
}
