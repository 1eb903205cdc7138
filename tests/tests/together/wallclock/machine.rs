//! wallclock on the whole machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use profile::{Profile, Unit};
use rustix::process::Signal;
use systemscope_tests::printed::output::{assert_close, files_below};
use systemscope_tests::printed::refusal::{WRONG_COMMAND_LINE, assert_refused};
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::wallclock::start_measuring;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::idle::IdleWatch;
use systemscope_tests::{Finished, Tool, Turn, Workload, cpus_online, patiently};

fn stdout(finished: &Finished) -> &str {
    str::from_utf8(&finished.stdout).unwrap()
}

/// Reads the off-CPU part of a capture of wallclock. This part has the accounts.
fn off_cpu(path: &Path) -> Profile {
    let file = BufReader::new(File::open(path).unwrap());
    let parts = capture::read_all(file).unwrap();
    let part = |part: &Profile| part.unit == Unit::Nanoseconds;
    parts.into_iter().find(part).unwrap()
}

/// Returns the cells of the only line with `word` in a column.
#[track_caller]
fn line_with<'a>(text: &'a str, column: usize, word: &str) -> Vec<&'a str> {
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found: Vec<_> = lines
        .filter(|cells| cells.get(column) == Some(&word))
        .collect();
    let [line] = &found[..] else {
        panic!("not one {word} in column {column}: {found:?}\n{text}");
    };
    line.clone()
}

/// Parses a number with three decimals. Returns thousandths.
fn thousandths(cell: &str) -> u64 {
    cell.replace('.', "").parse().unwrap()
}

/// Column of the running time in a table of processes.
const RUNNING: usize = 3;

#[test]
fn running_and_idle_time_add_up_to_all_of_the_cpus() {
    let _turn = Turn::share();
    let mut spinner = Workload::start("spinners", &[1, 600]);
    spinner.go();
    patiently(|| assert_adds_up(spinner.pid()));
}

fn assert_adds_up(spinner: u32) {
    let folder = scratch();
    let file = folder.path().join("run.scope");
    let watch = IdleWatch::start();
    let run = Tool::new("wallclock")
        .args("--all -d 4 -o")
        .arg(&file)
        .run();
    let idle = watch.finish();
    let run = run.succeeded();
    let told = stdout(&run);

    let profile = off_cpu(&file);
    let window = profile.meta.window;
    let all = window.length_ns * cpus_online() as u64 / 1_000_000;
    let idle = idle.between(window.start_ns, window.start_ns + window.length_ns) / 1_000_000;
    // These sums are of all processes, all kernel threads and all CPUs.
    let clocks = profile.threads.iter().map(|thread| thread.clock.running_ns);
    let running = clocks.sum::<u64>() / 1_000_000;
    assert_close("running and idle in ms", running + idle, all, all / 100);
    let cpus = told.split("\nCPUS  ").nth(1).unwrap();
    let words: Vec<&str> = cpus.split_whitespace().take(6).collect();
    assert_eq!([words[2], words[5]], ["%", "%"], "{told}");
    let [busy, of_cpus] = [words[1], words[4]].map(|word| word.parse::<u64>().unwrap());
    assert_close("busy and idle CPUs in %", busy + of_cpus, 100, 1);
    // wallclock reads the CPUs' account a little before or after the window's edges.
    assert_close("idle CPUs in %", of_cpus, idle * 100 / all, 3);
    // Each process has a row, and no process is among the kernel threads.
    let (users, kernel) = told.split_once("KERNEL THREADS").unwrap();
    let row = line_with(users, 0, &spinner.to_string());
    let running: u64 = row[3].parse().unwrap();
    assert!(running > 5, "{row:?}");
    assert!(!kernel.contains("spinners"), "{told}");
    let kthreadd = |process: &&profile::Process| process.pid == 2;
    let kthreadd = profile.processes.iter().find(kthreadd);
    assert!(kthreadd.is_some_and(|process| process.is_kernel_thread));
}

