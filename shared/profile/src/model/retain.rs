//! Of a profile the threads that are wanted.

use std::collections::{HashMap, HashSet};

use crate::{Name, Profile, Reason, Sample, Thread, ThreadId};

/// The name that each thread had last.
#[derive(Clone, Debug, Default)]
pub struct LastNames(HashMap<ThreadId, Box<str>>);

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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Clock, Process, Unit, folded};

    const ID: ThreadId = ThreadId { pid: 1, tid: 2 };

    fn thread(profile: &mut Profile, id: ThreadId, comm: &str, ended_ns: u64) {
        let comm = profile.names.text(comm);
        let clock = Clock {
            ended_ns,
            ..Clock::default()
        };
        profile.threads.push(Thread { id, comm, clock });
    }

    /// Thread 1/2 was called a and is called pool; 1/3 is called b; 4/4 has no account.
    fn times() -> Profile {
        let text = "a-1/2;f 1\npool-1/2;g 2\nb-1/3;f 4\npool-4/4;f 8\nb-5/5;f 16\n";
        let mut profile = folded::read(text.as_bytes(), Unit::Nanoseconds, true).unwrap();
        thread(&mut profile, ID, "pool", 9);
        thread(&mut profile, ID, "a", 5);
        thread(&mut profile, ThreadId { pid: 1, tid: 3 }, "b", 9);
        profile.processes = [1, 4, 5]
            .map(|pid| Process {
                pid,
                ..Process::default()
            })
            .into();
        profile
    }

    fn values(profile: &Profile) -> Vec<u64> {
        profile.values().map(|(_, value)| value).collect()
    }

    #[test]
    fn the_last_of_an_id_names_it_in_whatever_order_they_are() {
        for names in [["first", "last"], ["last", "first"]] {
            let mut profile = Profile::new(Unit::Nanoseconds);
            for name in names {
                thread(&mut profile, ID, name, 5 + u64::from(name == "last"));
            }
            assert_eq!(LastNames::of(&profile).get(ID), Some("last"));
        }
    }

    #[test]
    fn a_thread_stays_whole_whatever_it_was_called_before() {
        let mut profile = times();
        let last = LastNames::of(&profile);
        profile.retain_threads(&last, |name| name.starts_with("po"));
        assert_eq!(values(&profile), [1, 2, 8]);
        let ids: Vec<ThreadId> = profile.threads.iter().map(|thread| thread.id).collect();
        assert_eq!(ids, [ID, ID]);
        let pids: Vec<u32> = profile.processes.iter().map(|it| it.pid).collect();
        assert_eq!(pids, [1, 4]);
    }

    #[test]
    fn names_of_one_profile_decide_in_another() {
        let mut samples = folded::read(
            "a-1/2;f 3\nb-1/3;f 5\npool-9/9;f 7\n".as_bytes(),
            Unit::Samples,
            true,
        )
        .unwrap();
        samples.retain_threads(&LastNames::of(&times()), |name| name == "pool");
        assert_eq!(values(&samples), [3, 7]);
    }

    #[test]
    fn where_none_is_wanted_nothing_is_left() {
        let mut profile = times();
        let last = LastNames::of(&profile);
        profile.retain_threads(&last, |_| false);
        assert!(profile.samples.is_empty() && profile.threads.is_empty());
        assert!(profile.processes.is_empty());
    }
}
