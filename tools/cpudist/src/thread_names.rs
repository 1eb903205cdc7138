//! The spans of threads that are chosen by their names.

use profile::spans::{Distribution, Row};
use regex::Regex;

/// Takes the wanted threads out of what was counted thread by thread.
pub(crate) struct ThreadNames<'a> {
    /// Without one all spans are wanted.
    expression: Option<&'a Regex>,
    /// Whether threads stay apart.
    apart: bool,
    any: bool,
    /// Spans of threads that ended so long ago that nobody knows their names.
    nameless: u64,
}

impl<'a> ThreadNames<'a> {
    /// Threads in whose name the expression is found; `apart` or all together.
    pub(crate) fn new(expression: Option<&'a Regex>, apart: bool) -> ThreadNames<'a> {
        ThreadNames {
            expression,
            apart,
            any: false,
            nameless: 0,
        }
    }

    /// What of an interval is wanted.
    pub(crate) fn of(&mut self, mut distribution: Distribution) -> Distribution {
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
        self.any |= !distribution.rows.is_empty();
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

    /// What there is to say of threads that were not found.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = String> {
        let nobody = self.expression.filter(|_| !self.any);
        let nobody = nobody.map(|expression| cli::nobody_named(expression.as_str()));
        let nameless = (self.nameless > 0).then(|| {
            let spans = self.nameless;
            format!("left out {spans} spans of threads that ended and whose names are not known")
        });
        nobody.into_iter().chain(nameless)
    }
}
