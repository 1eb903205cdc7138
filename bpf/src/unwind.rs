//! The structs of `include/unwind_tables.h` and `include/stack_copy.h`, in Rust.

use plain::Plain;

use crate::offcputime::types as c;
use crate::types::UserRegisters;

/// Rules there is room for, `UNWIND_RULES`.
pub const MOST_RULES: usize = 1 << 16;
/// Rows in a shard, `SHARD_ROWS`.
pub const SHARD_ROWS: usize = 1 << 18;
/// Shards there is room for, `UNWIND_SHARDS`.
pub const MOST_SHARDS: u16 = 1024;
/// The most of a stack that a copy has, in bytes: `STACK_COPY_BYTES`.
pub const STACK_COPY_BYTES: usize = 7 * 4096;

/// By tables, and by frame pointers where there is none.
pub const CALL_GRAPH_AUTO: u32 = 0;
/// By frame pointers.
pub const CALL_GRAPH_FP: u32 = 1;
/// By tables only.
pub const CALL_GRAPH_DWARF: u32 = 2;

/// `enum walk_end`: at the thread's first function.
pub const WALK_REACHED_ROOT: u32 = 1;
/// An address in no known mapping.
pub const WALK_NO_MAPPING: u32 = 2;
/// The stack could not be read.
pub const WALK_READ_FAILED: u32 = 3;
/// More frames than are kept.
pub const WALK_TOO_DEEP: u32 = 4;
/// Code without a rule, and no frame pointer to follow.
pub const WALK_NO_RULE: u32 = 5;
/// Walked by the kernel's helper, which does not say.
pub const WALK_NOT_KNOWN: u32 = 6;
/// Added to one of the others: a frame was found by its frame pointer.
pub const WALK_BY_FRAME_POINTER: u32 = 0x100;

/// `struct unwind_page`: where the rows of 64 KiB of addresses are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnwindPage {
    /// Which shard they are in.
    pub shard: u16,
    /// How many.
    pub count: u16,
    /// Index of the first in it.
    pub first: u32,
}

/// `struct unwind_mapping`: an executable mapping of a process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnwindMapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// What to subtract from an address to get one in the file's pages.
    pub bias: u64,
    /// The file's first page.
    pub first_page: u32,
    /// Its number of pages; 0 if it has no table.
    pub page_count: u32,
}

/// `struct unwind_process`: where a process's mappings are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnwindProcess {
    /// Which program image they are those of.
    pub instance: u64,
    /// Index of the first, below their number << 32.
    pub mappings: u64,
    /// Pages of code mapped when they were last used; 0 while not yet known.
    pub code_pages: u64,
    /// No two mappings that were ever put in force have the same.
    pub generation: u64,
}

impl UnwindProcess {
    /// `count` mappings from index `first` on.
    pub fn new(instance: u64, first: u32, count: u32, generation: u64) -> UnwindProcess {
        UnwindProcess {
            instance,
            mappings: u64::from(count) << 32 | u64::from(first),
            code_pages: 0,
            generation,
        }
    }
}

/// `struct copy_budget`: how many copies of stacks a process may cause.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyBudget {
    /// Which program image it is for.
    pub instance: u64,
    /// How many more.
    pub left: i32,
    unused: u32,
}

impl CopyBudget {
    /// A full budget, `COPIES_OF_A_PROCESS`.
    pub fn new(instance: u64) -> CopyBudget {
        CopyBudget {
            instance,
            left: 16,
            unused: 0,
        }
    }

    /// Where in `copy_budgets` that of `instance` is.
    pub fn index(instance: u64) -> u32 {
        const BUDGETS: u64 = 4096;
        (instance % BUDGETS) as u32
    }
}

/// `struct stack_copy`, without the stack, which follows: `bytes` of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct StackCopy {
    /// [`crate::types::EVENT_STACK_COPY`].
    pub kind: u32,
    /// The process.
    pub pid: u32,
    /// The stack's ID.
    pub hash: u64,
    /// Which program image of the process it is of.
    pub instance: u64,
    /// What a walk starts from; the stack pointer is where the stack begins.
    pub registers: UserRegisters,
    /// Whether the leaf is a program counter (1) or a return address (0).
    pub leaf_is_exact: u32,
    /// How many bytes of the stack follow.
    pub bytes: u32,
}

/// `struct code_changed`: a process's mappings are to be read again.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeChanged {
    /// [`crate::types::EVENT_CODE_CHANGED`].
    pub kind: u32,
    /// The process.
    pub pid: u32,
    /// Which program image it runs.
    pub instance: u64,
}

// SAFETY: each is repr(C), made of integers only, and any bytes are a value.
unsafe impl Plain for UnwindPage {}
// SAFETY: as above.
unsafe impl Plain for UnwindMapping {}
// SAFETY: as above.
unsafe impl Plain for UnwindProcess {}
// SAFETY: as above.
unsafe impl Plain for CopyBudget {}
// SAFETY: as above.
unsafe impl Plain for StackCopy {}
// SAFETY: as above.
unsafe impl Plain for CodeChanged {}

const _: () = {
    assert!(size_of::<UnwindPage>() == size_of::<c::unwind_page>());
    assert!(size_of::<UnwindMapping>() == size_of::<c::unwind_mapping>());
    assert!(size_of::<CopyBudget>() == size_of::<c::copy_budget>());
    assert!(size_of::<UnwindProcess>() == size_of::<c::unwind_process>());
    assert!(size_of::<StackCopy>() + STACK_COPY_BYTES == size_of::<c::stack_copy>());
    assert!(size_of::<c::unwind_rule>() == 8);
};
