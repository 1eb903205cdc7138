//! A process's code, as a walk in user space and one in BPF see it.

use std::sync::Arc;

use bpf::types::UnwindMapping;
use languages::python::{Interpreter, Layout, Version, layout};
use symbolize::{CodeMapping, CodeSource};
use unwind::{AddressSpace, Built, Code};

/// A file's table, for those that map it.
pub(crate) struct FileTable {
    pub(crate) built: Arc<Built>,
    pub(crate) python: Option<Interpreter>,
    pub(crate) first_page: u32,
    pub(crate) page_count: u32,
}

/// The executable mappings of a process, with their tables.
#[derive(Default)]
pub struct Space {
    mappings: Vec<Mapping>,
    code: Vec<CodeMapping>,
    python: Option<Python>,
}

/// A Python interpreter in a process.
#[derive(Clone, Debug)]
pub(crate) struct Python {
    /// Where it is.
    pub(crate) source: CodeSource,
    /// The code in it that runs functions one by one, by offset, where frames do not tell.
    pub(crate) evaluation: Vec<(u64, u64)>,
    /// Where it keeps its state, `_PyRuntime`.
    pub(crate) runtime: u64,
    pub(crate) version: Version,
    /// Where this version keeps what, if that is known.
    pub(crate) layout: Option<&'static Layout>,
}

struct Mapping {
    start: u64,
    end: u64,
    /// The table, and the file's own address for `start`.
    table: Option<(Arc<Built>, u64)>,
    first_page: u32,
    page_count: u32,
}

impl Space {
    /// The code of a process, with the tables that there are of its files.
    pub(crate) fn new(
        code: Vec<CodeMapping>,
        table_of: impl Fn(CodeSource) -> Option<FileTable>,
    ) -> Space {
        let mut python = None;
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
                // The vDSO has no file: its image begins at the mapping.
                let Some(address) = file.built.address(mapping.offset) else {
                    return bare;
                };
                if let (None, Some(found)) = (&python, file.python) {
                    let in_file = |at: u64| at.wrapping_sub(address).wrapping_add(mapping.offset);
                    let evaluation = found.evaluation.iter().filter(|(start, end)| start < end);
                    python = Some(Python {
                        source: mapping.source,
                        evaluation: evaluation
                            .map(|(start, end)| (in_file(*start), in_file(*end)))
                            .collect(),
                        runtime: found
                            .runtime
                            .wrapping_sub(address)
                            .wrapping_add(mapping.start),
                        version: found.version,
                        layout: layout::of(found.version),
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
            python,
        }
    }

    /// Has only native frames be read.
    pub(crate) fn forget_languages(&mut self) {
        self.python = None;
    }

    /// The Python interpreter that it has.
    pub(crate) fn python(&self) -> Option<&Python> {
        self.python.as_ref()
    }

    /// Where the interpreter keeps its state, and where what is, if that is known.
    pub(crate) fn readable_python(&self) -> Option<(u64, &'static Layout)> {
        let python = self.python()?;
        Some((python.runtime, python.layout?))
    }

    /// What it was made of.
    pub(crate) fn code(&self) -> &[CodeMapping] {
        &self.code
    }

    /// The mappings as BPF programs look them up.
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
