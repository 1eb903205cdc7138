//! Finds V8 in a file, and where threads keep their isolate.

use elf::{Elf, Source};
use process::ELF_MACHINE;

use super::layout::{self, Layout};
use crate::arch::{jump_at, thread_local_index};

/// Version of V8: `v8::internal::Version::major_` and `minor_`, both of type `int`.
const MAJOR: &str = "_ZN2v88internal7Version6major_E";
const MINOR: &str = "_ZN2v88internal7Version6minor_E";
/// Key of the isolate: `v8::internal::Isolate::isolate_key_`, an `int`.
const ISOLATE_KEY: &str = "_ZN2v88internal7Isolate12isolate_key_E";
/// Mark that the key is created: `v8::internal::Isolate::isolate_key_created_`, one byte.
const KEY_IS_CREATED: &str = "_ZN2v88internal7Isolate20isolate_key_created_E";
/// Isolate of a thread: `v8::internal::g_current_isolate_`.
const CURRENT_ISOLATE: &str = "_ZN2v88internal18g_current_isolate_E";
/// Function that returns the isolate: `v8::Isolate::GetCurrent()`. Libraries of some versions do not
/// export the variable.
const READS_ISOLATE: &[u8] = b"_ZN2v87Isolate10GetCurrentEv";
/// Number of bytes of code that are decoded.
const CODE_BYTES: u64 = 32;

/// `PT_INTERP` and `PT_TLS` of the ELF specification.
const PT_INTERP: u32 = 3;
const PT_TLS: u32 = 7;

/// Engine that a file contains.
pub(super) struct Engine {
    /// Version of V8.
    pub(super) version: (u32, u32),
    /// Layout and place of the isolate; `None` if they are unknown.
    pub(super) known: Option<(&'static Layout, Isolate)>,
}

/// Place of a thread's isolate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isolate {
    /// Value of a pthread key.
    OfKey {
        /// Virtual address of the key in the file.
        key: u64,
        /// Virtual address of the byte that says whether the key is created.
        is_created: u64,
    },
    /// At this distance from the thread pointer.
    AtOffset(u64),
    /// In the thread-local storage of a library. The module's number and the offset in the module's
    /// storage are at this virtual address of the file, as a `tls_index`.
    InModule(u64),
}

/// Returns the engine that an ELF file contains. Most files contain none, which one look-up in the
/// table of dynamic symbols shows.
pub(super) fn find<S: Source>(elf: &Elf<S>) -> Option<Engine> {
    if !elf.header().is_for(ELF_MACHINE) {
        return None;
    }
    let version = (number(elf, MAJOR)?, number(elf, MINOR)?);
    let layout = layout::by_version(version).filter(|layout| is_confirmed(elf, layout));
    Some(Engine {
        version,
        known: layout.and_then(|layout| Some((layout, isolate(elf, layout)?))),
    })
}

/// Returns the value of an exported variable of type `int`.
fn number<S: Source>(elf: &Elf<S>, name: &str) -> Option<u32> {
    let at = elf.exported_variable(name)?;
    let bytes = elf.initial_bytes(at.start, 4)?;
    Some(u32::from_le_bytes(*bytes.first_chunk()?))
}

/// Returns whether the variables for debuggers have the values of `layout`. Builds with other
/// options have other values.
fn is_confirmed<S: Source>(elf: &Elf<S>, layout: &Layout) -> bool {
    let types = &layout.types;
    let values = [
        ("TaggedSize", 8),
        (
            "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",
            types.info,
        ),
        ("type_ScopeInfo__SCOPE_INFO_TYPE", types.scope_info),
        ("type_Script__SCRIPT_TYPE", types.script),
        ("type_BytecodeArray__BYTECODE_ARRAY_TYPE", types.bytecode),
        ("type_Code__CODE_TYPE", types.code),
        (
            "class_JSFunction__shared__SharedFunctionInfo",
            layout.function_shared,
        ),
        ("class_BytecodeArray__data__uintptr_t", layout.bytecode_data),
        ("frametype_BuiltinExitFrame", layout.builtin_exit),
        ("frametype_WasmFrame", layout.wasm),
    ];
    values
        .iter()
        .all(|(name, value)| number(elf, &format!("v8dbg_{name}")) == Some(u32::from(*value)))
}

/// Returns the virtual address of the isolate's `tls_index`, from the code of the function that
/// returns the isolate. This function may only jump to one that reads the variable.
fn index_in_code<S: Source>(elf: &Elf<S>) -> Option<u64> {
    let found = elf.functions(|name| name == READS_ISOLATE);
    let [function] = &found[..] else {
        return None;
    };
    let first = elf.initial_bytes(function.start, CODE_BYTES)?;
    let jump = jump_at(function.start, &first, 0);
    let start = jump.unwrap_or(function.start);
    thread_local_index(start, &elf.initial_bytes(start, CODE_BYTES)?)
}

fn isolate<S: Source>(elf: &Elf<S>, layout: &Layout) -> Option<Isolate> {
    if layout.has_isolate_key {
        return Some(Isolate::OfKey {
            key: elf.exported_variable(ISOLATE_KEY)?.start,
            is_created: elf.exported_variable(KEY_IS_CREATED)?.start,
        });
    }
    let is_program = elf.segments().iter().any(|part| part.kind == PT_INTERP);
    if !is_program {
        let index = elf.thread_local_index(CURRENT_ISOLATE);
        return index.or_else(|| index_in_code(elf)).map(Isolate::InModule);
    }
    let offset = elf.thread_local(CURRENT_ISOLATE)?;
    let storage = elf.segments().iter().find(|part| part.kind == PT_TLS)?;
    // A program's storage ends at the thread pointer (variant II of "ELF Handling For Thread-Local
    // Storage").
    let size = storage
        .memory_size
        .checked_next_multiple_of(storage.alignment.max(1))?;
    Some(Isolate::AtOffset(offset.wrapping_sub(size)))
}
