//! User stacks that need special handling: coroutines, uretprobes and 32-bit code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use systemscope_tests::printed::folded::bare;
use systemscope_tests::printed::refusal::{FAILED, assert_refused};
use systemscope_tests::printed::user_stacks::{assert_most, starts_a_thread, whole_stacks};
use systemscope_tests::{Folded, Line, Tool, Turn, UserStacks, Workload, WorkloadBuilder};

/// Minimum share of stacks that reach their root, in thousandths.
const WHOLE: u64 = 990;

#[test]
fn a_coroutine_begins_at_its_first_function() {
    let _turn = Turn::share();
    let coroutines = Workload::plain("coroutines");
    // No function calls the coroutine's first function. Its return address lies in libc, and the
    // unwind shows this address as the root frame.
    let is_whole = |line: &Line| {
        let first = line
            .frames
            .iter()
            .position(|frame| frame == "coroutine_body");
        first == Some(1) && bare(&line.frames[0]).contains("libc")
    };
    for (tool, function) in [
        ("offcputime", "coroutine_sleep"),
        ("oncputime", "coroutine_spin"),
    ] {
        let stacks = whole_stacks(tool, coroutines.pid(), WHOLE).under(function);
        assert!(stacks.total() > 0, "{tool}: {stacks}");
        assert_most(tool, &stacks, WHOLE, is_whole);
    }
}

#[test]
fn return_addresses_that_uretprobes_replaced() {
    let _turn = Turn::share();
    let probed = Workload::plain("uretprobed");
    let called_from = |caller: &'static str| {
        move |line: &Line| starts_a_thread(line) && line.has(caller) && !line.has("[unknown]")
    };
    let off_cpu = whole_stacks("offcputime", probed.pid(), WHOLE);
    let sleeps = off_cpu.under("probed_sleep");
    let sleeps_of = |comm: &'static str| sleeps.only(|line| line.comm == comm);
    // `sleeper` slept before the tool attached, so user space reads its stack.
    assert!(sleeps_of("sleeper").total() > 0, "{off_cpu}");
    assert_most(
        "sleeper",
        &sleeps_of("sleeper"),
        WHOLE,
        called_from("sleep_long"),
    );
    assert!(sleeps_of("turns").total() > 0, "{off_cpu}");
    assert_most(
        "turns",
        &sleeps_of("turns"),
        WHOLE,
        called_from("take_turns"),
    );
    let spins = whole_stacks("oncputime", probed.pid(), WHOLE).under("probed_spin");
    assert!(spins.total() > 0, "{spins}");
    assert_most("spins", &spins, WHOLE, called_from("take_turns"));
}

#[test]
fn a_32_bit_program_is_refused_and_cut_short_among_others() {
    let _turn = Turn::share();
    let flags = "-m32 -static -nostdlib -fno-pic -no-pie -fno-stack-protector";
    let builder = WorkloadBuilder::new("code32");
    let builder = flags.split(' ').fold(builder, WorkloadBuilder::flag);
    let code = builder.start();
    for tool in ["oncputime", "offcputime", "offwaketime"] {
        let refused = Tool::new(tool).pid(code.pid()).args("--duration 1").run();
        assert_refused(tool, &refused, &[FAILED], &["32-bit program", "-K"]);
    }
    let refused = Tool::new("wallclock")
        .arg(code.pid().to_string())
        .args("-d 1")
        .run();
    assert_refused("wallclock", &refused, &[FAILED], &["32-bit program"]);
    // With -K the tool needs no user stacks, so it accepts the 32-bit program.
    let kernel = Tool::new("offcputime")
        .pid(code.pid())
        .args("-K")
        .folded(1.0);
    assert!(kernel.total() > 0, "{kernel}");
    // A trace of the whole machine keeps only the leaf of each 32-bit stack.
    let all = Tool::new("offcputime").args("-v -U --duration 1 --thread-name ^code32$");
    let all = all.run().succeeded();
    let said = UserStacks::read(&all.stderr);
    assert!(said.code_32_bit > 0, "{said:?}");
    let own = Folded::parse(&all.stdout);
    assert!(own.total() > 0, "{said:?}");
    assert_most("code32", &own, WHOLE, |line| line.frames.len() == 1);
}
