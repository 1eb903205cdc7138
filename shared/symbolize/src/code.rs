//! Executable mappings of a process, for readers of more than the symbols of its files.

use std::fs::File;
use std::io::Result;

use crate::naming::vdso;
use crate::process::images::Image;
use crate::process::processes::Mapping;
use crate::symbolizer::Symbolizer;
use process::Process;

/// An executable mapping of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Offset in the file of the first address, in bytes.
    pub offset: u64,
    /// File or memory that is mapped.
    pub source: CodeSource,
}

/// Source of mapped code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeSource {
    /// An ELF file that the [`Symbolizer`] keeps open.
    File(u32),
    /// The kernel's vDSO.
    Vdso,
    /// Any other source, such as memory into which the program wrote its code.
    Other,
}

impl Symbolizer {
    /// Returns the executable mappings of a process in ascending order, as of the last read of
    /// its mappings (see [`Symbolizer::watch`]). Returns none if no read succeeded.
    pub fn code(&self, process: Process) -> Vec<CodeMapping> {
        let mapping = |mapping: &Mapping| CodeMapping {
            start: mapping.start,
            end: mapping.end,
            offset: mapping.offset,
            source: match mapping.image {
                Image::File(file) => CodeSource::File(file),
                Image::Vdso => CodeSource::Vdso,
                Image::Jit | Image::Module(_) => CodeSource::Other,
            },
        };
        self.processes
            .mappings(process)
            .iter()
            .map(mapping)
            .collect()
    }

    /// Returns the file that code comes from, and its name; `None` if there is none.
    ///
    /// # Errors
    /// If the vDSO cannot be read, or there are too many open files.
    pub fn code_file(&self, source: CodeSource) -> Result<Option<(File, String)>> {
        match source {
            CodeSource::File(index) => self
                .images
                .file(index)
                .map(|mapped| Ok((mapped.file.try_clone()?, mapped.module.name.to_string())))
                .transpose(),
            CodeSource::Vdso => Ok(Some((vdso::image()?, "[vdso]".to_owned()))),
            CodeSource::Other => Ok(None),
        }
    }
}
