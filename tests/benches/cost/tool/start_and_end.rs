//! Time that a tool takes to attach and to end, and its memory.

use std::time::{Duration, Instant};

use systemscope_tests::printed::output::median;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::mariadb::Server;
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::programs::watch::MAX_RSS_KIB;
use systemscope_tests::{Tool, Workload, now_ns};

use crate::figures::{Figures, WALL_CLOCK, format_spread, in_turn};

const ROUNDS: usize = 5;
/// Longest time from Ctrl-C to the last byte with a busy database, in ms.
const MAX_MS: f64 = 100.0;
const MAX_MIB: f64 = MAX_RSS_KIB as f64 / 1024.0;

/// Measures programs of 1, 64 and 2,000 threads, and a database.
pub(crate) fn times(table: &mut Table) {
    for threads in [1, 64, 2000] {
        let crowd = Workload::start("crowd", &[threads, 100, 1000]);
        rows(table, &format!("{threads} threads"), crowd.pid(), None);
    }
    let server = Server::start();
    rows(table, "MariaDB, idle", server.pid(), None);
    let _busy = server.keep_busy(4);
    rows(table, "MariaDB, 4 clients", server.pid(), Some(MAX_MS));
}

fn rows(table: &mut Table, target: &str, pid: u32, most_ms: Option<f64>) {
    let what = format!("start and end, {target}");
    // cpudist does not report when it is attached.
    let told = ["oncputime", "offcputime", "offwaketime"];
    let attaching = Attaching::measure(&told, pid);
    for tool in ["oncputime", "offcputime", "offwaketime", "cpudist"] {
        let ended = Ended::measure(&Profiler::ours(tool, "-p PID"), pid);
        let mut measured = ended.text();
        let mut bounds = vec![format!("{MAX_MIB:.0} MiB")];
        let mut holds = median(ended.mib.clone()) <= MAX_MIB;
        if let Some(most) = most_ms {
            bounds.insert(0, format!("{most:.0} ms"));
            holds &= median(ended.ms.clone()) <= most;
        }
        let attached = attaching
            .ours
            .iter()
            .find(|figures| figures.subject == tool);
        if let Some(attached) = attached {
            measured = format!(
                "attached after {} ms, {measured}",
                format_spread(&attached.values, 0)
            );
            bounds.extend(attaching.theirs.as_ref().map(|theirs| {
                let ratios = attached.ratios(theirs);
                holds &= median(ratios.clone()) <= 1.0;
                let ratios = format_spread(&ratios, 2);
                format!("attached before bpftrace has loaded, after {ratios} of that")
            }));
        }
        let cells = [&what, tool, &measured, WALL_CLOCK, &bounds.join("; ")];
        table.row(&cells, Verdict::of(holds));
    }
    if let Some(theirs) = &attaching.theirs {
        let measured = format!("loaded after {} ms", format_spread(&theirs.values, 0));
        let cells = [&what, "bpftrace", &measured, WALL_CLOCK, ""];
        table.row(&cells, Verdict::Figure);
    }
    for theirs in ["offcputime", "cpudist"] {
        if let Some(profiler) = Profiler::libbpf_tools(theirs, "-p PID") {
            let ended = Ended::measure(&profiler, pid);
            let cells = [&what, &profiler.name, &ended.text(), WALL_CLOCK, ""];
            table.row(&cells, Verdict::Figure);
        }
    }
}

/// Time from `exec` until the tools of this project are attached, in ms. bpftrace's time is until
/// it has loaded its programs, if it is installed and works.
struct Attaching<'a> {
    ours: Vec<Figures<&'a str>>,
    theirs: Option<Figures<&'a str>>,
}

impl<'a> Attaching<'a> {
    fn measure(tools: &[&'a str], pid: u32) -> Attaching<'a> {
        let bpftrace = Profiler::bpftrace_off_cpu(true);
        let bpftrace = bpftrace.filter(|profiler| profiler.time_to_load(pid).is_some());
        let all = tools.iter().copied();
        let all = all.chain(bpftrace.is_some().then_some("bpftrace"));
        let mut ours = in_turn(ROUNDS, all, |tool| match (*tool, &bpftrace) {
            ("bpftrace", Some(profiler)) => {
                let took = profiler.time_to_load(pid).expect("as before");
                took.as_secs_f64() * 1e3
            }
            (tool, _) => attach_ms(tool, pid),
        });
        let theirs = ours.pop_if(|last| last.subject == "bpftrace");
        Attaching { ours, theirs }
    }
}

/// Starts the tool as wallclock does. Returns the time until the tool reports that it is attached,
/// in ms.
fn attach_ms(tool: &str, pid: u32) -> f64 {
    let begun = Instant::now();
    let (running, mut control) = Tool::new(tool).pid(pid).start_controlled();
    control.ready().expect("attached");
    let took = begun.elapsed().as_secs_f64() * 1e3;
    control.start(now_ns()).expect("talk to the tool");
    control
        .stop(now_ns() + 100_000_000)
        .expect("talk to the tool");
    running.finish_within(Duration::from_secs(20)).succeeded();
    took
}

struct Ended {
    /// Time from Ctrl-C to the last byte, in ms.
    ms: Vec<f64>,
    /// Peak memory, in MiB.
    mib: Vec<f64>,
}

impl Ended {
    fn measure(profiler: &Profiler, pid: u32) -> Ended {
        let one = || {
            let attached = profiler.attach(pid);
            let begun = Instant::now();
            let (finished, _) = attached.stop().expect("a tool that ends");
            let ms = begun.elapsed().as_secs_f64() * 1e3;
            (ms, finished.peak_rss_kib as f64 / 1024.0)
        };
        let (ms, mib) = (0..ROUNDS).map(|_| one()).unzip();
        Ended { ms, mib }
    }

    fn text(&self) -> String {
        let (ms, mib) = (format_spread(&self.ms, 0), format_spread(&self.mib, 1));
        format!("last byte after {ms} ms, {mib} MiB")
    }
}
