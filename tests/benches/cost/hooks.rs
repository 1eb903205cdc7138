//! Cost of the BPF programs, from the kernel's statistics.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::printed::output::median;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::truth::statistics::{Program, cost_of};
use systemscope_tests::{Workload, WorkloadBuilder, cpus_online};

use crate::figures::{BPF_TIME, CPU_TIME, format_spread, in_turn};

mod memory;

use memory::Loads;

const ROUNDS: usize = 5;
const WINDOW: Duration = Duration::from_millis(1000);
/// Numbers of calls in the shallow and in the deep program. The frames cost the difference between
/// both programs.
const SHALLOW: u64 = 5;
const DEEP: u64 = 35;

/// Measures unwinds of user stacks at the switch off the CPU.
pub(crate) fn off_cpu(table: &mut Table) {
    // Each stop has two switches: the switch off the CPU, which unwinds, and the switch back.
    let tool = "offcputime -p PID -m 10000000";
    walks(table, tool, "sleep", "sched_switch", 2.0);
}

/// Measures unwinds of user stacks at samples.
pub(crate) fn on_cpu(table: &mut Table) {
    let tool = "oncputime -p PID -F 999 -C 1";
    walks(table, tool, "burn", "sample", 1.0);
}

fn walks(table: &mut Table, tool: &str, doing: &str, program: &str, runs: f64) {
    let (tool, arguments) = tool.split_once(' ').expect("arguments");
    let profiler = |stacks: &str| Profiler::ours(tool, &format!("{arguments} {stacks}"));
    let shallow = deep(SHALLOW, doing);
    let deep = deep(DEEP, doing);
    let things = [
        (&deep, profiler("-K")),
        (&shallow, profiler("-U --call-graph auto")),
        (&deep, profiler("-U --call-graph auto")),
        (&shallow, profiler("-U --call-graph fp")),
        (&deep, profiler("-U --call-graph fp")),
    ];
    let all = in_turn(ROUNDS, things, |(workload, profiler)| {
        let cost = cost_of(profiler, workload.pid(), || sleep(WINDOW));
        let own = cost.ran.iter().find(|ran| ran.name == program);
        per_run(own.expect("a program that ran")) * runs
    });
    let [none, shallow, deep, shallow_fp, deep_fp] = &all[..] else {
        unreachable!("there are five contenders");
    };
    let memory = Loads::prepare();
    let loads: Vec<f64> = (0..ROUNDS).map(|_| memory.one_ns()).collect();
    let what = "ns of a load from memory";
    table.row(
        &[what, "none", &format_spread(&loads, 0), CPU_TIME, ""],
        Verdict::Figure,
    );
    for (mode, shallow, deep, bound) in [
        (
            "auto",
            shallow,
            deep,
            Some((DEEP / 2) as f64 * median(loads)),
        ),
        ("fp", shallow_fp, deep_fp, None),
    ] {
        let walks = deep.added_to(none);
        let a_frame = (deep.median() - shallow.median()) / (DEEP - SHALLOW) as f64;
        let name = format!("{tool} --call-graph {mode}");
        let measured = format!("{}, {a_frame:.0} a frame", format_spread(&walks, 0));
        let (text, verdict) = match bound {
            Some(most) => (
                format!("at most a load from memory for every second call, {most:.0}"),
                Verdict::of(median(walks) <= most),
            ),
            None => (String::new(), Verdict::Figure),
        };
        let what = format!("ns of a walk, {DEEP} calls and what called them");
        table.row(&[&what, &name, &measured, BPF_TIME, &text], verdict);
    }
}

/// Starts the program on CPU 1. Hardly any other thread runs the BPF program there.
fn deep(frames: u64, doing: &str) -> Workload {
    WorkloadBuilder::new("deep")
        .without_frame_pointers()
        .flag("-fno-optimize-sibling-calls")
        .args(&[frames.to_string(), doing.to_owned()])
        .start_with(|_, command| {
            let mut pinned = Command::new("taskset");
            pinned.args(["-c", "1"]).arg(command.get_program());
            pinned.args(command.get_args());
            *command = pinned;
        })
}

fn per_run(program: &Program) -> f64 {
    const FEWEST: u64 = 100;
    let Program { name, runs, run_ns } = program;
    assert!(*runs >= FEWEST, "{name} ran {runs} times: no mean");
    *run_ns as f64 / *runs as f64
}

