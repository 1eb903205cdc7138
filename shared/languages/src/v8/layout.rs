//! Offsets in the objects of each version of V8.
//!
//! The values come from the `v8dbg_` variables of official builds of Node.js, and from the sources
//! of V8. All builds of a version of V8 for x86-64 without pointer compression have the same values.
//! [`engine`](super::engine) compares some of them with the variables of the file.

use super::sizes::{self, Sizes};

/// Offsets in bytes from the start of an object, and numbers of types of objects.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Version of V8.
    pub(crate) version: (u32, u32),
    /// `Isolate`: frame pointer of the code that called C++, and the same of a fast call.
    pub(crate) c_entry_fp: u32,
    pub(crate) fast_c_call_fp: u32,
    /// True if a thread's isolate is a value of pthread, false if it is thread-local.
    pub(crate) has_isolate_key: bool,
    /// `JSFunction`: its `SharedFunctionInfo`.
    pub(crate) function_shared: u16,
    /// `SharedFunctionInfo`: its name or scope, and its script. Its code is at 8.
    pub(crate) info_name: u16,
    pub(crate) info_script: u16,
    /// `ScopeInfo`: index of the first slot with names, slot of the scope's first position (`None` if
    /// it follows the inferred name), scope type of modules, and whether the flags are a small integer.
    pub(crate) scope_first: u64,
    pub(crate) scope_start: Option<u64>,
    pub(crate) scope_module: u32,
    pub(crate) scope_flags_are_smi: bool,
    /// Kinds of functions that initialize an instance and a class; 0 in versions that name them
    /// otherwise.
    pub(crate) initializers: (u32, u32),
    /// `BytecodeArray`: its bytecodes, and its table of positions.
    pub(crate) bytecode_data: u16,
    pub(crate) bytecode_positions: u16,
    /// Size of what precedes the instructions in the object that contains them, and alignment of
    /// the instructions.
    pub(crate) code_header: u64,
    pub(crate) code_alignment: u64,
    /// `Code`: its deoptimization data or bytecode, and its table of positions or bytecodes.
    pub(crate) code_data: u16,
    pub(crate) code_positions: u16,
    /// `Code`: address of its instructions; 0 if they follow the object. Size of its instructions,
    /// and its flags.
    pub(crate) code_start: u16,
    pub(crate) code_size: u16,
    pub(crate) code_flags: u16,
    /// Kind of baseline code. The following kinds are those of Maglev and Turbofan.
    pub(crate) baseline: u32,
    /// Deoptimization data: indexes of the literals, the function and the inlining positions.
    pub(crate) deopt_literals: u64,
    pub(crate) deopt_function: u64,
    pub(crate) deopt_positions: u64,
    /// True if the code deltas of tables of positions are not signed.
    pub(crate) has_unsigned_deltas: bool,
    /// Sizes of bytecodes.
    pub(crate) sizes: &'static Sizes,
    /// Types of frames.
    pub(crate) builtin_exit: u16,
    pub(crate) wasm: u16,
    /// Types of objects.
    pub(crate) types: Types,
}

/// Numbers of the types of objects (`InstanceType`). A number is 0 if the version lacks the type.
#[derive(Debug)]
pub(crate) struct Types {
    pub(crate) info: u16,
    pub(crate) scope_info: u16,
    pub(crate) script: u16,
    pub(crate) debug_info: u16,
    pub(crate) bytecode: u16,
    pub(crate) interpreter_data: u16,
    pub(crate) code: u16,
    /// Object that contains instructions.
    pub(crate) instructions: u16,
    pub(crate) map: u16,
    pub(crate) fixed_array: u16,
    /// Arrays of bytes.
    pub(crate) bytes: [u16; 2],
}

