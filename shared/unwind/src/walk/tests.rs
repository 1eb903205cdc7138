use std::collections::HashMap;

use super::*;
use crate::table::Page;

/// Address space with one page of code at 0x10000. Addresses from 0x20000 to 0x40000 are code
/// without a table.
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
    // The call returns to 0x200, where another function begins.
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
fn a_stub_is_read_to_its_return_and_not_walked_by_frame_pointer() {
    let space = space(&[(0, sp_plus(8)), (0x100, Rule::ROOT)]);
    // At 0x30000: add $8, %rsp; pop %rbp; ret
    let code = u64::from_le_bytes(*b"\x48\x83\xc4\x08\x5d\xc3\x90\x90");
    let code = [(0x30000, code), (0x30008, 0)];
    let stack = [(0x800, 0x30000), (0x810, 0x900), (0x818, 0x10108)];
    let mut memory = code.into_iter().chain(stack).collect::<HashMap<_, _>>();
    // This frame pointer leads to a wrong place.
    memory.extend([(0x880, 0), (0x888, 0x10010)]);
    let start = registers(0x10010, 0x800, 0x880);
    let found = walk(start, true, Mode::Tables, &space, &mut memory, 127);
    assert_eq!(found.addresses, [0x10010, 0x30000, 0x10108]);
    assert_eq!(found.cfas, [0x808, 0x820]);
    assert_eq!((found.end, found.by_frame_pointer), (End::Root, false));
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
    // The unwind searches the table one byte before each address.
    assert_eq!(walk.addresses, [0x10010, 0x10101, 0x10201]);
    assert_eq!(walk.end, End::Root);
}

/// Makes a step by a rule from these values of instruction pointer, stack pointer and frame
/// pointer. Returns the new values.
fn stepped(rule: Rule, from: [u64; 3], memory: &[(u64, u64)]) -> Result<[u64; 3], End> {
    let [ip, sp, bp] = from;
    let mut stepper = Stepper {
        ip,
        sp,
        bp,
        leaf: Some(registers(ip, sp, bp).general),
        link: None,
        ip_is_exact: true,
        by_frame_pointer: false,
        mode: Mode::Auto,
        memory: &mut memory.iter().copied().collect::<HashMap<_, _>>(),
    };
    stepper.step(rule)?;
    Ok([stepper.ip, stepper.sp, stepper.bp])
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
fn the_link_register_leads_to_the_caller_of_a_leaf_alone() {
    let mut stepper = Stepper {
        ip: 0x10000,
        sp: 0x800,
        bp: 0x100,
        leaf: Some(registers(0x10000, 0x800, 0x100).general),
        link: Some(0x10200),
        ip_is_exact: true,
        by_frame_pointer: false,
        mode: Mode::Auto,
        memory: &mut HashMap::from([(0x7f8, 9)]),
    };
    let mut step = |offset| {
        let stepped = stepper.step(Rule::at(cfa::LINK_REGISTER, offset));
        stepped.map(|()| [stepper.ip, stepper.sp, stepper.bp])
    };
    // The function did not change the stack. Its call has overwritten the link register.
    assert_eq!(step(0), Ok([0x10200, 0x800, 0x100]));
    assert_eq!(step(0), Err(End::NoRule));
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
    // The outermost frame pointer is 0.
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
