//! speedscope's own JSON (`src/lib/file-format-spec.ts` of jlfwong/speedscope): a profile of
//! all threads together, and one for each thread and state.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use profile::{FrameKind, Profile, Sample, State, Table, ThreadId};
use serde::Serialize;

use crate::format::{Format, Needs};
use crate::measure::{Measure, implied_state, state_name};
use crate::text::drawn::{Drawn, drawn};
use crate::text::frames::{file_name, source, thread_name};
use crate::text::options::{Options, Written};

/// The format.
pub struct Speedscope;

impl Format for Speedscope {
    fn name(&self) -> &'static str {
        "speedscope"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".speedscope.json"]
    }

    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            ..Needs::NAMES
        }
    }

    fn write(
        &self,
        profile: &Profile,
        _options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        let measure = Measure::of(profile);
        let mut rows = Rows::new(profile);
        let mut groups: BTreeMap<Group, Vec<Row>> = BTreeMap::new();
        for (sample, value) in measure.values(profile) {
            let row = rows.row(&sample, value);
            groups.entry(rows.group(&sample)).or_default().push(row);
        }
        let profiles = rows.profiles(groups, &measure);
        let file = File {
            schema: "https://www.speedscope.app/file-format-schema.json",
            exporter: concat!("systemscope ", env!("CARGO_PKG_VERSION")),
            name: name(profile),
            active_profile_index: 0,
            profiles,
            shared: Shared {
                frames: rows.frames.iter().collect(),
            },
        };
        serde_json::to_writer(&mut *writer, &file)?;
        writeln!(writer)?;
        Ok(Written::default())
    }
}

