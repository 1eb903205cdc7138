//! Blocked time with and without work. Time that is shown as idle was idle, and most idle time is
//! shown as idle.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;

use systemscope_tests::printed::folded::bare;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::tries::patiently;
use systemscope_tests::truth::idleness::{Scenario, Times};
use systemscope_tests::{Folded, Tool, Turn, Workload, WorkloadBuilder};
use tempfile::TempDir;

const FLAGS: &str = "-m 0 --reasons --states --nanoseconds";
/// Minimum share of the time shown as idle that was idle.
const PRECISION: f64 = 0.95;
/// Minimum share of the idle time that is shown as idle, if the idleness can be known.
const RECALL: f64 = 0.9;

fn measure_attached(scenario: &Scenario, busy: u32) -> Times {
    let workload = Workload::start("idle", &[scenario.name.to_owned(), busy.to_string()]);
    let tool = Tool::new("offcputime").args(FLAGS).pid(workload.pid());
    Times::of(&tool.folded(1.5))
}

/// If two threads take turns, only the start of an exchange shows which thread asks and which one
/// answers. All other idle time is known.
#[test]
#[ignore = "holds many programs against a trace of their wake-ups, one after another"]
fn what_is_shown_as_idle_was() {
    let _turn = Turn::share();
    for scenario in &Scenario::ALL {
        patiently(|| {
            let [calm, busy] = [10, 70].map(|busy| {
                let times = measure_attached(scenario, busy);
                let what = format!("{} at {busy} %: {times:?}", scenario.name);
                assert!(times.precision() >= PRECISION, "{what}");
                assert!(times.recall() >= scenario.recall, "{what}");
                times.idle as f64 / times.blocked() as f64
            });
            let name = scenario.name;
            assert!(
                busy <= calm * 1.02,
                "{name}: idle {calm}, with more to do {busy}"
            );
        });
    }
}

/// The workload as a command that the tools run. All its threads begin in the window.
struct Command {
    folder: TempDir,
    program: PathBuf,
}

impl Command {
    fn build() -> Command {
        let folder = scratch();
        let program = WorkloadBuilder::new("idle").build_into(folder.path());
        Command { folder, program }
    }

    /// Returns the blocked time while the command runs.
    fn measure(&self, scenario: &str, seconds: &str) -> Times {
        let path = self.folder.path().join("command.folded");
        let tool = Tool::new("offcputime").args(FLAGS).arg("-o").arg(&path);
        let tool = tool.arg("--").arg(&self.program);
        let finished = tool.args(&format!("{scenario} 50 {seconds}")).run();
        assert!(finished.succeeded().stdout.starts_with(b"ready"));
        let folded = std::fs::read(&path).expect("the measured stacks");
        Times::of(&Folded::parse(&folded))
    }
}

/// The tool sees all threads from their birth, so it knows for which thread each of them works.
#[test]
#[ignore = "runs several commands, one after another"]
fn a_commands_threads_are_known_from_their_birth() {
    let _turn = Turn::share();
    let command = Command::build();
    for scenario in &Scenario::ALL {
        patiently(|| {
            let times = command.measure(scenario.name, "2");
            let what = format!("{}: {times:?}", scenario.name);
            assert!(times.precision() >= PRECISION, "{what}");
            assert!(times.recall() >= RECALL, "{what}");
        });
    }
}

/// A thread that starts another thread waits for the other thread's result.
#[test]
fn who_is_born_answers_who_bore_it() {
    let _turn = Turn::share();
    let command = Command::build();
    patiently(|| {
        let times = command.measure("births", "1");
        assert!(times.precision() >= PRECISION, "{times:?}");
        assert!(times.waiting * 4 > times.blocked(), "{times:?}");
    });
}

/// In the window only timers wake the answering thread before it answers.
#[test]
fn who_asked_before_the_window_is_not_given_work() {
    let _turn = Turn::share();
    let workload = Workload::start("idle", &["disk", "95"]);
    let tool = Tool::new("offcputime").args(FLAGS).pid(workload.pid());
    let waits = tool
        .folded(1.5)
        .only(|line| line.has("await_backend") && line.leaf().ends_with("]_[o]"));
    assert!(waits.total() > 1_000_000_000, "{waits}");
    let idle = waits.only(|line| bare(line.leaf()).ends_with(" (idle)]"));
    assert_eq!(idle.total(), 0, "{waits}");
}

#[test]
fn idle_time_may_be_hidden_or_shown_alone() {
    let _turn = Turn::share();
    let workload = Workload::start("idle", &["server", "50"]);
    let measure = |flags: &str| {
        let tool = Tool::new("offcputime").args(FLAGS).args(flags);
        Times::of(&tool.pid(workload.pid()).folded(1.0))
    };
    let (hidden, alone) = (measure("--idle hide"), measure("--idle only"));
    assert_eq!(hidden.shown_idle(), 0);
    assert!(hidden.blocked() > 0, "{hidden:?}");
    assert_eq!(alone.shown_idle(), alone.blocked());
    assert!(alone.blocked() > 0, "{alone:?}");
}

/// Tasks of tokio run on worker threads, which are parked while no task can run. A worker that waits
/// for a lock in a task has work.
#[test]
fn parked_workers_of_tokio_are_idle() {
    let _turn = Turn::share();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_tokio_tasks"));
    let tasks = Workload::run(std::process::Command::new(&binary), binary, scratch());
    let measure = || {
        Tool::new("offcputime")
            .args(FLAGS)
            .pid(tasks.pid())
            .folded(1.5)
    };
    patiently(|| {
        let folded = measure();
        let blocked = folded.only(|line| line.leaf().ends_with("]_[o]"));
        let share_of_idle = |function: &str| {
            let waits =
                blocked.only(|line| line.frames.iter().any(|frame| frame.contains(function)));
            let idle = waits.only(|line| bare(line.leaf()).ends_with(" (idle)]"));
            assert!(waits.total() > 500_000_000, "{function}: {folded}");
            idle.total() as f64 / waits.total() as f64
        };
        let parked = share_of_idle("worker::Context::park");
        assert!(parked >= PRECISION, "{parked}: {folded}");
        assert_eq!(share_of_idle("tokio_tasks::want_lock"), 0.0, "{folded}");
    });
}
