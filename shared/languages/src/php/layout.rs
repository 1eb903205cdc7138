//! Offsets in the data structures of each version of PHP.
//!
//! A C compiler computed the offsets of 8.2, 8.4, 8.5 and 8.6 from their headers, for x86-64 without
//! thread safety. Those of 8.1 and 8.3 follow from the declarations in Zend/zend_compile.h. All releases
//! of a minor version have the same offsets, because extensions depend on them.

/// Offsets in bytes from the start of a structure. Each comment begins with the structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Minor version, such as 2 for 8.2.
    pub minor: u8,
    /// `ZEND_MODULE_API_NO`, which tells versions apart.
    pub api: u32,
    /// `zend_executor_globals`: `current_execute_data`.
    pub current: u16,
    /// `zend_op_array`: `last`, the number of instructions.
    pub function_count: u16,
    /// `zend_op_array`: `opcodes`.
    pub function_opcodes: u16,
    /// `zend_op_array`: `filename`. `line_start` and `line_end` follow.
    pub function_file: u16,
}

impl Layout {
    /// Number of bytes of a function that contain all of its fields.
    pub(crate) fn function_bytes(&self) -> u16 {
        self.function_file + 16
    }
}

/// Returns the layout of the version with an API number, if it is known.
pub fn by_api(api: u32) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.api == api)
}

/// All known layouts, in the order of their versions.
pub const LAYOUTS: &[Layout] = &[
    Layout {
        minor: 1,
        api: 20210902,
        current: 488,
        function_count: 68,
        function_opcodes: 72,
        function_file: 144,
    },
    Layout {
        minor: 2,
        api: 20220829,
        current: 488,
        function_count: 80,
        function_opcodes: 88,
        function_file: 152,
    },
    Layout {
        minor: 3,
        api: 20230831,
        current: 488,
        function_count: 76,
        function_opcodes: 80,
        function_file: 144,
    },
    Layout {
        minor: 4,
        api: 20240924,
        current: 488,
        function_count: 96,
        function_opcodes: 104,
        function_file: 168,
    },
    Layout {
        minor: 5,
        api: 20250925,
        current: 512,
        function_count: 96,
        function_opcodes: 104,
        function_file: 168,
    },
    // Release candidate 3.
    Layout {
        minor: 6,
        api: 20260924,
        current: 512,
        function_count: 96,
        function_opcodes: 104,
        function_file: 168,
    },
];
