//! `make soak MINUTES=5`: runs the tools on the whole machine while processes, threads and mappings
//! come and go. The memory of the tools must not grow. Prints one table. The exit status is 1 if a
//! figure grows too much.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use rustix::process::Signal;
use systemscope_tests::printed::output::median;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::{Finished, Running, Tool, Turn, Workload};

const BETWEEN_SAMPLES: Duration = Duration::from_secs(2);
/// Largest growth from the middle third to the last third, in percent.
const MAX_GROWTH: f64 = 10.0;
/// Number of processes a second. Each has four threads.
const CHURN: u64 = 50;

/// Memory of a tool, in KiB.
#[derive(Clone, Copy)]
struct Held {
    memory: f64,
    maps: f64,
}

fn main() -> ExitCode {
    let _turn = Turn::take();
    let minutes: f64 = env::var("MINUTES").map_or(5.0, |text| text.parse().expect("MINUTES"));
    let _churn = Workload::start("churn", &[CHURN]);
    let tools = [
        ("oncputime", "-F 49"),
        ("offcputime", "-m 1000"),
        ("offwaketime", "-m 1000"),
        ("cpudist", "1 --json"),
    ];
    let running: Vec<(&str, Running)> = tools
        .iter()
        .map(|&(tool, flags)| (tool, Tool::new(tool).args(flags).start()))
        .collect();
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let mut samples: BTreeMap<&str, Vec<Held>> = BTreeMap::new();
    while Instant::now() < end {
        sleep(BETWEEN_SAMPLES);
        for (tool, running) in &running {
            samples.entry(tool).or_default().push(held(running.pid()));
        }
    }
    let first = format!("first third of {minutes} minutes");
    let columns = [
        "tool",
        "held",
        &first,
        "middle third",
        "last third",
        "growth",
    ];
    let mut table = Table::new(&columns);
    for (tool, running) in running {
        running.signal(Signal::INT);
        let Finished { code, stderr, .. } = running.finish_within(Duration::from_secs(120));
        let samples = &samples[tool];
        for (what, value) in [
            ("memory", (|held: &Held| held.memory) as fn(&Held) -> f64),
            ("kernel's maps", |held| held.maps),
        ] {
            let values: Vec<f64> = samples.iter().map(value).collect();
            row(&mut table, tool, what, &values);
        }
        if code != Some(0) {
            let status = format!("exit status {code:?}");
            table.row(&[tool, "", "", "", "", &status], Verdict::Missed);
            eprintln!("{stderr}");
        }
    }
    table.finish()
}

fn row(table: &mut Table, tool: &str, what: &str, values: &[f64]) {
    let third = values.len() / 3;
    let thirds = [0, 1, 2].map(|n| median(values[n * third..][..third].to_vec()));
    let growth = (thirds[2] / thirds[1] - 1.0) * 100.0;
    let shown = thirds.map(|third| format!("{third:.0}"));
    let growth_shown = format!("{growth:+.1} %");
    let cells = [tool, what, &shown[0], &shown[1], &shown[2], &growth_shown];
    table.row(&cells, Verdict::of(growth <= MAX_GROWTH));
}

fn held(pid: u32) -> Held {
    Held {
        memory: memory_kib(pid),
        maps: maps_kib(pid),
    }
}

fn memory_kib(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a tool that runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let value = line.and_then(|line| line.split_whitespace().next());
    value.expect("VmRSS").parse().expect("a number")
}

/// Returns the KiB that the kernel charges for the maps of the tool's descriptors, plus the size of
/// the maps inside these maps.
fn maps_kib(pid: u32) -> f64 {
    let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
    let mut outer = Vec::new();
    let descriptors = fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("a tool that runs");
    for descriptor in descriptors.flatten() {
        // The tool may have closed the descriptor already.
        let info = fs::read_to_string(descriptor.path()).unwrap_or_default();
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse::<u64>().ok()
        };
        let (Some(id), Some(memlock)) = (field("map_id:"), field("memlock:")) else {
            continue;
        };
        let id = id as u32;
        bytes.insert(id, memlock);
        if field("map_type:") == Some(MapType::ArrayOfMaps as u64) {
            outer.push(id);
        }
    }
    for inner in outer.into_iter().flat_map(maps_inside) {
        bytes.entry(inner).or_insert_with(|| size_of_map(inner));
    }
    bytes.values().sum::<u64>() as f64 / 1024.0
}

/// Returns the IDs of the maps inside an array of maps.
fn maps_inside(id: u32) -> Vec<u32> {
    let Ok(array) = MapHandle::from_map_id(id) else {
        return Vec::new();
    };
    let value = |index: u32| array.lookup(&index.to_ne_bytes(), MapFlags::ANY).ok()?;
    let ids = (0..array.max_entries()).filter_map(value);
    ids.filter_map(|bytes| Some(u32::from_ne_bytes(bytes.try_into().ok()?)))
        .collect()
}

/// Returns the size of an array map in bytes, or 0 if the map is gone.
fn size_of_map(id: u32) -> u64 {
    MapHandle::from_map_id(id).map_or(0, |map| {
        u64::from(map.value_size()) * u64::from(map.max_entries())
    })
}
