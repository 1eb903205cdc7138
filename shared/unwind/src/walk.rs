//! The walk along a user stack, as `bpf/include/stacks/unwind.h` does it: by tables
//! where there are any, by frame pointers through code that has none.

pub(crate) mod frame_pointers;
pub(crate) mod memory;
pub(crate) mod registers;

use crate::{Memory, Registers, Rule, Table, cfa, frame_pointer};

/// Where the return address is, from the canonical frame address (System V
/// ABI for x86-64, section 3.2.2).
const RETURN_ADDRESS_AT_CFA: u64 = 0u64.wrapping_sub(8);

/// `struct sigcontext_64` of arch/x86/include/uapi/asm/sigcontext.h: where a
/// signal frame holds rbp, rsp and rip.
const SIGNAL_FRAME_BP: u64 = 80;
const SIGNAL_FRAME_SP: u64 = 120;
const SIGNAL_FRAME_IP: u64 = 128;

/// What a process has at an address.
#[derive(Clone, Copy, Debug)]
pub enum Code<'a> {
    /// Nothing that is known to be executable.
    Unmapped,
    /// Code without a table, such as a JIT compiler's.
    Bare,
    /// Code of a file.
    Table {
        /// The file's table.
        table: &'a Table,
        /// The address in the file's own terms.
        address: u64,
    },
}

/// The code of a process.
pub trait AddressSpace {
    /// What is at `address`.
    fn code(&self, address: u64) -> Code<'_>;
}

/// What may be used to get from one frame to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Tables, and frame pointers where there is none.
    Auto,
    /// Tables only.
    Tables,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// At the first function of the thread.
    Root,
    /// An address is in no mapping that is known.
    NoMapping,
    /// The stack could not be read.
    ReadFailed,
    /// There are more frames than asked for.
    TooDeep,
    /// Code without a rule, and with no frame pointer to follow.
    NoRule,
}

/// The frames that a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// From the leaf (see `leaf_is_exact` of [`walk`]) to the root. Each after
    /// the leaf is a return address: the call is before it.
    pub addresses: Vec<u64>,
    /// Why it ended.
    pub end: End,
    /// Whether a frame was found by its frame pointer.
    pub by_frame_pointer: bool,
}

/// Walks from `registers` to the thread's first function, `depth` frames at
/// most. `leaf_is_exact` says that the program counter is where the code was
/// interrupted, and not where it will go on after a system call.
pub fn walk(
    registers: Registers,
    leaf_is_exact: bool,
    mode: Mode,
    space: &impl AddressSpace,
    memory: &mut impl Memory,
    depth: usize,
) -> Walk {
    let mut stepper = Stepper {
        ip: registers.instruction_pointer,
        sp: registers.stack_pointer(),
        bp: registers.frame_pointer(),
        leaf: Some(registers.general),
        ip_is_exact: leaf_is_exact,
        by_frame_pointer: false,
        mode,
        memory,
    };
    let mut addresses = Vec::new();
    let end = loop {
        if stepper.ip == 0 {
            break End::Root;
        }
        if addresses.len() >= depth {
            break End::TooDeep;
        }
        let exact = stepper.ip_is_exact;
        let leaf = addresses.is_empty();
        // Frames are return addresses: what looks them up subtracts one.
        addresses.push(stepper.ip.wrapping_add(u64::from(exact && !leaf)));
        // A call may be the last instruction of its function.
        let address = stepper.ip.wrapping_sub(u64::from(!exact));
        let rule = match space.code(address) {
            Code::Unmapped => break End::NoMapping,
            Code::Bare => Rule::NONE,
            Code::Table { table, address } => table.rule(address),
        };
        stepper.ip_is_exact = false;
        if let Err(end) = stepper.step(rule) {
            break end;
        }
        stepper.leaf = None;
        if let (true, false, Some(last)) = (stepper.ip_is_exact, leaf, addresses.last_mut()) {
            // The trampoline was not called: it has no call before it.
            *last = address.wrapping_add(2);
        }
    };
    Walk {
        addresses,
        end,
        by_frame_pointer: stepper.by_frame_pointer,
    }
}

