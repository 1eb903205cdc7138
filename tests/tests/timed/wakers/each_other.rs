//! Each wait names its waker: the right thread with its stack, or the interrupt. It never names a
//! bystander.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use systemscope_tests::printed::user_stacks::{assert_most, starts_a_thread};
use systemscope_tests::printed::wakers::{TIMER, Waker};
use systemscope_tests::{
    Folded, Line, Seen, Turn, UserStacks, Workload, WorkloadBuilder, cpus_online,
};

use super::measure_waits;

const WINDOW: Duration = Duration::from_secs(2);

/// Starts threads that compute on every CPU and wake no other thread.
fn spinners() -> Workload {
    let mut spinners = Workload::start("spinners", &[cpus_online(), 60]);
    spinners.go();
    spinners
}

/// Two threads of two processes that wake each other.
struct Pair {
    workload: Workload,
    asker: (u32, u32),
    answerer: (u32, u32),
}

impl Pair {
    fn start(builder: WorkloadBuilder) -> Pair {
        let mut workload = builder.start();
        workload.go();
        let id = |name| u32::try_from(workload.told(name)).unwrap();
        Pair {
            asker: (id("asker"), id("asker")),
            answerer: (id("answering"), id("answerer")),
            workload,
        }
    }

    /// Measures both threads with `arguments`. Returns the results, the ended waits of the asker,
    /// and the ended waits of the answerer.
    fn measure(&self, arguments: &str) -> (Seen, Folded, Folded) {
        let seen = measure_waits(
            WINDOW,
            &[self.workload.told("asker"), self.workload.told("answering")],
            arguments,
        );
        let waits = seen.waits_but_missed().ended();
        let (asker, answerer) = (
            waits.of_thread(self.asker.1),
            waits.of_thread(self.answerer.1),
        );
        (seen, asker, answerer)
    }
}

fn wake_pairs() -> WorkloadBuilder {
    WorkloadBuilder::new("wake_pairs")
}

/// Returns whether a waker is this thread, with its whole user stack.
fn is_thread(waker: &Waker, comm: &str, thread: (u32, u32)) -> bool {
    let stack = Line {
        comm: waker.comm.clone(),
        thread: waker.thread,
        frames: waker.frames.clone(),
        value: 0,
    };
    waker.comm == comm && waker.thread == Some(thread) && starts_a_thread(&stack)
}

fn assert_each_wakes_the_other(pair: &Pair) {
    let (seen, asker, answerer) = pair.measure("");
    assert_most("wakers of the asker", &asker, 990, |line| {
        let waker = line.waker();
        is_thread(&waker, "answerer", pair.answerer)
            && waker.has_path(&["answer", "wake_asker"])
            && waker.has("ksys_write")
            && !waker.has("await_question")
    });
    assert_most("stacks of the asker", &asker, 990, |line| {
        let sleeper = line.sleeper();
        line.comm == "asker"
            && line.thread == Some(pair.asker)
            && sleeper.has_path(&["main", "ask", "await_answer"])
            && sleeper.has("ksys_read")
    });
    assert_most("wakers of the answerer", &answerer, 990, |line| {
        let waker = line.waker();
        is_thread(&waker, "asker", pair.asker)
            && waker.has_path(&["main", "ask", "wake_answerer"])
            && waker.has("futex_wake")
            && !waker.has("await_answer")
    });
    assert_most("stacks of the answerer", &answerer, 990, |line| {
        let sleeper = line.sleeper();
        line.comm == "answerer"
            && line.thread == Some(pair.answerer)
            && sleeper.has_path(&["answer", "await_question"])
            && sleeper.has("futex_wait")
    });
    // While one thread waits the other one computes. Together they wait most of the time.
    let waited = asker.total() + answerer.total();
    assert!(
        waited * 4 > seen.window_ns(),
        "{waited} of {} ns",
        seen.window_ns()
    );
}

#[test]
fn two_that_wake_each_other_are_each_others_wakers() {
    let _turn = Turn::share();
    assert_each_wakes_the_other(&Pair::start(wake_pairs()));
}

#[test]
#[ignore = "loads every CPU"]
fn two_that_wake_each_other_on_a_busy_machine() {
    let _turn = Turn::share();
    let _spinners = spinners();
    assert_each_wakes_the_other(&Pair::start(wake_pairs()));
}

/// The waker belongs to a process that is not a target, and has no frame pointers.
#[test]
fn a_waker_of_another_process_has_its_whole_stack() {
    let _turn = Turn::share();
    let pair = Pair::start(wake_pairs().without_frame_pointers());
    let seen = measure_waits(WINDOW, &[pair.workload.told("asker")], "");
    let waits = seen.waits_but_missed().ended();
    assert_most("wakers of the asker", &waits, 990, |line| {
        is_thread(&line.waker(), "answerer", pair.answerer)
    });
    UserStacks::read(&seen.stderr).assert_reached(990);
}

fn assert_timers_end_the_naps() {
    let mut naps = Workload::start("naps", &[60, 200]);
    naps.go();
    let seen = measure_waits(WINDOW, &[naps.pid()], "-d");
    let waits = seen.waits_but_missed().ended();
    assert_most("wakers of naps", &waits, 990, |line| {
        let waker = line.waker();
        let is_timer = waker.comm == TIMER && waker.thread.is_none();
        // The delimiter would come before the kernel frames.
        is_timer && waker.has("hrtimer_interrupt") && !waker.has("-")
    });
    assert_most("stacks of naps", &waits, 990, |line| {
        line.sleeper().has_path(&["main", "nap"])
    });
    let bystander = waits.only(|line| line.waker().thread.is_some());
    assert_eq!(bystander.total(), 0, "no thread wakes it:{bystander}");
    let foreign = ["main", "spin", "do_syscall_64", "nap"];
    let interrupted = waits.only(|line| foreign.iter().any(|name| line.waker().has(name)));
    assert_eq!(
        interrupted.total(),
        0,
        "interrupted threads count as wakers:{interrupted}"
    );
}

#[test]
fn a_timer_is_no_thread() {
    let _turn = Turn::share();
    assert_timers_end_the_naps();
}

/// Only timers end the naps. The timers interrupt the threads that `--waker-pid` selects.
#[test]
fn what_interrupts_a_thread_is_not_its_doing() {
    let _turn = Turn::share();
    let spinners = spinners();
    let mut naps = Workload::start("naps", &[60, 200]);
    naps.go();
    let wakers = format!("--waker-pid {}", spinners.pid());
    let seen = measure_waits(WINDOW, &[naps.pid()], &wakers);
    assert_eq!(seen.folded.total(), 0, "{}", seen.folded);
}

#[test]
fn a_timer_is_none_of_those_whom_it_interrupts() {
    let _turn = Turn::share();
    let _spinners = spinners();
    assert_timers_end_the_naps();
}
