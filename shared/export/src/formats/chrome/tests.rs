#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::fixture::{blocked, written};
use crate::timeline_fixture::timeline;

fn read(profile: &Profile) -> Value {
    let options = Options::default();
    let text = written(|writer| Chrome.write(profile, &options, writer).map(drop));
    // Each event is on a line of its own.
    let lines = text.lines().count() as u64;
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(lines, events(&file).len() as u64 + 2);
    file
}

fn events(file: &Value) -> &[Value] {
    file["traceEvents"].as_array().unwrap()
}

/// Returns a time in ns.
fn ns(time: &Value) -> u64 {
    (time.as_f64().unwrap() * 1_000.0).round() as u64
}

/// Returns a lane's events of a phase: name, category, start, length, arguments.
fn lane(file: &Value, phase: &str, tid: u64) -> Vec<(String, String, u64, u64, Value)> {
    let wanted = events(file).iter();
    let wanted = wanted.filter(|event| event["ph"] == phase && event["tid"] == tid);
    let rows = wanted.map(|event| {
        assert_eq!(event["pid"], 7);
        (
            event["name"].as_str().unwrap().to_owned(),
            event["cat"].as_str().unwrap_or_default().to_owned(),
            event.get("ts").map_or(0, ns),
            event.get("dur").map_or(0, ns),
            event["args"].clone(),
        )
    });
    rows.collect()
}

#[test]
fn a_lane_has_its_states_in_order_and_its_gap() {
    let file = read(&timeline());
    assert_eq!(file["displayTimeUnit"], "ns");
    let slices = lane(&file, "X", 8);
    let told: Vec<_> = slices
        .iter()
        .map(|(name, state, start, length, _)| (&**name, &**state, *start, *length))
        .collect();
    let expected = [
        ("running", "running", 0, 2_000_000),
        ("blocked: lock: mutex", "blocked", 2_000_000, 60_000_001),
        ("runnable", "runnable", 62_000_001, 500_000),
        ("mostly running", "running", 62_500_001, 7_499_999),
        ("running", "running", 80_000_000, 20_000_000),
    ];
    assert_eq!(told, expected);
    let waits = json!({
        "detail": "lock: mutex, ledger_lock, held by writer, ended by writer-7/7",
        "wait": "lock: mutex",
        "resource": "ledger_lock",
        "holder": "writer",
        "idleness": "waiting",
        "waker": "writer-7/7",
        "waker_stack": "futex_wake ← unlock ← main",
        "stack": "futex_wait ← lock ← main",
    });
    assert_eq!(slices[1].4, waits);
    assert_eq!(slices[2].4, json!({ "stack": "lock ← main" }));
    let short = &slices[3].4;
    assert_eq!(
        (&short["running_ns"], &short["blocked_ns"]),
        (&json!(4_000_000), &json!(2_499_999))
    );
    let writer = lane(&file, "X", 7);
    assert_eq!(writer[1].0, "blocked: events: epoll");
    assert_eq!(writer[1].4["idleness"], "idle");

    // An arrow goes from the waker's slice to the slice that begins at the same time.
    let arrows: Vec<&Value> = events(&file)
        .iter()
        .filter(|event| event["cat"] == "wake-up")
        .collect();
    let told: Vec<_> = arrows
        .iter()
        .map(|event| {
            (
                event["ph"].as_str().unwrap(),
                &event["tid"],
                ns(&event["ts"]),
            )
        })
        .collect();
    let at = 62_000_001;
    assert_eq!(told, [("s", &json!(7), at), ("f", &json!(8), at)]);
    assert_eq!(
        (&arrows[0]["id"], &arrows[1]["bp"]),
        (&arrows[1]["id"], &json!("e"))
    );

    // Names, events, and what is lost.
    assert!(events(&file)[0].get("cat").is_none());
    let names = |phase, tid| -> Vec<(String, u64)> {
        let rows = lane(&file, phase, tid).into_iter();
        rows.map(|(name, _, at, ..)| (name, at)).collect()
    };
    let named = |name: &str, at: u64| (name.to_owned(), at);
    assert_eq!(lane(&file, "M", 7)[0].4, json!({ "name": "db" }));
    assert_eq!(lane(&file, "M", 8)[0].4, json!({ "name": "worker" }));
    let lost = "3 rows of the timeline were lost: their times are gaps";
    let events = [
        named(lost, 0),
        named("executed writer", 500_000),
        named("thread ended", 100_000_000),
    ];
    assert_eq!(names("i", 7), events);
    assert_eq!(
        names("i", 8),
        [
            named("thread started", 0),
            named("renamed to worker", 1_000_000)
        ]
    );
    assert_eq!(
        names("b", 8),
        [named("GET /", 1_000_000), named("query", 1_500_000)]
    );
    assert_eq!(
        names("e", 8),
        [named("GET /", 65_000_000), named("query", 65_000_000)]
    );
    assert_eq!(file["otherData"]["start_utc_ns"], "1700000000123456789");
    assert_eq!(
        file["otherData"]["losses"]
            .as_str()
            .unwrap()
            .split(' ')
            .next_back(),
        Some("times=3")
    );
}

