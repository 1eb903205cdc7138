//! Losses, and how stacks ended. The section is there also if nothing was lost.

use std::io::{self, Write};

use export::text::numbers::{count, coverage, duration};
use profile::{Losses, WalkEnds};

use super::facts::Facts;
use crate::html::Escaped;

/// Writes the section.
pub(super) fn write(facts: &Facts<'_>, writer: &mut dyn Write) -> io::Result<()> {
    let profile = facts.profile;
    writer.write_all(b"<h2>How far to trust this</h2>\n<ul class=\"quality\">\n")?;
    for line in losses(&profile.losses)
        .into_iter()
        .chain(stacks(&profile.walk_ends, &profile.losses))
        .chain(unseen(facts))
    {
        writeln!(writer, "<li>{}</li>", Escaped(&line))?;
    }
    writer.write_all(b"</ul>\n")
}

fn losses(losses: &Losses) -> Vec<String> {
    let lost = [
        (losses.events, "event", "times around them are less exact"),
        (losses.stacks, "stack", "their time is kept"),
        (losses.threads, "thread", "they are in no sum"),
        (
            losses.times,
            "row of the timeline",
            "the sums have their time",
        ),
    ];
    let lost = lost.into_iter().filter(|(number, ..)| *number > 0);
    let lost: Vec<String> = lost
        .map(|(number, noun, meaning)| match (number, noun) {
            (2.., "row of the timeline") => format!("{number} rows of the timeline ({meaning})"),
            _ => format!("{} ({meaning})", count(number, noun)),
        })
        .collect();
    if lost.is_empty() {
        return vec!["Nothing was lost.".to_owned()];
    }
    let mut lines = vec![format!("Lost: {}.", lost.join(", "))];
    if losses.events > 0 || losses.threads > 0 {
        lines.push(
            "To lose fewer, measure fewer processes, or waits from a longer time on (-m)."
                .to_owned(),
        );
    }
    lines
}

fn stacks(ends: &WalkEnds, losses: &Losses) -> Vec<String> {
    let whole = ends.total();
    let mut lines = Vec::new();
    if whole > 0 {
        let share = coverage(Some(ends.root as f64 / whole as f64));
        let others = [
            (ends.no_mapping, "met an address in no known mapping"),
            (ends.read_failed, "could not be read"),
            (ends.too_deep, "have more frames than the tools keep"),
            (ends.no_rule, "met code without an unwind rule"),
            (ends.code_32_bit, "are of 32-bit code"),
        ];
        let others = others.into_iter().filter(|(number, _)| *number > 0);
        let others: Vec<String> = others
            .map(|(number, meaning)| format!("{number} {meaning}"))
            .collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            format!("; {}", others.join(", "))
        };
        lines.push(format!(
            "{share} % of {whole} user stacks reach the thread's first function{others}."
        ));
    }
    if losses.incomplete_user > 0 {
        lines.push(format!(
            "{} cut short: the outermost functions are missing.",
            match losses.incomplete_user {
                1 => "1 user stack is".to_owned(),
                number => format!("{number} user stacks are"),
            }
        ));
    }
    lines
}

fn unseen(facts: &Facts<'_>) -> Option<String> {
    let [running, runnable, blocked] = facts.unseen;
    (running > 0 || runnable > 0 || blocked > 0).then(|| {
        format!(
            "Without a stack: {} running that no sample hit, and in short intervals {} waiting for \
             a CPU and {} blocked.",
            duration(running),
            duration(runnable),
            duration(blocked)
        )
    })
}
