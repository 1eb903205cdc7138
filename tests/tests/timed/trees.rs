//! Processes that targets fork, from their birth to their end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use systemscope_tests::printed::clocks;
use systemscope_tests::printed::output::{assert_close, per_mille};
use systemscope_tests::programs::nginx::Nginx;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::wallclock::start_measuring;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::account::stolen_ns;
use systemscope_tests::{
    Account, Finished, Tool, Turn, Workload, WorkloadBuilder, accounts_at_rest, patiently,
};

/// Python program that forks children. One child forks, too. Each parent prints the running time of
/// its child by the kernel's account, which includes the grandchildren for which the child has
/// waited.
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

struct Member {
    pid: u32,
    parent: u32,
    /// Running time in ns, which includes the children for which the process has waited.
    booked_ns: u64,
}

/// Parses the lines that the family printed.
fn parse_members(finished: &Finished) -> Vec<Member> {
    let stdout = String::from_utf8_lossy(&finished.stdout);
    let lines = stdout.lines().map(|line| {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap().parse::<u64>().unwrap();
        Member {
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
    let _turn = Turn::share();
    // The test reads the kernel's account at slightly different times.
    patiently(assert_every_process_is_there);
}

fn assert_every_process_is_there() {
    let folder = scratch();
    let finished = Tool::new("wallclock")
        .args("-o run.json -- sh -c")
        .arg(format!("sleep 0.5; python3 -c '{FAMILY}'; exit 3"))
        .in_folder(folder.path())
        .run();
    assert_eq!(finished.code, Some(3), "{}", finished.stderr);
    let profile = json(&folder.path().join("run.json"));
    let threads = profile["threads"].as_array().unwrap();
    let family = parse_members(&finished);
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
    for member in &family {
        let children = family.iter().filter(|other| other.parent == member.pid);
        let of_children: u64 = children.map(|child| running(child.pid)).sum();
        let tolerance = member.booked_ns / 100 + 1_000_000;
        let running = running(member.pid) + of_children;
        assert_close("running", running, member.booked_ns, tolerance);
    }
    // Each process has its command line and its parent.
    let processes = profile["processes"].as_array().unwrap();
    let lines: BTreeMap<u64, (u64, String)> = (processes.iter())
        .map(|process| {
            let words = process["command_line"].as_array().unwrap();
            let words: Vec<_> = words.iter().map(|word| word.as_str().unwrap()).collect();
            let field = |name: &str| process[name].as_u64().unwrap();
            (field("pid"), (field("parent"), words.join(" ")))
        })
        .collect();
    for member in &family {
        let (parent, line) = &lines[&member.pid.into()];
        assert_eq!(*parent, u64::from(member.parent), "{line}");
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
    let _turn = Turn::share();
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
    let _turn = Turn::share();
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
    let _turn = Turn::share();
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
    // Lost processes are counted. A machine that keeps up with the forks loses none.
    let seen = processes.len() as u64;
    println!("{forked} forked in 2 s, {seen} seen; {}", finished.stderr);
    assert_eq!(seen, forked);
}

#[test]
fn workers_are_whole_whoever_forked_them_and_when() {
    let _turn = Turn::share();
    let folder = scratch();
    // Two workers exist from the start. Each worker is replaced while it is measured.
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
    // No process of the tree remains.
    tool.finish_within(PATIENCE).succeeded();
    let workers = String::from_utf8(output.stdout).unwrap();
    let workers: Vec<u32> = workers.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(workers.len(), 6);
    let rows = clocks::read(&folder.path().join("clocks"));
    for (index, pid) in workers.iter().enumerate() {
        let row = rows.iter().find(|row| row.pid == *pid);
        let row = row.unwrap_or_else(|| panic!("worker {index}, {pid}, is not in {rows:#?}"));
        assert_eq!(row.accounted_ns(), row.lifetime_ns());
        // Each worker except the last two lives for a round of at least 400 ms.
        let least = if index < 4 { 390_000_000 } else { 0 };
        assert!(row.lifetime_ns() >= least, "worker {index}: {row:?}");
    }
}

#[test]
fn workers_and_their_children_are_whole() {
    const WORKERS: usize = 8;
    let _turn = Turn::share();
    patiently(|| {
        let folder = scratch();
        let family = WorkloadBuilder::new("family").build_into(folder.path());
        let stolen = stolen_ns();
        let finished = Tool::new("offcputime")
            .args("-o folded --clocks clocks --")
            .arg(family)
            .args(&format!("{WORKERS} 2"))
            .in_folder(folder.path())
            .run()
            .succeeded();
        let stolen = stolen_ns() - stolen;
        let rows = clocks::read(&folder.path().join("clocks"));
        let family = parse_members(&finished);
        assert_eq!(family.len(), 2 * WORKERS);
        // The process that forks the workers has an account, too.
        assert_eq!(rows.len(), family.len() + 1, "{rows:#?}");
        let row = |pid: u32| rows.iter().find(|row| row.pid == pid).unwrap();
        for member in &family {
            let life = row(member.pid);
            assert_eq!(life.accounted_ns(), life.lifetime_ns(), "{life:?}");
            assert!(life.lifetime_ns() >= 90_000_000, "{life:?}");
            let children = family.iter().filter(|other| other.parent == member.pid);
            let of_children: u64 = children.map(|child| row(child.pid).running_ns).sum();
            let tolerance = per_mille(member.booked_ns, 10) + 1_000_000 + stolen;
            let running = life.running_ns + of_children;
            assert_close("running", running, member.booked_ns, tolerance);
        }
    });
}

/// Python program with three processes at a time. Each process does two tasks and is replaced. The
/// parent prints the running time of each process by the kernel's account.
const POOL: &str = r#"
import multiprocessing, os, sys, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    time.sleep(seconds)
    return os.getpid()
def waitpid(pid, options):
    ended, status, usage = os.wait4(pid, options)
    if ended:
        booked = (usage.ru_utime + usage.ru_stime) * 1e9
        print(ended, os.getpid(), int(booked), flush=True)
    return ended, status
if __name__ == "__main__":
    os.waitpid = waitpid
    context = multiprocessing.get_context(sys.argv[1])
    pool = context.Pool(3, maxtasksperchild=2)
    workers = set(pool.map(work, [0.05] * 16, chunksize=1))
    pool.close()
    pool.join()
    assert len(workers) >= 8, workers
"#;

#[test]
#[ignore = "starts pools of processes several times"]
fn a_pool_of_processes_is_whole() {
    let _turn = Turn::share();
    for start in ["fork", "spawn"] {
        patiently(|| {
            let folder = scratch();
            let stolen = stolen_ns();
            fs::write(folder.path().join("pool.py"), POOL).unwrap();
            let finished = Tool::new("wallclock")
                .args("-o run.json -- python3 pool.py")
                .arg(start)
                .in_folder(folder.path())
                .run()
                .succeeded();
            let profile = json(&folder.path().join("run.json"));
            let workers = parse_members(&finished);
            assert!(workers.len() >= 8, "{start}: {}", workers.len());
            let stolen = stolen_ns() - stolen;
            for worker in workers {
                let [ref row] = lives(&profile, worker.pid)[..] else {
                    panic!("{start}: {} in {profile:#?}", worker.pid)
                };
                let tolerance = per_mille(worker.booked_ns, 10) + 1_000_000 + stolen;
                assert_close("running", row.running_ns, worker.booked_ns, tolerance);
            }
        });
    }
}

/// Life of a thread, from a profile.
#[derive(Debug)]
struct Life {
    length_ns: u64,
    running_ns: u64,
    runnable_ns: u64,
}

/// Returns the lives of a process's threads. Checks that the states of each thread add up.
fn lives(profile: &Value, pid: u32) -> Vec<Life> {
    let threads = profile["threads"].as_array().unwrap().iter();
    let lives = threads.filter(|thread| thread["pid"] == pid).map(|thread| {
        let field = |name: &str| thread[name].as_u64().unwrap();
        let life = Life {
            length_ns: field("ended_ns") - field("started_ns"),
            running_ns: field("running_ns"),
            runnable_ns: field("runnable_ns"),
        };
        let sum = life.running_ns + life.runnable_ns + field("blocked_ns");
        assert_eq!(sum, life.length_ns, "{thread}");
        life
    });
    lives.collect()
}

/// The load runs on workers from before the window, on workers that begin in the window, and on
/// workers that live at its end.
#[test]
#[ignore = "loads nginx for seconds"]
fn nginx_is_whole_while_its_workers_are_replaced() {
    let _turn = Turn::share();
    patiently(|| {
        let folder = scratch();
        let nginx = Nginx::start(2);
        let before: BTreeMap<u32, Account> = (nginx.workers().into_iter())
            .map(|pid| (pid, accounts_at_rest(pid)[&pid]))
            .collect();
        let tool = Tool::new("wallclock")
            .arg(nginx.pid().to_string())
            .args("--children -d 600 -o run.json")
            .in_folder(folder.path());
        let running = start_measuring(tool);
        let (begun, stolen) = (Instant::now(), stolen_ns());
        // After this time the window is open.
        sleep(Duration::from_millis(100));
        let visitor = nginx.visit();
        let mut ended = Vec::new();
        for _ in 0..2 {
            sleep(Duration::from_millis(700));
            ended.extend(nginx.reload(nginx.begin_visits()));
        }
        sleep(Duration::from_millis(700));
        drop(visitor);
        let (last, server) = nginx.finish();
        ended.extend(last);
        assert_eq!(server.code, Some(0), "{}", server.stderr);
        // No process of the tree remains.
        let finished = running.finish_within(PATIENCE).succeeded();
        let most_ns = begun.elapsed().as_nanos() as u64;
        let stolen = stolen_ns() - stolen;

        let profile = json(&folder.path().join("run.json"));
        assert_eq!(ended.len(), 6);
        for (pid, account) in ended {
            let [ref life] = lives(&profile, pid)[..] else {
                panic!("{pid} in {profile:#?} {}", finished.stderr)
            };
            let account = account.since(before.get(&pid).copied().unwrap_or_default());
            // A worker lives for at least one round, and for no longer than all rounds.
            assert!((700_000_000..most_ns).contains(&life.length_ns));
            // A worker that is woken on an idle CPU waits until that CPU has left idle. The kernel
            // counts that time as running. Until the kernel has queued the worker there, it counts
            // the time as neither running nor runnable. The tool's sum of both is therefore larger,
            // and its running time is smaller. `clock::accounting` checks how much of the
            // difference the wake-ups explain, and how much the sleep that the kernel counts as
            // runnable.
            let tolerance = per_mille(account.running_ns, 10) + 1_000_000 + stolen;
            let measured = life.running_ns + life.runnable_ns;
            let told = format!("{life:?} by {account:?}, within {tolerance}");
            assert!(measured + tolerance >= account.running_ns, "{told}");
            assert!(life.running_ns <= account.running_ns + tolerance, "{told}");
            assert!(account.running_ns > 10_000_000, "{account:?}");
        }
    });
}
