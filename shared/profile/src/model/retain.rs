//! Of a profile the threads that are wanted.

use std::collections::{HashMap, HashSet};

use crate::{Name, Profile, Reason, Sample, Text, Thread, ThreadId};

/// The name that each thread had last.
#[derive(Clone, Debug, Default)]
pub struct LastNames(HashMap<ThreadId, Text>);

impl LastNames {
    /// Those of the threads that have accounts. Where an ID was used more than once the last
    /// of them names all, as they are shown as one.
    #[must_use]
    pub fn of(profile: &Profile) -> LastNames {
        let mut names: HashMap<ThreadId, (u64, Name)> = HashMap::new();
        for Thread { id, comm, clock } in &profile.threads {
            let last = names.entry(*id).or_insert((clock.ended_ns, *comm));
            if clock.ended_ns > last.0 {
                *last = (clock.ended_ns, *comm);
            }
        }
        let names = names.into_iter();
        let names = names.map(|(id, (_, name))| (id, profile.names[name].clone()));
        LastNames(names.collect())
    }

    fn get(&self, id: ThreadId) -> Option<&str> {
        self.0.get(&id).map(|name| &**name)
    }
}

impl Profile {
    /// Leaves the samples of which a reason is known that is among these.
    pub fn retain_reasons(&mut self, wanted: &[Reason]) {
        self.retain_samples(|profile, sample| {
            let why = profile.why(sample);
            why.is_some_and(|why| wanted.contains(&why.reason))
        });
    }

    /// Leaves the samples of threads that had nothing to do, if `are_wanted`, else all others.
    pub fn retain_idle(&mut self, are_wanted: bool) {
        self.retain_samples(|profile, sample| {
            let why = profile.why(sample);
            why.is_some_and(|why| why.idleness.is_idle()) == are_wanted
        });
    }

    fn retain_samples(&mut self, is_wanted: impl Fn(&Profile, &Sample) -> bool) {
        let samples = self.samples.keys();
        let keeps: HashSet<Sample> = samples
            .filter(|sample| is_wanted(self, sample))
            .copied()
            .collect();
        self.samples.retain(|sample| keeps.contains(sample));
    }

    /// Leaves the threads whose last name is wanted, with all that they did. A sample of a
    /// thread that `last` does not know goes by the name that it has itself.
    pub fn retain_threads(&mut self, last: &LastNames, is_wanted: impl Fn(&str) -> bool) {
        let names = &self.names;
        let keeps = |id: Option<ThreadId>, comm: Name| {
            let name = id.and_then(|id| last.get(id));
            is_wanted(name.unwrap_or(&names[comm]))
        };
        self.samples
            .retain(|sample| keeps(sample.thread, sample.comm));
        self.threads
            .retain(|thread| keeps(Some(thread.id), thread.comm));
        let threads = self.threads.iter().map(|thread| thread.id.pid);
        let of_sample = |sample: &Sample| Some(sample.thread?.pid);
        let pids: HashSet<u32> = threads
            .chain(self.samples.keys().filter_map(of_sample))
            .collect();
        self.processes.retain(|process| pids.contains(&process.pid));
    }
}
