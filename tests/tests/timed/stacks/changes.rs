//! Changes of a target while a tool is attached: the target opens a library, executes another
//! program, or forks children. The new stacks are right from the first one on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::chain::assert_explained;
use systemscope_tests::printed::output::per_mille;
use systemscope_tests::printed::user_stacks::assert_most;
use systemscope_tests::programs::workload::{install, scratch};
use systemscope_tests::{
    Chain, Seen, Turn, Watch, Workload, WorkloadBuilder, accounts_at_rest, patiently, truth::gdb,
    undisturbed,
};

const MILLISECOND: u64 = 1_000_000;

fn start(name: &str, arguments: &[u64]) -> Workload {
    WorkloadBuilder::new(name)
        .without_frame_pointers()
        .args(arguments)
        .start()
}

/// Builds a library, and a program that opens the library on request. Starts the program.
fn start_late(mode: &str) -> Workload {
    WorkloadBuilder::new("late")
        .without_frame_pointers()
        .start_with(|binary, command| {
            let plugin = WorkloadBuilder::new("plugin")
                .without_frame_pointers()
                .flag("-shared")
                .flag("-fPIC")
                .build_into(binary.parent().unwrap());
            command.arg(plugin).arg(mode);
        })
}

/// Returns the chains of the program's threads after the program opened the library.
fn late_chains() -> BTreeMap<String, Chain> {
    let mut held = start_late("hold");
    held.go();
    held.wait_done();
    accounts_at_rest(held.pid());
    let calls = |root| vec![root, "plugin_outer", "plugin_inner", "host_wait"];
    let known = BTreeMap::from([("late", calls("main")), ("second", calls("thread_root"))]);
    Chain::all_of(held.pid(), &known)
}

/// Measures a program while it opens a library, and for `ms` milliseconds after that.
fn watch_late(mode: &str, attach: fn(u32, &str) -> Watch, arguments: &str, ms: u64) -> Seen {
    let mut late = start_late(mode);
    let mut watch = attach(late.pid(), arguments);
    watch.open();
    late.go();
    late.wait_done();
    sleep(Duration::from_millis(ms));
    watch.close()
}

#[test]
fn a_library_opened_later_is_known_from_its_first_wait_on() {
    let _turn = Turn::share();
    let chains = late_chains();
    let seen = watch_late("wait", Watch::offcputime, "-U", 1000);
    let waits = seen.folded_but_missed().marked("_[o]").under("host_wait");
    assert_eq!(waits.comms(), HashSet::from(["late", "second"]));
    assert_explained(&waits, &chains, |chain, line| chain.is(line));
    // No wait lost its innermost callers: the other waits, for the test and the disk, are short.
    for comm in ["late", "second"] {
        let own = waits.only(|line| line.comm == comm).total();
        let blocked = seen.clock(comm).blocked_ns;
        assert!(
            own * 10 > blocked * 8,
            "{comm}: {own} of {blocked} ns: {}",
            seen.folded
        );
    }
}

#[test]
fn a_library_opened_later_is_known_on_cpu() {
    let _turn = Turn::share();
    let waiting = late_chains();
    let chains = waiting.iter().map(|(comm, chain)| {
        let burning = chain.up_to("plugin_inner").then(&["host_burn"]);
        (comm.as_str(), burning)
    });
    let chains: BTreeMap<&str, Chain> = chains.collect();
    let seen = watch_late("burn", Watch::oncputime, "-U -F 499", 3000);
    let samples = seen.folded.total();
    assert!(samples > 500, "{}", seen.folded);
    // While the program opens the library, the samples are in libc.
    assert_most("samples", &seen.folded, 995, |line| {
        let chain = &chains[line.comm.as_str()];
        let opens = !line.has("plugin_outer") && chain.common(line) >= 2;
        chain.begins(line) || opens
    });
    let inside = seen.folded.under("host_burn").total();
    assert!(inside * 10 > samples * 9, "{}", seen.folded);
}

/// Returns the chain of a waiting process with the calls `known`.
fn chain_of(process: u32, known: &[&str]) -> Chain {
    let backtraces = gdb::backtraces(process);
    Chain::new(
        &backtraces[&process],
        known,
        &known.iter().copied().collect(),
    )
}

const ONE: [&str; 4] = ["main", "one_outer", "one_inner", "one_wait"];
const TWO: [&str; 5] = ["main", "two_outer", "two_middle", "two_inner", "two_wait"];

