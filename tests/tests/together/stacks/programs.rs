//! User stacks of programs as a distribution builds them. Nearly all stacks reach the first
//! function of their thread, by the tool's own count and by the first frames of the stacks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use systemscope_tests::printed::folded::bare;
use systemscope_tests::printed::user_stacks::{assert_most, starts_a_thread};
use systemscope_tests::programs::mariadb::Server;
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::truth::known_chains::{MAIN, Program, THREAD, turned};
use systemscope_tests::{
    Folded, Language, Line, Tool, Turn, UserStacks, Workload, WorkloadBuilder,
};

/// Minimum share of whole stacks, in thousandths.
const WHOLE: u64 = 990;

/// Returns the user stacks of a process. Checks that nearly all of them are whole.
fn stacks(tool: &str, pid: u32, is_whole: impl Fn(&Line) -> bool) -> Folded {
    let on_pid = Tool::new(tool).pid(pid).args("-v -U --duration 4");
    let finished = if tool == "oncputime" {
        on_pid.args("-F 999").run().succeeded()
    } else {
        on_pid.run().succeeded()
    };
    let folded = Folded::parse(&finished.stdout);
    UserStacks::read(&finished.stderr).assert_reached(WHOLE);
    assert_most(tool, &folded, WHOLE, is_whole);
    if tool == "oncputime" {
        assert!(folded.total() > 100, "{folded}");
    }
    folded
}

/// Returns whether a stack has a function with this name, whatever its arguments.
fn calls(line: &Line, function: &str) -> bool {
    let mut frames = line.frames.iter().map(|frame| bare(frame));
    frames.any(|frame| frame.split('(').next() == Some(function))
}

#[test]
fn python() {
    let _turn = Turn::share();
    let python = PathBuf::from("/usr/bin/python3");
    let mut command = Command::new(&python);
    command.arg(source("busy.py")).arg("run");
    let busy = Workload::run(command, python, scratch());
    for tool in ["oncputime", "offcputime"] {
        let folded = stacks(tool, busy.pid(), starts_a_thread);
        assert_most("python", &folded, 980, |line| {
            line.frames
                .iter()
                .any(|frame| frame.starts_with("busy.py:"))
        });
        assert_most("python's main thread", &folded, WHOLE, |line| {
            calls(line, "Py_BytesMain") || bare(&line.frames[0]) != "_start"
        });
    }
}

/// Some programs copy their code over itself to have it in huge pages. The copy has the names of
/// the file as long as both are equal.
#[test]
fn a_program_that_copied_its_code_into_memory_of_no_file() {
    let _turn = Turn::share();
    let copied = Workload::plain("copied");
    let starts = |line: &Line| bare(&line.frames[0]) == "_start" || starts_a_thread(line);
    let measure = |tool: &str, pid: u32| Tool::new(tool).pid(pid).args("-U").folded(1.0);
    let spinning = measure("oncputime", copied.pid());
    assert_most("spins", &spinning, 900, |line| {
        starts(line) && line.has("spin_outer") && line.has("spin_inner")
    });
    let sleeping = measure("offcputime", copied.pid());
    assert_most("sleeps or waits for a CPU", &sleeping, WHOLE, |line| {
        let mut known = ["sleep_outer", "spin_outer", "leave_with_test"].iter();
        starts(line) && known.any(|function| line.has(function))
    });
    assert!(sleeping.only(|line| line.has("sleep_outer")).total() > 0);
    // As a control, changed code at the same place does not get the file's names.
    let changed = Workload::start("copied", &["changed"]);
    let spinning = Tool::new("oncputime")
        .pid(changed.pid())
        .args("-U")
        .folded(1.0);
    let named = spinning.only(|line| line.has("spin_inner") || line.has("main"));
    assert!(spinning.total() > 0 && named.total() == 0, "{spinning}");
}

/// Python program that starts a thread, waits for its end, and starts the next thread.
const STARTS: &str = "
import threading
print('ready', flush=True)
while True:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
";

