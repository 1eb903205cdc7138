#![allow(clippy::unwrap_used)]

use std::io::Read;

use flate2::read::GzDecoder;
use profile::{Interval, Sampling, Shares, State, ThreadId, Unit};
use serde_json::{Value, json};

use super::*;
use crate::fixture::{blocked, sample, weight, written};
use crate::timeline_fixture::timeline;

fn read(profile: &Profile) -> Value {
    let options = Options::default();
    let text = written(|writer| Firefox.write(profile, &options, writer).map(drop));
    let mut packed = Vec::new();
    PackedFirefox.write(profile, &options, &mut packed).unwrap();
    let mut unpacked = String::new();
    GzDecoder::new(&*packed)
        .read_to_string(&mut unpacked)
        .unwrap();
    assert!(unpacked == text);
    serde_json::from_str(&text).unwrap()
}

/// A thread, by the processed profile format of version 55
/// (`docs-developer/CHANGELOG-formats.md` of firefox-devtools/profiler).
struct Thread<'a> {
    file: &'a Value,
    thread: &'a Value,
}

/// Returns an element of an array.
fn at<'a>(array: &'a Value, index: &Value) -> &'a Value {
    &array[index.as_u64().unwrap() as usize]
}

/// Returns a time in ns.
fn ns(milliseconds: &Value) -> u64 {
    (milliseconds.as_f64().unwrap() * 1e6).round() as u64
}

impl<'a> Thread<'a> {
    fn new(file: &'a Value, tid: &str) -> Thread<'a> {
        let mut threads = file["threads"].as_array().unwrap().iter();
        let thread = threads.find(|thread| thread["tid"] == tid).unwrap();
        Thread { file, thread }
    }

    fn text(&self, index: &Value) -> &'a str {
        at(&self.thread["stringArray"], index).as_str().unwrap()
    }

    fn category(&self, index: &Value) -> &'a Value {
        at(&self.file["meta"]["categories"], index)
    }

    /// Returns a stack, root first, and the category of its leaf.
    fn stack(&self, leaf: &Value) -> (String, String) {
        let tables = ["stackTable", "frameTable", "funcTable"].map(|name| &self.thread[name]);
        let [stacks, frames, functions] = tables;
        let mut text = Vec::new();
        let mut rest = leaf;
        let mut category = String::new();
        while !rest.is_null() {
            let frame = at(&stacks["frame"], rest);
            let name = at(&functions["name"], at(&frames["func"], frame));
            let main = self.category(at(&frames["category"], frame));
            let sub = at(&main["subcategories"], at(&frames["subcategory"], frame));
            if text.is_empty() {
                let [main, sub] = [&main["name"], sub].map(|name| name.as_str().unwrap());
                category = format!("{main}: {sub}");
            }
            text.insert(0, self.text(name));
            rest = at(&stacks["prefix"], rest);
        }
        (text.join(";"), category)
    }

    /// Returns the samples: time in ns, stack, category, weight, CPU time in µs.
    fn samples(&self) -> Vec<(u64, String, String, i64, u64)> {
        let samples = &self.thread["samples"];
        let mut now_ms = 0.0;
        let samples = (0..samples["length"].as_u64().unwrap()).map(|number| {
            let column = |name: &str| at(&samples[name], &json!(number));
            now_ms += column("timeDeltas").as_f64().unwrap();
            let (stack, category) = self.stack(column("stack"));
            let weight = column("weight").as_i64().unwrap();
            let cpu_us = column("threadCPUDelta").as_u64().unwrap();
            (ns(&json!(now_ms)), stack, category, weight, cpu_us)
        });
        samples.collect()
    }

    /// Returns the markers: name, category, start and end in ns, fields, stack.
    fn markers(&self) -> Vec<(&'a str, &'a Value, u64, u64, Value, String)> {
        let markers = &self.thread["markers"];
        let schemas = self.file["meta"]["markerSchema"].as_array().unwrap();
        let markers = (0..markers["length"].as_u64().unwrap()).map(|number| {
            let column = |name: &str| at(&markers[name], &json!(number));
            let data = column("data");
            let schema = schemas.iter().find(|schema| schema["name"] == data["type"]);
            let fields = schema.unwrap()["fields"].as_array().unwrap().iter();
            let fields = fields.map(|field| {
                let key = field["key"].as_str().unwrap();
                let value = match field["format"].as_str().unwrap() {
                    "unique-string" => json!(self.text(&data[key])),
                    _ => data[key].clone(),
                };
                (key.to_owned(), value)
            });
            let end_ns = match column("phase").as_u64() {
                Some(1) => ns(column("endTime")),
                _ => 0,
            };
            (
                self.text(column("name")),
                &self.category(column("category"))["name"],
                ns(column("startTime")),
                end_ns,
                Value::Object(fields.collect()),
                self.stack(&data["cause"]["stack"]).0,
            )
        });
        markers.collect()
    }
}

