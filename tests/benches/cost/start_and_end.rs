//! How long a tool takes to attach and to end, and what it holds.

use std::time::{Duration, Instant};

use systemscope_tests::mariadb::Server;
use systemscope_tests::output::median;
use systemscope_tests::peers::Profiler;
use systemscope_tests::table::{Table, Verdict};
use systemscope_tests::watch::MOST_RSS_KIB;
use systemscope_tests::{Tool, Workload, now_ns};

use crate::figures::shown;

const ROUNDS: usize = 3;
const MOST_MS: f64 = 250.0;
const MOST_MIB: f64 = MOST_RSS_KIB as f64 / 1024.0;

/// On programs of 1, 64 and 2,000 threads, and on a database.
pub(crate) fn times(table: &mut Table) {
    for threads in [1, 64, 2000] {
        let crowd = Workload::start("crowd", &[threads, 100, 1000]);
        rows(table, &format!("{threads} threads"), crowd.pid());
    }
    let server = Server::start();
    rows(table, "MariaDB, idle", server.pid());
    let _busy = server.keep_busy(4);
    rows(table, "MariaDB, 4 clients", server.pid());
}

fn rows(table: &mut Table, target: &str, pid: u32) {
    let what = format!("start and end, {target}");
    for tool in ["oncputime", "offcputime", "offwaketime", "cpudist"] {
        let ended = Ended::measure(&Profiler::ours(tool, "-p PID"), pid);
        // cpudist has no parent that it tells.
        let attached: Vec<f64> = match tool {
            "cpudist" => vec![],
            _ => (0..ROUNDS).map(|_| attach_ms(tool, pid)).collect(),
        };
        let attach = match attached[..] {
            [] => String::new(),
            _ => format!("attached after {} ms, ", shown(&attached, 0)),
        };
        let fast = attached.is_empty() || median(attached) <= MOST_MS;
        let small = median(ended.mib.clone()) <= MOST_MIB;
        let bound = format!("attached after {MOST_MS:.0} ms, {MOST_MIB:.0} MiB");
        let measured = attach + &ended.text();
        table.row(
            &[&what, tool, &measured, &bound],
            Verdict::of(fast && small),
        );
    }
    for theirs in ["offcputime", "cpudist"] {
        if let Some(profiler) = Profiler::libbpf_tools(theirs, "-p PID") {
            let ended = Ended::measure(&profiler, pid);
            table.row(&[&what, &profiler.name, &ended.text(), ""], Verdict::Figure);
        }
    }
}

/// As wallclock starts it, which is told when it is attached.
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
    /// Milliseconds from Ctrl-C to the last byte.
    ms: Vec<f64>,
    /// The most memory it held.
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
        let (ms, mib) = (shown(&self.ms, 0), shown(&self.mib, 1));
        format!("last byte after {ms} ms, {mib} MiB")
    }
}
