//! Procedure linkage tables. GNU ld writes call frame information for them; lld and mold do not.

use gimli::{EndianSlice, LittleEndian, Operation, Register};

use super::registers::{RETURN_ADDRESS, STACK_POINTER};
use crate::rule::{Rule, cfa};

/// Size and alignment of an entry, in bytes.
const ENTRY_SIZE: u64 = 16;

/// Rule of code that has just been called and has pushed nothing.
const CALLED: Rule = Rule::at(cfa::STACK_POINTER, 8);

/// Returns the rows of `.plt` at `address`. `code` is the beginning of the table. Returns `None` if
/// the table has an unknown form.
pub(crate) fn lazy_linkage_table(code: &[u8], address: u64) -> Option<Vec<(u64, Rule)>> {
    // The first entry pushes a word and jumps to the dynamic linker: push n(%rip); [bnd] jmp
    // *m(%rip) (System V ABI, figure 5.2).
    if !code.starts_with(&[0xff, 0x35]) {
        // The table of a static program lacks this entry. All of its entries jump and push nothing.
        return Some(vec![(address, CALLED)]);
    }
    let pushed_from = match *code.get(ENTRY_SIZE as usize..)? {
        // An entry: jmp *m(%rip); push $n; jmp to the first entry.
        [0xff, 0x25, _, _, _, _, 0x68, ..] => 11,
        // An entry: endbr64; push $n; jmp to the first entry.
        [0xf3, 0x0f, 0x1e, 0xfa, 0x68, ..] => 9,
        _ => return None,
    };
    if !address.is_multiple_of(ENTRY_SIZE) {
        return None;
    }
    Some(vec![
        (address, Rule::at(cfa::STACK_POINTER, 16)),
        (address.checked_add(6)?, Rule::at(cfa::STACK_POINTER, 24)),
        (
            address.checked_add(ENTRY_SIZE)?,
            Rule::at(cfa::PLT, pushed_from),
        ),
    ])
}

/// Returns the rows of a section at `address` whose entries only jump: `.plt.got`, `.plt.sec` or
/// `.iplt`.
pub(crate) fn direct_linkage_table(address: u64) -> Vec<(u64, Rule)> {
    vec![(address, CALLED)]
}

/// Returns the [`Rule::cfa_offset`] of a described table. Its CFA is `register` + `offset`,
/// followed by the operations `rest`. Returns `None` if the CFA is another expression.
///
/// GNU ld writes `rsp + 8 + (((rip + 0) & 15) >= n) << 3` (`elf_x86_64_eh_frame_lazy_plt` in
/// bfd/elf64-x86-64.c).
pub(crate) fn described_linkage_table(
    register: Register,
    offset: i64,
    rest: &[Operation<EndianSlice<'_, LittleEndian>>],
) -> Option<i32> {
    let [
        Operation::RegisterOffset {
            register: RETURN_ADDRESS,
            offset: 0,
            ..
        },
        Operation::UnsignedConstant { value: 15 },
        Operation::And,
        Operation::UnsignedConstant {
            value: from @ 0..=15,
        },
        Operation::Ge,
        Operation::UnsignedConstant { value: 3 },
        Operation::Shl,
        Operation::Plus,
    ] = *rest
    else {
        return None;
    };
    (register == STACK_POINTER && offset == 8).then_some(from as i32)
}

/// Returns the CFA in an entry of the table. The entry has pushed its number once the low four bits
/// of `ip` reach `pushed`.
pub(crate) fn cfa_in_linkage_table(sp: u64, ip: u64, pushed: u64) -> u64 {
    sp.wrapping_add(if ip & 15 >= pushed { 16 } else { 8 })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// First two entries of a table that lld writes, without and with `-z ibt`.
    const PLAIN: &[u8] = b"\xff\x35\x42\x2f\x00\x00\xff\x25\x44\x2f\x00\x00\x0f\x1f\x40\x00\
        \xff\x25\x42\x2f\x00\x00\x68\x00\x00\x00\x00\xe9\xe0\xff\xff\xff";
    const IBT: &[u8] = b"\xff\x35\x42\x2f\x00\x00\xff\x25\x44\x2f\x00\x00\x0f\x1f\x40\x00\
        \xf3\x0f\x1e\xfa\x68\x00\x00\x00\x00\xe9\xe2\xff\xff\xff\x66\x90";

    #[test]
    fn entries_push_before_they_jump_to_the_first() {
        let rows = lazy_linkage_table(PLAIN, 0x1020).unwrap();
        assert_eq!(rows[0], (0x1020, Rule::at(cfa::STACK_POINTER, 16)));
        assert_eq!(rows[1], (0x1026, Rule::at(cfa::STACK_POINTER, 24)));
        assert_eq!(rows[2], (0x1030, Rule::at(cfa::PLT, 11)));
        assert_eq!(
            lazy_linkage_table(IBT, 0x1020).unwrap()[2].1,
            Rule::at(cfa::PLT, 9)
        );
    }

    #[test]
    fn other_shapes_are_left_alone() {
        assert_eq!(lazy_linkage_table(b"\xff\x35", 0x1000), None);
        assert_eq!(
            lazy_linkage_table(&[PLAIN, PLAIN].concat()[..20], 0x1000),
            None
        );
        assert_eq!(lazy_linkage_table(PLAIN, 0x1028), None);
        let other = [&PLAIN[..16], &[0x90; 16]].concat();
        assert_eq!(lazy_linkage_table(&other, 0x1000), None);
    }
}