/// The starting thread and the new thread both return from the same system call. Samples often hit
/// the end of this call.
#[test]
fn python_that_starts_threads() {
    let _turn = Turn::share();
    let python = PathBuf::from("/usr/bin/python3");
    let mut command = Command::new(&python);
    command.args(["-c", STARTS]);
    let starts = Workload::run(command, python, scratch());
    // The new thread has called no function yet, and a thread that exits has no stack any more.
    let is_new = |line: &Line| line.frames.len() < 3 && !line.has("[unknown]");
    let folded = stacks("oncputime", starts.pid(), |line| {
        starts_a_thread(line) || is_new(line)
    });
    let starting = folded.only(|line| calls(line, "PyThread_start_new_thread"));
    let (part, all) = (starting.total(), folded.total());
    assert!(part * 20 > all, "{part} of {all} samples: {folded:.20}");
    assert_most("the thread that starts them", &starting, WHOLE, |line| {
        calls(line, "Py_BytesMain") || bare(&line.frames[0]) != "_start"
    });
}

/// Perf map that node leaves in /tmp, removed when dropped.
struct NodesMap(PathBuf);

impl Drop for NodesMap {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn node_with_code_made_at_run_time() {
    let _turn = Turn::share();
    let node = PathBuf::from("/usr/bin/node");
    let mut command = Command::new(&node);
    command.arg("--perf-basic-prof").arg(source("busy.js"));
    // node writes a log into its working directory.
    let folder = scratch();
    command.current_dir(folder.path());
    let busy = Workload::run(command, node, folder);
    let _map = NodesMap(format!("/tmp/perf-{}.map", busy.pid()).into());
    stacks("offcputime", busy.pid(), starts_a_thread);
    let on_cpu = stacks("oncputime", busy.pid(), starts_a_thread);

