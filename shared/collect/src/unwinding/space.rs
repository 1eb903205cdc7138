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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::File;

    use super::*;

    const START: u64 = 0x7f00_0000_0000;
    const FILE: CodeSource = CodeSource::File(3);

    /// A process that maps code of this test's own file, and some of no file right behind.
    fn space() -> (Space, Arc<Built>, u64) {
        let built = Arc::new(unwind::build(&File::open("/proc/self/exe").unwrap()).unwrap());
        let segment = built.segments[0];
        let code = vec![
            CodeMapping {
                start: START,
                end: START + segment.size,
                offset: segment.offset,
                source: FILE,
            },
            CodeMapping {
                start: START + segment.size,
                end: START + segment.size + 16,
                offset: 0,
                source: CodeSource::Other,
            },
        ];
        let python = Interpreter {
            runtime: segment.address + 100,
            version: Version {
                major: 3,
                minor: 11,
                free_threaded: false,
            },
            evaluation: Default::default(),
        };
        let file = || FileTable {
            built: Arc::clone(&built),
            python: Some(python),
            first_page: 5,
            page_count: 6,
        };
        let space = Space::new(code, |source| (source == FILE).then(file));
        (space, built, segment.size)
    }

    #[test]
    fn an_address_is_in_the_mapping_around_it() {
        let (space, built, size) = space();
        let address = built.segments[0].address;
        let code = |at: u64| AddressSpace::code(&space, at);
        let in_table = |at: u64| match code(at) {
            Code::Table { address, .. } => Some(address),
            Code::Bare | Code::Unmapped => None,
        };
        assert_eq!(in_table(START), Some(address));
        assert_eq!(in_table(START + size - 1), Some(address + size - 1));
        for at in [START + size, START + size + 15] {
            assert!(matches!(code(at), Code::Bare));
        }
        for at in [0, START - 1, START + size + 16, u64::MAX] {
            assert!(matches!(code(at), Code::Unmapped));
        }
        assert_eq!(space.code().len(), 2);
    }

    #[test]
    fn programs_find_the_same() {
        let (space, built, size) = space();
        let mappings = space.for_kernel();
        assert_eq!(mappings.len(), 2);
        let (file, other) = (&mappings[0], &mappings[1]);
        assert_eq!((file.start, file.end), (START, START + size));
        assert_eq!((file.first_page, file.page_count), (5, 6));
        // An address less the bias is how far into the table it is.
        let into_table = built.segments[0].address - built.table.base;
        assert_eq!(file.start.wrapping_sub(file.bias), into_table);
        assert_eq!((other.start, other.page_count), (START + size, 0));
    }

    #[test]
    fn an_interpreter_is_where_its_file_is() {
        let (mut space, ..) = space();
        let python = space.python().unwrap();
        assert_eq!((python.source, python.runtime), (FILE, START + 100));
        let (runtime, layout) = space.readable_python().unwrap();
        assert_eq!((runtime, layout.minor), (START + 100, 11));
        space.forget_languages();
        assert!(space.python().is_none() && space.readable_python().is_none());
    }
}
