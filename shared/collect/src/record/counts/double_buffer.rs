//! Double-buffered maps: programs count into one, user space reads the other.

use bpf::{MapName, VariableName, maps, programs, variables};
use libbpf_rs::{Map, MapCore, ProgramMut};
use loader::{LoadedObject, Result, Variable, run_on_each};

/// Two maps, and which of them is counted into.
pub(crate) struct DoubleBuffer<'a> {
    even: Map<'a>,
    odd: Map<'a>,
    visit_cpu: ProgramMut<'a>,
    /// Number of swaps. Programs count into `odd` while it is odd, and see map, keys and
    /// shares change at once.
    turn: Variable<'a, u64>,
    /// Number of keys in each map.
    used: [Variable<'a, u64>; 2],
    /// Whether programs have asked for it to be drained, where they do.
    drain_asked: Option<Variable<'a, u64>>,
    taken: u64,
}

/// What the two maps and their variables are called.
struct Names {
    even: MapName,
    odd: MapName,
    turn: VariableName<u64>,
    used: [VariableName<u64>; 2],
}

impl<'a> DoubleBuffer<'a> {
    /// The counts by stack.
    pub(crate) fn of_counts(object: &'a LoadedObject) -> Result<Self> {
        let names = Names {
            even: maps::COUNTS_EVEN,
            odd: maps::COUNTS_ODD,
            turn: variables::COUNTS_TURN,
            used: [variables::COUNTS_USED_EVEN, variables::COUNTS_USED_ODD],
        };
        let drain_asked = object.variable(variables::DRAIN_ASKED)?;
        DoubleBuffer::new(object, &names, Some(drain_asked))
    }

    /// The sums of spans.
    pub(crate) fn of_sums(object: &'a LoadedObject) -> Result<Self> {
        let names = Names {
            even: maps::SUMS_EVEN,
            odd: maps::SUMS_ODD,
            turn: variables::SUMS_TURN,
            used: [variables::SUMS_USED_EVEN, variables::SUMS_USED_ODD],
        };
        DoubleBuffer::new(object, &names, None)
    }

    /// Programs count into the first map until told otherwise.
    fn new(
        object: &'a LoadedObject,
        names: &Names,
        drain_asked: Option<Variable<'a, u64>>,
    ) -> Result<Self> {
        let [used_even, used_odd] = names.used;
        Ok(DoubleBuffer {
            even: object.map(names.even)?,
            odd: object.map(names.odd)?,
            visit_cpu: object.program(programs::VISIT_CPU)?,
            turn: object.variable(names.turn)?,
            used: [object.variable(used_even)?, object.variable(used_odd)?],
            drain_asked,
            taken: 0,
        })
    }

    /// Has programs count into the other map, and returns the one that they have
    /// counted into: the caller's until the next time, when it must be empty.
    pub(crate) fn swap(&mut self) -> Result<&Map<'a>> {
        let full_is_odd = self.taken % 2 == 1;
        self.taken += 1;
        // Nobody counts into the other one yet.
        self.used[(self.taken % 2) as usize].set(0);
        self.turn.set(self.taken);
        if let Some(drain_asked) = &self.drain_asked {
            drain_asked.set(0);
        }
        // Some may still count into the first: until a visit to their CPU returns 0.
        run_on_each(&self.visit_cpu)?;
        Ok(match full_is_odd {
            true => &self.odd,
            false => &self.even,
        })
    }

    /// How many keys are in the map that programs count into.
    pub(crate) fn used(&self) -> u64 {
        self.used[(self.taken % 2) as usize].get()
    }

    /// How many keys there is room for.
    pub(crate) fn room(&self) -> u64 {
        u64::from(self.even.max_entries())
    }

    /// How often they were swapped.
    pub(crate) fn swaps(&self) -> u64 {
        self.taken
    }
}
