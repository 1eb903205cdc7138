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

#[test]
fn a_new_thread_has_no_caller_and_who_started_it_has() {
    let space = space(&[
        (0, Rule::at(cfa::CLONED, 8)),
        (0x100, sp_plus(8)),
        (0x200, Rule::ROOT),
    ]);
    let from = |ip, result| {
        let mut start = registers(ip, 0x800, 0);
        start.general[0] = result;
        let mut memory = HashMap::from([(0x800, if ip == 0x10010 { 0x10205 } else { 0x10015 })]);
        let walk = walk(start, true, Mode::Auto, &space, &mut memory, 127);
        (walk.addresses, walk.end)
    };
    assert_eq!(from(0x10010, 0), (vec![0x10010], End::Root));
    assert_eq!(from(0x10010, 77), (vec![0x10010, 0x10205], End::Root));
    // Beyond the leaf nobody knows which of both it is.
    assert_eq!(from(0x10110, 0), (vec![0x10110, 0x10015], End::NoRule));
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
    for kind in [cfa::CLONED + 1, cfa::HANDED_OVER] {
        assert_eq!(step(rule(kind, 16)), Err(End::NoRule));
    }
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
