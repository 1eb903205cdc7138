//! A thread's three states add up to its life. They agree with the kernel's account, and with the
//! times that the program measured itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::printed::output::{assert_close, per_mille};
use systemscope_tests::printed::phases::{self, Measured};
use systemscope_tests::printed::samples::CpuTime;
use systemscope_tests::truth::wake_ups::Delays;
use systemscope_tests::{
    Account, ClockRow, Turn, Watch, Workload, cpus_online, least_stolen, patiently,
};

const WORKERS: u64 = 3;

/// Measures in a window with little stolen time. The kernel leaves stolen time out of a thread's
/// running time, and no clock inside the machine can do that. A window with much stolen time is
/// measured again.
fn measure_calm(attach: impl Fn(u32) -> Watch) -> Measured {
    least_stolen(|| {
        let measured = phases::measure(Workload::start("phases", &[2, WORKERS]), &attach);
        let cpu_time = measured.seen.window_ns() * cpus_online() as u64;
        (measured.stolen_ns * 1000 / cpu_time, measured)
    })
}

/// Checks that a thread's states agree with the kernel's account within 1 %. If a state is short,
/// it may be off by 0.1 % of the thread's life. Stolen time may belong to any thread.
fn assert_agrees(row: &ClockRow, kernel: &Account, delays: Delays, stolen_ns: u64) {
    let what = |name: &str| format!("{} {name} ns, hypervisor's {stolen_ns}", row.comm);
    let lifetime = row.lifetime_ns();
    let tolerance = |truth: u64| per_mille(truth, 10).max(per_mille(lifetime, 1)) + stolen_ns;
    let assert_within = |name: &str, measured: u64, [least, most]: [u64; 2]| {
        let least = least.saturating_sub(tolerance(least));
        let most = most + tolerance(most);
        assert!(
            (least..=most).contains(&measured),
            "{}: {measured} is not from {least} to {most}; {row:?}, {kernel:?}, {delays:?}",
            what(name)
        );
    };
    // The kernel counts the time from a preempting wake-up to the switch as running. The kernel
    // counts the time from a wake-up to the arrival on a run queue as blocked. The clock counts
    // both as runnable. The kernel counts the sleep of a thread after a move to another CPU as
    // runnable, and the clock counts it as blocked.
    let (arriving, preempting) = (delays.arriving_ns, delays.preempting_ns);
    let running = kernel.running_ns;
    let least = running.saturating_sub(preempting);
    assert_within("running", row.running_ns, [least, running]);
    let runnable = kernel.runnable_ns.saturating_sub(delays.moved_asleep_ns);
    let most = runnable + arriving + preempting;
    assert_within("runnable", row.runnable_ns, [runnable, most]);
    let blocked = lifetime - kernel.running_ns - runnable;
    let least = blocked.saturating_sub(arriving);
    assert_within("blocked", row.blocked_ns, [least, blocked]);
    let switches = |truth: u64| per_mille(truth, 10).max(2);
    assert_close(
        &what("voluntary switches"),
        row.voluntary,
        kernel.voluntary,
        switches(kernel.voluntary),
    );
    assert_close(
        &what("involuntary switches"),
        row.involuntary,
        kernel.involuntary,
        switches(kernel.involuntary),
    );
}

#[test]
fn every_thread_adds_up_and_agrees_with_the_kernel() {
    let _turn = Turn::share();
    patiently(assert_every_thread_agrees);
}

/// Checks the states of each thread. If the machine hides a wake-up, only the kernel counts the
/// wait for a CPU after it.
fn assert_every_thread_agrees() {
    let measured = measure_calm(|pid| Watch::offcputime(pid, ""));
    let Measured {
        seen,
        kernel,
        wake_ups,
        stolen_ns,
        phases,
    } = &measured;
    assert_eq!(seen.clocks.len(), kernel.len(), "{:#?}", seen.clocks);
    for row in &seen.clocks {
        assert_eq!(row.pid, phases.pid());
        let lifetime = row.lifetime_ns();
        assert_eq!(lifetime, seen.window_ns(), "{row:?}");
        assert_eq!(row.accounted_ns(), lifetime, "{row:?}");
        let delays = wake_ups.get(&row.tid).copied().unwrap_or_default();
        assert_agrees(row, &kernel[&row.tid], delays, *stolen_ns);
    }
}

