//! Offsets in the data structures of each version of CPython.
//!
//! A C compiler computed the offsets from the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1,
//! 3.13.0 and 3.14, for x86-64 with the global interpreter lock. All releases of a minor version
//! have the same offsets.

use super::Version;
use super::lines::Format;

/// Anchors that a version leaves on the native stack for its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchoring {
    /// 3.8 and 3.9: no anchors.
    Nothing,
    /// 3.10: a `CFrame` for every frame.
    EveryFrame,
    /// 3.11: a `_PyCFrame` for every frame with `is_entry`.
    EntryFrames,
    /// 3.12 and later: a frame that runs nothing, after the frames of an activation. Its `owner` is
    /// 3 or more.
    BoundaryFrames,
}

/// Offsets in bytes from the start of a structure. Each comment begins with the structure. An
/// offset is 0 if this version lacks the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Minor version, such as 11 for 3.11.
    pub minor: u8,
    /// Anchors on the native stack.
    pub anchoring: Anchoring,
    /// `_PyRuntime`: `autoTSSkey`, a `Py_tss_t`. The key itself is 4 bytes further.
    pub runtime_tss_key: u16,
    /// `PyThreadState`: `frame`, or `current_frame` in 3.13 and later. 3.11 and 3.12 have neither
    /// field.
    pub thread_frame: u16,
    /// `PyThreadState`: `cframe`, from 3.10 to 3.12.
    pub thread_cframe: u16,
    /// `PyThreadState`: `thread_id`, which is `pthread_self()`.
    pub thread_id: u16,
    /// `_PyCFrame`: `current_frame`, in 3.11 and 3.12.
    pub cframe_current_frame: u16,
    /// `_PyCFrame`: `previous`.
    pub cframe_previous: u16,
    /// `_PyInterpreterFrame`, or `PyFrameObject` before 3.11: `previous` or `f_back`.
    pub frame_previous: u16,
    /// Frame: `f_executable` or `f_code`.
    pub frame_code: u16,
    /// Bits of the value at `frame_code` that are not part of the code object's address.
    pub frame_code_tag: u16,
    /// Frame: `instr_ptr` or `prev_instr`, an address. Before 3.11 `f_lasti`, an `int`.
    pub frame_instruction: u16,
    /// Number of bytes for which 1 of `f_lasti` stands; 0 if `frame_instruction` is an address.
    pub instruction_unit: u16,
    /// Frame: `owner`, one byte, since 3.11.
    pub frame_owner: u16,
    /// Frame: `is_entry`, one byte, in 3.11.
    pub frame_is_entry: u16,
    /// Number of bytes from the start of a frame that contain all of its fields. A reader may read
    /// no more.
    pub frame_bytes: u16,
    /// `PyCodeObject`: `co_filename`.
    pub code_filename: u16,
    /// Code: `co_name`.
    pub code_name: u16,
    /// Code: `co_qualname`, or `co_name` before 3.11.
    pub code_qualname: u16,
    /// Code: `co_firstlineno`, an `int`.
    pub code_first_line: u16,
    /// Code: `co_flags`, an `int`.
    pub code_flags: u16,
    /// Code: `co_linetable`, or `co_lnotab` before 3.10.
    pub code_line_table: u16,
    /// Code: `_co_firsttraceable`, an `int`, since 3.11.
    pub code_first_traceable: u16,
    /// Code: `co_code_adaptive`, the instructions, since 3.11.
    pub code_instructions: u16,
    /// Encoding of `code_line_table`.
    pub lines: Format,
    /// `PyASCIIObject`: the characters of the string.
    pub ascii_data: u16,
    /// `PyCompactUnicodeObject`: the characters of a string that is not ASCII.
    pub other_data: u16,
}

impl Layout {
    /// Number of bytes that are read of a code object. It suffices for every version.
    pub(crate) const CODE_BYTES: usize = 216;
}

/// Returns the layout of a version, if it is known.
pub fn by_version(version: Version) -> Option<&'static Layout> {
    let has_lock = version.major == 3 && !version.free_threaded;
    let mut layouts = LAYOUTS.iter().filter(|_| has_lock);
    layouts.find(|layout| layout.minor == version.minor)
}

