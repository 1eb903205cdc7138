//! Unwind modes, the depth of user stacks, and a program whose unwind tables are garbage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use systemscope_tests::printed::refusal::{
    STACKING, WRONG_COMMAND_LINE, assert_refused, on_target,
};
use systemscope_tests::printed::user_stacks::assert_most;
use systemscope_tests::programs::simple::known;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::wallclock::Run;
use systemscope_tests::truth::known_chains::Program;
use systemscope_tests::{
    Account, Folded, Line, Tool, Turn, UserStacks, Workload, WorkloadBuilder, truth::elf,
};

/// Maximum frames of a stack.
const DEPTH: usize = 1024;

/// Returns a tool on a process. The sampling rate is high, so samples come soon.
fn on(tool: &str, pid: u32) -> Tool {
    let on_pid = Tool::new(tool).pid(pid).arg("-U");
    if tool == "oncputime" {
        on_pid.args("-F 499")
    } else {
        on_pid
    }
}

fn start_recursion(levels: usize) -> Workload {
    WorkloadBuilder::new("recursion")
        .without_frame_pointers()
        .args(&[levels])
        .start()
}

fn levels(line: &Line) -> usize {
    line.frames.iter().filter(|frame| *frame == "down").count()
}

/// Returns the stacks of `recursion` in its innermost level.
fn at_bottom(tool: &str, levels: usize, arguments: &str) -> Folded {
    let recursion = start_recursion(levels);
    let folded = on(tool, recursion.pid()).args(arguments).folded(1.0);
    let bottom = folded.under("at_bottom");
    assert!(bottom.total() > 0, "{folded}");
    bottom
}

#[test]
fn a_thousand_levels_are_whole() {
    let _turn = Turn::share();
    for tool in ["oncputime", "offcputime"] {
        for line in at_bottom(tool, 1000, "").lines {
            assert_eq!(levels(&line), 1000, "{tool}: {line}");
            assert!(line.has_path(&["main", "down"]), "{tool}: {line}");
            assert!(!line.has("[truncated]"), "{tool}: {line}");
        }
    }
}

#[test]
fn more_levels_are_truncated_at_the_root() {
    let _turn = Turn::share();
    let asked = [("", DEPTH), ("--max-stack 40", 40)];
    for tool in ["oncputime", "offcputime"] {
        for (arguments, depth) in asked {
            for line in at_bottom(tool, 2000, arguments).lines {
                let (mark, frames) = line.frames.split_first().unwrap();
                assert_eq!(mark, "[truncated]", "{tool} {arguments}: {line}");
                assert_eq!(frames.len(), depth, "{tool} {arguments}: {line}");
                let others = frames.iter().skip_while(|frame| *frame == "down");
                let all = levels(&line) + others.count();
                assert_eq!(all, depth, "{tool} {arguments}: {line}");
            }
        }
    }
}

fn switches(pid: u32) -> u64 {
    let account = Account::read(pid, pid).unwrap();
    account.voluntary + account.involuntary
}

#[test]
fn stacks_too_deep_are_counted() {
    let _turn = Turn::share();
    let recursion = start_recursion(2000);
    let before = switches(recursion.pid());
    let finished = on("offcputime", recursion.pid())
        .args("-v 1")
        .run()
        .succeeded();
    let booked = switches(recursion.pid()) - before;
    let said = UserStacks::read(&finished.stderr);
    assert!(
        (1..=booked + 1).contains(&said.too_deep),
        "{said:?}, {booked} switches"
    );
    assert_eq!(said.reached_root, 0, "{said:?}");
}

#[test]
fn frame_pointers_alone_serve_programs_that_keep_them() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for tool in ["oncputime", "offcputime"] {
        let folded = on(tool, simple.pid()).args("--call-graph fp").folded(1.0);
        let path = ["main", "known_work", known(tool)];
        let own = folded.under(known(tool));
        // A function has no frame of its own while the thread enters or leaves it.
        assert_most(tool, &own, 950, |line| line.has_path(&path));
    }
}

