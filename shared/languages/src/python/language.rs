//! Implementation of [`Language`] for CPython.

use std::sync::Arc;

use bpf::types::headers;
use profile::LanguageName;
use unwind::Memory;

use super::interpreter::find_in_elf;
use super::{Anchoring, Layout, Version, layout, locks, read, read_stopped, walk};
use crate::language::{self, Attached, File, Function, Language, Pieces, Runtime, Thread};
use crate::{Chain, End, Frame, Locks, Reader};

const NAME: LanguageName = LanguageName::new("python").unwrap();

/// Python, as CPython implements it.
#[derive(Clone, Copy, Debug)]
pub struct Python;

impl Language for Python {
    fn name(&self) -> LanguageName {
        NAME
    }

    fn title(&self) -> &'static str {
        "Python"
    }

    fn readable_versions(&self) -> &'static str {
        "those of 3.8 to 3.14 with a global lock"
    }

    fn number(&self) -> u32 {
        headers::language::LANGUAGE_PYTHON.0
    }

    fn find(&self, file: &File<'_>, file_name: &str) -> Option<Runtime> {
        let found = find_in_elf(file, file_name)?;
        Some(Runtime {
            language: &Python,
            base: found.runtime,
            version: found.version.to_string(),
            layout: layout::by_version(found.version).map(|layout| Arc::new(for_programs(layout))),
            runs_one: language::known_ranges(&found.evaluation),
            data: Vec::new(),
        })
    }

    fn has_anchors(&self, layout: &language::Layout) -> bool {
        known_layout(layout).is_none_or(|layout| layout.anchoring != Anchoring::Nothing)
    }

    fn walk(
        &self,
        attached: &Attached,
        memory: &mut dyn Memory,
        thread: Thread,
        most: usize,
    ) -> Chain {
        let layout = attached
            .layout
            .as_ref()
            .and_then(|layout| known_layout(layout));
        let Some(layout) = layout else {
            return Chain::empty(End::NoThread);
        };
        walk(memory, layout, attached.base, thread.pointer, most)
    }

    fn function(
        &self,
        layout: &language::Layout,
        frame: Frame,
        reader: &mut Reader<'_>,
    ) -> Option<Arc<dyn Function>> {
        let memory = &reader.memory;
        let code = read(memory, known_layout(layout)?, frame.code, frame.checksum)?;
        Some(Arc::new(code))
    }

    fn copied_function(
        &self,
        layout: &language::Layout,
        frame: Frame,
        copy: &dyn Pieces,
    ) -> Option<Arc<dyn Function>> {
        let code = read_stopped(copy, known_layout(layout)?, frame.code, frame.checksum)?;
        Some(Arc::new(code))
    }

    fn locks(&self) -> &'static Locks {
        &locks::LOCKS
    }

    fn is_library(&self, file: &str) -> bool {
        file.contains("/lib/python3")
    }

    fn starts_threads(&self, function: &str) -> bool {
        function.starts_with("threading.py:Thread.")
    }
}

/// Returns the layout for a version, whose number is the minor version of Python 3.
fn known_layout(layout: &language::Layout) -> Option<&'static Layout> {
    layout::by_version(Version {
        major: 3,
        minor: u8::try_from(layout.version).ok()?,
        free_threaded: false,
    })
}

fn for_programs(layout: &Layout) -> language::Layout {
    use headers::python_anchoring as InPrograms;

    let anchoring = match layout.anchoring {
        Anchoring::Nothing => InPrograms::PYTHON_NO_ANCHORS,
        Anchoring::EveryFrame => InPrograms::PYTHON_ANCHOR_AT_EVERY_FRAME,
        Anchoring::EntryFrames => InPrograms::PYTHON_ANCHOR_AT_ENTRIES,
        Anchoring::BoundaryFrames => InPrograms::PYTHON_ANCHOR_IS_FRAME,
    };
    // Words of the checksum, which programs read in one piece.
    let words = [
        layout.code_filename,
        layout.code_qualname,
        layout.code_first_line,
    ];
    let start = words.into_iter().min().unwrap_or(0);
    let last = words.into_iter().max().unwrap_or(0);
    let value = headers::python_layout {
        anchoring: anchoring.0 as u16,
        runtime_key: layout.runtime_tss_key,
        thread_frame: layout.thread_frame,
        thread_cframe: layout.thread_cframe,
        thread_id: layout.thread_id,
        cframe_frame: layout.cframe_current_frame,
        cframe_previous: layout.cframe_previous,
        frame_bytes: layout.frame_bytes,
        frame_previous: layout.frame_previous,
        frame_code: layout.frame_code,
        frame_instruction: layout.frame_instruction,
        frame_owner: layout.frame_owner,
        frame_is_entry: layout.frame_is_entry,
        instruction_unit: layout.instruction_unit,
        code_tag: layout.frame_code_tag,
        code_instructions: layout.code_instructions,
        code_start: start,
        code_bytes: last + 8 - start,
        code_filename: layout.code_filename - start,
        code_name: layout.code_qualname - start,
        code_first_line: layout.code_first_line - start,
        code_lines: layout.code_line_table,
        ascii_data: layout.ascii_data,
        other_data: layout.other_data,
    };
    language::Layout::new(&Python, layout.minor.into(), &value)
}
