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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use profile::spans::{Apart, Histogram, Kind, Owner, Scale};

    use super::*;

    fn row(id: u32, comm: Option<&str>, lengths: &[u64]) -> Row {
        let mut histogram = Histogram::new(Scale::Microseconds);
        for &length in lengths {
            histogram.add(length);
        }
        let comm = comm.map(str::to_owned);
        let owner = Some(Owner { id, comm });
        Row { owner, histogram }
    }

    fn distribution() -> Distribution {
        Distribution {
            kind: Kind::Running,
            apart: Some(Apart::Threads),
            scale: Scale::Microseconds,
            start_ns: 0,
            end_ns: 1_000_000,
            rows: vec![
                row(1, Some("pool-1"), &[7_000, 3_000]),
                row(2, Some("main"), &[5_000]),
                row(3, Some("pool-2"), &[1_000]),
                row(4, None, &[2_000, 2_000]),
            ],
        }
    }

    fn ids(distribution: &Distribution) -> Vec<u32> {
        let owners = distribution.rows.iter().map(|row| row.owner.as_ref());
        owners.map(|owner| owner.unwrap().id).collect()
    }

    #[test]
    fn named_threads_are_left_apart_or_added_up() {
        let pool = Regex::new("^pool").unwrap();
        let mut names = ThreadNames::new(Some(&pool), true);
        let apart = names.of(distribution());
        assert_eq!(ids(&apart), [1, 3]);
        assert_eq!(apart.apart, Some(Apart::Threads));
        let mut names = ThreadNames::new(Some(&pool), false);
        let together = names.of(distribution());
        assert_eq!((together.apart, together.rows.len()), (None, 1));
        let sum = together.sum();
        assert_eq!(
            (sum.spans(), sum.total_ns(), sum.longest_ns()),
            (3, 11_000, 7_000)
        );
        let told: Vec<String> = names.remarks().collect();
        assert!(
            told.len() == 1 && told[0].contains("left out 2 spans"),
            "{told:?}"
        );
    }

    #[test]
    fn nobody_of_that_name_is_told_and_no_name_is_everybody() {
        let nobody = Regex::new("^nobody$").unwrap();
        let mut names = ThreadNames::new(Some(&nobody), false);
        let empty = names.of(distribution());
        assert_eq!((empty.rows.len(), empty.sum().spans()), (1, 0));
        let told: Vec<String> = names.remarks().collect();
        assert!(told[0].contains("`^nobody$`"), "{told:?}");
        let mut all = ThreadNames::new(None, false);
        assert_eq!(all.of(distribution()), distribution());
        assert_eq!(all.remarks().count(), 0);
    }
}
