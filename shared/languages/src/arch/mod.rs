//! Everything that depends on the architecture: code that runtimes generate, for which
//! `bpf/include/arch` provides the same for programs, and code of their files.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "shared/languages/src/arch has no module for this architecture: one provides the registers of \
     HotSpot's interpreter, tells calls and the beginnings and ends of its compiled methods, and \
     decodes the addresses in a file's code"
);

pub(crate) use machine::{
    BEFORE, CALL_BYTES, Code, METHOD, PROLOGUE_BYTES, RETURN_ADDRESS, SENDER_STACK, State,
    follows_call, jump_at, relative, thread_local_index,
};
