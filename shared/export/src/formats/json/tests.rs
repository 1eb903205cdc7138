#![allow(clippy::unwrap_used)]

use profile::{Clock, Sampling, State, ThreadId};

use super::*;
use crate::fixture::{blocked, sample, weight, woken, written};

fn read(profile: &Profile) -> Value {
    let options = Options::default();
    let text = written(|writer| Json.write(profile, &options, writer).map(drop));
    serde_json::from_str(&text).unwrap()
}

/// The names of frames at places.
fn names(object: &Value, places: &Value) -> Vec<String> {
    let places = places.as_array().unwrap().iter();
    let names = places.map(|place| {
        let frame = &object["frames"][place.as_u64().unwrap() as usize];
        frame["name"].as_str().unwrap().to_owned()
    });
    names.collect()
}

#[test]
fn samples_are_as_they_were_measured() {
    let object = read(&blocked());
    assert_eq!(object["version"], 1);
    assert_eq!(object["unit"], "nanoseconds");
    let samples = object["samples"].as_array().unwrap();
    let first = &samples[0];
    assert_eq!(
        (&first["comm"], &first["value"]),
        (&json!("worker"), &json!(2_500_999))
    );
    assert_eq!((&first["pid"], &first["tid"]), (&json!(7), &json!(8)));
    assert_eq!(first["state"], Value::Null);
    assert_eq!(names(&object, &first["user"]), ["main", "wait(int; char)"]);
    assert_eq!(names(&object, &first["kernel"]), ["schedule"]);
    assert!(first.get("wakers").is_none() && first.get("labels").is_none());
    let sum: u64 = samples.iter().map(|it| it["value"].as_u64().unwrap()).sum();
    assert_eq!(sum, 2_500_999 + 1_000 + 999 + 3_000);
}

#[test]
fn wakers_and_labels_are_with_their_samples() {
    let mut profile = woken();
    let mut labelled = sample(&mut profile, "c", &[], &[], Some(State::Runnable));
    let [key, value] = ["reason", "throttle"].map(|text| profile.names.text(text));
    labelled.labels = Some(profile.labels.id([Label { key, value }].into()));
    profile.add(labelled, weight(3));
    let object = read(&profile);
    let [waits, sleeps, labelled] = &object["samples"].as_array().unwrap()[..] else {
        unreachable!("three")
    };
    assert_eq!(waits["state"], "blocked");
    let [b, timer] = &waits["wakers"].as_array().unwrap()[..] else {
        unreachable!("two wakers")
    };
    assert_eq!(
        (&b["comm"], &b["pid"], &b["tid"]),
        (&json!("b"), &json!(5), &json!(6))
    );
    assert_eq!(names(&object, &b["user"]), ["main", "put"]);
    assert_eq!(
        (&timer["comm"], &timer["pid"]),
        (&json!("[timer]"), &Value::Null)
    );
    assert_eq!(sleeps["wakers"][0]["comm"], "[still blocked]");
    assert_eq!(labelled["labels"], json!({"reason": "throttle"}));
    assert_eq!(labelled["state"], "runnable");
}

#[test]
fn modules_and_processes_are_told() {
    let mut profile = Profile::new(Unit::Nanoseconds);
    let [program, digits, vdso] =
        ["/usr/bin/x", "ab12", "[vdso]"].map(|text| profile.names.text(text));
    profile.modules.id(Module {
        path: program,
        build_id: Some(digits),
        kind: ModuleKind::File,
    });
    profile.modules.id(Module {
        path: vdso,
        build_id: None,
        kind: ModuleKind::Vdso,
    });
    profile.processes.push(Process {
        pid: 7,
        parent: 1,
        start_ticks: 99,
        executable: "/usr/bin/x".to_owned(),
        command_line: vec!["x".to_owned(), "-v".to_owned()],
        cgroup: "/user.slice".to_owned(),
        is_kernel_thread: false,
    });
    let object = read(&profile);
    assert_eq!(
        object["modules"],
        json!([
            {"path": "/usr/bin/x", "build_id": "ab12", "kind": "file"},
            {"path": "[vdso]", "build_id": null, "kind": "vdso"},
        ])
    );
    assert_eq!(
        object["processes"],
        json!([{
            "pid": 7,
            "parent": 1,
            "start_ticks": 99,
            "executable": "/usr/bin/x",
            "command_line": ["x", "-v"],
            "cgroup": "/user.slice",
        }])
    );
}

#[test]
fn what_was_measured_is_told() {
    let mut profile = Profile::new(Unit::Samples);
    profile.meta.tool = "oncputime".to_owned();
    profile.meta.window.length_ns = 5;
    profile.meta.sampling = Some(Sampling {
        event: "cpu-clock".to_owned(),
        rate: Rate::Frequency(100),
    });
    let comm = profile.names.text("t");
    profile.threads.push(Thread {
        id: ThreadId { pid: 1, tid: 2 },
        comm,
        clock: Clock {
            blocked_ns: 6,
            ..Clock::default()
        },
    });
    profile.losses.stacks = 4;
    profile.walk_ends.no_rule = 3;
    let object = read(&profile);
    let meta = &object["meta"];
    assert_eq!(
        (&meta["tool"], &meta["window"]["length_ns"]),
        (&json!("oncputime"), &json!(5))
    );
    assert_eq!(
        meta["sampling"],
        json!({"event": "cpu-clock", "frequency": 100, "ns_per_sample": 10_000_000})
    );
    assert_eq!(object["threads"][0]["blocked_ns"], 6);
    assert_eq!(
        (&object["lost"]["stacks"], &object["walk_ends"]["no_rule"]),
        (&json!(4), &json!(3))
    );
    assert!(object.get("ebpf").is_none());
    assert_eq!(read(&blocked())["ebpf"]["offcpu"]["total_events"], 0);
}
