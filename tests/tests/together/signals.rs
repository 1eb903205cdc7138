//! Ctrl-C and other signals, which end a run with full output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use systemscope_tests::printed::output::{files_below, per_mille};
use systemscope_tests::printed::refusal::FOLDING;
use systemscope_tests::programs::simple::on;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::wallclock::start_measuring;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::account::stolen_ns;
use systemscope_tests::{Account, Folded, Running, Tool, Turn, Workload};

const ENDING: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];
const TIME: Duration = Duration::from_millis(700);

#[test]
fn oncputime_prints_what_it_has() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for signal in ENDING {
        let finished = Tool::new("oncputime")
            .pid(simple.pid())
            .args("-F 999")
            .run_until(signal, TIME)
            .succeeded();
        let burnt = Folded::parse(&finished.stdout).under("known_burn").total();
        assert!(burnt > 0, "no sample after {signal:?}");
    }
}

#[test]
fn offcputime_and_offwaketime_print_what_they_have() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for tool in ["offcputime", "offwaketime"] {
        for signal in ENDING {
            let running = Tool::new(tool).pid(simple.pid()).start_measuring();
            let account = || Account::read(simple.pid(), simple.pid()).unwrap();
            let (begun, before, stolen) = (Instant::now(), account(), stolen_ns());
            sleep(TIME);
            let (inside, until) = (begun.elapsed(), account());
            running.signal(signal);
            // The kernel accounts a thread's last interval only when the thread blocks.
            while account().voluntary == until.voluntary {
                sleep(Duration::from_millis(1));
            }
            let booked = account().since(before);
            let stolen = stolen_ns() - stolen;
            let finished = running.finish_within(PATIENCE).succeeded();
            let slept = Folded::parse(&finished.stdout).under("known_sleep").total();
            // The thread sleeps for the whole time, less its running time, its runnable time and
            // the stolen time.
            let awake = Duration::from_nanos(booked.running_ns + booked.runnable_ns + stolen);
            let least = inside.saturating_sub(awake);
            let least = least.as_micros() as u64;
            assert!(
                slept >= per_mille(least, 900),
                "{tool}: {slept} of {least} us after {signal:?}, {inside:?} long, {stolen} ns stolen: {booked:?}"
            );
        }
    }
}

/// Starts wallclock, and returns a while after the window opened.
fn start_wallclock(simple: &Workload, folder: &Path) -> Running {
    let wallclock = Tool::new("wallclock")
        .arg(simple.pid().to_string())
        .args("-d 600 -o")
        .arg(folder.join("early"));
    let running = start_measuring(wallclock);
    sleep(TIME);
    running
}

#[test]
fn wallclock_writes_what_it_has() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for signal in ENDING {
        let folder = scratch();
        let running = start_wallclock(&simple, folder.path());
        running.signal(signal);
        running.finish_within(PATIENCE).succeeded();
        let files = files_below(folder.path());
        for kind in ["svg", "folded", "txt"] {
            let any = files
                .iter()
                .any(|path| path.extension().is_some_and(|extension| extension == kind));
            assert!(any, "no .{kind} after {signal:?}: {files:?}");
        }
        for path in files.iter().filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "folded")
        }) {
            assert!(
                Folded::parse(&std::fs::read(path).unwrap()).total() > 0,
                "{}",
                path.display()
            );
        }
    }
}

/// A terminal sends Ctrl-C to the children, too. The children must leave the decision to wallclock.
#[test]
fn wallclock_survives_a_ctrl_c_to_its_whole_group() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let folder = scratch();
    let running = start_wallclock(&simple, folder.path());
    running.signal_group(Signal::INT);
    running.finish_within(PATIENCE).succeeded();
    let written: Vec<_> = files_below(folder.path());
    assert!(
        written
            .iter()
            .any(|path| path.extension().is_some_and(|extension| extension == "svg")),
        "{written:?}"
    );
}

#[test]
fn a_duration_ends_by_itself() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for tool in FOLDING {
        for duration in ["1", "--duration=0.5"] {
            let start = Instant::now();
            let finished = on(tool, &simple).args(duration).run().succeeded();
            let took = start.elapsed().as_secs_f64();
            let asked = if duration.ends_with("0.5") { 0.5 } else { 1.0 };
            assert!(took >= asked, "{tool} {duration} took {took} s");
            // Neither of the two threads can be off the CPU for longer. The tool can sample only
            // one of them.
            let most = match tool {
                "oncputime" => asked * 499.0 + 2.0,
                _ => 2.0 * asked * 1e6,
            };
            let total = Folded::parse(&finished.stdout).total();
            assert!(
                total > 0 && total as f64 <= most,
                "{tool} {duration}: {total} of {most}"
            );
        }
    }
}
