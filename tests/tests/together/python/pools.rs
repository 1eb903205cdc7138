//! Processes of multiprocessing that start in the window or before it.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde::Deserialize;
use systemscope_tests::programs::pythons::{pythons, some_pythons};
use systemscope_tests::{Turn, Workload};

use super::{Stack, assert_all_known, measure, run_under_offcputime};

/// Python program. Its four processes sleep in one function again and again.
const POOL: &str = "
import multiprocessing, os, sys, time
def doze(seconds):
    time.sleep(seconds)
    return os.getpid()
if __name__ == '__main__':
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(4) as pool:
        workers = set()
        while len(workers) < 4:
            workers.update(pool.map(doze, [0.05] * 8, chunksize=1))
        print('ready', flush=True)
        pool.map(doze, [0.02] * int(sys.argv[2]), chunksize=1)
";

/// Checks that four processes sleep in the function of [`POOL`], and that no frame is missing.
fn assert_pool(what: &str, stacks: &[Stack]) {
    assert_all_known(what, stacks);
    let doze = |stack: &&Stack| {
        let calls = stack.calls();
        let last = calls.last().map(|call| (&*call.name, call.line));
        last == Some(("pool.py:doze", 4))
    };
    let workers: BTreeSet<u32> = stacks.iter().filter(doze).map(|stack| stack.pid).collect();
    assert_eq!(workers.len(), 4, "{what}: {workers:?} of {stacks:#?}");
}

#[test]
#[ignore = "starts pools of every interpreter"]
fn the_processes_of_a_pool_have_their_frames() {
    let _turn = Turn::share();
    for python in some_pythons() {
        for start in ["fork", "spawn", "forkserver"] {
            // The processes start and end in the window.
            let what = format!("{}, {start}", python.path.display());
            let program = [python.path.to_str().unwrap(), "pool.py", start, "20"];
            let files = [("pool.py", POOL)];
            let (folder, _, stacks) = run_under_offcputime("--states --", &program, &files);
            assert_pool(&what, &stacks);

            // The processes start before the window and live on.
            let mut command = Command::new(&python.path);
            command
                .arg(folder.path().join("pool.py"))
                .args([start, "100000"]);
            let pool = Workload::run(command, python.path.clone(), folder);
            let (_, stacks) = measure(pool.pid(), pool.folder(), "--children");
            assert_pool(&what, &stacks);
        }
    }
}

/// Python program. Each of its eight processes sleeps once for 2 s, and prints when it slept.
const LIVES: &str = "
import multiprocessing, os, sys, time
def live(said):
    clock = time.monotonic_ns
    began = clock(); time.sleep(2); ended = clock()
    os.write(said.fileno(), b'%d %d %d\\n' % (os.getpid(), began, ended))
if __name__ == '__main__':
    context = multiprocessing.get_context(sys.argv[1])
    heard, said = context.Pipe()
    workers = [context.Process(target=live, args=(said,)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    os.write(1, os.read(heard.fileno(), 65536))
";

/// Part of a profile that describes processes and threads.
#[derive(Debug, Deserialize)]
struct Lives {
    processes: Vec<Process>,
    threads: Vec<Thread>,
}

#[derive(Debug, Deserialize)]
struct Process {
    pid: u32,
    parent: u32,
}

#[derive(Debug, Deserialize)]
struct Thread {
    pid: u32,
    tid: u32,
    started_ns: u64,
    ended_ns: u64,
    blocked_ns: u64,
}

/// Parses a line of [`LIVES`]: PID, start and end of the sleep.
fn parse_sleep(line: &str) -> (u32, u64, u64) {
    let mut numbers = line.split(' ').map(|number| number.parse::<u64>().unwrap());
    let mut next = || numbers.next().unwrap();
    (u32::try_from(next()).unwrap(), next(), next())
}

/// Checks eight processes that begin and end in the window, with this start method.
fn assert_lives(start: &str) {
    const SLEPT_NS: u64 = 1_900_000_000;
    let mut pythons = pythons();
    pythons.drain(1..pythons.len().max(2) - 1);
    for python in &pythons {
        let what = format!("{}, {start}", python.path.display());
        let program = [python.path.to_str().unwrap(), "lives.py", start];
        let files = [("lives.py", LIVES)];
        let (folder, finished, all) =
            run_under_offcputime("--children --states --", &program, &files);
        let said = String::from_utf8(finished.stdout).unwrap();
        let said: Vec<(u32, u64, u64)> = said.lines().map(parse_sleep).collect();
        assert_eq!(said.len(), 8, "{what}: {said:?}");

        let path = folder.path().join("run.json");
        let lives: Lives = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let parent = |pid| {
            let process = lives.processes.iter().find(|process| process.pid == pid);
            process.map(|process| process.parent)
        };
        let pool = parent(said[0].0);
        assert!(pool.is_some_and(|pool| parent(pool).is_some()), "{what}");
        for (pid, began, ended) in said {
            let of_it = all.iter().filter(|stack| stack.pid == pid);
            let of_it: Vec<Stack> = of_it.cloned().collect();
            assert_all_known(&what, &of_it);
            let lives_there = |stack: &&Stack| {
                let last = stack.calls().pop();
                last.is_some_and(|last| last.name == "lives.py:live" && last.line == 5)
            };
            let asleep = of_it.iter().filter(lives_there).map(|stack| stack.value);
            let asleep: u64 = asleep.sum();
            assert!(asleep >= SLEPT_NS, "{what}: {pid}: {asleep}: {of_it:#?}");

            assert_eq!(parent(pid), pool, "{what}: {pid}");
            let is_main_thread = |thread: &&Thread| thread.pid == pid && thread.tid == pid;
            let thread = lives.threads.iter().find(is_main_thread);
            let thread = thread.unwrap_or_else(|| panic!("{what}: {pid}: {lives:?}"));
            assert!(
                thread.started_ns < began
                    && ended < thread.ended_ns
                    && thread.blocked_ns >= SLEPT_NS,
                "{what}: {began} to {ended}: {thread:?}"
            );
        }
    }
}

#[test]
fn processes_that_are_forked_in_the_window_have_their_frames_and_lives() {
    let _turn = Turn::share();
    assert_lives("fork");
}

#[test]
#[ignore = "starts pools of every interpreter"]
fn processes_that_are_spawned_in_the_window_have_their_frames_and_lives() {
    let _turn = Turn::share();
    assert_lives("spawn");
}
