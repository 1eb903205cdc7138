//! Counts of how the unwinds of user stacks ended.

use std::ops::AddAssign;

/// Numbers of intervals or samples by how the unwind of their user stack ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkEnds {
    /// Unwinds that reached the thread's first function.
    pub root: u64,
    /// Subset of `root`: unwinds that found at least one frame by its frame pointer.
    pub by_frame_pointer: u64,
    /// Unwinds that met an address in no known mapping.
    pub no_mapping: u64,
    /// Unwinds that could not read the stack.
    pub read_failed: u64,
    /// Unwinds that met more frames than the tools keep.
    pub too_deep: u64,
    /// Unwinds that met code without an unwind rule and without a frame pointer.
    pub no_rule: u64,
    /// Stacks of 32-bit code, which the tools do not unwind.
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
    /// Returns the sum of all ends.
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
