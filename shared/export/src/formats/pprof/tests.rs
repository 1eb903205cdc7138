#![allow(clippy::unwrap_used)]

use std::io::Read;

use flate2::read::GzDecoder;

use super::*;
use crate::fixture::{blocked, woken};

/// Writes a profile and decodes it as a reader does.
fn read(profile: &Profile) -> messages::Profile {
    let mut bytes = Vec::new();
    let written = Pprof.write(profile, &Options::default(), &mut bytes);
    assert_eq!(written.unwrap(), Written::default());
    let mut unpacked = Vec::new();
    GzDecoder::new(&*bytes).read_to_end(&mut unpacked).unwrap();
    messages::Profile::decode(&*unpacked).unwrap()
}

fn text(read: &messages::Profile, place: i64) -> &str {
    &read.string_table[place as usize]
}

/// Returns the names of a sample's functions, leaf first, with its values and labels.
fn line(read: &messages::Profile, sample: &messages::Sample) -> String {
    let lines = sample.location_id.iter().flat_map(|id| {
        let location = &read.location[*id as usize - 1];
        assert_eq!(location.id, *id);
        location.line.iter()
    });
    let names = lines.map(|line| {
        let function = &read.function[line.function_id as usize - 1];
        assert_eq!(function.id, line.function_id);
        text(read, function.name)
    });
    let names: Vec<&str> = names.collect();
    let labels = sample.label.iter();
    let labels = labels.map(|label| format!("{}={}", text(read, label.key), text(read, label.str)));
    let labels: Vec<String> = labels.collect();
    format!(
        "{} {:?} {}",
        names.join(";"),
        sample.value,
        labels.join(" ")
    )
}

#[test]
fn samples_read_as_they_were() {
    let read = read(&blocked());
    assert_eq!(read.string_table[0], "");
    let types = read.sample_type.iter();
    let types = types.map(|kind| [kind.r#type, kind.unit].map(|place| text(&read, place)));
    let types: Vec<_> = types.collect();
    assert_eq!(types, [["samples", "count"], ["off_cpu", "nanoseconds"]]);
    assert_eq!(text(&read, read.default_sample_type), "off_cpu");
    let mut lines: Vec<String> = read.sample.iter().map(|it| line(&read, it)).collect();
    lines.sort();
    let ids = "process_id=7 thread_id=8";
    assert_eq!(
        lines,
        [
            format!(" [0, 3000] thread_name=[unnamed] {ids}"),
            format!("main [0, 999] thread_name=worker {ids}"),
            format!("schedule;[Missed User Stack] [0, 1000] thread_name=my:thread {ids}"),
            format!("schedule;wait(int; char);main [0, 2500999] thread_name=worker {ids}"),
        ]
    );
}

#[test]
fn wakers_are_on_top_and_a_label() {
    let read = read(&woken());
    let lines: Vec<String> = read.sample.iter().map(|it| line(&read, it)).collect();
    assert!(
        lines[0].starts_with("[timer];tick;--;b-5/6;main;put;wake;--;wait;main "),
        "{lines:?}"
    );
    assert!(lines[0].contains("state=blocked waker=b-5/6"), "{lines:?}");
    assert!(lines[1].contains("waker=[still blocked]"), "{lines:?}");
}