/// What the file is called in the viewer.
fn name(profile: &Profile) -> String {
    let meta = &profile.meta;
    match &*meta.tool {
        "" => "systemscope".to_owned(),
        tool => format!("{tool} of {}", meta.targets),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: String,
    active_profile_index: usize,
    profiles: Vec<Sampled>,
    shared: Shared<'a>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<&'a Frame>,
}

/// Frames that read alike are one.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
struct Frame {
    name: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// A profile: samples in an order in which those alike are neighbours, as its time is made
/// of their weights.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "sampled")]
struct Sampled {
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

/// Frames from the root on, and the weight.
type Row = (Vec<u32>, u64);

/// Whose samples make a profile: a thread's name and IDs, and a state.
type Group = (String, Option<ThreadId>, Option<State>);

struct Rows<'a> {
    profile: &'a Profile,
    frames: Table<Frame>,
    /// By the places of the profile's frames.
    known: Vec<Option<u32>>,
}

impl<'a> Rows<'a> {
    fn new(profile: &'a Profile) -> Rows<'a> {
        Rows {
            profile,
            frames: Table::default(),
            known: vec![None; profile.frames.len()],
        }
    }

    fn text(&mut self, text: &str) -> u32 {
        let frame = Frame {
            name: text.into(),
            file: None,
            line: None,
        };
        self.frames.id(frame).index() as u32
    }

    fn row(&mut self, sample: &Sample, value: u64) -> Row {
        let boxes = drawn(self.profile, sample).into_iter();
        let stack = boxes.map(|drawn| match drawn {
            Drawn::Frame(frame) => self.frame(frame),
            Drawn::Text(text) => self.text(&text),
        });
        (stack.collect(), value)
    }

    fn frame(&mut self, id: profile::Id<profile::Frame>) -> u32 {
        if let Some(known) = self.known[id.index()] {
            return known;
        }
        let profile = self.profile;
        let frame = &profile.frames[id];
        let source = source(profile, frame);
        // The file is that of the code where no source is known.
        let module = frame.module.map(|module| &profile.modules[module]);
        let module = module.map(|module| &*profile.names[module.path]);
        let new = Frame {
            name: profile.name(frame).into(),
            file: match (source, frame.kind) {
                (Some((file, _)), _) => Some(file.into()),
                (None, FrameKind::Marker) => None,
                (None, _) => module.map(|path| file_name(path).into()),
            },
            line: source.map(|(_, line)| line),
        };
        let place = self.frames.id(new).index() as u32;
        self.known[id.index()] = Some(place);
        place
    }

    fn group(&self, sample: &Sample) -> Group {
        let comm = thread_name(self.profile, sample.comm);
        let thread = sample.thread.filter(|id| id.tid != 0);
        let state = sample.state.or(implied_state(self.profile));
        (comm, thread, state)
    }

    /// All of it, and then each group, the heaviest first.
    fn profiles(&mut self, groups: BTreeMap<Group, Vec<Row>>, measure: &Measure) -> Vec<Sampled> {
        let mut all = Vec::new();
        let mut each = Vec::new();
        for ((comm, thread, state), rows) in groups {
            let mut above = vec![self.text(&comm)];
            let mut name = match thread {
                Some(id) => format!("{comm}-{}/{}", id.pid, id.tid),
                None => comm,
            };
            if let Some(state) = state {
                above.push(self.text(&format!("[{}]", state_name(state))));
                name = format!("{name} {}", state_name(state));
            }
            let below = rows.iter();
            all.extend(below.map(|(stack, value)| {
                let stack = above.iter().chain(stack).copied().collect();
                (stack, *value)
            }));
            each.push(sampled(name, rows, measure));
        }
        each.sort_by_key(|profile| Reverse(profile.end_value));
        let mut profiles = vec![sampled("all threads".to_owned(), all, measure)];
        profiles.append(&mut each);
        profiles
    }
}

fn sampled(name: String, mut rows: Vec<Row>, measure: &Measure) -> Sampled {
    rows.sort_unstable();
    rows.dedup_by(|(stack, value), (kept, sum)| {
        let is_same = stack == kept;
        *sum += if is_same { *value } else { 0 };
        is_same
    });
    // An empty stack has no box to be drawn, and its time is kept all the same.
    let end_value = rows.iter().map(|(_, value)| value).sum();
    let (samples, weights) = rows.into_iter().unzip();
    Sampled {
        name,
        unit: match measure {
            Measure::Time(_) => "nanoseconds",
            Measure::Events(..) => "none",
        },
        start_value: 0,
        end_value,
        samples,
        weights,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::fixture::{sample, weight, written};

    fn read(profile: &Profile) -> Value {
        let options = Options::default();
        let text = written(|writer| Speedscope.write(profile, &options, writer).map(drop));
        serde_json::from_str(&text).unwrap()
    }

    /// Stacks with their weights.
    type Weighted = Vec<(String, u64)>;

    /// The name, the sum and the stacks of each profile.
    fn profiles(file: &Value) -> Vec<(String, u64, Weighted)> {
        let frames = file["shared"]["frames"].as_array().unwrap();
        let name = |index: &Value| frames[index.as_u64().unwrap() as usize]["name"].as_str();
        let profiles = file["profiles"].as_array().unwrap().iter();
        let profiles = profiles.map(|profile| {
            assert_eq!(profile["type"], "sampled");
            assert_eq!(profile["startValue"], 0);
            let stacks = profile["samples"].as_array().unwrap().iter().map(|stack| {
                let names = stack.as_array().unwrap().iter().map(|it| name(it).unwrap());
                names.collect::<Vec<_>>().join(";")
            });
            let weights = profile["weights"].as_array().unwrap().iter();
            let weights = weights.map(|weight| weight.as_u64().unwrap());
            (
                profile["name"].as_str().unwrap().to_owned(),
                profile["endValue"].as_u64().unwrap(),
                stacks.zip(weights).collect(),
            )
        });
        profiles.collect()
    }

    #[test]
    fn there_is_one_profile_of_all_and_one_of_each_thread_and_state() {
        let mut profile = Profile::new(profile::Unit::Nanoseconds);
        for (comm, state, value) in [
            ("a", State::Running, 5),
            ("b", State::Running, 7),
            ("a", State::Blocked, 30),
            ("a", State::Running, 11),
        ] {
            let kernel: &[&str] = if value == 11 { &["in"] } else { &[] };
            let sample = sample(&mut profile, comm, &["main"], kernel, Some(state));
            profile.add(sample, weight(value));
        }
        let read = read(&profile);
        assert_eq!(read["activeProfileIndex"], 0);
        let profiles = profiles(&read);
        let names: Vec<_> = profiles
            .iter()
            .map(|(name, sum, _)| (&**name, *sum))
            .collect();
        assert_eq!(
            names,
            [
                ("all threads", 53),
                ("a-7/8 blocked", 30),
                ("a-7/8 running", 16),
                ("b-7/8 running", 7),
            ]
        );
        let stacks = |place: usize| {
            let (_, _, mut stacks) = profiles[place].clone();
            stacks.sort();
            stacks
        };
        let pairs = |rows: &[(&str, u64)]| -> Weighted {
            let rows = rows.iter();
            rows.map(|(stack, value)| ((*stack).to_owned(), *value))
                .collect()
        };
        assert_eq!(
            stacks(0),
            pairs(&[
                ("a;[blocked];main", 30),
                ("a;[running];main", 5),
                ("a;[running];main;in", 11),
                ("b;[running];main", 7),
            ])
        );
        assert_eq!(stacks(2), pairs(&[("main", 5), ("main;in", 11)]));
        assert_eq!(read["profiles"][0]["unit"], "nanoseconds");
    }
}
