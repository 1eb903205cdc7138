//! Resources that threads were blocked on, as the `waits` format has them.

use std::io::{self, Write};

use export::waits::Objects;
use profile::State;

use crate::Row;

/// Writes the resources that these threads were blocked on, or nothing if none is known.
pub(crate) fn write<'a>(
    rows: impl Iterator<Item = &'a Row<'a>>,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let mut objects = Objects::default();
    for row in rows {
        objects.add_blocked(row.thread.thread.clock.blocked_ns);
        let stacks = row.thread.stacks.iter();
        for (sample, weight) in stacks.filter(|(sample, _)| sample.state == Some(State::Blocked)) {
            objects.add(row.profile, sample, weight);
        }
    }
    if objects.is_empty() {
        return Ok(());
    }
    writeln!(writer)?;
    objects.write(writer)
}
