//! Sums of off-CPU time, with the field names that denet, an earlier program of this kind, wrote
//! under `ebpf.offcpu`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use profile::{Profile, Sample, State, ThreadId, Unit, Weight};
use serde::Serialize;

/// Number of threads listed in `top_blocking_threads`.
const MAX_THREADS: usize = 10;

/// Sums of all intervals, and of each thread's intervals.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct OffCpu {
    total_time_ns: u64,
    total_events: u64,
    avg_time_ns: u64,
    max_time_ns: u64,
    min_time_ns: u64,
    top_blocking_threads: Vec<TopThread>,
    /// Sums by `PID:TID`.
    thread_stats: BTreeMap<String, ThreadStats>,
}

#[derive(Debug, PartialEq, Serialize)]
struct TopThread {
    pid: u32,
    tid: u32,
    time_ms: f64,
    percentage: f64,
}

#[derive(Debug, PartialEq, Serialize)]
struct ThreadStats {
    tid: u32,
    total_time_ns: u64,
    count: u64,
    avg_time_ns: u64,
    max_time_ns: u64,
    min_time_ns: u64,
}

impl OffCpu {
    /// Returns the sums of a profile; `None` if its unit is samples.
    pub(super) fn of(profile: &Profile) -> Option<OffCpu> {
        if profile.unit != Unit::Nanoseconds {
            return None;
        }
        let mut all = Weight::default();
        let mut threads: BTreeMap<ThreadId, Weight> = BTreeMap::new();
        for (sample, weight) in intervals(profile) {
            all += weight;
            *threads
                .entry(sample.thread.unwrap_or_default())
                .or_default() += weight;
        }
        let mut top: Vec<_> = threads.iter().collect();
        top.sort_by_key(|(id, weight)| (Reverse(weight.value), **id));
        let top = top.into_iter().take(MAX_THREADS);
        let top = top.map(|(id, weight)| TopThread {
            pid: id.pid,
            tid: id.tid,
            time_ms: weight.value as f64 / 1e6,
            percentage: weight.value as f64 / all.value.max(1) as f64 * 100.0,
        });
        Some(OffCpu {
            total_time_ns: all.value,
            total_events: all.events,
            avg_time_ns: average(&all),
            max_time_ns: all.longest,
            min_time_ns: all.shortest,
            top_blocking_threads: top.collect(),
            thread_stats: threads.iter().map(stats).collect(),
        })
    }
}

/// Returns the intervals of each stack of each thread, added up over states. The count is the
/// maximum over states, because an interval that was blocked and then runnable is in both counts.
/// The sums leave out time without an interval count, such as the time of intervals too short to
/// count. They also leave out sampled intervals, because their number is unknown.
fn intervals(profile: &Profile) -> impl Iterator<Item = (Sample, Weight)> {
    let mut sums: HashMap<Sample, Weight> = HashMap::new();
    for (sample, weight) in profile.samples.iter() {
        let is_on_cpu = sample.state == Some(State::Running);
        if is_on_cpu || weight.events == 0 || sample.is_sampled {
            continue;
        }
        let interval = Sample {
            state: None,
            ..*sample
        };
        let sum = sums.entry(interval).or_default();
        let events = sum.events.max(weight.events);
        *sum += *weight;
        sum.events = events;
    }
    sums.into_iter()
}

fn stats((id, weight): (&ThreadId, &Weight)) -> (String, ThreadStats) {
    let stats = ThreadStats {
        tid: id.tid,
        total_time_ns: weight.value,
        count: weight.events,
        avg_time_ns: average(weight),
        max_time_ns: weight.longest,
        min_time_ns: weight.shortest,
    };
    (format!("{}:{}", id.pid, id.tid), stats)
}

fn average(weight: &Weight) -> u64 {
    weight.value.checked_div(weight.events).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::fixture::sample;

    #[test]
    fn an_interval_in_two_states_is_one() {
        let mut profile = Profile::new(Unit::Nanoseconds);
        let mut add = |name: &str, tid, state, value, events, longest, shortest| {
            let mut sample = sample(&mut profile, "t", &[name], &[], state);
            sample.thread = Some(ThreadId { pid: 7, tid });
            let weight = Weight {
                value,
                events,
                longest,
                shortest,
                ..Weight::default()
            };
            profile.add(sample, weight);
        };
        add("wait", 8, Some(State::Blocked), 700, 3, 500, 100);
        add("wait", 8, Some(State::Runnable), 200, 3, 500, 100);
        add("spin", 8, Some(State::Runnable), 50, 1, 50, 50);
        add("wait", 9, Some(State::Blocked), 50, 1, 50, 50);
        // Time on the CPU, and time in intervals without a count.
        add("burn", 9, Some(State::Running), 9000, 5, 0, 0);
        add(
            "[blocked, below -m]",
            9,
            Some(State::Blocked),
            9000,
            0,
            0,
            0,
        );
        let off_cpu = OffCpu::of(&profile).unwrap();
        assert_eq!((off_cpu.total_time_ns, off_cpu.total_events), (1000, 5));
        assert_eq!(off_cpu.avg_time_ns, 200);
        assert_eq!((off_cpu.max_time_ns, off_cpu.min_time_ns), (500, 50));
        let top = off_cpu.top_blocking_threads.iter();
        let top = top.map(|top| (top.tid, top.time_ms, top.percentage));
        // 950 ns and 50 ns of 1,000 ns.
        let expected = [(8, 0.00095, 95.0), (9, 0.00005, 5.0)];
        assert_eq!(top.collect::<Vec<_>>(), expected);
        let stats = &off_cpu.thread_stats["7:8"];
        assert_eq!((stats.total_time_ns, stats.count), (950, 4));
        assert_eq!((stats.max_time_ns, stats.min_time_ns), (500, 50));
    }
}
