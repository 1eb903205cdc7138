//! speedscope's JSON (`src/lib/file-format-spec.ts` of jlfwong/speedscope): a profile of all
//! threads together, and one for each thread and state.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use profile::folded::WAKER_DELIMITER;
use profile::{
    FrameKind, Id, Profile, Sample, StackId, StackOrder, StackTree, State, Table, ThreadId,
    Translation, Wakers,
};
use serde::{Serialize, Serializer};

use crate::format::{Format, Needs};
use crate::measure::{Measure, implied_state, state_name};
use crate::text::frames::{file_name, source, thread_field, thread_name, wakers};
use crate::text::options::{Ids, Options, Written};
use crate::text::title::title;

/// The speedscope format.
pub struct Speedscope;

impl Format for Speedscope {
    fn name(&self) -> &'static str {
        "speedscope"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".speedscope.json"]
    }

    fn readers(&self) -> &'static str {
        "[speedscope](https://www.speedscope.app): all threads, and each thread and state"
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
        let measure = Measure::new(profile);
        let mut rows = Rows::new(profile);
        let mut groups: BTreeMap<Group, Vec<(Row, u64)>> = BTreeMap::new();
        for (sample, value) in measure.values(profile) {
            let row = rows.row(&sample);
            let group = groups.entry(rows.group(&sample)).or_default();
            group.push((row, value));
        }
        let profiles = rows.profiles(groups, &measure);
        let profiles = profiles.iter().map(|sampled| sampled.shown(&rows));
        let file = File {
            schema: "https://www.speedscope.app/file-format-schema.json",
            exporter: concat!("systemscope ", env!("CARGO_PKG_VERSION")),
            name: title(profile),
            active_profile_index: 0,
            profiles: profiles.collect(),
            shared: Shared {
                frames: rows.frames.iter().collect(),
            },
        };
        serde_json::to_writer(&mut *writer, &file)?;
        writeln!(writer)?;
        Ok(Written::default())
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
    profiles: Vec<Shown<'a>>,
    shared: Shared<'a>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<&'a Frame>,
}

/// A frame. Frames with the same name, file and line are merged.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
struct Frame {
    name: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// A profile as speedscope reads it. Its time is the sum of the weights, so the order of samples
/// puts equal stacks next to each other.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "sampled")]
struct Shown<'a> {
    name: &'a str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Frames<'a>>,
    weights: Vec<u64>,
}

/// The frames of a sample, which are serialized while iterating.
struct Frames<'a>(&'a Rows<'a>, Row);

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.frames_of(&self.1))
    }
}

/// A profile with its rows, before it is written.
struct Sampled {
    name: String,
    unit: &'static str,
    end_value: u64,
    rows: Vec<(Row, u64)>,
}

impl Sampled {
    fn shown<'a>(&'a self, rows: &'a Rows<'a>) -> Shown<'a> {
        Shown {
            name: &self.name,
            unit: self.unit,
            start_value: 0,
            end_value: self.end_value,
            samples: self
                .rows
                .iter()
                .map(|(row, _)| Frames(rows, *row))
                .collect(),
            weights: self.rows.iter().map(|(_, weight)| *weight).collect(),
        }
    }
}

/// A sample's stacks in their order: the group's thread and state, user frames, kernel frames and
/// the chain of wakers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    above: [Option<u32>; 2],
    user: StackId,
    kernel: StackId,
    wakers: Option<Id<Chain>>,
}

/// The wakers of a sample, each with its user stack, kernel stack and name.
type Chain = Box<[(StackId, StackId, u32)]>;

/// Key of the samples that make one profile: a thread's name and IDs, and a state.
type Group = (String, Option<ThreadId>, Option<State>);

struct Rows<'a> {
    profile: &'a Profile,
    frames: Table<Frame>,
    /// Stacks of indexes into `frames`.
    stacks: StackTree<u32>,
    translation: Translation,
    chains: Table<Chain>,
    /// Index of the delimiter between a sleeper and its wakers.
    delimiter: u32,
    /// Indexes by the profile's frames. `known_chains` has them by the profile's chains of wakers.
    known: Vec<Option<u32>>,
    known_chains: Vec<Option<Id<Chain>>>,
}