/// Measures the cost that reasons add to a switch: with intervals that are too short to count, and
/// with intervals that count.
pub(crate) fn reasons(table: &mut Table) {
    const MOST: f64 = 1.1;
    const ROUNDS: usize = 9;
    let ping_pong = Workload::start("ping_pong", &[cpus_online() - 1]);
    for (kept, bounded) in [("-m 1000", true), ("-m 0", false)] {
        let things = ["", " --reasons"];
        let all = in_turn(ROUNDS, things, |reasons| {
            let tool = Profiler::ours("offcputime", &format!("-p PID {kept}{reasons}"));
            let cost = cost_of(&tool, ping_pong.pid(), || sleep(WINDOW));
            let own = cost.ran.iter().find(|ran| ran.name == "sched_switch");
            per_run(own.expect("a program that ran"))
        });
        let [without, with] = &all[..] else {
            unreachable!("there are two contenders");
        };
        let ratios = with.ratios(without);
        let (bound, verdict) = if bounded {
            (
                format!(
                    "at most {MOST} of what it is without, is {}",
                    format_spread(&ratios, 2)
                ),
                Verdict::of(median(ratios) <= MOST),
            )
        } else {
            (
                format!("without {}", format_spread(&without.values, 0)),
                Verdict::Figure,
            )
        };
        let what = "ns of a switch of a ping-pong";
        let name = format!("offcputime -p PID {kept} --reasons");
        let measured = format_spread(&with.values, 0);
        table.row(&[what, &name, &measured, BPF_TIME, &bound], verdict);
    }
}

/// Measures cpudist of this project and of libbpf-tools at each switch of a ping-pong.
pub(crate) fn cpudist(table: &mut Table) {
    const MODES: [&str; 3] = ["", "-P", "-O"];
    let _ping_pong = Workload::start("ping_pong", &[cpus_online() - 1]);
    // Process 1 does not switch, so the BPF program returns at once. Its run time is the cost of
    // the statistics themselves.
    let bystander = Some(Profiler::ours("cpudist", "-p 1"));
    let things = MODES.iter().flat_map(|mode| {
        let ours = Some(Profiler::ours("cpudist", mode));
        [ours, Profiler::libbpf_tools("cpudist", mode)]
    });
    let all = in_turn(ROUNDS, things.chain([bystander]).flatten(), |profiler| {
        let cost = cost_of(profiler, 1, || sleep(WINDOW));
        // One of the BPF programs runs at each switch, and no program runs more often.
        let switches = cost.ran.iter().map(|program| program.runs).max();
        cost.run_ns() as f64 / switches.unwrap_or(0).max(1) as f64
    });
    let what = "ns of BPF programs a switch, whole machine";
    let (bystander, all) = all.split_last().expect("at least one contender");
    let name = "cpudist -p of a bystander, what is to be taken off";
    table.row(
        &[
            what,
            name,
            &format_spread(&bystander.values, 0),
            BPF_TIME,
            "",
        ],
        Verdict::Figure,
    );
    for mode in MODES {
        let named = |name: &str| {
            let name = format!("{name} {mode}");
            let mut found = all
                .iter()
                .filter(|figures| figures.subject.name == name.trim_end());
            found.next()
        };
        let ours = named("cpudist").expect("our own");
        let measured = format_spread(&ours.values, 0);
        let Some(theirs) = named("libbpf-tools' cpudist") else {
            let cells = [
                what,
                &ours.subject.name,
                &measured,
                BPF_TIME,
                "libbpf-tools are not installed",
            ];
            table.row(&cells, Verdict::NotHere);
            continue;
        };
        let ratios = ours.ratios_of_added(theirs, bystander);
        let bound = format!(
            "less that at most half of libbpf-tools', is {}",
            format_spread(&ratios, 2)
        );
        table.row(
            &[what, &ours.subject.name, &measured, BPF_TIME, &bound],
            Verdict::of(median(ratios) <= 0.5),
        );
        table.row(
            &[
                what,
                &theirs.subject.name,
                &format_spread(&theirs.values, 0),
                BPF_TIME,
                "",
            ],
            Verdict::Figure,
        );
    }
}