/// Starts two programs that execute each other `rounds` times in all. Before each execution the
/// program waits for `wait_ms`. The program of `ONE` starts if `one_first`.
fn start_execs(one_first: bool, rounds: u64, wait_ms: u64) -> Workload {
    let build = |is_one| {
        let builder = WorkloadBuilder::new("execs").without_frame_pointers();
        if is_one {
            builder
        } else {
            builder.flag("-DOTHER")
        }
    };
    build(one_first)
        .args(&[rounds, wait_ms])
        .start_with(|binary, command| {
            let other = binary.with_file_name("other");
            install(&build(!one_first).build_into(scratch().path()), &other);
            // The path of the other program comes before the numbers.
            let numbers: Vec<_> = command.get_args().map(OsString::from).collect();
            *command = Command::new(binary);
            command.arg(other).args(numbers);
        })
}

/// Returns the chain of the second program at its wait.
fn exec_chain(one_first: bool, known: &[&str]) -> Chain {
    let mut held = start_execs(one_first, 1, 1_000_000);
    let link = format!("/proc/{}/exe", held.pid());
    let program = || fs::read_link(&link).unwrap();
    let first = program();
    held.go();
    while program() == first {
        sleep(Duration::from_millis(5));
    }
    accounts_at_rest(held.pid());
    chain_of(held.pid(), known)
}

/// Wait of each program and child, in ms. The tool must read the process before the process is
/// gone, and gets a CPU in this time under any load.
const WAIT_MS: u64 = 150;

#[test]
fn a_program_executed_later_is_known_from_its_first_wait_on() {
    let _turn = Turn::share();
    patiently(assert_executed_later_is_known);
}

fn assert_executed_later_is_known() {
    const ROUNDS: u64 = 10;
    let chains = [exec_chain(false, &ONE), exec_chain(true, &TWO)];
    let seen = undisturbed(|| {
        let mut execs = start_execs(true, ROUNDS, WAIT_MS);
        let mut watch = Watch::offcputime(execs.pid(), "-U");
        watch.open();
        execs.go();
        execs.wait_done();
        let seen = watch.close();
        seen.is_whole().then_some(seen)
    });
    // A single wait with another stack would be missing in this sum.
    for chain in &chains {
        let whole = seen.folded.only(|line| chain.is(line)).total();
        let truth = ROUNDS / 2 * WAIT_MS * MILLISECOND;
        assert!(
            whole >= per_mille(truth, 990),
            "{whole} of {truth} ns are in {chain:?}: {}",
            seen.folded
        );
    }
    let wrong = seen.folded.marked("_[o]").only(|line| {
        let waits = line.has("one_wait") || line.has("two_wait");
        waits && !chains.iter().any(|chain| chain.is(line))
    });
    assert!(wrong.lines.is_empty(), "{chains:?}\n{wrong}");
}

#[test]
#[ignore = "needs hundreds of children that live briefly"]
fn children_are_known_from_their_first_wait_on() {
    let _turn = Turn::share();
    patiently(assert_children_are_known);
}

fn assert_children_are_known() {
    const CHILDREN: u64 = 6;
    let calls = [
        "main",
        "fork_one",
        "child_outer",
        "child_inner",
        "child_wait",
    ];
    let chain = {
        let mut held = start("forks", &[1, 0]);
        held.go();
        held.wait_done();
        let child = u32::try_from(held.told("child")).unwrap();
        accounts_at_rest(child);
        chain_of(child, &calls)
    };
    let mut forks = start("forks", &[CHILDREN, WAIT_MS]);
    let mut watch = Watch::machine("-U -m 1000");
    watch.open();
    sleep(Duration::from_millis(300));
    forks.go();
    forks.wait_done();
    let (seen, _) = watch.close_however_big();
    let children = seen.folded.marked("_[o]").only(|line| {
        let is_parent = line.thread.is_some_and(|(pid, _)| pid == forks.pid());
        line.comm == "forks" && !is_parent
    });
    // Some machines hide a switch now and then. The tool counts these switches.
    let hidden = children.under("[Missed User Stack]");
    let wrong = children.only(|line| !chain.is(line) && !hidden.lines.contains(line));
    assert!(wrong.lines.is_empty(), "{chain:?}\n{wrong}");
    assert!(hidden.lines.is_empty() || !seen.is_whole(), "{hidden}");
    let (whole, truth) = (children.total(), CHILDREN * 2 * WAIT_MS * MILLISECOND);
    assert!(
        whole >= per_mille(truth, 950),
        "{whole} of {truth} ns: {children}"
    );
}
