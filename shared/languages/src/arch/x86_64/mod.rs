//! x86-64.

mod hotspot;
mod operands;

pub(crate) use hotspot::{
    BEFORE, CALL_BYTES, Code, METHOD, PROLOGUE_BYTES, RETURN_ADDRESS, SENDER_STACK, State,
    follows_call,
};
pub(crate) use operands::{jump_at, relative, thread_local_index};
