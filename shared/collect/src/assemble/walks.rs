//! Counts of how the unwinds of user stacks ended.

use std::collections::HashMap;
use std::sync::Arc;

use profile::WalkEnds;
use unwind::End;

use crate::record::Outcome;

/// Number of intervals or samples by the end of their user stack's unwind.
#[derive(Debug, Default)]
pub(crate) struct Walks {
    ends: WalkEnds,
    /// Number of unwinds that were cut short, by the file of the last frame.
    files: HashMap<Arc<str>, u64>,
}

impl Walks {
    /// Adds `events` intervals or samples whose last frame is in `module`.
    pub(crate) fn add(&mut self, outcome: Outcome, module: Option<&Arc<str>>, events: u64) {
        let count = match outcome.end {
            End::Root => &mut self.ends.root,
            End::NoMapping => &mut self.ends.no_mapping,
            End::ReadFailed => &mut self.ends.read_failed,
            End::TooDeep => &mut self.ends.too_deep,
            End::NoRule => &mut self.ends.no_rule,
            End::Code32Bit => &mut self.ends.code_32_bit,
        };
        *count += events;
        if outcome.end == End::Root {
            if outcome.by_frame_pointer {
                self.ends.by_frame_pointer += events;
            }
        } else if outcome.end != End::TooDeep {
            let module = module.cloned().unwrap_or_else(|| "unknown code".into());
            *self.files.entry(module).or_default() += events;
        }
    }

    /// Returns the number of unwinds for each end.
    pub(crate) fn ends(&self) -> WalkEnds {
        self.ends
    }

    /// Returns the files in which unwinds were cut short, with the most frequent file first.
    pub(crate) fn cut_short_in(self) -> Vec<(Arc<str>, u64)> {
        let mut files: Vec<_> = self.files.into_iter().collect();
        files.sort_by(|(file, count), (other, others)| {
            others.cmp(count).then_with(|| file.cmp(other))
        });
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_walk_is_counted_once() {
        let mut walks = Walks::default();
        let end = |end, by_frame_pointer| Outcome {
            end,
            by_frame_pointer,
        };
        let libc: Arc<str> = "libc.so.6".into();
        walks.add(end(End::Root, false), None, 6);
        walks.add(end(End::Root, true), None, 1);
        walks.add(end(End::NoRule, true), Some(&libc), 2);
        walks.add(end(End::TooDeep, false), Some(&libc), 1);
        let ends = WalkEnds {
            root: 7,
            by_frame_pointer: 1,
            too_deep: 1,
            no_rule: 2,
            ..WalkEnds::default()
        };
        assert_eq!(walks.ends(), ends);
        assert_eq!(walks.cut_short_in(), [(libc, 2)]);
    }
}