#[test]
fn a_threads_stacks_add_up_to_its_clock() {
    let _turn = Turn::share();
    let measured = measure_calm(|pid| Watch::offcputime(pid, ""));
    let seen = &measured.seen;
    for row in &seen.clocks {
        let stacks = seen.folded.of_thread(row.tid);
        assert!(
            stacks.comms().iter().all(|comm| *comm == row.comm),
            "{:?} is {}",
            stacks.comms(),
            row.comm
        );
        // Intervals below the threshold of 1 us are missing.
        let hidden = 1000 * (row.voluntary + row.involuntary);
        for (mark, clock) in [("_[o]", row.blocked_ns), ("_[r]", row.runnable_ns)] {
            let shown = stacks.marked(mark).total();
            assert!(
                (clock.saturating_sub(hidden)..=clock).contains(&shown),
                "{shown} in {mark}: {row:?}"
            );
        }
    }
    let states = seen.folded.marked("_[o]").total() + seen.folded.marked("_[r]").total();
    assert_eq!(states, seen.folded.total(), "a stack without a state");
}

#[test]
fn time_off_cpu_is_in_the_function_that_waited() {
    let _turn = Turn::share();
    patiently(assert_time_is_in_the_function);
}

fn assert_time_is_in_the_function() {
    let Measured {
        phases,
        seen,
        kernel,
        stolen_ns,
        ..
    } = measure_calm(|pid| Watch::offcputime(pid, ""));
    for worker in 0..WORKERS {
        let tid = u32::try_from(phases.told(&format!("worker-{worker}"))).unwrap();
        let stacks = seen.folded.of_thread(tid);
        let preempted = stacks.under("f");
        // `computed` is the time that f ran on a CPU. `elsewhere` is the rest of the running time
        // in the kernel's account.
        let computed = phases.told(&format!("f-{worker}")) - preempted.total();
        let elsewhere = kernel[&tid].running_ns.saturating_sub(computed);
        for function in ["g", "h", "i"] {
            let waited = stacks.under(function);
            // A thread that is preempted may not have a frame of its own yet.
            assert!(
                waited
                    .marked("_[o]")
                    .lines
                    .iter()
                    .all(|line| line.has_path(&["work", "one_round", function])),
                "callers of {function}: {waited:#?}"
            );
            // The program's own measure of the function includes time on a CPU. That time is at
            // most `elsewhere`.
            let truth = phases.told(&format!("{function}-{worker}"));
            let tolerance = per_mille(truth, 10).max(per_mille(seen.window_ns(), 1));
            let least = truth.saturating_sub(elsewhere + tolerance + stolen_ns);
            assert!(
                (least..=truth + stolen_ns).contains(&waited.total()),
                "worker {worker} in {function}: {} is not from {least} to {truth}",
                waited.total()
            );
        }
        assert_eq!(
            preempted.marked("_[o]").total(),
            0,
            "f never blocks: {preempted:#?}"
        );
        // The program's own measure is the lower limit of the running time, and the kernel's
        // account is the upper limit.
        let clock = seen.clocks.iter().find(|row| row.tid == tid).unwrap();
        let most = kernel[&tid].running_ns;
        let tolerance = per_mille(most, 10) + stolen_ns;
        assert!(
            (computed - tolerance..=most + tolerance).contains(&clock.running_ns),
            "worker {worker} computed {computed} ns, the kernel counted {most}: {clock:?}"
        );
    }
}

#[test]
fn samples_are_where_the_cpu_time_was() {
    const HERTZ: u64 = 199;
    let _turn = Turn::share();
    let measured = measure_calm(|pid| Watch::oncputime(pid, &format!("-F {HERTZ}")));
    let Measured {
        phases,
        seen,
        kernel,
        stolen_ns,
        ..
    } = &measured;
    for worker in 0..WORKERS {
        let tid = u32::try_from(phases.told(&format!("worker-{worker}"))).unwrap();
        let samples = seen.folded.of_thread(tid);
        let cpu_time = CpuTime {
            running_ns: kernel[&tid].running_ns,
            unsure_ns: *stolen_ns,
        };
        let what = format!("worker {worker} samples");
        cpu_time.assert_sampled(&what, samples.total(), HERTZ);
        // The program's own measure of f includes waits for a CPU.
        let in_f = samples.only(|line| line.has_path(&["work", "one_round", "f"]));
        let f_ns = phases.told(&format!("f-{worker}"));
        let elsewhere_ns = kernel[&tid].running_ns.saturating_sub(f_ns);
        let in_f_at_least = CpuTime {
            running_ns: kernel[&tid].running_ns - elsewhere_ns,
            unsure_ns: *stolen_ns,
        };
        in_f_at_least.assert_sampled(&format!("{what} in f"), in_f.total(), HERTZ);
    }
}
