//! The heading: what was measured, where, when and how.

use std::io::{self, Write};

use export::text::numbers::{count, duration};
use profile::merge::accounts;
use profile::{Ending, Profile, Rate};

use super::facts::Facts;
use crate::html::Escaped;

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Returns the title of a page: `Where the time of mariadbd (PID 712) went`.
pub(crate) fn title(profile: &Profile) -> String {
    format!("Where the time of {} went", subject(profile))
}

/// Returns the title of a page that compares two profiles.
pub(crate) fn title_of_changes(after: &Profile) -> String {
    format!("What changed in {}", subject(after))
}

/// Returns what was measured: a process, or the targets in words.
fn subject(profile: &Profile) -> String {
    let accounts = accounts(profile);
    let first = accounts.first().map(|account| account.thread.id.pid);
    let mut of_first = accounts.iter();
    let is_one = of_first.all(|account| Some(account.thread.id.pid) == first);
    let leader = accounts
        .iter()
        .find(|account| account.thread.id.pid == account.thread.id.tid)
        .or(accounts.first());
    let targets = &profile.meta.targets;
    match (leader, first) {
        (Some(leader), Some(pid)) if is_one && leader.thread.id.tid == pid => {
            format!("{} (PID {pid})", profile.names[leader.thread.comm])
        }
        _ if !targets.is_empty() => targets.to_string(),
        _ => "a program".to_owned(),
    }
}

/// Writes the heading.
pub(super) fn write(facts: &Facts<'_>, writer: &mut dyn Write) -> io::Result<()> {
    writeln!(writer, "<h1>{}</h1>", Escaped(&title(facts.profile)))?;
    write_settings(facts, writer)
}

/// Writes the line on the window, the machine and the settings.
pub(super) fn write_settings(facts: &Facts<'_>, writer: &mut dyn Write) -> io::Result<()> {
    let meta = &facts.profile.meta;
    let window = meta.window;
    let mut parts = Vec::new();
    let asked = if window.requested_ns > window.length_ns {
        format!(" of {}", duration(window.requested_ns))
    } else {
        String::new()
    };
    let ended = match window.ending {
        Ending::Elapsed => "",
        Ending::Interrupted => ", ended by the user",
        Ending::TargetGone => ", until every process had ended",
    };
    parts.push(format!("{}{asked}{ended}", duration(window.length_ns)));
    if window.start_utc_ns > 0 {
        parts.push(utc(window.start_utc_ns / 1_000_000_000));
    }
    if !meta.host.is_empty() {
        parts.push(format!("on {}", meta.host));
    }
    if !meta.kernel.is_empty() {
        parts.push(format!("Linux {}", meta.kernel));
    }
    if meta.cpus > 0 {
        parts.push(count(u64::from(meta.cpus), "CPU"));
    }
    match meta.sampling.as_ref().map(|sampling| sampling.rate) {
        Some(Rate::Frequency(hertz)) => parts.push(format!("{hertz} samples a second")),
        Some(Rate::Period(period)) => parts.push(format!("a sample each {period}")),
        None => {}
    }
    if let Some(lengths) = meta.lengths {
        let shorter = if lengths.short_are_sampled {
            ", shorter ones sampled"
        } else {
            ""
        };
        parts.push(format!(
            "waits from {} on{shorter}",
            duration(lengths.least)
        ));
    }
    write!(
        writer,
        "<p class=\"settings\">{}",
        Escaped(&parts.join(" · "))
    )?;
    let words: Vec<&str> = meta.command_line.iter().map(|word| &**word).collect();
    if !words.is_empty() {
        write!(writer, " · <code>{}</code>", Escaped(&words.join(" ")))?;
    } else if !meta.tool.is_empty() {
        write!(writer, " · {}", Escaped(&meta.tool))?;
    }
    writer.write_all(b"</p>\n")
}

/// Returns an instant, in seconds since 1970, as `2026-11-29 22:05:10 UTC`.
fn utc(seconds: u64) -> String {
    let (days, time) = (seconds / DAY, seconds % DAY);
    // From the days since 0000-03-01, which begin eras of 400 years:
    // https://howardhinnant.github.io/date_algorithms.html#civil_from_days
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        time / 3_600,
        time / 60 % 60,
        time % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_700_000_000, "2023-11-14 22:13:20 UTC"),
            (4_102_444_800, "2100-01-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
    }
}
