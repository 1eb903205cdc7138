//! Losses, with a sentence on the remedy.

use std::io;

use export::text::numbers::count;
use profile::Losses;

use super::page::Page;
use crate::Run;

/// Writes the losses of the whole run, and their effects.
pub(super) fn write(run: &Run, page: &mut Page<'_>) -> io::Result<()> {
    let Run {
        on_cpu_lost: on,
        off_cpu_lost: off,
        unclocked,
        ..
    } = run;
    let is_whole = |losses: &Losses| !losses.has_any();
    if is_whole(on) && is_whole(off) && unclocked.threads == 0 {
        page.line("Nothing was lost.")?;
    } else {
        let stacks = on.stacks.saturating_add(off.stacks);
        let threads = on.threads.max(off.threads).max(unclocked.threads);
        let lost = [
            (off.events, "switch", "the times around are less exact"),
            (on.events, "sample", "shares of running time are coarser"),
            (stacks, "stack", "the time is kept"),
            (threads, "thread", "in no sum"),
        ];
        let lost = lost.into_iter().filter(|(number, ..)| *number > 0);
        let lost: Vec<String> = lost
            .map(|(number, noun, meaning)| format!("{} ({meaning})", count(number, noun)))
            .collect();
        page.line(&format!("Lost: {}.", lost.join(", ")))?;
        if on.events > 0 || off.events > 0 || unclocked.threads > 0 {
            page.line(
                "To lose fewer, measure fewer processes, or waits from a longer time on (-m).",
            )?;
        }
    }
    let cut_short = on.incomplete_user.saturating_add(off.incomplete_user);
    if cut_short > 0 {
        page.line(&format!(
            "{} cut short: the outermost functions are missing.",
            match cut_short {
                1 => "1 user stack is".to_owned(),
                number => format!("{number} user stacks are"),
            }
        ))?;
    }
    Ok(())
}
