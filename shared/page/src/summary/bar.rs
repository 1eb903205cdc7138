//! Bars of stacked parts, as inline SVG. The page's policy forbids `style` attributes.

use std::fmt;

use export::text::numbers::whole_percent;
use profile::Reason;

use super::facts::{Facts, ThreadFacts};
use crate::html::Escaped;

/// Width of the drawing, in its own units.
const WIDTH: u64 = 1_000;

/// A part of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Running,
    Runnable,
    Blocked(Reason),
    /// Blocked, with or without work.
    Unknown,
}

impl Part {
    /// Returns the class of its colour.
    fn class(self) -> String {
        match self {
            Part::Running => "running".to_owned(),
            Part::Runnable => "runnable".to_owned(),
            // By the numbers of `capture.proto`, where 0 is an unknown reason.
            Part::Blocked(Reason::Unknown) => "blocked blocked-0".to_owned(),
            Part::Blocked(reason) => format!("blocked blocked-{}", reason as usize + 1),
            Part::Unknown => "unknown".to_owned(),
        }
    }

    /// Returns its name.
    pub(super) fn name(self) -> String {
        match self {
            Part::Running => "running".to_owned(),
            Part::Runnable => "waiting for a CPU".to_owned(),
            Part::Blocked(reason) => format!("blocked: {}", reason_name(reason)),
            Part::Unknown => "blocked, idle or waiting".to_owned(),
        }
    }
}

/// Returns the name of a reason as a part of blocked time.
pub(super) fn reason_name(reason: Reason) -> &'static str {
    match reason {
        Reason::Unknown => "unknown reason",
        reason => reason.name(),
    }
}

/// Parts of the time of a thread or of several, in the order in which a bar stacks them.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts(std::collections::BTreeMap<Part, u64>);

impl Parts {
    /// Adds the time of a thread.
    pub(super) fn add(&mut self, thread: &ThreadFacts<'_>) {
        let split = &thread.split;
        let blocked = (thread.reasons.iter()).map(|(reason, time)| (Part::Blocked(*reason), *time));
        let parts = [
            (Part::Running, split.running),
            (Part::Runnable, split.runnable),
            (Part::Unknown, split.unknown),
        ];
        for (part, time) in parts
            .into_iter()
            .chain(blocked)
            .filter(|(_, time)| *time > 0)
        {
            let sum = self.0.entry(part).or_default();
            *sum = sum.saturating_add(time);
        }
    }

    /// Returns the sum of all parts, which is the length of the bar.
    pub(super) fn whole(&self) -> u64 {
        self.0
            .values()
            .fold(0, |sum, time| sum.saturating_add(*time))
    }

    /// Returns the parts that occur.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Part, u64)> {
        self.0.iter().map(|(part, time)| (*part, *time))
    }
}

/// A bar. `most` is the time of the longest bar beside it.
pub(super) struct Bar<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) parts: &'a Parts,
    pub(super) most: u64,
}

impl fmt::Display for Bar<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.parts.whole();
        let parts: Vec<String> = (self.parts.parts())
            .map(|(part, time)| format!("{} {}", part.name(), whole_percent(time, whole)))
            .collect();
        let label = if parts.is_empty() {
            "no time".to_owned()
        } else {
            parts.join(", ")
        };
        write!(
            formatter,
            "<svg class=\"stack\" viewBox=\"0 0 {WIDTH} 10\" preserveAspectRatio=\"none\" \
             role=\"img\" aria-label=\"{}\">",
            Escaped(&label)
        )?;
        let place = |time: u64| {
            let place = u128::from(time) * u128::from(WIDTH) * 10 / u128::from(self.most.max(1));
            place as f64 / 10.0
        };
        let mut start = 0_u64;
        for (part, time) in self.parts.parts() {
            let end = start.saturating_add(time);
            let (from, to) = (place(start), place(end));
            start = end;
            write!(
                formatter,
                "<rect class=\"{}\" x=\"{from}\" width=\"{:.1}\" height=\"10\"><title>{}: {}</title></rect>",
                part.class(),
                to - from,
                Escaped(&part.name()),
                self.facts.amount(time)
            )?;
        }
        formatter.write_str("</svg>")
    }
}

/// The meaning of the colours of some parts.
pub(super) struct Legend(pub(super) Vec<Part>);

impl fmt::Display for Legend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("<ul class=\"legend\" aria-label=\"Colours\">")?;
        for part in &self.0 {
            write!(
                formatter,
                "<li><svg class=\"swatch\" viewBox=\"0 0 10 10\" aria-hidden=\"true\">\
                 <rect class=\"{}\" width=\"10\" height=\"10\"/></svg> {}</li>",
                part.class(),
                Escaped(&part.name())
            )?;
        }
        formatter.write_str("</ul>")
    }
}