/// All known layouts, in the order of their versions.
pub const LAYOUTS: &[Layout] = &[
    PYTHON_3_8,
    PYTHON_3_9,
    PYTHON_3_10,
    PYTHON_3_11,
    PYTHON_3_12,
    PYTHON_3_13,
    PYTHON_3_14,
];

const PYTHON_3_8: Layout = Layout {
    minor: 8,
    anchoring: Anchoring::Nothing,
    runtime_tss_key: 1392,
    thread_frame: 24,
    thread_cframe: 0,
    thread_id: 176,
    cframe_current_frame: 0,
    cframe_previous: 0,
    frame_previous: 24,
    frame_code: 32,
    frame_code_tag: 0,
    frame_instruction: 104,
    instruction_unit: 1,
    frame_owner: 0,
    frame_is_entry: 0,
    frame_bytes: 112,
    code_filename: 104,
    code_name: 112,
    code_qualname: 112,
    code_first_line: 40,
    code_flags: 36,
    code_line_table: 120,
    code_first_traceable: 0,
    code_instructions: 0,
    lines: Format::Steps,
    ascii_data: 48,
    other_data: 72,
};

const PYTHON_3_9: Layout = Layout {
    minor: 9,
    runtime_tss_key: 584,
    ..PYTHON_3_8
};

const PYTHON_3_10: Layout = Layout {
    minor: 10,
    anchoring: Anchoring::EveryFrame,
    thread_cframe: 48,
    cframe_previous: 8,
    frame_instruction: 96,
    instruction_unit: 2,
    frame_bytes: 104,
    lines: Format::Ranges,
    ..PYTHON_3_9
};

const PYTHON_3_11: Layout = Layout {
    minor: 11,
    anchoring: Anchoring::EntryFrames,
    runtime_tss_key: 592,
    thread_frame: 0,
    thread_cframe: 56,
    thread_id: 152,
    cframe_current_frame: 8,
    cframe_previous: 16,
    frame_previous: 48,
    frame_code: 32,
    frame_code_tag: 0,
    frame_instruction: 56,
    instruction_unit: 0,
    frame_owner: 69,
    frame_is_entry: 68,
    frame_bytes: 72,
    code_filename: 112,
    code_name: 120,
    code_qualname: 128,
    code_first_line: 72,
    code_flags: 48,
    code_line_table: 136,
    code_first_traceable: 168,
    code_instructions: 184,
    lines: Format::Locations,
    ascii_data: 48,
    other_data: 72,
};

const PYTHON_3_12: Layout = Layout {
    minor: 12,
    anchoring: Anchoring::BoundaryFrames,
    runtime_tss_key: 1544,
    thread_id: 136,
    cframe_current_frame: 0,
    cframe_previous: 8,
    frame_previous: 8,
    frame_code: 0,
    frame_owner: 70,
    frame_is_entry: 0,
    code_first_line: 68,
    code_first_traceable: 176,
    code_instructions: 192,
    ascii_data: 40,
    other_data: 56,
    ..PYTHON_3_11
};

const PYTHON_3_13: Layout = Layout {
    minor: 13,
    runtime_tss_key: 2160,
    thread_frame: 72,
    thread_cframe: 0,
    thread_id: 152,
    cframe_previous: 0,
    code_first_traceable: 184,
    code_instructions: 200,
    ..PYTHON_3_12
};

const PYTHON_3_14: Layout = Layout {
    minor: 14,
    runtime_tss_key: 2336,
    frame_code_tag: 3,
    frame_owner: 74,
    frame_bytes: 80,
    code_first_traceable: 192,
    code_instructions: 208,
    ..PYTHON_3_13
};

#[cfg(test)]
mod tests {
    use super::*;

    fn version(major: u8, minor: u8) -> Version {
        Version {
            major,
            minor,
            free_threaded: false,
        }
    }

    #[test]
    fn versions_have_their_own_layout_or_none() {
        for minor in 0..=u8::MAX {
            let found = by_version(version(3, minor)).map(|layout| layout.minor);
            assert_eq!(found, (8..=14).contains(&minor).then_some(minor));
            assert_eq!(by_version(version(2, minor)), None);
            let free_threaded = Version {
                free_threaded: true,
                ..version(3, minor)
            };
            assert_eq!(by_version(free_threaded), None);
        }
    }
}
