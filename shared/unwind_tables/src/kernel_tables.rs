//! Writes unwind tables into the maps that BPF programs read
//! (`bpf/include/stacks/unwind_tables.h`).

use std::collections::HashMap;
use std::sync::Arc;

use bpf::types::{
    DumpBudget, DumpLimits, LanguageRuntime, PROCESS_RUNTIMES, SHARD_ROWS, UnwindMapping,
    UnwindPage, UnwindProcess,
};
use languages::Layout;
use libbpf_rs::{Map, MapCore, MapFlags};
use loader::iterators::copy;
use loader::{Context, Error, LoadedObject, OpenObject, Result, Variable};
use plain::Plain;
use process::Process;
use unwind::{Rule, Table};

use super::space::Space;

mod insertion;
mod layouts;
mod ranges;
mod shard;

use insertion::insert;
use layouts::Layouts;
use ranges::Ranges;
use shard::ShardMemory;

/// Maps of `include/stacks/unwind_tables.h` and `include/stacks/stack_dump.h`.
struct Maps<'a> {
    rules: Map<'a>,
    shards: Map<'a>,
    pages: Map<'a>,
    mappings: Map<'a>,
    processes: Map<'a>,
    dump_budgets: Map<'a>,
}

/// Capacity for pages of tables. A page covers 64 KiB of addresses.
const PAGES: u32 = 1 << 17;
/// Capacity for executable mappings. A process may have 65,530 (`vm.max_map_count`). During a
/// change, its old mappings stay next to the new ones.
const MAPPINGS: u32 = 1 << 17;

/// Sets the capacity of the maps. It does not depend on the targets, because a cgroup or the
/// children of targets may be most of the machine.
pub fn make_room_for_tables(object: &mut OpenObject) -> Result<()> {
    object.make_room(bpf::maps::UNWIND_PAGES, PAGES)?;
    object.make_room(bpf::maps::UNWIND_MAPPINGS, MAPPINGS)?;
    object.make_room_for_threads(bpf::maps::UNWIND_PROCESSES)
}

/// Runtimes of a process, in the format for programs.
pub(crate) type Runtimes = [LanguageRuntime; PROCESS_RUNTIMES];

/// Place of a table in the maps.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) first_page: u32,
    pub(crate) page_count: u32,
    shards: Vec<u16>,
}

/// Place of a process's mappings in the map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedMappings {
    first: u32,
    count: u32,
}

/// Shard to which rows are being added.
struct OpenShard {
    index: u16,
    rows: ShardMemory,
    used: usize,
}

/// Contents of the maps.
pub(crate) struct KernelTables<'a> {
    maps: Maps<'a>,
    rules: HashMap<Rule, u16>,
    indexes: Ranges,
    /// Number of tables with rows in each shard.
    users: HashMap<u16, usize>,
    open: Option<OpenShard>,
    pages: Ranges,
    mappings: Ranges,
    /// Number of times that mappings were published.
    generation: u64,
    layouts: Layouts<'a>,
    /// Variable that is 1 once a runtime may have locks.
    any_runtime: Option<Variable<'a, u32>>,
    any_named_threads: Option<Variable<'a, u32>>,
}

impl<'a> KernelTables<'a> {
    pub(crate) fn new(object: &'a LoadedObject) -> Result<Self> {
        let maps = Maps {
            rules: object.map(bpf::maps::UNWIND_RULES)?,
            shards: object.map(bpf::maps::UNWIND_SHARDS)?,
            pages: object.map(bpf::maps::UNWIND_PAGES)?,
            mappings: object.map(bpf::maps::UNWIND_MAPPINGS)?,
            processes: object.map(bpf::maps::UNWIND_PROCESSES)?,
            dump_budgets: object.map(bpf::maps::DUMP_BUDGETS)?,
        };
        Ok(KernelTables {
            // The map is initially full of rule 0, which says that no rule is known.
            rules: HashMap::from([(Rule::NONE, 0)]),
            indexes: Ranges::new(0, maps.shards.max_entries()),
            users: HashMap::new(),
            open: None,
            pages: Ranges::new(0, maps.pages.max_entries()),
            mappings: Ranges::new(0, maps.mappings.max_entries()),
            generation: 0,
            layouts: Layouts::new(object.map(bpf::maps::LANGUAGE_LAYOUTS)?),
            any_runtime: object.variable(bpf::variables::ANY_RUNTIME).ok(),
            any_named_threads: object.variable(bpf::variables::ANY_NAMED_THREADS).ok(),
            maps,
        })
    }

    /// Returns the layout with which a program read the frames of a runtime.
    pub(crate) fn layout(&self, index: u32) -> Option<&Arc<Layout>> {
        self.layouts.get(index)
    }

