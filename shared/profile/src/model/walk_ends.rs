//! How walks along user stacks ended.

use std::ops::AddAssign;

/// How many intervals or samples have a user stack whose walk ended so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkEnds {
    /// At the thread's first function.
    pub root: u64,
    /// Of these, those in which a frame was found by its frame pointer.
    pub by_frame_pointer: u64,
    /// At an address in no known mapping.
    pub no_mapping: u64,
    /// Where the stack could not be read.
    pub read_failed: u64,
    /// After more frames than are kept.
    pub too_deep: u64,
    /// In code without a rule, and with no frame pointer to follow.
    pub no_rule: u64,
    /// In 32-bit code, whose stacks are not unwound.
    pub code_32_bit: u64,
}

impl AddAssign for WalkEnds {
    fn add_assign(&mut self, other: WalkEnds) {
        self.root = self.root.saturating_add(other.root);
        self.by_frame_pointer = self.by_frame_pointer.saturating_add(other.by_frame_pointer);
        self.no_mapping = self.no_mapping.saturating_add(other.no_mapping);
        self.read_failed = self.read_failed.saturating_add(other.read_failed);
        self.too_deep = self.too_deep.saturating_add(other.too_deep);
        self.no_rule = self.no_rule.saturating_add(other.no_rule);
        self.code_32_bit = self.code_32_bit.saturating_add(other.code_32_bit);
    }
}

impl WalkEnds {
    /// How many there are in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        let others = [
            self.no_mapping,
            self.read_failed,
            self.too_deep,
            self.no_rule,
            self.code_32_bit,
        ];
        others.into_iter().fold(self.root, u64::saturating_add)
    }
}
