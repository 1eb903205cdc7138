#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::num::NonZeroU32;

use flate2::read::GzDecoder;
use profile::{Function, Label, ModuleKind, Process, Rate, Sampling, State, Unit};

use super::*;
use crate::fixture::{blocked, sample, weight, woken};

/// What a reader makes of it.
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

/// The names of a sample's functions, leaf first, and its first values and labels.
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
fn what_was_measured_when_and_how_often_is_told() {
    let told = |unit, event: &str, rate| {
        let mut profile = Profile::new(unit);
        profile.meta.tool = "sometool".to_owned();
        profile.meta.window.start_utc_ns = 5;
        profile.meta.window.length_ns = 7;
        profile.losses.stacks = 3;
        let event = event.to_owned();
        profile.meta.sampling = Some(Sampling { event, rate });
        let read = read(&profile);
        assert_eq!((read.time_nanos, read.duration_nanos), (5, 7));
        let comments: Vec<&str> = read.comment.iter().map(|it| text(&read, *it)).collect();
        assert!(comments[0].starts_with("sometool"), "{comments:?}");
        assert!(
            comments.iter().any(|it| it.contains("stacks=3")),
            "{comments:?}"
        );
        let kind = read.period_type.unwrap();
        let kind = [kind.r#type, kind.unit].map(|place| text(&read, place).to_owned());
        (kind.join("/"), read.period)
    };
    let owned = |name: &str, period| (name.to_owned(), period);
    let (at_100, every_9) = (Rate::Frequency(100), Rate::Period(9));
    let samples = Unit::Samples;
    assert_eq!(
        told(samples, "cpu-clock", at_100),
        owned("cpu/nanoseconds", 10_000_000)
    );
    assert_eq!(
        told(samples, "cache-misses", every_9),
        owned("cache-misses/count", 9)
    );
    // Merged, these are times, whatever drove the samples.
    assert_eq!(
        told(Unit::Nanoseconds, "cpu-clock", at_100),
        owned("wall/nanoseconds", 1)
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

#[test]
fn what_is_known_of_a_frame_is_there() {
    let mut profile = Profile::new(Unit::Nanoseconds);
    let mut name = |text: &str| profile.names.text(text);
    let [library, program, build_id, outer, inner, mangled, file] = [
        "/usr/lib/libx.so",
        "/usr/bin/x (deleted)",
        "ab12",
        "<T as X>::outer",
        "inner",
        "_RNv5outer",
        "/src/x.rs",
    ]
    .map(&mut name);
    let kind = ModuleKind::File;
    let [library, program] =
        [(library, None), (program, Some(build_id))].map(|(path, build_id)| {
            profile.modules.id(Module {
                path,
                build_id,
                kind,
            })
        });
    let line = NonZeroU32::new;
    let function = |name, system_name, start| Function {
        name,
        system_name,
        file: Some(file),
        line: line(start),
    };
    let outer_function = profile.functions.id(function(outer, Some(mangled), 10));
    let inner_function = profile.functions.id(function(inner, None, 0));
    let frame = |name, function, at| Frame {
        module: Some(program),
        address: Some(0x1234),
        function: Some(function),
        line: line(at),
        ..Frame::named(name, FrameKind::User)
    };
    let physical = profile.frames.id(frame(outer, outer_function, 12));
    let inlined = profile.frames.id(Frame {
        is_inlined: true,
        ..frame(inner, inner_function, 3)
    });
    let elsewhere = profile.frames.id(Frame {
        module: Some(library),
        address: Some(0x10),
        ..Frame::named(inner, FrameKind::User)
    });
    let mut all = sample(&mut profile, "t", &[], &[], Some(State::Running));
    all.stack.user = profile.stacks.add([elsewhere, physical, inlined]);
    let [key, value] = ["reason", "lock"].map(|text| profile.names.text(text));
    all.labels = Some(profile.labels.id([Label { key, value }].into()));
    profile.add(all, weight(5));
    profile.processes.push(Process {
        executable: "/usr/bin/x (deleted)".to_owned(),
        ..Process::default()
    });

    let read = read(&profile);
    let [sample] = &read.sample[..] else {
        unreachable!("one sample")
    };
    let [leaf, root] = sample.location_id[..] else {
        unreachable!("what is inlined is no location of its own")
    };
    let leaf = &read.location[leaf as usize - 1];
    let lines: Vec<_> = leaf
        .line
        .iter()
        .map(|line| (line.line, read.function[line.function_id as usize - 1]))
        .collect();
    let names = lines.iter().map(|(line, function)| {
        let texts = [function.name, function.system_name, function.filename];
        (*line, texts.map(|place| text(&read, place)))
    });
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            (3, ["inner", "", "/src/x.rs"]),
            (12, ["<T as X>::outer", "_RNv5outer", "/src/x.rs"]),
        ]
    );
    assert_eq!((leaf.mapping_id, leaf.address), (1, 0x1234));
    assert_eq!(lines[1].1.start_line, 10);
    let [first, second] = &read.mapping[..] else {
        unreachable!("two mappings")
    };
    assert_eq!((first.id, second.id), (1, 2));
    let of = |mapping: &messages::Mapping| [mapping.filename, mapping.build_id];
    assert_eq!(
        of(first).map(|place| text(&read, place)),
        ["/usr/bin/x", "ab12"]
    );
    assert!(first.has_functions && first.has_filenames && first.has_line_numbers);
    assert!(first.has_inline_frames && !second.has_inline_frames);
    assert!(!second.has_filenames && !second.has_line_numbers);
    assert_eq!((first.memory_limit, second.memory_limit), (0x1235, 0x11));
    assert_eq!(read.location[root as usize - 1].mapping_id, 2);
    let labels = line_labels(&read, sample);
    assert!(labels.contains(&("reason", "lock")) && labels.contains(&("state", "running")));
}

fn line_labels<'a>(
    read: &'a messages::Profile,
    sample: &messages::Sample,
) -> Vec<(&'a str, &'a str)> {
    let labels = sample.label.iter();
    labels
        .map(|label| (text(read, label.key), text(read, label.str)))
        .collect()
}
