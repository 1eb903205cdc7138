//! Two maps that take turns: programs count into one, user space reads the
//! other.

use libbpf_rs::{MapCore, MapMut, ProgramMut};

use crate::Result;
use crate::cpus;

/// The two, and whose turn it is.
pub(crate) struct Turns<'a, 'obj> {
    even: &'a MapMut<'obj>,
    odd: &'a MapMut<'obj>,
    visit_cpu: &'a ProgramMut<'obj>,
    taken: u64,
}

impl<'a, 'obj> Turns<'a, 'obj> {
    /// Programs count into `even` at first. `visit_cpu` is run on each CPU until
    /// it returns 0: then nobody counts there that began before.
    pub(crate) fn new(
        even: &'a MapMut<'obj>,
        odd: &'a MapMut<'obj>,
        visit_cpu: &'a ProgramMut<'obj>,
    ) -> Self {
        Turns {
            even,
            odd,
            visit_cpu,
            taken: 0,
        }
    }

    /// Returns the map that was counted into, which is the caller's until the
    /// next turn, when it must be empty. `count_into` has programs count into
    /// the other one: the odd one, if so.
    pub(crate) fn next(&mut self, count_into: impl FnOnce(bool)) -> Result<&'a MapMut<'obj>> {
        let (full, next_is_odd) = match self.taken % 2 {
            0 => (self.even, true),
            _ => (self.odd, false),
        };
        self.taken += 1;
        count_into(next_is_odd);
        // Some may still count into the first.
        cpus::run_on_each(self.visit_cpu)?;
        Ok(full)
    }

    /// How many keys have room in one of them.
    pub(crate) fn room(&self) -> u64 {
        u64::from(self.even.max_entries())
    }

    /// How many turns were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }
}
