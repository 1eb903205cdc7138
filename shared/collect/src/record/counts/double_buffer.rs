//! Double-buffered maps. Programs count into one map while user space reads the other.

use bpf::{MapName, VariableName, maps, programs, variables};
use libbpf_rs::{Map, MapCore, ProgramMut};
use loader::{LoadedObject, Result, Variable, run_on_each};

/// Pair of maps. Programs count into one map at a time.
pub(crate) struct DoubleBuffer<'a> {
    even: Map<'a>,
    odd: Map<'a>,
    visit_cpu: ProgramMut<'a>,
    /// Number of swaps. Programs count into `odd` while this number is odd. The map, its number of
    /// keys and the shares therefore change in one step.
    turn: Variable<'a, u64>,
    /// Number of keys in `even` and in `odd`.
    used: [Variable<'a, u64>; 2],
    /// Variable in which programs ask for a drain, if the object has it.
    drain_asked: Option<Variable<'a, u64>>,
    taken: u64,
}

/// Names of the two maps and their variables.
struct Names {
    even: MapName,
    odd: MapName,
    turn: VariableName<u64>,
    used: [VariableName<u64>; 2],
}

impl<'a> DoubleBuffer<'a> {
    /// Returns the pair of maps with counts by stack.
    pub(crate) fn for_counts(object: &'a LoadedObject) -> Result<Self> {
        let names = Names {
            even: maps::COUNTS_EVEN,
            odd: maps::COUNTS_ODD,
            turn: variables::COUNTS_TURN,
            used: [variables::COUNTS_USED_EVEN, variables::COUNTS_USED_ODD],
        };
        let drain_asked = object.variable(variables::DRAIN_ASKED)?;
        DoubleBuffer::new(object, &names, Some(drain_asked))
    }

    /// Returns the pair of maps with sums of spans.
    pub(crate) fn for_sums(object: &'a LoadedObject) -> Result<Self> {
        let names = Names {
            even: maps::SUMS_EVEN,
            odd: maps::SUMS_ODD,
            turn: variables::SUMS_TURN,
            used: [variables::SUMS_USED_EVEN, variables::SUMS_USED_ODD],
        };
        DoubleBuffer::new(object, &names, None)
    }

    /// Returns a pair of maps. Programs count into `even` first.
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

    /// Switches programs to the other map, and returns the map that they counted into. The caller
    /// owns that map until the next swap, and must empty it before that.
    pub(crate) fn swap(&mut self) -> Result<&Map<'a>> {
        let full_is_odd = self.taken % 2 == 1;
        self.taken += 1;
        // No program counts into this map yet.
        self.used[(self.taken % 2) as usize].set(0);
        self.turn.set(self.taken);
        if let Some(drain_asked) = &self.drain_asked {
            drain_asked.set(0);
        }
        // Programs may count into the previous map until the visit to their CPU returns.
        run_on_each(&self.visit_cpu)?;
        Ok(if full_is_odd { &self.odd } else { &self.even })
    }

    /// Returns the number of keys in the map that programs count into.
    pub(crate) fn used(&self) -> u64 {
        self.used[(self.taken % 2) as usize].get()
    }

    /// Returns the capacity of a map, in keys.
    pub(crate) fn room(&self) -> u64 {
        u64::from(self.even.max_entries())
    }

    /// Returns the number of swaps.
    pub(crate) fn swaps(&self) -> u64 {
        self.taken
    }
}