#[test]
fn it_has_one_flame_graph_by_process_and_one_report() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let folder = scratch();
    let tool = Tool::new("wallclock")
        .in_folder(folder.path())
        .args("--all -d 2 -o out");
    let run = tool.run().succeeded();
    let files = files_below(folder.path());
    let names: Vec<&str> = files
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["out.folded", "out.html", "out.svg", "out_processes.txt"]
    );
    let folded = fs::read_to_string(folder.path().join("out.folded")).unwrap();
    let first = format!("simple-{};", simple.pid());
    assert!(
        folded.lines().any(|line| line.starts_with(&first)),
        "{first}"
    );
    let svg = fs::read_to_string(folder.path().join("out.svg")).unwrap();
    assert!(svg.contains("<title>simple (") && svg.contains("known_sleep"));
    let report = fs::read_to_string(folder.path().join("out_processes.txt")).unwrap();
    let told = stdout(&run);
    assert!(told.starts_with("the whole machine · "), "{told}");
    assert!(
        told.lines().all(|line| line.chars().count() <= 120),
        "{told}"
    );
    // The sums are of all processes and of all kernel threads. Nothing else ran.
    let sums = report
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|cells| cells.first() == Some(&"all") && cells.contains(&"-"));
    let sums: Vec<u64> = sums.map(|cells| thousandths(cells[RUNNING])).collect();
    let [of_users, of_kernel] = sums[..] else {
        panic!("not two sums: {sums:?}\n{report}");
    };
    let (_, cpus) = report
        .split_once("\nCPUs, by the kernel's account")
        .unwrap();
    let (_, ran) = cpus.split_once("threads ran for ").unwrap();
    let ran = thousandths(ran.split(' ').next().unwrap());
    assert_close("running in ms", of_users + of_kernel, ran, 2);
    line_with(cpus, 0, "all");
    for cpu in 0..cpus_online() {
        line_with(cpus, 0, &cpu.to_string());
    }
}

#[test]
#[ignore = "measures the whole machine, beside another test that does"]
fn it_ends_at_ctrl_c_and_lists_as_many_as_it_is_told() {
    let _turn = Turn::share();
    let folder = scratch();
    let tool = Tool::new("wallclock").in_folder(folder.path());
    let running = start_measuring(tool.args("--all -d 600 --processes 1 -o out"));
    std::thread::sleep(Duration::from_millis(500));
    running.signal(Signal::INT);
    let finished = running.finish_within(PATIENCE).succeeded();
    let told = stdout(&finished);
    assert!(told.contains(" of 600.0 s, ended by the user · "), "{told}");
    let report = fs::read_to_string(folder.path().join("out_processes.txt")).unwrap();
    let (users, _) = report.split_once("The kernel's own threads").unwrap();
    let rest = users.lines().find(|line| line.ends_with("other processes"));
    let rest = rest.unwrap_or_else(|| panic!("no row for all other processes\n{report}"));
    let others: usize = rest
        .split_whitespace()
        .rev()
        .nth(2)
        .unwrap()
        .parse()
        .unwrap();
    let (all, _) = report.split_once(' ').unwrap();
    let all: usize = all.parse().unwrap();
    let listed = users
        .lines()
        .filter(|line| line.split_whitespace().next().is_some_and(is_number))
        .filter(|line| !line.ends_with(" processes") && !line.contains("measured"))
        .filter(|line| line.split_whitespace().nth(1).is_some_and(is_number))
        .count();
    assert_eq!(listed + others, all, "{report}");
    let (users, _) = told.split_once("KERNEL THREADS").unwrap();
    assert!(users.contains(&format!("  {all} processes\n")), "{told}");
    assert!(users.contains(" others\n"), "{told}");
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn a_machine_and_a_process_are_not_measured_at_once() {
    let _turn = Turn::share();
    for arguments in ["--all 1", "--all -n sleep", "--all --processes x"] {
        let refused = Tool::new("wallclock").args(arguments).run();
        assert_refused("wallclock", &refused, &[WRONG_COMMAND_LINE], &["--"]);
    }
}
