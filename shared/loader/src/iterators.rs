//! Runs BPF task iterators and reads their output.

use std::io::Read;

use libbpf_rs::{Iter, ProgramMut};
use plain::Plain;

use crate::Result;
use crate::error::{Context, lossy};

/// Runs `program` once for each thread that the PID namespace of this process shows. Returns the
/// records that the program wrote.
pub fn run<T: Plain + Copy + Default>(program: &ProgramMut<'_>) -> Result<Vec<T>> {
    let name = lossy(program.name());
    let link = program
        .attach()
        .context(format!("attach iterator {name}"))?;
    let mut iterator = Iter::new(&link).context(format!("start iterator {name}"))?;
    let mut bytes = Vec::new();
    iterator
        .read_to_end(&mut bytes)
        .context(format!("read iterator {name}"))?;
    Ok(bytes
        .chunks_exact(size_of::<T>())
        .filter_map(|chunk| copy(chunk))
        .collect())
}

/// Runs `program`, which writes no records, once for each thread.
pub fn visit(program: &ProgramMut<'_>) -> Result<()> {
    run::<u8>(program).map(drop)
}

/// Copies the start of a value from `bytes`. The rest of the value is that of the default value.
pub fn copy_start<T: Plain + Copy + Default>(bytes: &[u8]) -> T {
    let mut value = T::default();
    // SAFETY: T is Plain, so any bytes are a valid value.
    let start = unsafe { plain::as_mut_bytes(&mut value) };
    let length = start.len().min(bytes.len());
    start[..length].copy_from_slice(&bytes[..length]);
    value
}

/// Copies a value from the start of `bytes`; `None` if there are too few bytes.
pub fn copy<T: Plain + Copy + Default>(bytes: &[u8]) -> Option<T> {
    let mut value = T::default();
    plain::copy_from_bytes(&mut value, bytes).ok()?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_whole_or_as_far_as_they_go() {
        let bytes = [1, 2, 0, 0, 9];
        assert_eq!(copy::<u32>(&bytes), Some(u32::from_ne_bytes([1, 2, 0, 0])));
        assert_eq!(copy::<u64>(&bytes), None);
        assert_eq!(copy_start::<u32>(&bytes[..1]).to_ne_bytes(), [1, 0, 0, 0]);
        assert_eq!(copy_start::<u32>(&bytes).to_ne_bytes(), [1, 2, 0, 0]);
    }
}
