//! A recorder keeps the last part of a window whole, and its triggers fire at the right wait.

use std::time::Instant;

use super::*;

/// Length of a recording, in ns.
const LAST_NS: u64 = 1_000_000_000;
/// Maximum time between the end of a wait that sets off a trigger and the end of the recording.
const TRIGGER_NS: u64 = 100_000_000;

#[test]
fn the_last_second_of_a_known_schedule_is_whole() {
    let _turn = Turn::share();
    patiently(|| {
        let (_workload, lines, profile) = measure("relay", &[200], "--last 1s");
        let window = profile.meta.window;
        assert_eq!(window.length_ns, LAST_NS);
        assert_eq!(profile.losses.times, 0);
        assert_lanes_are_lives(&profile);
        let mut seen = 0;
        for (tid, noted) in noted_waits(&lines) {
            let is_recorded = |wait: &Noted| wait.begin_ns > window.start_ns + LEAST_NS;
            let noted: Vec<Noted> = noted.into_iter().filter(is_recorded).collect();
            assert_is_as_noted(&profile, tid, &noted, 5 * TOLERANCE_NS);
            seen += noted.len();
        }
        // A round takes about 14 ms, and each of the four threads waits twice in it.
        assert!(seen > 200, "{seen} waits");
        // Every sum is that of the rows.
        let rows = profile.times.intervals.iter();
        let with_stacks = rows.filter(|row| row.sample.is_some());
        let rows_ns: u64 = with_stacks.map(Interval::length_ns).sum();
        let sums = profile.samples.values();
        assert_eq!(rows_ns, sums.map(|weight| weight.value).sum::<u64>());
    });
}

#[test]
fn a_trigger_fires_once_at_the_wait_of_a_thread_with_work() {
    let _turn = Turn::share();
    for (kind, trigger) in [("lock", "blocked:50ms"), ("cpu", "runnable:50ms")] {
        patiently(|| {
            let folder = scratch();
            let capture = folder.path().join("run.scope");
            let mut stall = Workload::start("stall", &[kind]);
            let tool = Tool::new("offcputime").args("--last 2s --trigger");
            let tool = tool.arg(trigger).arg("-o").arg(&capture);
            let mut tool = tool.pid(stall.pid()).start();
            tool.wait_until_said(MEASURING, PATIENCE);
            stall.go();
            // Workers wait for work ten times, each time for longer than the trigger says.
            sleep(Duration::from_secs(1));
            stall.go();
            let line = stall.next_line();
            let words: Vec<&str> = line.split(' ').collect();
            let ["wait", tid, end] = words[..] else {
                panic!("{line}");
            };
            let finished = tool.finish_within(PATIENCE).succeeded();
            let said = format!("trigger {trigger}: thread {tid} ");
            let count = finished.stderr.matches("trigger ").count();
            assert!(finished.stderr.contains(&said), "{}", finished.stderr);
            assert_eq!(count, 1, "{}", finished.stderr);
            let profile = read(&capture);
            let window = profile.meta.window;
            let after_ns =
                (window.start_ns + window.length_ns).abs_diff(end.parse::<u64>().unwrap());
            assert!(after_ns < TRIGGER_NS, "{after_ns} ns after the wait");
            assert_lanes_are_lives(&profile);
        });
    }
}

#[test]
fn requests_to_write_leave_one_file_each() {
    let _turn = Turn::share();
    let folder = scratch();
    let file = |name: &str| folder.path().join(name);
    let mut naps = Workload::start("naps", &[60, 5000]);
    naps.go();
    let tool = Tool::new("wallclock").args("--last 500ms -o");
    let tool = tool.arg(file("run.scope"));
    let mut tool = tool.arg(naps.pid().to_string()).start();
    tool.wait_until_said(MEASURING, PATIENCE);
    for name in ["run.scope", "run-2.scope"] {
        sleep(Duration::from_secs(1));
        tool.signal(Signal::USR1);
        // A file appears once it is whole.
        let deadline = Instant::now() + PATIENCE;
        while !file(name).exists() {
            assert!(Instant::now() < deadline, "no {name}");
            sleep(Duration::from_millis(10));
        }
        // The second recording may not have begun before the request.
        let parts = capture::read_all(BufReader::new(File::open(file(name)).unwrap())).unwrap();
        let [on_cpu, off_cpu] = &parts[..] else {
            panic!("{} captures in one file", parts.len());
        };
        assert!(off_cpu.meta.window.length_ns <= 500_000_000);
        assert_eq!(on_cpu.meta.window.start_ns, off_cpu.meta.window.start_ns);
        assert!(name == "run-2.scope" || !off_cpu.times.intervals.is_empty());
    }
    tool.signal(Signal::INT);
    tool.finish_within(PATIENCE).succeeded();
}
