//! Weights and CPU times of samples. The weights of a state's samples add up to the time in that
//! state.

use profile::State;

/// Time of one unit of weight, in ns.
pub(super) const UNIT_NS: u64 = 1_000_000;

/// Instant at which a thread gets a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) at_ns: u64,
    /// Running time since the thread's last sample.
    pub(super) cpu_us: u64,
    /// Time that the sample stands for, in units.
    pub(super) weight: i32,
}

impl Point {
    /// Returns a point that stands for no time.
    pub(super) const fn start(at_ns: u64) -> Point {
        Point {
            at_ns,
            cpu_us: 0,
            weight: 0,
        }
    }
}

/// Account of one thread's time.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Running time so far.
    cpu_ns: u64,
    /// Running time of all points so far.
    told_us: u64,
    /// Time in each state that no point stands for.
    left_ns: [u64; 3],
}

impl Account {
    /// Adds time in one state with one stack, and returns the points of this time. The first point
    /// is at the end of the first full unit. If the time fills several units, a second point at the
    /// end of the last full unit stands for the others. Time that fills no unit has no point.
    pub(super) fn pass(
        &mut self,
        state: State,
        start_ns: u64,
        length_ns: u64,
    ) -> impl Iterator<Item = Point> + use<> {
        let cpu_ns = self.cpu_ns;
        let left_ns = &mut self.left_ns[state as usize];
        let to_first_ns = UNIT_NS.saturating_sub(*left_ns);
        let total_ns = left_ns.saturating_add(length_ns);
        let units = total_ns / UNIT_NS;
        *left_ns = total_ns % UNIT_NS;
        let to_last_ns = length_ns.saturating_sub(*left_ns);
        let mut point = |passed_ns, weight| {
            if state == State::Running {
                self.cpu_ns = cpu_ns.saturating_add(passed_ns);
            }
            self.point(start_ns.saturating_add(passed_ns), weight)
        };
        let first = (units > 0).then(|| point(to_first_ns, 1));
        let last = (units > 1).then(|| point(to_last_ns, units - 1));
        if state == State::Running {
            self.cpu_ns = cpu_ns.saturating_add(length_ns);
        }
        first.into_iter().chain(last)
    }

    /// Adds running time for which the profile has samples. The points of this time come from
    /// [`Account::take`].
    pub(super) fn run(&mut self, length_ns: u64) {
        let left_ns = &mut self.left_ns[State::Running as usize];
        *left_ns = left_ns.saturating_add(length_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(length_ns);
    }

    /// Adds one unit of running time, for a sample of an event other than time.
    pub(super) fn count(&mut self) {
        let left_ns = &mut self.left_ns[State::Running as usize];
        *left_ns = left_ns.saturating_add(UNIT_NS);
    }

    /// Returns the point of a sample. The point stands for all full units of running time so far
    /// that no earlier point stands for.
    pub(super) fn take(&mut self, at_ns: u64) -> Point {
        let left_ns = &mut self.left_ns[State::Running as usize];
        let units = *left_ns / UNIT_NS;
        *left_ns %= UNIT_NS;
        self.point(at_ns, units)
    }

    fn point(&mut self, at_ns: u64, units: u64) -> Point {
        let cpu_us = (self.cpu_ns / 1_000).saturating_sub(self.told_us);
        self.told_us += cpu_us;
        Point {
            at_ns,
            cpu_us,
            weight: i32::try_from(units).unwrap_or(i32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = UNIT_NS;

    #[test]
    fn short_stays_count_as_much_as_long_ones() {
        let mut account = Account::default();
        let mut pass = |state, start_ns, length_ns| -> Vec<(u64, u64, i32)> {
            let points = account.pass(state, start_ns, length_ns);
            points
                .map(|point| (point.at_ns, point.cpu_us, point.weight))
                .collect()
        };
        // Nine waits of 0.4 ms have three points in all. Each point is at the end of a full ms.
        let mut waits = Vec::new();
        for number in 0..10 {
            assert_eq!(pass(State::Running, number * MS, MS / 10), [], "{number}");
            waits.extend(pass(State::Blocked, number * MS + MS / 10, 4 * MS / 10));
            if number == 8 {
                break;
            }
        }
        let at = |tenths: u64| tenths * MS / 10;
        let expected = [(at(23), 300, 1), (at(45), 200, 1), (at(73), 300, 1)];
        assert_eq!(waits, expected);
        // No point stands for the last 0.6 ms of these waits. The first point of a long wait has a
        // weight of 1, and the CPU time before the wait.
        let long = pass(State::Blocked, 100 * MS, 10 * MS);
        assert_eq!(long, [(at(1004), 100, 1), (at(1094), 0, 9)]);
        // Running time without samples has its own CPU time. No point stands for the 0.9 ms of
        // running time before.
        let running = pass(State::Running, 200 * MS, 5 * MS);
        assert_eq!(running, [(at(2001), 100, 1), (at(2041), 4_000, 4)]);
    }

    #[test]
    fn any_length_has_points() {
        let mut account = Account::default();
        for start_ns in [0, u64::MAX] {
            for state in [State::Running, State::Blocked] {
                let points: Vec<Point> = account.pass(state, start_ns, u64::MAX).collect();
                assert_eq!(points[1].weight, i32::MAX);
            }
        }
        account.run(u64::MAX);
        assert_eq!(account.take(5).weight, i32::MAX);
        assert_eq!(account.take(5).cpu_us, 0);
    }
}