    /// Adds a table to the maps.
    pub(crate) fn place(&mut self, table: &Table) -> Result<Placed> {
        let full = |what: &str| Error::Unsupported(format!("there is no room for its {what}"));
        let rules = self.number_rules(&table.rules)?;
        let page_count = u32::try_from(table.pages.len()).unwrap_or(u32::MAX);
        let first_page = self.pages.take(page_count).ok_or_else(|| full("pages"))?;
        let mut placed = Placed {
            first_page,
            page_count,
            shards: Vec::new(),
        };
        let placing = self.place_pages(table, &rules, &mut placed);
        match placing {
            Ok(()) => Ok(placed),
            Err(error) => {
                self.remove(placed);
                Err(error)
            }
        }
    }

    fn place_pages(&mut self, table: &Table, rules: &[u16], placed: &mut Placed) -> Result<()> {
        let mut pages = Vec::with_capacity(table.pages.len());
        for page in &table.pages {
            let rows = table.rows.get(page.first as usize..).unwrap_or_default();
            let rows = rows.get(..page.count as usize).unwrap_or_default();
            pages.push(self.add_rows(rows, rules, &mut placed.shards)?);
        }
        write_all(
            &self.maps.pages,
            placed.first_page,
            &pages,
            "the pages of a table",
        )
    }

    /// Removes a table from the maps.
    pub(crate) fn remove(&mut self, placed: Placed) {
        self.pages.give_back(placed.first_page, placed.page_count);
        for shard in placed.shards {
            if let Some(users) = self.users.get_mut(&shard) {
                *users -= 1;
            }
            if self.open.as_ref().is_none_or(|open| open.index != shard) {
                self.free_if_unused(shard);
            }
        }
    }

    /// Returns the runtimes of a process, in the format for programs.
    pub(crate) fn runtimes(&mut self, space: &Space) -> Result<Runtimes> {
        let mut runtimes = Runtimes::default();
        let readable = space.readable_runtimes();
        for (place, (attached, layout)) in runtimes.iter_mut().zip(readable) {
            *place = LanguageRuntime {
                language: layout.language.number(),
                layout: self.layouts.index(layout)?,
                base: attached.base,
            };
            if let Some(any_runtime) = &self.any_runtime {
                any_runtime.set(1);
            }
            if let Some(any_named_threads) = &self.any_named_threads
                && layout.language.thread_names(attached).is_some()
            {
                any_named_threads.set(1);
            }
        }
        Ok(runtimes)
    }

    /// Publishes the mappings and runtimes of `process`.
    pub(crate) fn place_process(
        &mut self,
        process: Process,
        space: &Space,
        runtimes: Runtimes,
    ) -> Result<PlacedMappings> {
        let mappings: &[UnwindMapping] = &space.for_kernel();
        let full = || Error::Unsupported("there is no room for its mappings".into());
        let count = u32::try_from(mappings.len()).unwrap_or(u32::MAX);
        let first = self.mappings.take(count).ok_or_else(full)?;
        let placed = PlacedMappings { first, count };
        self.generation += 1;
        let mut value = UnwindProcess::new(process.instance, first, count, self.generation);
        value.runtimes = runtimes;
        // SAFETY: the value is a struct of integers without padding.
        let value = unsafe { plain::as_bytes(&value) };
        let key = process.pid.to_ne_bytes();
        let placing = write_all(&self.maps.mappings, first, mappings, "a process's mappings")
            .and_then(|()| self.renew_dumps(process.instance))
            .and_then(|()| {
                let update = self.maps.processes.update(&key, value, MapFlags::ANY);
                update.context("enter a process")
            });
        match placing {
            Ok(()) => Ok(placed),
            Err(error) => {
                self.give_back_mappings(placed);
                Err(error)
            }
        }
    }

    /// Removes the mappings of `process`.
    pub(crate) fn remove_process(&mut self, process: Process, placed: PlacedMappings) {
        let key = process.pid.to_ne_bytes();
        let entry = self.maps.processes.lookup(&key, MapFlags::ANY);
        let entry = entry.ok().flatten().and_then(|bytes| copy(&bytes));
        if entry.is_some_and(|entry: UnwindProcess| entry.instance == process.instance) {
            // No other function removes entries. If the deletion fails, the entry does not exist.
            let _ = self.maps.processes.delete(&key);
        }
        self.give_back_mappings(placed);
    }

    /// Frees mappings that programs no longer use.
    pub(crate) fn give_back_mappings(&mut self, placed: PlacedMappings) {
        self.mappings.give_back(placed.first, placed.count);
    }