impl<'a> Rows<'a> {
    fn new(profile: &'a Profile) -> Rows<'a> {
        Rows {
            profile,
            frames: Table::default(),
            stacks: StackTree::default(),
            translation: Translation::default(),
            chains: Table::default(),
            delimiter: 0,
            known: vec![None; profile.frames.len()],
            known_chains: vec![None; profile.wakers.len()],
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

    fn row(&mut self, sample: &Sample) -> Row {
        Row {
            above: [None; 2],
            user: self.stack(sample.stack.user),
            kernel: self.stack(sample.stack.kernel),
            wakers: sample.wakers.map(|wakers| self.chain(sample, wakers)),
        }
    }

    fn stack(&mut self, stack: StackId) -> StackId {
        let profile = self.profile;
        let mut translation = std::mem::take(&mut self.translation);
        let translated = translation.stack(&profile.stacks, stack, |callers, leaf| {
            let frame = self.frame(leaf);
            self.stacks.called(callers, frame)
        });
        self.translation = translation;
        translated
    }

    fn chain(&mut self, sample: &Sample, id: Id<Wakers>) -> Id<Chain> {
        if let Some(known) = self.known_chains[id.index()] {
            return known;
        }
        let profile = self.profile;
        self.delimiter = self.text(WAKER_DELIMITER);
        let chain = wakers(profile, sample).iter().map(|waker| {
            let [user, kernel] = [waker.stack.user, waker.stack.kernel];
            let name = thread_field(profile, waker.comm, waker.thread, Ids::Thread);
            (self.stack(user), self.stack(kernel), self.text(&name))
        });
        let chain: Chain = chain.collect();
        let new = self.chains.id(chain);
        self.known_chains[id.index()] = Some(new);
        new
    }

    /// Iterates over the indexes of a row's frames, root first, but each waker's frames leaf first.
    fn frames_of(&self, row: &Row) -> impl Iterator<Item = u32> {
        let own = [row.user, row.kernel].map(|part| self.stacks.root_first(part));
        let chain = row.wakers.map_or(&[][..], |wakers| &self.chains[wakers]);
        let chain = chain.iter().flat_map(|&(user, kernel, name)| {
            let parts = [kernel, user].into_iter();
            let frames = parts.flat_map(|part| self.stacks.leaf_first(part));
            [self.delimiter].into_iter().chain(frames).chain([name])
        });
        let above = row.above.into_iter().flatten();
        above.chain(own.into_iter().flatten()).chain(chain)
    }

    fn frame(&mut self, id: Id<profile::Frame>) -> u32 {
        if let Some(known) = self.known[id.index()] {
            return known;
        }
        let profile = self.profile;
        let frame = &profile.frames[id];
        let source = source(profile, frame);
        // Without a known source the file is the module.
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

    /// Returns the profile of all threads, then the profile of each group, heaviest first.
    fn profiles(
        &mut self,
        groups: BTreeMap<Group, Vec<(Row, u64)>>,
        measure: &Measure,
    ) -> Vec<Sampled> {
        let order = StackOrder::new(&self.stacks, |frame| frame);
        let mut all = Vec::new();
        let mut each = Vec::new();
        for ((comm, thread, state), rows) in groups {
            let mut above = [Some(self.text(&comm)), None];
            let mut name = match thread {
                Some(id) => format!("{comm}-{}/{}", id.pid, id.tid),
                None => comm,
            };
            if let Some(state) = state {
                above[1] = Some(self.text(&format!("[{}]", state_name(state))));
                name = format!("{name} {}", state_name(state));
            }
            let below = rows.iter();
            all.extend(below.map(|(row, value)| (Row { above, ..*row }, *value)));
            each.push(sampled(name, rows, &order, measure));
        }
        each.sort_by_key(|profile| Reverse(profile.end_value));
        let mut profiles = vec![sampled("all threads".to_owned(), all, &order, measure)];
        profiles.append(&mut each);
        profiles
    }
}

fn sampled(
    name: String,
    mut rows: Vec<(Row, u64)>,
    order: &StackOrder,
    measure: &Measure,
) -> Sampled {
    rows.sort_unstable_by_key(|(row, _)| {
        let [user, kernel] = [row.user, row.kernel].map(|part| order.place(part));
        (row.above, user, kernel, row.wakers)
    });
    rows.dedup_by(|(row, value), (kept, sum)| {
        let is_same = row == kept;
        *sum = sum.saturating_add(if is_same { *value } else { 0 });
        is_same
    });
    // An empty stack has no box, but its time counts.
    let values = rows.iter().map(|(_, value)| *value);
    Sampled {
        end_value: values.fold(0, u64::saturating_add),
        name,
        unit: match measure {
            Measure::Time(_) => "nanoseconds",
            Measure::Events(..) => "none",
        },
        rows,
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

    /// Returns the name, the sum and the stacks of each profile.
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