#[test]
fn a_thread_has_samples_of_all_its_time() {
    let file = read(&timeline());
    assert_eq!(file["meta"]["preprocessedProfileVersion"], 55);
    let product = "wallclock of PID 7 (3 rows of the timeline were lost: their times are gaps)";
    assert_eq!(file["meta"]["product"], product);
    assert_eq!(
        ns(&file["meta"]["startTime"]) / 1_000_000,
        1_700_000_000_123
    );
    let worker = Thread::new(&file, "8");
    assert_eq!(worker.thread["samples"]["weightType"], "tracing-ms");
    let samples = worker.samples();
    let told: Vec<_> = samples
        .iter()
        .map(|(at_ns, stack, category, weight, cpu_us)| {
            (*at_ns, &**stack, &**category, *weight, *cpu_us)
        })
        .collect();
    let lock = "main;lock;futex_wait;[blocked: lock: mutex]";
    let no_sample = "[running, no sample]";
    let running = "Running: Other";
    let short = "[blocked: short intervals]";
    let expected = [
        (0, "", "", 0, 0),
        // One ms ran before the CPU sample, and one after it.
        (1_000_000, "main;work", "User: Other", 1, 1_000),
        (2_000_000, no_sample, running, 1, 1_000),
        (3_000_000, lock, "Blocked: lock", 1, 0),
        (62_000_000, lock, "Blocked: lock", 59, 0),
        // In the short stays 4 ms ran. 0.5 ms of runnable time and 1 ns of the wait were left.
        (63_500_001, no_sample, running, 1, 1_000),
        (66_500_001, no_sample, running, 3, 3_000),
        (
            67_000_001,
            "[runnable: short intervals]",
            "Runnable: Other",
            1,
            0,
        ),
        (68_500_000, short, "Blocked: Other", 1, 0),
        (69_500_000, short, "Blocked: Other", 1, 0),
        (81_000_000, no_sample, running, 1, 1_000),
        (100_000_000, no_sample, running, 19, 19_000),
    ];
    assert_eq!(told, expected);

    let writer = Thread::new(&file, "7");
    let samples = writer.samples();
    let told: Vec<_> = samples
        .iter()
        .map(|(at_ns, stack, category, weight, cpu_us)| {
            (*at_ns, &**stack, &**category, *weight, *cpu_us)
        })
        .collect();
    let idle = "main;ep_poll;[idle: events: epoll]";
    let expected = [
        (0, "", "", 0, 0),
        (30_000_500, "main;write", "User: Other", 30, 30_000),
        (70_000_000, "main;write", "User: Other", 40, 40_000),
        (71_000_000, no_sample, running, 1, 1_000),
        (90_000_000, no_sample, running, 19, 19_000),
        (91_000_000, idle, "Idle: events", 1, 0),
        (100_000_000, idle, "Idle: events", 9, 0),
    ];
    assert_eq!(told, expected);
}

