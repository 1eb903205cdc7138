//! Offsets in the data structures of each version of CRuby.
//!
//! Tests on Debian's builds check the offsets of 3.1, 3.3 and 3.4. The others follow from the declarations
//! in vm_core.h and iseq.h. All releases of a minor version have the same offsets.

/// Offsets in bytes from the start of a structure. Each comment begins with the structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Minor version, such as 1 for 3.1.
    pub minor: u8,
    /// Size of `rb_control_frame_t`.
    pub frame_bytes: u16,
    /// `rb_iseq_constant_body`: `insns_info.body`, the lines.
    pub body_lines: u16,
    /// Body: `insns_info.size`, the number of lines.
    pub body_count: u16,
    /// Body: `insns_info.succ_index_table`, the positions of the lines.
    pub body_index: u16,
    /// Size of `struct iseq_insn_info_entry`, which begins with a line.
    pub line_bytes: u16,
    /// `RString`: the characters of an embedded string. The length of such a string is in its flags
    /// if they are at 16.
    pub embedded: u16,
    /// `rb_thread_t`: `nt`, the native thread; 0 if its fields are in `rb_thread_t`.
    pub thread_native: u16,
    /// `rb_thread_t`: the node in the list of threads that wait for the global lock.
    pub thread_node: u16,
    /// Native thread: the condition on which it waits for the lock.
    pub native_condition: u16,
    /// Native thread: its ID in the kernel.
    pub native_id: u16,
    /// `rb_ractor_t`: the thread that holds the lock; 0 if the offsets of the lock are unknown.
    pub ractor_owner: u16,
}

/// Returns the layout of a version 3.`minor`, if it is known.
pub fn by_version(minor: u8) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.minor == minor)
}

/// All known layouts, in the order of their versions.
pub const LAYOUTS: &[Layout] = &[
    Layout {
        minor: 0,
        frame_bytes: 56,
        body_lines: 120,
        body_count: 136,
        body_index: 144,
        line_bytes: 8,
        embedded: 16,
        thread_native: 0,
        thread_node: 0,
        native_condition: 0,
        native_id: 0,
        ractor_owner: 0,
    },
    Layout {
        minor: 1,
        frame_bytes: 64,
        body_lines: 120,
        body_count: 136,
        body_index: 144,
        line_bytes: 12,
        embedded: 16,
        thread_native: 0,
        thread_node: 0x68,
        native_condition: 0x78,
        native_id: 0x58,
        ractor_owner: 0x150,
    },
    Layout {
        minor: 2,
        frame_bytes: 64,
        body_lines: 112,
        body_count: 128,
        body_index: 136,
        line_bytes: 12,
        embedded: 24,
        thread_native: 0,
        thread_node: 0,
        native_condition: 0,
        native_id: 0,
        ractor_owner: 0,
    },
    Layout {
        minor: 3,
        frame_bytes: 56,
        body_lines: 112,
        body_count: 128,
        body_index: 136,
        line_bytes: 12,
        embedded: 24,
        thread_native: 0x28,
        thread_node: 0x48,
        native_condition: 0x20,
        native_id: 0x18,
        ractor_owner: 0x148,
    },
    Layout {
        minor: 4,
        frame_bytes: 56,
        body_lines: 112,
        body_count: 128,
        body_index: 136,
        line_bytes: 12,
        embedded: 24,
        thread_native: 0x28,
        thread_node: 0x48,
        native_condition: 0x28,
        native_id: 0x18,
        ractor_owner: 0x148,
    },
];
