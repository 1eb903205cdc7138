//! User stacks of programs without frame pointers, whose call chains are known. Each stack equals
//! its chain, frame for frame, from the leaf to the root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::chain::assert_explained;
use systemscope_tests::printed::folded::bare;
use systemscope_tests::printed::samples::running_ns;
use systemscope_tests::printed::user_stacks::assert_most;
use systemscope_tests::truth::known_chains::{MAIN, Program, THREAD, turned};
use systemscope_tests::{
    Chain, Folded, Line, Seen, Turn, UserStacks, Watch, Workload, WorkloadBuilder, truth::gdb,
};

/// Measures a workload until it has computed for `cpu_ms` of CPU time.
fn watch_computing(workload: &Workload, arguments: &str, cpu_ms: u64) -> Seen {
    let mut watch = Watch::oncputime(workload.pid(), arguments);
    watch.open();
    let end = running_ns(workload.pid()) + cpu_ms * 1_000_000;
    while running_ns(workload.pid()) < end {
        sleep(Duration::from_millis(50));
    }
    watch.close()
}

/// Measures a workload for `ms` milliseconds.
fn watch(workload: &Workload, attach: fn(u32, &str) -> Watch, arguments: &str, ms: u64) -> Seen {
    let mut watch = attach(workload.pid(), arguments);
    watch.open();
    sleep(Duration::from_millis(ms));
    watch.close()
}

fn assert_off_cpu_stacks_are_the_chains(program: &Program) {
    let _turn = Turn::share();
    let chains = program.chains(&program.hold());
    let workload = program.start("wait");
    let seen = watch(&workload, Watch::offcputime, "-U", 1500);
    // All stacks of blocked threads reach the root, as the assertions below check. A preempted
    // thread may be at an instruction without a rule. GCC's tables are wrong after the `pop %rbp`
    // of a realigned frame, and GCC's unwinder overwrites its own frames.
    let said = UserStacks::read(&seen.stderr);
    assert_eq!(said.cut_short(), said.no_rule, "{said:?}");

    let folded = seen.folded_but_missed();
    let blocked = folded.marked("_[o]");
    for comm in chains.keys() {
        let whole = blocked.only(|line| line.comm == *comm && chains[comm].is(line));
        assert!(whole.total() > 0, "{comm} is never at its end: {blocked}");
    }
    assert_explained(&blocked, &chains, |chain, line| {
        // Before its signal comes, the thread `interrupted` waits below the frame that the signal
        // will interrupt.
        let waits = line.comm == "interrupted" && !line.has("on_signal");
        // The thread `waker` writes to a pipe. The pipe's reader may hold the pipe's lock.
        let writes = line.comm == "waker" && line.has("write") && chain.is_left_by(line);
        chain.is(line)
            || (waits && chain.begins(line) && line.has_path(&["end_interrupted"]))
            || writes
    });

    // A preempted thread may be anywhere in its chain, also in a library function that the chain
    // calls. Its stack is whole with two exceptions: in `in_aligned`, and in GCC's unwinder, which
    // turns its own frame into the frame of an exception handler.
    let ready = folded.marked("_[r]");
    assert_explained(&ready, &chains, |chain, line| {
        let cut = line.frames.first().is_some_and(|root| {
            let root = bare(root);
            root == "in_aligned" || root.starts_with("_Unwind_")
        });
        chain.begins(line) || chain.is_left_by(line) || cut
    });
}

/// Checks the stacks of threads that blocked before the tool attached, and that stay blocked.
fn assert_stacks_from_before_are_the_chains(program: &Program) {
    let _turn = Turn::share();
    let held = program.hold();
    let seen = watch(&held, Watch::offcputime, "-U", 200);
    let said = UserStacks::read(&seen.stderr);
    let chains = program.chains(&held);
    assert_eq!(said.cut_short(), 0, "{said:?}");
    for (comm, chain) in &chains {
        let stacks = seen.folded.only(|line| line.comm == *comm);
        assert_eq!(stacks.lines.len(), 1, "{comm}: {stacks}");
        assert!(chain.is(&stacks.lines[0]), "{chain:?}\n{stacks}");
    }
    assert_eq!(seen.folded.lines.len(), chains.len(), "{}", seen.folded);
}

#[test]
fn where_c_waits_is_its_chain() {
    assert_off_cpu_stacks_are_the_chains(&Program::c());
}

#[test]
fn where_cpp_waits_is_its_chain() {
    assert_off_cpu_stacks_are_the_chains(&Program::cpp());
}

#[test]
fn where_rust_waits_is_its_chain() {
    assert_off_cpu_stacks_are_the_chains(&Program::rust());
}

#[test]
fn c_that_waited_before_is_as_complete() {
    assert_stacks_from_before_are_the_chains(&Program::c());
}

#[test]
#[ignore = "the promise that the test in C holds, for C++"]
fn cpp_that_waited_before_is_as_complete() {
    assert_stacks_from_before_are_the_chains(&Program::cpp());
}

#[test]
#[ignore = "the promise that the test in C holds, for Rust"]
fn rust_that_waited_before_is_as_complete() {
    assert_stacks_from_before_are_the_chains(&Program::rust());
}

