//! Time waiting for a CPU, with more threads than CPUs.

use std::collections::BTreeMap;

use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::peers::Profiler;
use systemscope_tests::truth::account::stolen_ns;
use systemscope_tests::{Watch, Workload, accounts_at_rest, cpus_online};

const MAX_PERCENT: f64 = 1.0;

/// Measures threads that only compute. There are two for each CPU, and one more.
pub(crate) fn rows(table: &mut Table) {
    let threads = 2 * cpus_online() + 1;
    let mut spinners = Workload::start("spinners", &[threads, 3]);
    let pid = spinners.pid();
    let perf = Profiler::perf("sched record -q -o FILE").map(|perf| perf.attach(pid));
    let mut watch = Watch::offcputime(pid, "");
    let before = accounts_at_rest(pid);
    let stolen = stolen_ns();
    watch.open();
    spinners.go();
    spinners.wait_done();
    let after = accounts_at_rest(pid);
    let stolen = stolen_ns() - stolen;
    let seen = watch.close();

    let tids: Vec<u32> = seen
        .clocks
        .iter()
        .filter(|row| row.comm == "spinner")
        .map(|row| row.tid)
        .collect();
    let truth: u64 = tids
        .iter()
        .map(|tid| after[tid].since(before[tid]).runnable_ns)
        .sum();
    let in_spin = seen.folded.under("spin").marked("_[r]").total();
    let off = |ns: u64| (ns as f64 / truth as f64 - 1.0) * 100.0;
    let shown = |ns: u64| format!("{:.0} ms, {:+.2} %", ns as f64 / 1e6, off(ns));
    let said = perf.map_or("perf sched: not installed".to_owned(), |perf| {
        let text = perf
            .stop()
            .and_then(|(_, recording)| recording.perf("sched timehist"));
        let waits = text.map(|text| waits_ns(&text));
        let sum = |waits: BTreeMap<u32, u64>| tids.iter().filter_map(|tid| waits.get(tid)).sum();
        waits.map_or("perf sched: failed".to_owned(), |waits| {
            format!("perf sched timehist: {}", shown(sum(waits)))
        })
    });
    let stolen = stolen as f64 * 100.0 / truth as f64;
    let cells = [
        "time waiting for a CPU",
        &format!("{threads} threads that compute, {} CPUs", cpus_online()),
        &format!("{:.0} ms by schedstat", truth as f64 / 1e6),
        &format!("{} in spin_[r]", shown(in_spin)),
        &format!("within {MAX_PERCENT} % and the {stolen:.2} % that the hypervisor took"),
        &said,
    ];
    table.row(
        &cells,
        Verdict::of_calm(stolen, off(in_spin).abs() <= MAX_PERCENT + stolen),
    );
}

/// Returns the time of all waits that `perf sched timehist` prints, in ns, by thread. A wait has
/// two times. The first is from the switch off the CPU to the wake-up, and a preempted thread has
/// none. The second is from the wake-up to the switch back.
///
/// A line has the form ` 123.456789 [0001] spinner[124/123] 1.234 0.001 4.000`, with times in
/// milliseconds.
fn waits_ns(text: &str) -> BTreeMap<u32, u64> {
    let mut waits = BTreeMap::new();
    for row in text.lines() {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let [.., task, wait, delay, _run] = fields[..] else {
            continue;
        };
        let tid = task
            .rsplit_once('[')
            .map(|(_, ids)| ids.trim_end_matches(']'));
        let tid = tid.and_then(|ids| ids.split('/').next()?.parse::<u32>().ok());
        let (Some(tid), Ok(wait), Ok(delay)) = (tid, wait.parse::<f64>(), delay.parse::<f64>())
        else {
            continue;
        };
        *waits.entry(tid).or_insert(0) += ((wait + delay) * 1e6) as u64;
    }
    waits
}
