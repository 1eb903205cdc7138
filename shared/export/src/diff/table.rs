//! Changes as a table for the terminal.

use std::io::{self, Write};

use profile::Profile;
use profile::diff::{Change, Diff, LEVEL};

use super::{state_label, unit_name};

/// Subjects of the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Functions.
    Functions,
    /// Stacks.
    Stacks,
}

/// Writes the changes with their uncertainty, at most `rows` of them.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(
    before: &Profile,
    after: &Profile,
    diff: &Diff,
    shown: Shown,
    rows: usize,
    writer: &mut dyn Write,
) -> io::Result<()> {
    for (when, profile) in [("Before", before), ("After", after)] {
        let meta = &profile.meta;
        writeln!(
            writer,
            "{when}: {:.3} s of {} on {}, by {} {}",
            meta.window.length_ns as f64 / 1e9,
            meta.targets,
            meta.host,
            meta.tool,
            meta.tool_version
        )?;
    }
    let unit = unit_name(after);
    let (scale, name) = match &unit {
        None => (1e6, "ms"),
        Some(name) => (1.0, name.as_str()),
    };
    writeln!(
        writer,
        "\nIn {name} per second of the window; ±: 99 % of what chance does."
    )?;
    writeln!(writer, "~: chance may have done it.\n")?;
    let (what, changes) = match shown {
        Shown::Functions => ("function (and what it calls)", &diff.functions),
        Shown::Stacks => ("stack", &diff.stacks),
    };
    let head = ["change", "±", "before", "after"];
    let [change, error, before_head, after_head] = head;
    writeln!(
        writer,
        "  {change:>12} {error:>10} {before_head:>12} {after_head:>12}  {:<9} {what}",
        "state"
    )?;
    for change in changes.iter().take(rows) {
        let Change {
            subject,
            state: in_state,
            before,
            after: now,
        } = change;
        let mark = if change.is_significant() { ' ' } else { '~' };
        let deviation = format!("± {:.1}", LEVEL * change.deviation() / scale);
        writeln!(
            writer,
            "{mark} {:>+12.3} {deviation:>10} {:>12.3} {:>12.3}  {:<9} {}",
            change.difference() / scale,
            before.value / scale,
            now.value / scale,
            state_label(after, *in_state),
            text(&diff.names(*subject))
        )?;
    }
    if changes.len() > rows {
        let more = changes.len() - rows;
        let significant = changes[rows..].iter().filter(|it| it.is_significant());
        writeln!(
            writer,
            "{more} more, {} of them beyond chance: -n says how many are shown",
            significant.count()
        )?;
    }
    Ok(())
}

fn text(names: &[&str]) -> String {
    let names = names.iter().map(|name| profile::text::frame(name));
    names.collect::<Vec<_>>().join(";")
}