/// Returns the chains of `chains burn`, and for each chain its variant in the function that ends
/// with a tail call.
fn burning() -> BTreeMap<String, [Chain; 2]> {
    let program = Program::c();
    let waiting = program.chains(&program.hold());
    let calls: [(_, _, _, &[_]); 3] = [
        (
            "chains",
            "chains",
            turned(MAIN, 0, &[]),
            &["end_burn", "burn_leaf"],
        ),
        (
            "burn",
            "nanosleep",
            turned(THREAD, 1, &[]),
            &["end_burn", "burn_leaf"],
        ),
        ("clock", "read", turned(THREAD, 2, &[]), &["end_clock"]),
    ];
    let chains = calls.into_iter().map(|(comm, like, links, end)| {
        // The frames of libraries at the root are the same.
        let whole = waiting[like].up_to(links[links.len() - 1]).then(end);
        let leaving = waiting[like].up_to("with_many").then(&["in_tail"]);
        (comm.to_owned(), [whole, leaving])
    });
    chains.collect()
}

#[test]
fn samples_anywhere_in_c_are_of_its_chain() {
    let _turn = Turn::share();
    let chains = burning();
    let workload = Program::c().start("burn");
    // Each of the three threads has some 1,000 samples.
    let seen = watch_computing(&workload, "-U -F 499", 6000);
    for comm in chains.keys() {
        let of_thread = seen.folded.only(|line| line.comm == *comm);
        assert!(of_thread.total() > 100, "{comm}: {of_thread}");
    }
    // After the `pop %rbp` of a realigned frame GCC's own tables lose the frame of the caller. The
    // number of samples at these last two instructions depends on the CPU, because a code layout
    // may slow them down.
    let is_of_gcc = |line: &Line| line.frames == ["in_vla", "in_aligned"];
    let of_gcc = seen.folded.only(is_of_gcc).total();
    let at_end = seen.folded.only(|line| line.leaf() == "in_aligned").total();
    assert!(of_gcc * 2 <= at_end, "{of_gcc} of {at_end}");
    assert_most("samples", &seen.folded, 995, |line| {
        // Two other threads sleep nearly all the time.
        let Some([whole, leaving]) = chains.get(&line.comm) else {
            return true;
        };
        // libc reads the clock in the vDSO.
        let in_clock = line.has("end_clock") && line.frames.len() <= whole.len() + 3;
        whole.begins(line)
            || leaving.is(line)
            || (in_clock && whole.is_root_of(line))
            || is_of_gcc(line)
    });
    let mut said = UserStacks::read(&seen.stderr);
    assert!(of_gcc <= said.no_rule, "{of_gcc}: {said:?}");
    said.no_rule -= of_gcc;
    said.assert_reached(995);
}

/// Samples calls through the procedure linkage table. Returns the samples and the chain of the
/// caller.
fn calls_by_table(environment: Option<&str>) -> (Seen, Chain) {
    let workload = WorkloadBuilder::new("plt")
        .without_frame_pointers()
        .flag("-fno-builtin")
        .flag("-fplt")
        .flag("-Wl,-z,lazy")
        .start_with(|_, command| {
            command.envs(environment.map(|name| (name, "1")));
        });
    // This CPU time gives 5,000 samples.
    let seen = watch_computing(&workload, "-U -F 1999", 2500);
    let calls = ["main", "burn", "call_library"];
    // A stop most likely finds the thread below `call_library`.
    let stopped = (0..20)
        .map(|_| {
            gdb::backtraces(workload.pid())
                .remove(&workload.pid())
                .unwrap()
        })
        .find(|stack| stack.frames.contains(&Some("call_library".to_owned())))
        .expect("a stop below call_library");
    let chain = Chain::new(&stopped, &calls, &calls.into_iter().collect());
    (seen, chain.up_to("call_library"))
}

/// Returns the samples whose leaf is in the procedure linkage table.
fn in_table(seen: &Seen) -> Folded {
    seen.folded.only(|line| line.leaf() == "[plt]")
}

/// A resolved entry of the table is a single jump. Some CPUs take interrupts at the jump, and
/// others only after it.
#[test]
#[ignore = "samples for long to hit a few instructions"]
fn samples_in_the_linkage_table_have_their_caller() {
    let _turn = Turn::share();
    let (seen, chain) = calls_by_table(None);
    UserStacks::read(&seen.stderr).assert_reached(995);
    assert!(seen.folded.total() > 1000, "{}", seen.folded);
    assert_most("samples", &seen.folded, 995, |line| {
        let called = chain.is_root_of(line) && line.frames.len() <= chain.len() + 1;
        chain.begins(line) || called
    });
    let in_table = in_table(&seen);
    if in_table.total() > 0 {
        assert_most("in the table", &in_table, 995, |line| {
            line.frames.len() == chain.len() + 1
        });
    }
}

/// Calls go through the whole table to the dynamic linker. The linker keeps its frame address in a
/// register that the unwinder does not restore.
#[test]
#[ignore = "samples for long to hit a few instructions"]
fn samples_on_the_way_to_the_dynamic_linker_have_their_caller() {
    let _turn = Turn::share();
    let (seen, chain) = calls_by_table(Some("LD_BIND_NOT"));
    let in_table = in_table(&seen);
    assert!(in_table.total() >= 100, "few: {}", seen.folded);
    assert_most("in the table", &in_table, 995, |line| {
        chain.is_root_of(line) && line.frames.len() == chain.len() + 1
    });
}
