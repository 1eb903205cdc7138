//! Cost of the tools for a database that they watch.

use systemscope_tests::printed::output::median;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::mariadb::Server;
use systemscope_tests::programs::peers::{Profiler, beside};
use systemscope_tests::truth::statistics::cost_of;

use crate::figures::{BPF_TIME, WALL_CLOCK, format_spread, in_turn, user_stacks_can_wait};

const CLIENTS: u32 = 4;
const SECONDS: u32 = 2;
const ROUNDS: usize = 7;
const OURS: &str = "offcputime -p PID -m 1000";
const WITH_REASONS: &str = "offcputime -p PID -m 1000 --reasons";
const WALLCLOCK: &str = "wallclock PID -d 60 -o FILE";
const TIMELINE: &str = "wallclock PID -d 60 --timeline --format scope -o FILE";
const THEIRS: &str = "libbpf-tools' offcputime -p PID -m 1000";

/// Measures transactions a second with and without each profiler, and the run time of the
/// profiler's BPF programs for each transaction. Noise blurs only the first figure.
pub(crate) fn transactions(table: &mut Table) {
    let server = Server::start();
    let contenders = [
        Some(Profiler::ours("offcputime", "-p PID -m 1000")),
        Profiler::libbpf_tools("offcputime", "-p PID -m 1000"),
        Some(Profiler::ours("offcputime", "-p PID -m 1000 --reasons")),
        Profiler::bpftrace_off_cpu(true),
        Some(Profiler::ours("offcputime", "-m 1000")),
        Profiler::libbpf_tools("offcputime", "-m 1000"),
        Some(Profiler::ours("offwaketime", "-p PID -m 1000")),
        Some(Profiler::ours("oncputime", "-p PID -F 49")),
        Profiler::perf_record(49, "dwarf"),
        Some(Profiler::ours("wallclock", "PID -d 60 -o FILE")),
        Some(Profiler::ours(
            "wallclock",
            "PID -d 60 --timeline --format scope -o FILE",
        )),
    ];
    let contenders: Vec<Profiler> = contenders.into_iter().flatten().collect();
    let with_nothing = std::iter::once(None).chain(contenders.iter().map(Some));
    let all = in_turn(ROUNDS, with_nothing, |profiler| {
        beside(*profiler, server.pid(), || {
            server.transactions_per_second(CLIENTS, SECONDS)
        })
    });
    let (nothing, watched) = all.split_first().expect("nothing attached");
    let what = format!("transactions/s of MariaDB, {CLIENTS} clients");
    let alone = format_spread(&nothing.values, 0);
    table.row(&[&what, "nothing", &alone, WALL_CLOCK, ""], Verdict::Figure);
    for figures in watched {
        let name = figures.subject.map_or("", |profiler| &profiler.name);
        let less = figures.percent_below(nothing);
        let measured = format!(
            "{}, takes {} %",
            format_spread(&figures.values, 0),
            format_spread(&less, 1)
        );
        table.row(&[&what, name, &measured, WALL_CLOCK, ""], Verdict::Figure);
    }
    programs(table, &server, &contenders);
}

/// Measures the part of the cost that other load does not blur.
fn programs(table: &mut Table, server: &Server, contenders: &[Profiler]) {
    let all = in_turn(3, contenders, |profiler| {
        let cost = cost_of(profiler, server.pid(), || {
            server.transactions_per_second(CLIENTS, SECONDS)
        });
        cost.run_ns() as f64 / 1e3 / (cost.done * f64::from(SECONDS))
    });
    let find = |name: &str| all.iter().find(|figures| figures.subject.name == name);
    let most = if user_stacks_can_wait() { 0.13 } else { 0.27 };
    // Largest ratio of the cost with reasons to the cost without reasons.
    const MAX_FOR_REASONS: f64 = 1.1;
    // Largest ratio of the cost with a timeline to the cost without one.
    const MAX_FOR_TIMELINE: f64 = 1.15;
    for figures in &all {
        let (bound, verdict) = match (figures.subject.name.as_str(), find(THEIRS)) {
            (WITH_REASONS, _) => {
                let ratios = figures.ratios(find(OURS).expect("our own"));
                (
                    format!(
                        "at most {MAX_FOR_REASONS} of what it is without, is {}",
                        format_spread(&ratios, 2)
                    ),
                    Verdict::of(median(ratios) <= MAX_FOR_REASONS),
                )
            }
            (TIMELINE, _) => {
                let ratios = figures.ratios(find(WALLCLOCK).expect("our own"));
                (
                    format!(
                        "at most {MAX_FOR_TIMELINE} of what it is without, is {}",
                        format_spread(&ratios, 2)
                    ),
                    Verdict::of(median(ratios) <= MAX_FOR_TIMELINE),
                )
            }
            (OURS | WALLCLOCK, Some(theirs)) => {
                let ratios = figures.ratios(theirs);
                (
                    format!(
                        "at most {most} of libbpf-tools', is {}",
                        format_spread(&ratios, 2)
                    ),
                    Verdict::of(median(ratios) <= most),
                )
            }
            (OURS | WALLCLOCK, None) => (
                "libbpf-tools are not installed".to_owned(),
                Verdict::NotHere,
            ),
            _ => (String::new(), Verdict::Figure),
        };
        // perf has no BPF programs.
        if figures.median() > 0.0 {
            let what = "us of BPF programs a transaction";
            let measured = format_spread(&figures.values, 1);
            table.row(
                &[what, &figures.subject.name, &measured, BPF_TIME, &bound],
                verdict,
            );
        }
    }
}
