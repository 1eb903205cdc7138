//! Filter of spans by thread name.

use profile::spans::{Distribution, Row};
use regex::Regex;

/// Filter that selects threads by name from counts by thread.
pub(crate) struct ThreadNames<'a> {
    /// Expression that names must match; `None` selects all spans.
    expression: Option<&'a Regex>,
    /// True if the result has one row per thread.
    apart: bool,
    /// True if any thread's name has matched.
    has_match: bool,
    /// Spans of threads that ended too early for their names to be known.
    nameless: u64,
}

impl<'a> ThreadNames<'a> {
    /// Returns a filter. Without an expression the filter selects all threads. With `apart` the
    /// result has one row per thread, else one row in all.
    pub(crate) fn new(expression: Option<&'a Regex>, apart: bool) -> ThreadNames<'a> {
        ThreadNames {
            expression,
            apart,
            has_match: false,
            nameless: 0,
        }
    }

    /// Returns the matching part of a period's distribution.
    pub(crate) fn filter(&mut self, mut distribution: Distribution) -> Distribution {
        let Some(expression) = self.expression else {
            return distribution;
        };
        distribution.rows.retain(|row| {
            let comm = row.owner.as_ref().and_then(|owner| owner.comm.as_ref());
            if comm.is_none() {
                self.nameless += row.histogram.spans();
            }
            comm.is_some_and(|comm| expression.is_match(comm))
        });
        self.has_match |= !distribution.rows.is_empty();
        if self.apart {
            return distribution;
        }
        let all = Row {
            owner: None,
            histogram: distribution.sum(),
        };
        Distribution {
            apart: None,
            rows: vec![all],
            ..distribution
        }
    }

    /// Returns lines about missing threads: no thread matched, or names are unknown.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = String> {
        let nobody = self.expression.filter(|_| !self.has_match);
        let nobody = nobody.map(|expression| cli::nobody_named(expression.as_str()));
        let nameless = (self.nameless > 0).then(|| {
            let spans = self.nameless;
            format!("left out {spans} spans of threads that ended before their names were read")
        });
        nobody.into_iter().chain(nameless)
    }
}
