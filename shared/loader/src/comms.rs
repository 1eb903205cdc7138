//! Threads' names: few for many threads.

use std::collections::HashMap;
use std::sync::Arc;

use bpf::types::COMM_LENGTH;

/// Every name seen so far, printable, once.
#[derive(Default)]
pub(crate) struct Comms(HashMap<[u8; COMM_LENGTH], Arc<str>>);

impl Comms {
    /// The name that the kernel keeps as `raw`.
    pub(crate) fn name(&mut self, raw: &[u8; COMM_LENGTH]) -> Arc<str> {
        let name = self
            .0
            .entry(*raw)
            .or_insert_with(|| Arc::from(profile::text::comm(raw)));
        Arc::clone(name)
    }
}
