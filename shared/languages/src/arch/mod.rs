//! Everything that depends on the architecture: code that runtimes generate. `bpf/include/arch`
//! provides the same for programs.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "shared/languages/src/arch has no module for this architecture: one provides the registers of \
     HotSpot's interpreter, and tells calls and the beginnings and ends of its compiled methods"
);

pub(crate) use machine::{
    BEFORE, CALL_BYTES, Code, METHOD, PROLOGUE_BYTES, RETURN_ADDRESS, SENDER_STACK, State,
    follows_call,
};
