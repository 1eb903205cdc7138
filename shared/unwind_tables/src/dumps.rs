//! Dumps of stacks, which wait until tables can unwind them.

use std::time::{Duration, Instant};

use bpf::types::{STACK_DUMP_BYTES, StackDump, StackOwner, UserRegisters};
use process::Process;
use process::ProcessMemory;
use unwind::{Memory, Registers};

use super::interpreted_frames::InterpretedFrames;
use super::thread_memory::ThreadMemory;

/// Capacity for waiting dumps, in bytes.
const MAX_BYTES: usize = 8 << 20;
/// Maximum time that a dump waits for tables. After that, it is unwound with the tables that exist.
const PATIENCE: Duration = Duration::from_secs(5);

/// Dump of a stack, with the registers from which the unwind starts.
pub struct Dumped {
    /// ID of the stack.
    pub id: u64,
    /// Process whose code the stack runs. If the owner is a fork that is not known yet, this is the
    /// parent.
    pub process: Process,
    /// Process and thread of the stack, as programs identify them.
    pub owner: StackOwner,
    /// User registers of the thread.
    pub registers: Registers,
    /// True if the instruction pointer is at the interrupted instruction, and is no return address.
    pub leaf_is_exact: bool,
    /// Bytes of the stack, from the stack pointer on.
    pub stack: DumpedStack,
    /// Frames of a runtime, if user space read the thread's memory.
    pub interpreted: Option<InterpretedFrames>,
    since: Instant,
}

/// Copy of the memory from the stack pointer on.
pub struct DumpedStack {
    pid: u32,
    start: u64,
    bytes: Box<[u8]>,
}

impl Memory for DumpedStack {
    fn word(&mut self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(offset..offset.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Reads code from the process while the dump is unwound. Code changes less often than stacks
    /// do.
    fn code(&mut self, address: u64) -> Option<u128> {
        let bytes = ProcessMemory::new(self.pid).bytes(address, 16);
        Some(u128::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl Dumped {
    /// Makes a dump from a program's message.
    pub fn from_event(event: &StackDump, stack: &[u8]) -> Dumped {
        Dumped {
            id: event.hash,
            process: Process {
                pid: event.pid,
                instance: event.instance,
            },
            owner: event.owner,
            registers: registers(&event.registers),
            leaf_is_exact: event.leaf_is_exact != 0,
            stack: DumpedStack {
                pid: event.owner.pid,
                start: registers(&event.registers).stack_pointer(),
                bytes: stack.into(),
            },
            interpreted: None,
            since: Instant::now(),
        }
    }

    /// Reads a dump of a thread from its process. The thread must be off the CPU.
    pub fn read(
        id: u64,
        owner: StackOwner,
        registers: Registers,
        leaf_is_exact: bool,
        interpreted: Option<InterpretedFrames>,
        memory: &ThreadMemory<'_>,
    ) -> Dumped {
        let start = registers.stack_pointer();
        Dumped {
            id,
            process: process_of(&owner),
            owner,
            registers,
            leaf_is_exact,
            stack: DumpedStack {
                pid: owner.pid,
                start,
                bytes: memory.bytes(start, STACK_DUMP_BYTES).into(),
            },
            interpreted,
            since: Instant::now(),
        }
    }
}

/// Returns the process that owns a stack.
pub fn process_of(owner: &StackOwner) -> Process {
    Process {
        pid: owner.pid,
        instance: owner.instance,
    }
}

/// Converts registers that a program sent.
pub fn registers(sent: &UserRegisters) -> Registers {
    Registers {
        instruction_pointer: sent.ip,
        general: sent.general,
    }
}

/// Dumps that wait for tables.
#[derive(Default)]
pub(crate) struct Dumps {
    waiting: Vec<Dumped>,
    bytes: usize,
}

impl Dumps {
    /// Adds a dump. Returns the dump if the capacity is used up.
    pub(crate) fn add(&mut self, dumped: Dumped) -> Option<Dumped> {
        let size = dumped.stack.bytes.len();
        if self.bytes + size > MAX_BYTES {
            return Some(dumped);
        }
        self.bytes += size;
        self.waiting.push(dumped);
        None
    }

    /// Removes and returns the dumps of processes that are `ready`, and dumps older than
    /// [`PATIENCE`].
    pub(crate) fn take(&mut self, ready: impl Fn(Process) -> bool) -> Vec<Dumped> {
        let (taken, waiting): (Vec<Dumped>, _) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|dumped| ready(dumped.process) || dumped.since.elapsed() >= PATIENCE);
        self.waiting = waiting;
        self.bytes -= taken
            .iter()
            .map(|dumped| dumped.stack.bytes.len())
            .sum::<usize>();
        taken
    }

    /// Returns whether `is_sought` is true for a waiting dump.
    pub(crate) fn any(&self, is_sought: impl Fn(&Dumped) -> bool) -> bool {
        self.waiting.iter().any(is_sought)
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_of_the_stack_that_a_program_sent() {
        let mut event = StackDump::default();
        event.registers.ip = 3;
        event.registers.general[6] = 5;
        event.registers.general[7] = 0x1000;
        let mut dumped = Dumped::from_event(&event, &[[1; 8], [2; 8]].concat());
        let registers = dumped.registers;
        assert_eq!(registers.instruction_pointer, 3);
        assert_eq!(registers.general, event.registers.general);
        let words = [0xff8, 0x1000, 0x1008, 0x1010].map(|address| dumped.stack.word(address));
        let [first, second] = [[1; 8], [2; 8]].map(u64::from_ne_bytes);
        assert_eq!(words, [None, Some(first), Some(second), None]);
    }
}
