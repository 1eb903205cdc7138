//! Addresses in the code of a file's functions, which lead to variables that the file does not
//! export.

/// Opcode of `jmp rel32`.
const JUMP: u8 = 0xe9;

/// Returns `address` plus a distance that code has as 4 bytes.
pub(crate) fn relative(address: u64, distance: &[u8]) -> Option<u64> {
    let distance = i32::from_le_bytes(*distance.first_chunk()?);
    Some(address.wrapping_add_signed(distance.into()))
}

/// Returns the target of the `jmp rel32` at offset `at` of the code at `address`.
pub(crate) fn jump_at(address: u64, code: &[u8], at: usize) -> Option<u64> {
    let (&opcode, distance) = code.get(at..)?.split_first()?;
    let end = address.wrapping_add(at as u64 + 5);
    (opcode == JUMP).then(|| relative(end, distance))?
}

/// Returns the address of the `tls_index` of the thread-local variable that code reads first:
/// `data16 lea X(%rip),%rdi`, with which the general dynamic model begins ("ELF Handling For
/// Thread-Local Storage", 4.4.1). The loader fills in the number of the module and the offset.
pub(crate) fn thread_local_index(address: u64, code: &[u8]) -> Option<u64> {
    const LEA: [u8; 4] = [0x66, 0x48, 0x8d, 0x3d];
    (0..code.len()).find_map(|at| {
        let distance = code[at..].strip_prefix(&LEA)?;
        relative(address.wrapping_add(at as u64 + 8), distance)
    })
}
