//! Code of a process, as unwinds in user space and in BPF need it.

use std::sync::Arc;

use bpf::types::UnwindMapping;
use languages::{Attached, Language, Layout, Runtime};
use process::ProcessMemory;
use symbolize::{CodeMapping, CodeSource};
use unwind::{AddressSpace, Built, Code};

/// Table of a file, for the processes that map the file.
pub(crate) struct FileTable {
    pub(crate) built: Arc<Built>,
    pub(crate) runtimes: Arc<[Runtime]>,
    pub(crate) first_page: u32,
    pub(crate) page_count: u32,
}

/// Executable mappings of a process, with their tables.
#[derive(Default)]
pub struct Space {
    mappings: Vec<Mapping>,
    code: Vec<CodeMapping>,
    runtimes: Vec<MappedRuntime>,
}

/// Runtime of a language in a process.
#[derive(Clone, Debug)]
pub struct MappedRuntime {
    /// File that contains the runtime.
    pub source: CodeSource,
    /// Offsets of the code that runs frames one by one, if frames leave no anchors.
    pub runs_one: Vec<(u64, u64)>,
    /// Language of the runtime.
    pub language: &'static dyn Language,
    /// Addresses and layout of the runtime in the process.
    pub attached: Attached,
}

struct Mapping {
    start: u64,
    end: u64,
    /// Table, and the virtual address in the file that is mapped at `start`.
    table: Option<(Arc<Built>, u64)>,
    first_page: u32,
    page_count: u32,
}

impl Space {
    /// Returns the code of a process, with the tables of its files that exist.
    pub(crate) fn new(
        code: Vec<CodeMapping>,
        memory: &ProcessMemory,
        table_of: impl Fn(CodeSource) -> Option<FileTable>,
    ) -> Space {
        let mut runtimes: Vec<MappedRuntime> = Vec::new();
        // A runtime may map a part of its code a second time, anywhere.
        let is_first = |mapping: &CodeMapping| {
            let mut others = code.iter().filter(|other| other.source == mapping.source);
            others.all(|other| other.offset >= mapping.offset)
        };
        let mappings = code
            .iter()
            .map(|mapping| {
                let bare = Mapping {
                    start: mapping.start,
                    end: mapping.end,
                    table: None,
                    first_page: 0,
                    page_count: 0,
                };
                let Some(file) = table_of(mapping.source) else {
                    return bare;
                };
                // The vDSO has no file. Its image begins at the start of the mapping.
                let Some(address) = file.built.address(mapping.offset) else {
                    return bare;
                };
                let is_first = !file.runtimes.is_empty() && is_first(mapping);
                for found in file.runtimes.iter().filter(|_| is_first) {
                    let is_there =
                        |known: &MappedRuntime| known.language.number() == found.language.number();
                    if runtimes.iter().any(is_there) {
                        continue;
                    }
                    let bias = mapping.start.wrapping_sub(address);
                    let Some(attached) = found.language.attach(found, memory, bias) else {
                        continue;
                    };
                    let in_file = |at: u64| at.wrapping_sub(address).wrapping_add(mapping.offset);
                    let runs_one = found.runs_one.iter();
                    runtimes.push(MappedRuntime {
                        source: mapping.source,
                        runs_one: runs_one
                            .map(|(start, end)| (in_file(*start), in_file(*end)))
                            .collect(),
                        language: found.language,
                        attached,
                    });
                }
                Mapping {
                    table: Some((file.built, address)),
                    first_page: file.first_page,
                    page_count: file.page_count,
                    ..bare
                }
            })
            .collect();
        Space {
            mappings,
            code,
            runtimes,
        }
    }

    /// Returns the runtimes in the process, one of each language.
    pub(crate) fn runtimes(&self) -> &[MappedRuntime] {
        &self.runtimes
    }

    /// Returns each runtime with a known layout, and the layout.
    pub(crate) fn readable_runtimes(&self) -> impl Iterator<Item = (&Attached, &Arc<Layout>)> {
        let attached = self.runtimes.iter().map(|runtime| &runtime.attached);
        attached.filter_map(|attached| Some((attached, attached.layout.as_ref()?)))
    }

    /// Returns the layout of the first runtime whose frames are on the native stack.
    pub(crate) fn layout_on_stack(&self) -> Option<&Arc<Layout>> {
        let mut layouts = self.readable_runtimes().map(|(_, layout)| layout);
        layouts.find(|layout| layout.language.is_on_stack())
    }

    /// Returns the mappings from which this value was made.
    pub(crate) fn code(&self) -> &[CodeMapping] {
        &self.code
    }

    /// Returns the mappings in the format that BPF programs search.
    pub(crate) fn for_kernel(&self) -> Vec<UnwindMapping> {
        let mapping = |mapping: &Mapping| {
            let pages = mapping.table.as_ref().map(|(built, address)| {
                let in_pages = address.wrapping_sub(built.table.base);
                (mapping.start.wrapping_sub(in_pages), mapping.page_count)
            });
            let (bias, page_count) = pages.unwrap_or_default();
            UnwindMapping {
                start: mapping.start,
                end: mapping.end,
                bias,
                first_page: mapping.first_page,
                page_count,
            }
        };
        self.mappings.iter().map(mapping).collect()
    }
}

impl AddressSpace for Space {
    fn code(&self, address: u64) -> Code<'_> {
        let after = self
            .mappings
            .partition_point(|mapping| mapping.start <= address);
        let mapping = self.mappings[..after].last();
        let Some(mapping) = mapping.filter(|mapping| address < mapping.end) else {
            return Code::Unmapped;
        };
        match &mapping.table {
            Some((built, start)) => Code::Table {
                table: &built.table,
                address: start.wrapping_add(address - mapping.start),
            },
            None => Code::Bare,
        }
    }
}