    // A stack reaches from the script's own code to the start of the program.
    let in_script = |name: &str| {
        let is_of_script = |frame: &String| frame.contains(name) && frame.contains("busy.js");
        on_cpu.only(|line| line.frames.iter().any(is_of_script))
    };
    let fibonacci = in_script("fibonacci");
    let (part, all) = (fibonacci.total(), on_cpu.total());
    assert!(part * 20 > all, "{part} of {all} samples in fibonacci");
    for function in ["fibonacci", "round"] {
        assert_most(function, &in_script(function), WHOLE, |line| {
            bare(&line.frames[0]) == "_start" && calls(line, "node::Start")
        });
    }
    let round = in_script("round");
    assert_most("fibonacci's callers", &fibonacci, WHOLE, |line| {
        round.lines.contains(line)
    });
}

#[test]
#[ignore = "loads a database for most of a minute"]
fn mariadb_under_sysbench() {
    let _turn = Turn::share();
    let server = Server::start();
    let _clients = server.keep_busy(4);
    for tool in ["oncputime", "offcputime"] {
        let folded = stacks(tool, server.pid(), starts_a_thread);
        let commands = folded.only(|line| calls(line, "dispatch_command"));
        let (part, all) = (commands.total(), folded.total());
        // The other threads have most of the off-CPU time.
        let least = if tool == "oncputime" { all / 2 } else { 0 };
        assert!(part > least, "{part} of {all} in commands: {folded:.20}");
        assert_most("commands", &commands, WHOLE, |line| {
            calls(line, "do_command") && calls(line, "handle_one_connection")
        });
    }
}

/// Returns whether a stack begins where Go's own threads or its goroutines start, or where the
/// runtime switches to another stack. The new stack has no link to the old stack.
fn starts_in_go(line: &Line) -> bool {
    let root = line.frames.first().map_or("", |frame| bare(frame));
    let roots = [
        "_rt0_amd64_linux",
        "runtime.rt0_go",
        "runtime.mstart",
        "runtime.goexit",
        "runtime.mcall",
        "runtime.systemstack",
        "runtime.morestack",
        "runtime.clone",
    ];
    roots.contains(&root.trim_end_matches(".abi0"))
}

/// Checks the stacks of a Go program that was built with a flag.
fn assert_stacks_of_go(flag: &str) {
    let busy = WorkloadBuilder::new("busy").language(Language::Go);
    let busy = busy.flag(flag).start();
    stacks("offcputime", busy.pid(), starts_in_go);
    let on_cpu = stacks("oncputime", busy.pid(), starts_in_go);
    let sorts = on_cpu.under("main.sortNumbers");
    let (part, all) = (sorts.total(), on_cpu.total());
    assert!(part * 4 > all, "{part} of {all} samples in sortNumbers");
    assert_most("sorts", &sorts, WHOLE, |line| {
        let levels = line.frames.iter().filter(|frame| *frame == "main.descend");
        levels.count() == 6 && line.has("main.burn")
    });
}

#[test]
fn a_go_program() {
    let _turn = Turn::share();
    assert_stacks_of_go("-ldflags=");
}

/// Go's runtime needs its own table of functions, so each program has it.
#[test]
fn a_go_program_without_symbols() {
    let _turn = Turn::share();
    assert_stacks_of_go("-ldflags=-s");
}

/// Starts `chains` with musl. musl's own functions have neither tables nor frame pointers.
fn with_musl(program: &Program, mode: &str, linked: &[&str]) -> Workload {
    let headers = [
        "-idirafter",
        "/usr/include",
        "-idirafter",
        "/usr/include/x86_64-linux-gnu",
    ];
    let builder = program.builder(mode).compiler("musl-gcc");
    let flags = headers.iter().chain(linked);
    let with_flags = flags.fold(builder, |builder, flag| builder.flag(flag));
    with_flags.start()
}

/// Returns the program's own functions from a stack.
fn own_calls(program: &Program, line: &Line) -> Vec<String> {
    let own: HashSet<&str> = program.calls.values().flatten().copied().collect();
    let calls = line
        .frames
        .iter()
        .filter(|name| own.contains(name.as_str()));
    calls.cloned().collect()
}

/// Checks that the stacks of `chains` have all calls, and that they begin as `starts` requires.
fn assert_chains_with_musl(linked: &[&str], starts: impl Fn(&Line) -> bool) {
    let program = Program::c();
    let waits = with_musl(&program, "wait", linked);
    let off_cpu = stacks("offcputime", waits.pid(), &starts);
    assert_eq!(off_cpu.comms().len(), program.calls.len(), "{off_cpu}");
    assert_most("stacks of waits", &off_cpu, WHOLE, |line| {
        let known = &program.calls[line.comm.as_str()];
        let calls = own_calls(&program, line);
        // Before its signal comes, the thread `interrupted` waits below the frame that the signal
        // will interrupt.
        calls == *known || (line.comm == "interrupted" && begins(known, &calls))
    });

    let burns = with_musl(&program, "burn", linked);
    let on_cpu = stacks("oncputime", burns.pid(), &starts);
    let (of_main, of_thread) = (turned(MAIN, 0, &[]), turned(THREAD, 1, &[]));
    for (comm, links) in [("chains", of_main), ("burn", of_thread)] {
        let samples = on_cpu.only(|line| line.comm == comm);
        assert!(samples.total() > 50, "{on_cpu}");
        assert_most(comm, &samples, WHOLE, |line| {
            begins(&links, &own_calls(&program, line))
        });
        assert_most(comm, &samples.under("burn_leaf"), WHOLE, |line| {
            own_calls(&program, line) == links
        });
    }
}

#[test]
fn a_static_program_with_musl() {
    let _turn = Turn::share();
    // musl's first functions are in assembly. Only some versions of musl have names for them.
    assert_chains_with_musl(&["-static"], |line| {
        let frame = |index: usize| line.frames.get(index).map_or("", |frame| bare(frame));
        ["[chains]", "_start", "__clone"].contains(&frame(0))
            && ["start", "libc_start_main_stage2"].contains(&frame(1))
    });
}

/// musl's shared library names only the functions that programs can call.
#[test]
fn a_program_with_musls_shared_library() {
    let _turn = Turn::share();
    assert_chains_with_musl(&[], |line| {
        let frame = |index: usize| line.frames.get(index).map_or("", |frame| bare(frame));
        ["[chains]", "[libc.so]"].contains(&frame(0)) && frame(1) == "[libc.so]"
    });
}

/// Neither symbols nor tables tell where functions begin.
#[test]
fn a_static_program_with_musl_without_symbols() {
    let _turn = Turn::share();
    let program = Program::c();
    let waits = with_musl(&program, "wait", &["-static", "-s"]);
    let off_cpu = stacks("offcputime", waits.pid(), |line| line.frames.len() > 2);
    for (comm, calls) in &program.calls {
        let waits = off_cpu.only(|line| line.comm == *comm && line.frames.len() > calls.len());
        assert!(waits.total() > 0, "{comm}: {off_cpu}");
    }
    let burns = with_musl(&program, "burn", &["-static", "-s"]);
    stacks("oncputime", burns.pid(), |line| line.frames.len() > 2);
}

/// Returns whether these calls are the first ones of `known`.
fn begins(known: &[&str], calls: &[String]) -> bool {
    calls.len() <= known.len() && known.iter().zip(calls).all(|(own, call)| own == call)
}