/// Layouts of all readable versions.
pub(crate) static LAYOUTS: [Layout; 5] = [
    // Node.js 18.
    Layout {
        version: (10, 2),
        c_entry_fp: 0x4538,
        fast_c_call_fp: 0x100,
        has_isolate_key: true,
        function_shared: 24,
        info_name: 16,
        info_script: 32,
        scope_first: 3,
        scope_start: None,
        scope_module: 3,
        scope_flags_are_smi: true,
        initializers: (0, 0),
        bytecode_data: 56,
        bytecode_positions: 32,
        code_header: 128,
        code_alignment: 32,
        code_data: 16,
        code_positions: 24,
        code_start: 0,
        code_size: 40,
        code_flags: 48,
        baseline: 11,
        deopt_literals: 2,
        deopt_function: 6,
        deopt_positions: 7,
        has_unsigned_deltas: false,
        sizes: &sizes::V10_2,
        builtin_exit: 22,
        wasm: 4,
        types: Types {
            info: 257,
            scope_info: 256,
            script: 170,
            debug_info: 156,
            bytecode: 195,
            interpreter_data: 162,
            code: 240,
            instructions: 240,
            map: 250,
            fixed_array: 179,
            bytes: [194, 0],
        },
    },
    // Node.js 20.
    Layout {
        version: (11, 3),
        c_entry_fp: 0x180,
        fast_c_call_fp: 0xe8,
        has_isolate_key: false,
        function_shared: 24,
        info_name: 16,
        info_script: 32,
        scope_first: 3,
        scope_start: None,
        scope_module: 3,
        scope_flags_are_smi: true,
        initializers: (0, 0),
        bytecode_data: 54,
        bytecode_positions: 32,
        code_header: 16,
        code_alignment: 64,
        code_data: 16,
        code_positions: 24,
        code_start: 40,
        code_size: 56,
        code_flags: 48,
        baseline: 11,
        deopt_literals: 2,
        deopt_function: 6,
        deopt_positions: 7,
        has_unsigned_deltas: false,
        sizes: &sizes::V11_3,
        builtin_exit: 25,
        wasm: 4,
        types: Types {
            info: 262,
            scope_info: 261,
            script: 167,
            debug_info: 153,
            bytecode: 191,
            interpreter_data: 159,
            code: 245,
            instructions: 252,
            map: 255,
            fixed_array: 175,
            bytes: [190, 0],
        },
    },
    // Node.js 22.
    Layout {
        version: (12, 4),
        c_entry_fp: 0x110,
        fast_c_call_fp: 0xf0,
        has_isolate_key: false,
        function_shared: 32,
        info_name: 16,
        info_script: 32,
        scope_first: 3,
        scope_start: None,
        scope_module: 3,
        scope_flags_are_smi: true,
        initializers: (24, 25),
        bytecode_data: 64,
        bytecode_positions: 24,
        code_header: 32,
        code_alignment: 64,
        code_data: 8,
        code_positions: 16,
        code_start: 40,
        code_size: 52,
        code_flags: 48,
        baseline: 10,
        deopt_literals: 2,
        deopt_function: 6,
        deopt_positions: 7,
        has_unsigned_deltas: false,
        sizes: &sizes::V12_4,
        builtin_exit: 26,
        wasm: 4,
        types: Types {
            info: 274,
            scope_info: 272,
            script: 167,
            debug_info: 154,
            bytecode: 205,
            interpreter_data: 207,
            code: 206,
            instructions: 210,
            map: 264,
            fixed_array: 174,
            bytes: [186, 212],
        },
    },
    // Node.js 24.
    Layout {
        version: (13, 6),
        c_entry_fp: 0x140,
        fast_c_call_fp: 0x128,
        has_isolate_key: false,
        function_shared: 32,
        info_name: 24,
        info_script: 40,
        scope_first: 5,
        scope_start: Some(4),
        scope_module: 5,
        scope_flags_are_smi: false,
        initializers: (24, 25),
        bytecode_data: 64,
        bytecode_positions: 24,
        code_header: 32,
        code_alignment: 64,
        code_data: 8,
        code_positions: 16,
        code_start: 40,
        code_size: 56,
        code_flags: 52,
        baseline: 10,
        deopt_literals: 3,
        deopt_function: 7,
        deopt_positions: 8,
        has_unsigned_deltas: false,
        sizes: &sizes::V13_6,
        builtin_exit: 27,
        wasm: 4,
        types: Types {
            info: 282,
            scope_info: 280,
            script: 167,
            debug_info: 154,
            bytecode: 186,
            interpreter_data: 188,
            code: 187,
            instructions: 192,
            map: 272,
            fixed_array: 205,
            bytes: [217, 196],
        },
    },
    // Node.js 26.
    Layout {
        version: (14, 6),
        c_entry_fp: 0x148,
        fast_c_call_fp: 0x130,
        has_isolate_key: false,
        function_shared: 32,
        info_name: 24,
        info_script: 40,
        scope_first: 5,
        scope_start: Some(4),
        scope_module: 5,
        scope_flags_are_smi: false,
        initializers: (24, 26),
        bytecode_data: 64,
        bytecode_positions: 24,
        code_header: 32,
        code_alignment: 64,
        code_data: 8,
        code_positions: 16,
        code_start: 40,
        code_size: 56,
        code_flags: 52,
        baseline: 11,
        deopt_literals: 3,
        deopt_function: 7,
        deopt_positions: 8,
        has_unsigned_deltas: true,
        sizes: &sizes::V14_6,
        builtin_exit: 17,
        wasm: 24,
        types: Types {
            info: 288,
            scope_info: 286,
            script: 166,
            debug_info: 153,
            bytecode: 185,
            interpreter_data: 187,
            code: 186,
            instructions: 192,
            map: 278,
            fixed_array: 205,
            bytes: [218, 196],
        },
    },
];

/// Returns the layout of a version of V8.
pub(crate) fn by_version(version: (u32, u32)) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.version == version)
}