/// Returns the time in µs and the stack of each of a thread's CPU samples.
fn cpu_samples(file: &Value, tid: u64) -> Vec<(u64, String)> {
    let mut nodes: BTreeMap<u64, (Option<u64>, String)> = BTreeMap::new();
    let mut now_us = 0;
    let mut samples = Vec::new();
    for (name, _, _, _, arguments) in lane(file, "P", tid) {
        let data = &arguments["data"];
        if name == "Profile" {
            now_us = data["startTime"].as_u64().unwrap();
            continue;
        }
        for node in data["cpuProfile"]["nodes"].as_array().unwrap() {
            let function = node["callFrame"]["functionName"].as_str().unwrap();
            let node_and_parent = (node["parent"].as_u64(), function.to_owned());
            // Callers come first.
            assert!(
                node_and_parent
                    .0
                    .is_none_or(|parent| nodes.contains_key(&parent))
            );
            nodes.insert(node["id"].as_u64().unwrap(), node_and_parent);
        }
        let deltas = data["timeDeltas"].as_array().unwrap();
        let ids = data["cpuProfile"]["samples"].as_array().unwrap();
        assert_eq!(deltas.len(), ids.len());
        for (delta, id) in deltas.iter().zip(ids) {
            now_us += delta.as_u64().unwrap();
            let mut stack = String::new();
            let mut rest = id.as_u64();
            while let Some((parent, function)) = rest.map(|id| &nodes[&id]) {
                stack = format!("{function};{stack}");
                rest = *parent;
            }
            samples.push((now_us, stack));
        }
    }
    samples
}

#[test]
fn cpu_samples_keep_their_times_and_stacks() {
    let mut profile = timeline();
    let file = read(&profile);
    let sample = |time_us, stack: &str| (time_us, stack.to_owned());
    let writes = "(root);main;write;";
    assert_eq!(cpu_samples(&file, 8), [sample(1_000, "(root);main;work;")]);
    assert_eq!(
        cpu_samples(&file, 7),
        [sample(30_000, writes), sample(70_000, writes)]
    );
    // Many samples are in several events. Rounded differences do not drift.
    let first = profile.times.timed_samples[1];
    profile.times.timed_samples = (0..1_000)
        .map(|number| profile::TimedSample {
            time_ns: first.time_ns + 1_999 * number,
            ..first
        })
        .collect();
    let samples = cpu_samples(&read(&profile), 8);
    assert_eq!(
        (samples.len(), samples[999].0),
        (1_000, 1_000 + 1_999 * 999 / 1_000)
    );
}

#[test]
fn a_profile_of_sums_says_that_it_has_no_timeline() {
    let file = read(&blocked());
    let told: Vec<&Value> = events(&file).iter().map(|event| &event["name"]).collect();
    assert_eq!(told, ["no timeline: the profile has sums without times"]);
}
