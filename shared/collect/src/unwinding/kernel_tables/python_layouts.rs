//! Where each version of CPython keeps what, as `bpf/include/languages/python.h` has it.

use bpf::types::{PythonAnchoring, PythonLayout};
use languages::python::{Anchoring, LAYOUTS, Layout};
use libbpf_rs::{Map, MapCore, MapFlags};
use loader::{Context, Result};

/// Puts all that are known where programs find them.
pub(crate) fn write(map: &Map<'_>) -> Result<()> {
    for layout in LAYOUTS {
        let key = u32::from(layout.minor).to_ne_bytes();
        let value = of(layout);
        // SAFETY: a struct of integers without padding.
        let value = unsafe { plain::as_bytes(&value) };
        map.update(&key, value, MapFlags::ANY)
            .context("enter a layout of CPython's")?;
    }
    Ok(())
}

fn of(layout: &Layout) -> PythonLayout {
    let anchoring = match layout.anchoring {
        Anchoring::Nothing => PythonAnchoring::PYTHON_NO_ANCHORS,
        Anchoring::EveryFrame => PythonAnchoring::PYTHON_ANCHOR_AT_EVERY_FRAME,
        Anchoring::EntryFrames => PythonAnchoring::PYTHON_ANCHOR_AT_ENTRIES,
        Anchoring::BoundaryFrames => PythonAnchoring::PYTHON_ANCHOR_IS_FRAME,
    };
    // What the checksum is made of, read at once.
    let words = [
        layout.code_filename,
        layout.code_qualname,
        layout.code_first_line,
    ];
    let start = words.into_iter().min().unwrap_or(0);
    let last = words.into_iter().max().unwrap_or(0);
    PythonLayout {
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
    }
}
