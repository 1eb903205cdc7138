#![allow(clippy::unwrap_used)]

use profile::{Label, State};

use super::*;
use crate::fixture::{blocked, sample, weight, woken, written};

fn read(profile: &Profile) -> Value {
    let options = Options::default();
    let text = written(|writer| Json.write(profile, &options, writer).map(drop));
    serde_json::from_str(&text).unwrap()
}

/// Returns the names of the frames at these indexes.
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
    let [key, value] = ["tenant", "acme"].map(|text| profile.names.text(text));
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
    assert_eq!(labelled["labels"], json!({"tenant": "acme"}));
    assert_eq!(labelled["state"], "runnable");
}