    /// Allows a process to cause dumps again, because its mappings are new.
    fn renew_dumps(&mut self, instance: u64) -> Result<()> {
        let budgets = u64::from(self.maps.dump_budgets.max_entries());
        let key = ((instance % budgets) as u32).to_ne_bytes();
        let budget = DumpBudget {
            instance,
            left: DumpLimits::DUMPS_OF_A_PROCESS.0.cast_signed(),
            ..DumpBudget::default()
        };
        // SAFETY: the value is a struct of integers without padding.
        let value = unsafe { plain::as_bytes(&budget) };
        self.maps
            .dump_budgets
            .update(&key, value, MapFlags::ANY)
            .context("renew a process's dumps")
    }

    /// Returns the numbers of a table's rules. All tables use the same numbers.
    fn number_rules(&mut self, rules: &[Rule]) -> Result<Vec<u16>> {
        let known = self.rules.len();
        let new: Vec<Rule> = rules
            .iter()
            .filter(|rule| !self.rules.contains_key(rule))
            .copied()
            .collect();
        if known + new.len() > self.maps.rules.max_entries() as usize {
            let full = "there is no room for its rules";
            return Err(Error::Unsupported(full.into()));
        }
        let bytes: Vec<RuleBytes> = new.iter().copied().map(RuleBytes).collect();
        write_all(&self.maps.rules, known as u32, &bytes, "unwind rules")?;
        for (number, rule) in (known..).zip(new) {
            self.rules.insert(rule, number as u16);
        }
        let number = |rule| self.rules.get(rule).copied().unwrap_or(0);
        Ok(rules.iter().map(number).collect())
    }

    /// Adds the rows of a page.
    fn add_rows(
        &mut self,
        rows: &[u32],
        rules: &[u16],
        shards: &mut Vec<u16>,
    ) -> Result<UnwindPage> {
        let full = |what: &str| Error::Unsupported(format!("there is no room for its {what}"));
        let count = u16::try_from(rows.len()).map_err(|_| full("rows in one page"))?;
        if count == 0 {
            return Ok(UnwindPage::default());
        }
        let fits = |open: &OpenShard| open.used + rows.len() <= SHARD_ROWS;
        let mut open = match self.open.take() {
            Some(open) if fits(&open) => open,
            filled => {
                if let Some(filled) = filled {
                    self.free_if_unused(filled.index);
                }
                self.new_shard()?
            }
        };
        let first = open.used;
        let numbered = rows.iter().map(|row| {
            let rule = rules.get((row & 0xffff) as usize).copied().unwrap_or(0);
            row & 0xffff_0000 | u32::from(rule)
        });
        open.rows.write(first, numbered);
        open.used += rows.len();
        if shards.last() != Some(&open.index) {
            shards.push(open.index);
            *self.users.entry(open.index).or_default() += 1;
        }
        let page = UnwindPage {
            shard: open.index,
            count,
            first: first as u32,
        };
        self.open = Some(open);
        Ok(page)
    }

    fn new_shard(&mut self) -> Result<OpenShard> {
        let full = || Error::Unsupported("there is no room for its rows".into());
        let index = self.indexes.take(1).ok_or_else(full)?;
        let (map, rows) = ShardMemory::create()?;
        insert(&self.maps.shards, index, map)?;
        Ok(OpenShard {
            index: index as u16,
            rows,
            used: 0,
        })
    }

    /// Frees a shard if no table has rows in it. The shard must get no more rows.
    fn free_if_unused(&mut self, index: u16) {
        if self.users.get(&index).is_none_or(|users| *users == 0) {
            self.users.remove(&index);
            // The kernel keeps the shard's map until no program reads it.
            let index = u32::from(index);
            let _ = self.maps.shards.delete(&index.to_ne_bytes());
            self.indexes.give_back(index, 1);
        }
    }
}

/// Rule, in the format of the map.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct RuleBytes(Rule);

// SAFETY: the type consists of integers without padding, as repr(C) lays them out.
unsafe impl Plain for RuleBytes {}

/// Writes consecutive elements of an array map.
fn write_all<T: Plain>(map: &Map<'_>, first: u32, values: &[T], what: &str) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    let count = values.len() as u32;
    let keys: Vec<u32> = (first..first + count).collect();
    // SAFETY: keys and values consist of integers without padding.
    let (keys, values) = unsafe { (plain::as_bytes(&*keys), plain::as_bytes(values)) };
    map.update_batch(keys, values, count, MapFlags::ANY, MapFlags::ANY)
        .context(format!("write {what}"))
}

#[cfg(test)]
mod tests;
