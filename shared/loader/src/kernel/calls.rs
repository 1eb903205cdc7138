//! Finds the functions that kernel functions call, from their instructions.

use libbpf_rs::ProgramInput;

use crate::error::Context;
use crate::{OpenObject, Result};

/// Returns the start of the function that returns to each of these kernel addresses; `None` if
/// there is no direct call before an address.
///
/// # Errors
/// The kernel refuses.
pub fn kernel_calls(returns: &[u64]) -> Result<Vec<Option<u64>>> {
    let object = OpenObject::new(&bpf::kernel_calls::OBJECT)?.load()?;
    let program = object.program(bpf::programs::READ_CALL)?;
    let called = |&address: &u64| {
        let mut arguments = address.to_ne_bytes();
        let input = ProgramInput {
            context_in: Some(&mut arguments),
            ..ProgramInput::default()
        };
        let output = program
            .test_run(input)
            .context("read a call of the kernel's")?;
        let distance = output.return_value.cast_signed();
        Ok((distance != 0).then(|| address.wrapping_add_signed(distance.into())))
    };
    returns.iter().map(called).collect()
}
