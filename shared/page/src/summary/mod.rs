//! The first screen: the answer in a sentence, the most expensive things, the threads, and what was
//! lost. It is plain HTML, which people read without JavaScript and on paper.

mod answer;
mod bar;
mod causes;
mod changes;
mod facts;
mod head;
mod quality;
#[cfg(test)]
mod tests;
mod threads;

use std::io::{self, Write};

use export::text::numbers::duration;
use profile::Profile;
use profile::diff::Diff;

use facts::Facts;

pub(crate) use head::{title, title_of_changes};

/// Writes the first screen of a profile.
///
/// # Errors
/// Returns the errors of `writer`.
pub(crate) fn write(profile: &Profile, writer: &mut dyn Write) -> io::Result<()> {
    let facts = Facts::new(profile);
    writer.write_all(b"<main id=\"summary\">\n")?;
    head::write(&facts, writer)?;
    write_answer(&facts, writer)?;
    write_rest(&facts, writer)?;
    writer.write_all(b"</main>\n")
}

/// Writes the first screen of a comparison: the changes first, then the later profile.
///
/// # Errors
/// Returns the errors of `writer`.
pub(crate) fn write_comparison(
    before: &Profile,
    after: &Profile,
    changes: &Diff,
    writer: &mut dyn Write,
) -> io::Result<()> {
    writer.write_all(b"<main id=\"summary\">\n")?;
    changes::write(before, after, changes, writer)?;
    for (heading, profile) in [("Before", before), ("After", after)] {
        let facts = Facts::new(profile);
        writeln!(writer, "<h2>{heading}</h2>")?;
        head::write_settings(&facts, writer)?;
        write_answer(&facts, writer)?;
        if std::ptr::eq(profile, after) {
            write_rest(&facts, writer)?;
        } else {
            quality::write(&facts, writer)?;
        }
    }
    writer.write_all(b"</main>\n")
}

fn write_answer(facts: &Facts<'_>, writer: &mut dyn Write) -> io::Result<()> {
    let answer = answer::answer(facts);
    writeln!(writer, "<p class=\"answer\">{}</p>", answer.sentence)?;
    if !answer.details.is_empty() {
        writer.write_all(b"<ul class=\"details\">\n")?;
        for detail in answer.details {
            writeln!(writer, "<li>{detail}</li>")?;
        }
        writer.write_all(b"</ul>\n")?;
    }
    let idle = facts.idle_ns();
    if idle > 0 {
        let idle = duration(idle);
        writeln!(writer, "<p class=\"chip\">{idle} idle hidden</p>")?;
    }
    Ok(())
}

fn write_rest(facts: &Facts<'_>, writer: &mut dyn Write) -> io::Result<()> {
    causes::write(facts, writer)?;
    threads::write(facts, writer)?;
    quality::write(facts, writer)
}
