//! Finds the functions that kernel code calls, from the instructions of that code.

use libbpf_rs::ProgramInput;

use crate::error::Context;
use crate::{OpenObject, Result};

/// Returns, for each kernel address, the start of the function that the call before this address
/// calls; `None` if no direct call is before the address.
///
/// # Errors
/// The kernel does not load or run the program.
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
