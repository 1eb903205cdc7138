//! Executable mappings of a process, for readers that need more than the symbols of its files.

use std::fs::File;
use std::io::Result;

use crate::naming::vdso;
use crate::process::images::Image;
use crate::process::processes::Mapping;
use crate::symbolizer::Symbolizer;
use process::Process;

/// Executable mapping of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMapping {
    /// First address.
    pub start: u64,
    /// Address after the last one.
    pub end: u64,
    /// Offset in the file at the first address, in bytes.
    pub offset: u64,
    /// Mapped file or memory.
    pub source: CodeSource,
}

/// Source of mapped code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeSource {
    /// ELF file that the [`Symbolizer`] keeps open.
    File(u32),
    /// vDSO of the kernel.
    Vdso,
    /// Any other source, such as memory into which the program wrote code.
    Other,
}

impl Symbolizer {
    /// Returns the executable mappings of a process in ascending order, from the last read of its
    /// mappings ([`Symbolizer::watch`]). Returns none if no read succeeded.
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

    /// Returns the file with the code, and its name; `None` if there is no file.
    ///
    /// # Errors
    /// The vDSO cannot be read, or this process has too many open files.
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