#[test]
fn frame_pointers_alone_do_not_stop_at_programs_without() {
    let _turn = Turn::share();
    let chains = Program::c().start("wait");
    for tool in ["oncputime", "offcputime"] {
        let arguments = "--call-graph fp --duration 1";
        let finished = on(tool, chains.pid()).args(arguments).run().succeeded();
        // The kernel's helper does not report whether it reached the root.
        let tells = finished.stderr.contains("reached the root");
        assert!(!tells, "{}", finished.stderr);
    }
}

#[test]
fn tables_alone_serve_programs_without_frame_pointers() {
    let _turn = Turn::share();
    let program = Program::c();
    let chains = program.chains(&program.hold());
    let workload = program.start("wait");
    let folded = Tool::new("offcputime")
        .pid(workload.pid())
        .args("-U --call-graph dwarf")
        .folded_per_thread(1.0);
    let blocked = folded.under("end_nanosleep");
    assert!(blocked.total() > 0, "{folded}");
    for line in &blocked.lines {
        assert!(chains[&line.comm].begins(line), "{line}");
    }
}

#[test]
fn wallclock_hands_the_mode_on() {
    let _turn = Turn::share();
    let chains = Program::c().start("wait");
    let sleeps = |mode: &str| {
        let arguments = format!("-d 1 -m 100 --call-graph {mode}");
        let run = Run::with_prefix(&chains.pid().to_string(), &arguments);
        Folded::parse(&fs::read(run.combined(".folded")).unwrap()).under("end_nanosleep")
    };
    let by_tables = sleeps("dwarf").under("main");
    assert!(by_tables.total() > 0, "{by_tables}");
    assert_most("main's sleeps", &by_tables, 1000, |line| {
        line.has_path(&["main", "main_loop", "in_small", "in_array"])
    });
    // Unwinds by frame pointers skip the caller of libc's wrapper.
    let by_frame_pointers = sleeps("fp");
    assert_eq!(
        by_frame_pointers.marked("_[o]").total(),
        0,
        "{by_frame_pointers}"
    );
}

#[test]
fn a_mode_that_is_none_is_refused() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    for tool in STACKING {
        let pid = simple.pid().to_string();
        let finished = on_target(tool, &pid).args("--call-graph nonsense").run();
        assert_refused(
            tool,
            &finished,
            &[WRONG_COMMAND_LINE],
            &["nonsense", "auto", "fp", "dwarf"],
        );
    }
}

/// Pseudo-random numbers with a fixed seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Overwrites the unwind tables in a program's file: all bytes, some bytes, or some lengths. The
/// program does not need them to run.
fn spoil(binary: &Path, seed: u64) {
    let mut numbers = Numbers(seed);
    let mut file = fs::read(binary).unwrap();
    for name in [".eh_frame", ".eh_frame_hdr"] {
        let section = elf::section(&file, name);
        let bytes = &mut file[section];
        match seed % 4 {
            0 => bytes.fill_with(|| numbers.next().to_le_bytes()[0]),
            1 => {
                for _ in 0..bytes.len() / 10 {
                    bytes[numbers.below(bytes.len())] = numbers.next().to_le_bytes()[0];
                }
            }
            2 => bytes.fill(0xff),
            _ => {
                for _ in 0..20 {
                    let at = numbers.below(bytes.len() / 4) * 4;
                    bytes[at..at + 4].copy_from_slice(&numbers.next().to_le_bytes()[..4]);
                }
            }
        }
    }
    fs::write(binary, file).unwrap();
}

#[test]
fn a_program_with_nonsense_for_tables_is_no_harm() {
    let _turn = Turn::share();
    for seed in 0..12 {
        let simple = WorkloadBuilder::new("simple")
            .without_frame_pointers()
            .start_with(|binary, _| spoil(binary, seed));
        for tool in ["oncputime", "offcputime"] {
            let running = on(tool, simple.pid()).arg("0.3").start();
            let finished = running.finish_within(PATIENCE).succeeded();
            assert!(
                !finished.stderr.contains("panicked"),
                "seed {seed}, {tool}: {}",
                finished.stderr
            );
            let folded = Folded::parse(&finished.stdout);
            // The leaf is known without a table.
            let known = folded.under(known(tool));
            assert!(known.total() > 0, "seed {seed}, {tool}: {folded}");
        }
    }
}
