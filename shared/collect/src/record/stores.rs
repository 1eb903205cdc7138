//! Stacks, wakers and resources that programs sent.

use waits::Objects;

use crate::record::StackChoice;
use crate::record::counts::Arrived;
use crate::record::stacks::Stacks;
use crate::record::wakers::Wakers;

/// Stacks, wakers and resources, to which the keys of sums refer.
pub(crate) struct Stores {
    pub(crate) stacks: Stacks,
    pub(crate) wakers: Wakers,
    pub(crate) objects: Objects,
}

impl Stores {
    /// Returns empty stores.
    pub(crate) fn new(choice: &StackChoice) -> Stores {
        let mut stacks = Stacks::with_detail(choice.detail, choice.sources);
        stacks.set_unwind_mode(&choice.walking);
        Stores {
            stacks,
            wakers: Wakers::new(choice.per_process),
            objects: Objects::new(choice.per_thread),
        }
    }

    /// Returns what has arrived.
    pub(crate) fn arrived(&self) -> Arrived<'_> {
        Arrived {
            stacks: &self.stacks,
            wakers: &self.wakers,
            objects: &self.objects,
        }
    }
}
