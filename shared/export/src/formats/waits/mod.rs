//! A table of the resources that threads waited for: locks with their holders and wakers, files,
//! sockets, children.

mod objects;

use std::io::{self, Write};

use profile::{Profile, State};

use crate::format::{Format, Needs};
use crate::text::options::{Options, Written};

pub use objects::Objects;

/// The waits format. Reports have the same table for each process.
pub struct Waits;

impl Format for Waits {
    fn name(&self) -> &'static str {
        "waits"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".waits"]
    }

    fn readers(&self) -> &'static str {
        "people: the longest waits, and the threads that ended them"
    }

    fn needs(&self) -> Needs {
        Needs {
            reasons: true,
            wakers: true,
            ..Needs::NAMES
        }
    }

    fn write(
        &self,
        profile: &Profile,
        _options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        let mut objects = Objects::default();
        for (sample, weight) in profile.samples.iter() {
            // A sample without a state shows only that its thread was off the CPU.
            if sample.state.is_none_or(|state| state == State::Blocked) {
                objects.add_blocked(weight.value);
                objects.add(profile, sample, weight);
            }
        }
        if objects.is_empty() {
            writeln!(writer, "It is not known what anything was blocked on.")?;
        } else {
            objects.write(writer)?;
        }
        Ok(Written::default())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use profile::{
        Detail, Futex, Holder, Reason, Resource, Unit, Wait, WaitKind, Waker, Weight, marker,
    };

    use super::*;
    use crate::fixture::{blocked, sample, stack, weight, written};

    fn waits(profile: &Profile) -> String {
        written(|writer| {
            let written = Waits.write(profile, &Options::default(), writer);
            written.map(|_| ())
        })
    }

    #[test]
    fn where_nothing_is_known_it_says_so() {
        let expected = "It is not known what anything was blocked on.\n";
        assert_eq!(waits(&blocked()), expected);
    }

    /// The profile has 3 s of waits for a lock and 1 s of waits for an unknown reason. One thread
    /// ends 2 s of the waits for the lock.
    #[test]
    fn a_lock_is_there_with_who_held_it_and_where_it_was_released() {
        let mut profile = Profile::new(Unit::Nanoseconds);
        let [module, symbol, comm] =
            ["bank", "ledger", "writer"].map(|text| profile.names.text(text));
        let ledger = Futex::Variable {
            module,
            symbol: Some(symbol),
            offset: 0,
        };
        let wait = Wait {
            resource: Some(profile.resources.id(Resource::Futex(ledger))),
            holder: Some(Holder {
                comm,
                thread: Some(profile::ThreadId { pid: 1, tid: 2 }),
                shares_name: false,
            }),
            ..Wait::new(WaitKind::new(Reason::Lock, Detail::Mutex))
        };
        let wait = Some(profile.waits.id(wait));
        let releases = [("writer", &["main", "book", "unlock"][..], 2_000_000_000)];
        let timer = [(marker::TIMER, &[][..], 1_000_000_000)];
        for (comm, user, value) in releases.into_iter().chain(timer) {
            let mut waits = sample(&mut profile, "reader", &["read"], &["futex"], None);
            let waker = Waker {
                comm: profile.names.text(comm),
                thread: (comm != marker::TIMER).then(profile::ThreadId::default),
                stack: stack(&mut profile, user, &["wake"]),
            };
            waits.wakers = Some(profile.wakers.id([waker].into()));
            waits.wait = wait;
            let weight = Weight {
                events: 2,
                longest: value,
                ..weight(value)
            };
            profile.add(waits, weight);
        }
        // Time that is not blocked does not count.
        for (state, value) in [(State::Blocked, 1_000_000_000), (State::Runnable, 1 << 40)] {
            let other = sample(&mut profile, "reader", &["rest"], &["wait"], Some(state));
            profile.add(other, weight(value));
        }
        assert_eq!(
            waits(&profile),
            "Blocked time by resource, idle last (seconds, % of blocked time, waits from -m on, the longest in seconds)\n     \
             3.000   75.0         4     2.000  lock: mutex, ledger; held by writer (100.0 %)\n                                        \
             66.7 % released by writer in unlock ← book ← main\n                                        \
             33.3 % [timer]\n"
        );
    }
}