struct Stepper<'a, M> {
    ip: u64,
    sp: u64,
    bp: u64,
    /// All registers by DWARF number, known at the leaf only.
    leaf: Option<[u64; 16]>,
    ip_is_exact: bool,
    by_frame_pointer: bool,
    mode: Mode,
    memory: &'a mut M,
}

impl<M: Memory> Stepper<'_, M> {
    fn word(&mut self, address: u64) -> Result<u64, End> {
        self.memory.word(address).ok_or(End::ReadFailed)
    }

    /// The register that a rule names, at a leaf.
    fn register(&self, cfa: u8) -> Result<u64, End> {
        let number = usize::from(cfa % 16);
        self.leaf.map(|leaf| leaf[number]).ok_or(End::NoRule)
    }

    /// From one frame to its caller's.
    fn step(&mut self, rule: Rule) -> Result<(), End> {
        let offset = i64::from(rule.cfa_offset) as u64;
        // The two numbers of the rules with a word read from memory.
        let word_offset = i64::from(rule.cfa_offset as i16) as u64;
        let addend = i64::from(rule.cfa_offset >> 16) as u64;
        let mut return_address = None;
        let cfa = match rule.cfa {
            cfa::NONE => return self.step_by_frame_pointer(),
            cfa::ROOT => return Err(End::Root),
            cfa::SIGNAL_FRAME => return self.leave_signal_frame(self.sp.wrapping_add(offset)),
            cfa::STACK_POINTER => self.sp.wrapping_add(offset),
            cfa::FRAME_POINTER | cfa::SWITCHED_STACK => self.bp.wrapping_add(offset),
            cfa::PLT => {
                let pushed = self.ip & 15 >= offset;
                self.sp.wrapping_add(if pushed { 16 } else { 8 })
            }
            cfa::WORD_AT_STACK_POINTER => {
                let word = self.word(self.sp.wrapping_add(word_offset))?;
                word.wrapping_add(addend)
            }
            cfa::WORD_AT_FRAME_POINTER => {
                let word = self.word(self.bp.wrapping_add(word_offset))?;
                word.wrapping_add(addend)
            }
            cfa::REGISTER..cfa::RETURN_IN_REGISTER => self.register(rule.cfa)?.wrapping_add(offset),
            cfa::RETURN_IN_REGISTER.. => {
                return_address = Some(self.register(rule.cfa)?);
                self.sp.wrapping_add(offset)
            }
            _ => return Err(End::NoRule),
        };
        // Frames lie ever higher; what turns back is broken or forged.
        if rule.cfa == cfa::SWITCHED_STACK {
            self.sp = 0;
        }
        if cfa < self.sp || (cfa == self.sp && return_address.is_none()) {
            return Err(End::NoRule);
        }
        let ip = match return_address {
            Some(address) => address,
            None => self.word(cfa.wrapping_add(RETURN_ADDRESS_AT_CFA))?,
        };
        let base = match rule.frame_pointer {
            frame_pointer::AT_FRAME_POINTER => self.bp,
            _ => cfa,
        };
        let saved = base.wrapping_add(i64::from(rule.frame_pointer_offset) as u64);
        self.bp = match rule.frame_pointer {
            // No frame is there: what needs it will say so.
            frame_pointer::LOST => 1,
            // What is below the stack pointer was popped again.
            frame_pointer::SAME => self.bp,
            _ if saved < self.sp => self.bp,
            _ => self.word(saved)?,
        };
        self.ip = ip;
        self.sp = cfa;
        Ok(())
    }

    /// Through code without a rule: the frame pointer's caller, then its own.
    fn step_by_frame_pointer(&mut self) -> Result<(), End> {
        if self.mode == Mode::Tables {
            return Err(End::NoRule);
        }
        // Where a compiler keeps frame pointers, the outermost one is 0.
        if self.bp == 0 && self.by_frame_pointer {
            return Err(End::Root);
        }
        self.by_frame_pointer = true;
        if self.bp < self.sp || !self.bp.is_multiple_of(8) {
            return Err(End::NoRule);
        }
        let caller = self.memory.word(self.bp).ok_or(End::NoRule)?;
        let address = self.memory.word(self.bp.wrapping_add(8));
        self.ip = address.ok_or(End::NoRule)?;
        self.sp = self.bp.wrapping_add(16);
        self.bp = caller;
        Ok(())
    }

    fn leave_signal_frame(&mut self, registers: u64) -> Result<(), End> {
        let ip = self.word(registers.wrapping_add(SIGNAL_FRAME_IP))?;
        let sp = self.word(registers.wrapping_add(SIGNAL_FRAME_SP))?;
        let bp = self.word(registers.wrapping_add(SIGNAL_FRAME_BP))?;
        (self.ip, self.sp, self.bp) = (ip, sp, bp);
        self.ip_is_exact = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::Page;

    /// One page of code at 0x10000, the rest of the addresses below 0x40000
    /// being code without a table.
    struct Space(Table);

    impl AddressSpace for Space {
        fn code(&self, address: u64) -> Code<'_> {
            match address {
                0x10000..0x20000 => Code::Table {
                    table: &self.0,
                    address,
                },
                0x20000..0x40000 => Code::Bare,
                _ => Code::Unmapped,
            }
        }
    }

    fn space(rules: &[(u64, Rule)]) -> Space {
        let rows = rules.iter().enumerate();
        Space(Table {
            base: 0x10000,
            pages: vec![Page {
                first: 0,
                count: rules.len() as u32,
            }],
            rows: rows
                .map(|(index, (address, _))| (*address as u32) << 16 | index as u32)
                .collect(),
            rules: rules.iter().map(|(_, rule)| *rule).collect(),
        })
    }

    fn registers(ip: u64, sp: u64, bp: u64) -> Registers {
        Registers::new(ip, sp, bp)
    }

    fn sp_plus(offset: i32) -> Rule {
        Rule::at(cfa::STACK_POINTER, offset)
    }

    #[test]
    fn goes_by_tables_to_the_root() {
        let pushed = Rule {
            frame_pointer: frame_pointer::AT_CFA,
            frame_pointer_offset: -16,
            ..sp_plus(16)
        };
        let space = space(&[(0, sp_plus(8)), (0x100, pushed), (0x200, Rule::ROOT)]);
        let mut memory = HashMap::from([(0x800, 0x10180), (0x808, 0), (0x810, 0x10200 + 5)]);
        let walk = walk(
            registers(0x10010, 0x800, 7),
            true,
            Mode::Tables,
            &space,
            &mut memory,
            127,
        );
        assert_eq!(walk.addresses, [0x10010, 0x10180, 0x10205]);
        assert_eq!((walk.end, walk.by_frame_pointer), (End::Root, false));
    }

    #[test]
    fn a_call_at_the_end_of_a_function_belongs_to_it() {
        let space = space(&[(0, sp_plus(8)), (0x100, sp_plus(16)), (0x200, Rule::ROOT)]);
        // Returns to 0x200, where another function begins.
        let mut memory = HashMap::from([(0x800, 0x10200), (0x808, 1), (0x810, 0)]);
        let walk = walk(
            registers(0x10100, 0x800, 0),
            false,
            Mode::Tables,
            &space,
            &mut memory,
            127,
        );
        assert_eq!(walk.addresses, [0x10100, 0x10200]);
        assert_eq!(walk.end, End::Root);
    }

    #[test]
    fn goes_by_frame_pointer_through_code_without_a_table() {
        let space = space(&[(0, sp_plus(8)), (0x100, Rule::ROOT)]);
        let mut memory = HashMap::from([(0x800, 0x30000), (0x900, 0), (0x908, 0x10108)]);
        let start = registers(0x10010, 0x800, 0x900);
        let found = walk(start, true, Mode::Auto, &space, &mut memory, 127);
        assert_eq!(found.addresses, [0x10010, 0x30000, 0x10108]);
        assert_eq!((found.end, found.by_frame_pointer), (End::Root, true));
        let found = walk(start, true, Mode::Tables, &space, &mut memory, 127);
        assert_eq!(found.addresses, [0x10010, 0x30000]);
        assert_eq!((found.end, found.by_frame_pointer), (End::NoRule, false));
    }

    #[test]
    fn an_interrupted_function_under_a_signal_frame_is_exact() {
        let signal = Rule::at(cfa::SIGNAL_FRAME, 40);
        let space = space(&[(0, sp_plus(8)), (0x0ff, signal), (0x200, Rule::ROOT)]);
        let mut memory = HashMap::from([
            (0x800, 0x10100),
            (0x808 + 40 + 80, 0),
            (0x808 + 40 + 120, 0x700),
            (0x808 + 40 + 128, 0x10200),
        ]);
        let start = registers(0x10010, 0x800, 0);
        let walk = walk(start, true, Mode::Auto, &space, &mut memory, 127);
        // Less one, both are where they should be looked up.
        assert_eq!(walk.addresses, [0x10010, 0x10101, 0x10201]);
        assert_eq!(walk.end, End::Root);
    }

    #[test]
    fn a_leaf_may_need_any_register() {
        let in_register = Rule::at(cfa::RETURN_IN_REGISTER + 5, 0);
        let from_register = Rule::at(cfa::REGISTER + 10, 0);
        let space = space(&[
            (0, in_register),
            (0x100, from_register),
            (0x200, Rule::ROOT),
        ]);
        let end = |ip, number: usize, value| {
            let mut start = registers(ip, 0x800, 0);
            start.general[number] = value;
            let mut memory = HashMap::from([(0x8f8, 0x10205)]);
            walk(start, true, Mode::Auto, &space, &mut memory, 127)
        };
        assert_eq!(end(0x10010, 5, 0x10205).addresses, [0x10010, 0x10205]);
        assert_eq!(end(0x10110, 10, 0x900).addresses, [0x10110, 0x10205]);
        // Beyond the leaf they are not known.
        assert_eq!(end(0x10110, 10, 0x700).end, End::NoRule);
        assert_eq!(end(0x10010, 5, 0x10015).end, End::NoRule);
    }

    /// Where a rule leads from an instruction pointer, a stack pointer and a frame
    /// pointer: to such.
    fn stepped(rule: Rule, from: [u64; 3], memory: &[(u64, u64)]) -> Result<[u64; 3], End> {
        let [ip, sp, bp] = from;
        let mut stepper = Stepper {
            ip,
            sp,
            bp,
            leaf: Some(registers(ip, sp, bp).general),
            ip_is_exact: true,
            by_frame_pointer: false,
            mode: Mode::Auto,
            memory: &mut memory.iter().copied().collect::<HashMap<_, _>>(),
        };
        stepper.step(rule)?;
        Ok([stepper.ip, stepper.sp, stepper.bp])
    }

    #[test]
    fn frames_are_by_the_pointers_or_a_word_at_them() {
        let rule = |kind, offset| Rule::at(kind, offset);
        let memory = [(0x810, 0x900), (0x8f8, 0x940), (0x908, 7), (0x948, 8)];
        let step = |rule| stepped(rule, [0x10000, 0x800, 0x900], &memory);
        assert_eq!(step(rule(cfa::FRAME_POINTER, 16)), Ok([7, 0x910, 0x900]));
        let halves = Rule::with_halves(16, 16);
        let word = rule(cfa::WORD_AT_STACK_POINTER, halves);
        assert_eq!(step(word), Ok([7, 0x910, 0x900]));
        let word = rule(cfa::WORD_AT_FRAME_POINTER, Rule::with_halves(-8, 16));
        assert_eq!(step(word), Ok([8, 0x950, 0x900]));
        let word = rule(cfa::WORD_AT_FRAME_POINTER, Rule::with_halves(-8, -56));
        assert_eq!(step(word), Err(End::ReadFailed));
        assert_eq!(step(rule(cfa::SWITCHED_STACK + 1, 16)), Err(End::NoRule));
    }

    #[test]
    fn frames_lie_ever_higher_but_where_the_stack_is_switched() {
        let memory = [(0x108, 7), (0x7f8, 8), (0x800, 9)];
        let step = |rule| stepped(rule, [0x10000, 0x800, 0x100], &memory);
        let lower = |kind| step(Rule::at(kind, 16));
        assert_eq!(lower(cfa::FRAME_POINTER), Err(End::NoRule));
        assert_eq!(lower(cfa::SWITCHED_STACK), Ok([7, 0x110, 0x100]));
        let by = |kind, offset| step(Rule::at(kind, offset));
        assert_eq!(by(cfa::STACK_POINTER, 8), Ok([9, 0x808, 0x100]));
        assert_eq!(by(cfa::STACK_POINTER, 0), Err(End::NoRule));
        let in_register = cfa::RETURN_IN_REGISTER + 6;
        assert_eq!(by(in_register, 0), Ok([0x100, 0x800, 0x100]));
        assert_eq!(by(in_register, -8), Err(End::NoRule));
    }

    #[test]
    fn entries_of_linkage_tables_have_pushed_or_not() {
        let memory = [(0x800, 7), (0x808, 8)];
        let step = |ip| stepped(Rule::at(cfa::PLT, 11), [ip, 0x800, 0], &memory);
        assert_eq!(step(0x1003a), Ok([7, 0x808, 0]));
        assert_eq!(step(0x1003b), Ok([8, 0x810, 0]));
    }

    #[test]
    fn frame_pointers_are_kept_saved_or_lost() {
        let memory = [(0x7f8, 1), (0x800, 2), (0x808, 7), (0x900, 3), (0x8f8, 4)];
        let saved = |kind, offset| {
            let rule = Rule {
                frame_pointer: kind,
                frame_pointer_offset: offset,
                ..sp_plus(16)
            };
            let [_, _, bp] = stepped(rule, [0x10000, 0x800, 0x900], &memory)?;
            Ok(bp)
        };
        assert_eq!(saved(frame_pointer::SAME, 0), Ok(0x900));
        assert_eq!(saved(frame_pointer::LOST, 0), Ok(1));
        assert_eq!(saved(frame_pointer::AT_CFA, -16), Ok(2));
        assert_eq!(saved(frame_pointer::AT_CFA, -24), Ok(0x900));
        assert_eq!(saved(frame_pointer::AT_CFA, 0), Err(End::ReadFailed));
        assert_eq!(saved(frame_pointer::AT_FRAME_POINTER, 0), Ok(3));
        assert_eq!(saved(frame_pointer::AT_FRAME_POINTER, -8), Ok(4));
    }

    #[test]
    fn frame_pointers_lead_up_the_stack_or_nowhere() {
        let memory = [
            (0x800, 0x900),
            (0x808, 7),
            (0x804, 1),
            (0x80c, 2),
            (0x7f8, 1),
        ];
        let step = |bp| stepped(Rule::NONE, [0x30000, 0x800, bp], &memory);
        assert_eq!(step(0x800), Ok([7, 0x810, 0x900]));
        for nowhere in [0, 0x7f8, 0x804, 0x900] {
            assert_eq!(step(nowhere), Err(End::NoRule), "{nowhere:#x}");
        }
        // The outermost one is 0.
        let mut memory = HashMap::from([(0x800, 0), (0x808, 0x30100)]);
        let start = registers(0x30000, 0x800, 0x800);
        let walk = walk(start, true, Mode::Auto, &space(&[]), &mut memory, 127);
        assert_eq!(walk.addresses, [0x30000, 0x30100]);
        assert_eq!(walk.end, End::Root);
    }

    #[test]
    fn says_why_it_ended() {
        let space = space(&[(0, sp_plus(8))]);
        let start = registers(0x10010, 0x800, 0x100);
        let end = |memory: &[(u64, u64)], depth| {
            let mut memory = memory.iter().copied().collect::<HashMap<_, _>>();
            walk(start, true, Mode::Auto, &space, &mut memory, depth).end
        };
        assert_eq!(end(&[], 127), End::ReadFailed);
        assert_eq!(end(&[(0x800, 0x90000)], 127), End::NoMapping);
        assert_eq!(end(&[(0x800, 0)], 127), End::Root);
        assert_eq!(end(&[(0x800, 0x10010)], 1), End::TooDeep);
        assert_eq!(end(&[(0x800, 0x30000)], 127), End::NoRule);
    }
}
