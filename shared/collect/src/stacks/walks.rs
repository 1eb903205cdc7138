//! How the walks along user stacks ended, counted for the line at the end.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bpf::types::WalkEnd as ProgramsEnd;
use profile::WalkEnds;
use unwind::{End, Walk};

pub(crate) use unwind::End as WalkEnd;

/// Files named as most often at fault.
const MOST_FILES: usize = 5;

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    /// Whether a frame was found by its frame pointer.
    pub(crate) by_frame_pointer: bool,
}

impl Outcome {
    /// From `walk_end` of a program's message; `None` of a walk by the
    /// kernel's helper, which does not say.
    pub(crate) fn from_program(walk_end: u32) -> Option<Outcome> {
        const BY_FRAME_POINTER: u32 = ProgramsEnd::WALK_BY_FRAME_POINTER.0;
        let end = match ProgramsEnd(walk_end & !BY_FRAME_POINTER) {
            ProgramsEnd::WALK_REACHED_ROOT => End::Root,
            ProgramsEnd::WALK_NO_MAPPING => End::NoMapping,
            ProgramsEnd::WALK_READ_FAILED => End::ReadFailed,
            ProgramsEnd::WALK_TOO_DEEP => End::TooDeep,
            ProgramsEnd::WALK_NO_RULE => End::NoRule,
            ProgramsEnd::WALK_32_BIT => End::Code32Bit,
            _ => return None,
        };
        Some(Outcome {
            end,
            by_frame_pointer: walk_end & BY_FRAME_POINTER != 0,
        })
    }
}

impl From<&Walk> for Outcome {
    fn from(walk: &Walk) -> Outcome {
        Outcome {
            end: walk.end,
            by_frame_pointer: walk.by_frame_pointer,
        }
    }
}

/// Intervals or samples by how the walk along their user stack ended.
#[derive(Debug, Default)]
pub(crate) struct Walks {
    ends: WalkEnds,
    /// Those cut short, by the file of the last frame.
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

    /// Whether there was any walk.
    pub(crate) fn any(&self) -> bool {
        self.ends.total() > 0
    }

    /// How they ended.
    pub(crate) fn ends(&self) -> WalkEnds {
        self.ends
    }

    /// The files in which walks were cut short most often; `None` if none was.
    pub(crate) fn at_fault(&self) -> Option<String> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|&(file, count)| (std::cmp::Reverse(*count), file));
        let named: Vec<String> = files
            .iter()
            .take(MOST_FILES)
            .map(|(file, count)| format!("{file} ({count})"))
            .collect();
        (!named.is_empty()).then(|| format!("user stacks cut short in: {}", named.join(", ")))
    }
}

impl fmt::Display for Walks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends = &self.ends;
        let total = ends.total().max(1);
        let share = |count: u64| format!("{count} ({:.1} %)", count as f64 * 100.0 / total as f64);
        write!(
            formatter,
            "user stacks: {} reached the root, {} of them by frame pointer in part; \
             cut short: {} no mapping, {} read failed, {} too deep, {} no rule",
            share(ends.root),
            share(ends.by_frame_pointer),
            share(ends.no_mapping),
            share(ends.read_failed),
            share(ends.too_deep),
            share(ends.no_rule),
        )?;
        if ends.code_32_bit > 0 {
            write!(formatter, ", {} 32-bit code", share(ends.code_32_bit))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_walk_is_in_one_share() {
        let mut walks = Walks::default();
        assert!(!walks.any() && walks.at_fault().is_none());
        let end = |end, by_frame_pointer| Outcome {
            end,
            by_frame_pointer,
        };
        let libc: Arc<str> = "libc.so.6".into();
        walks.add(end(End::Root, false), None, 6);
        walks.add(end(End::Root, true), None, 1);
        walks.add(end(End::NoRule, true), Some(&libc), 2);
        walks.add(end(End::TooDeep, false), Some(&libc), 1);
        assert_eq!(
            walks.to_string(),
            "user stacks: 7 (70.0 %) reached the root, 1 (10.0 %) of them by frame pointer in part; \
             cut short: 0 (0.0 %) no mapping, 0 (0.0 %) read failed, 1 (10.0 %) too deep, 2 (20.0 %) no rule"
        );
        assert!(walks.any());
        let ends = WalkEnds {
            root: 7,
            by_frame_pointer: 1,
            too_deep: 1,
            no_rule: 2,
            ..WalkEnds::default()
        };
        assert_eq!(walks.ends(), ends);
        let at_fault = walks.at_fault();
        assert_eq!(
            at_fault.as_deref(),
            Some("user stacks cut short in: libc.so.6 (2)")
        );
    }
}