#[test]
fn waits_and_lives_are_markers() {
    let file = read(&timeline());
    let worker = Thread::new(&file, "8");
    let markers = worker.markers();
    let ms = 1_000_000;
    let waker = "futex_wake ← unlock ← main";
    let wait = json!({
        "wait": "lock: mutex, ledger_lock, held by writer",
        "resource": "ledger_lock",
        "waker": "writer-7/7",
        "wakerStack": waker,
    });
    let unknown = json!({ "waker": "unknown", "wakerStack": "unknown" });
    let short = json!({ "running": 4.0 * 1e6, "runnable": 1e6, "blocked": 2_499_999.0 });
    let stack = "main;lock;futex_wait".to_owned();
    let no_stack = String::new;
    let [blocked, runnable, running, other] =
        ["Blocked", "Runnable", "Running", "Other"].map(Value::from);
    let name = json!({ "name": "worker" });
    let expected = [
        ("Blocked", &blocked, 2 * ms, 62 * ms + 1, wait, stack),
        (
            "Runnable",
            &runnable,
            62 * ms + 1,
            62_500_001,
            unknown,
            "main;lock".to_owned(),
        ),
        (
            "Short intervals",
            &running,
            62_500_001,
            70 * ms,
            short,
            no_stack(),
        ),
        ("Started", &other, 0, 0, name.clone(), no_stack()),
        ("Renamed", &other, ms, 0, name, no_stack()),
        (
            "GET /",
            &other,
            ms,
            65 * ms,
            json!({ "parent": "" }),
            no_stack(),
        ),
        (
            "query",
            &other,
            1_500_000,
            65 * ms,
            json!({ "parent": "GET /" }),
            no_stack(),
        ),
    ];
    assert_eq!(markers, expected);

    let writer = Thread::new(&file, "7");
    let told: Vec<_> = writer
        .markers()
        .iter()
        .map(|row| (row.0, row.2, row.3))
        .collect();
    let expected = [
        ("Timeline", 0, 100 * ms),
        ("Blocked", 90 * ms, 100 * ms),
        ("Executed", 500_000, 0),
        ("Ended", 100 * ms, 0),
    ];
    assert_eq!(told, expected);
    // The writer is the main thread, and ended; the worker goes on, and so does the process.
    let thread = writer.thread;
    assert_eq!(
        (&thread["name"], &thread["isMainThread"]),
        (&json!("db"), &json!(true))
    );
    assert_eq!(
        (
            ns(&thread["unregisterTime"]),
            &thread["processShutdownTime"]
        ),
        (100 * ms, &Value::Null)
    );
    assert_eq!(
        (&worker.thread["name"], &worker.thread["unregisterTime"]),
        (&json!("worker"), &Value::Null)
    );
}

#[test]
fn sums_are_samples_without_a_timeline() {
    let file = read(&blocked());
    let thread = Thread::new(&file, "8");
    let samples = thread.samples();
    let weights: i64 = samples.iter().map(|sample| sample.3).sum();
    // 2,500,999 ns + 1,000 ns + 999 ns + 3,000 ns.
    assert_eq!(
        (weights, &*samples[0].1),
        (2, "main;wait(int; char);schedule")
    );
    let markers = thread.markers();
    let lack = json!({ "text": "no timeline: the profile has sums without times" });
    assert_eq!((markers.len(), &markers[0].4), (1, &lack));

    // Events other than time are counted.
    let mut profile = Profile::new(Unit::Samples);
    profile.meta.sampling = Some(Sampling {
        event: "cache-misses".into(),
        rate: profile::Rate::Period(1_000),
    });
    let misses = sample(&mut profile, "t", &["main"], &[], None);
    profile.add(misses, weight(5));
    let file = read(&profile);
    let thread = Thread::new(&file, "8");
    assert_eq!(thread.thread["samples"]["weightType"], "samples");
    assert_eq!(
        thread.samples(),
        [(0, "main".to_owned(), "User: Other".to_owned(), 5, 0)]
    );
    // A profile of nothing is a file that viewers open.
    let nothing = read(&Profile::new(Unit::Nanoseconds));
    assert_eq!(nothing["threads"].as_array().unwrap().len(), 1);
}

#[test]
fn threads_that_are_written_one_after_another_make_one_file() {
    let mut profile = timeline();
    let waits = profile.times.intervals[3];
    let shares = Shares::all(State::Blocked, 1_000);
    profile.times.intervals.clear();
    profile.times.timed_samples.clear();
    // Rows of two threads are more than the file holds in memory.
    for tid in 7..10 {
        let intervals = (0..6_000).map(|number| Interval {
            thread: ThreadId { pid: 7, tid },
            start_ns: waits.start_ns + 1_000 * number,
            shares,
            ..waits
        });
        profile.times.intervals.extend(intervals);
    }
    let file = read(&profile);
    for tid in ["7", "8", "9"] {
        let thread = Thread::new(&file, tid);
        let process = (&thread.thread["pid"], &thread.thread["processName"]);
        assert_eq!(process, (&json!("7"), &json!("db")));
        let samples = thread.samples();
        assert_eq!(samples.iter().map(|sample| sample.3).sum::<i64>(), 6);
        let (_, stack, category, ..) = samples.last().unwrap();
        assert_eq!(stack, "main;lock;futex_wait;[blocked: lock: mutex]");
        assert_eq!(category, "Blocked: lock");
        assert!(thread.thread["markers"]["length"].as_u64() >= Some(6_000));
    }
}
