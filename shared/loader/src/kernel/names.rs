//! Asks the kernel for the names of kernel addresses.

use libbpf_rs::{MapCore, MapFlags, ProgramInput, set_print};

use crate::error::Context;
use crate::{OpenObject, Result};

/// Returns the kernel's name of each address, as `name+offset/size [module]`, or the address if it
/// has no name.
///
/// # Errors
/// The kernel is older than 5.13, or does not load or run the program.
pub fn kernel_names(addresses: &[u64]) -> Result<Vec<String>> {
    // Kernels before 5.13 refuse the object. Without this, libbpf would print a long message.
    let printed = set_print(None);
    let object = OpenObject::new(&bpf::kernel_names::OBJECT).and_then(OpenObject::load);
    set_print(printed);
    let object = object?;
    let program = object.program(bpf::programs::NAME_ADDRESS)?;
    let map = object.map(bpf::maps::KERNEL_NAME)?;
    let name = |address: &u64| {
        let mut arguments = address.to_ne_bytes();
        let input = ProgramInput {
            context_in: Some(&mut arguments),
            ..ProgramInput::default()
        };
        program.test_run(input).context("name a kernel address")?;
        let text = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let text = text
            .context("read a kernel address's name")?
            .unwrap_or_default();
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    };
    addresses.iter().map(name).collect()
}
