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
}

impl AddAssign for WalkEnds {
    fn add_assign(&mut self, other: WalkEnds) {
        self.root = self.root.saturating_add(other.root);
        self.by_frame_pointer = self.by_frame_pointer.saturating_add(other.by_frame_pointer);
        self.no_mapping = self.no_mapping.saturating_add(other.no_mapping);
        self.read_failed = self.read_failed.saturating_add(other.read_failed);
        self.too_deep = self.too_deep.saturating_add(other.too_deep);
        self.no_rule = self.no_rule.saturating_add(other.no_rule);
    }
}

impl WalkEnds {
    /// How many there are in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.root + self.no_mapping + self.read_failed + self.too_deep + self.no_rule
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_adds_up_by_itself() {
        let one = WalkEnds {
            root: 1,
            by_frame_pointer: 2,
            no_mapping: 4,
            read_failed: 8,
            too_deep: 16,
            no_rule: 32,
        };
        // Those by frame pointers are among those at the root.
        assert_eq!(one.total(), 1 + 4 + 8 + 16 + 32);
        let mut sum = one;
        sum += WalkEnds {
            root: 100,
            by_frame_pointer: 200,
            no_mapping: 400,
            read_failed: 800,
            too_deep: 1600,
            no_rule: 3200,
        };
        let expected = WalkEnds {
            root: 101,
            by_frame_pointer: 202,
            no_mapping: 404,
            read_failed: 808,
            too_deep: 1616,
            no_rule: 3232,
        };
        assert_eq!(sum, expected);
    }
}
