//! Summary lines on stderr: the amount that a run measured, its losses and omissions, and the
//! remedies.

use collect::{Diagnostics, LeftOut};
use profile::{Losses, Profile, Unit, WalkEnds};

/// Maximum files that the line about cut-short unwinds names.
const MAX_FILES: usize = 5;

/// Returns the lines at the end of a run. A line about unwinding is among them if a stack was cut
/// short, or with `verbose`.
pub(crate) fn lines(profile: &Profile, diagnostics: &Diagnostics, verbose: bool) -> Vec<String> {
    let mut lines = vec![summary(profile, diagnostics.events)];
    let ends = &diagnostics.walk_ends;
    let cut_short = ends.total() - ends.root;
    if cut_short > 0 || (verbose && ends.root > 0) {
        lines.push(user_stacks(ends, verbose));
    }
    lines.extend_from_slice(&diagnostics.languages);
    lines.extend(missing(diagnostics));
    lines.extend(left_out(&diagnostics.left_out));
    if verbose {
        lines.extend(cut_short_in(diagnostics));
        lines.extend_from_slice(&diagnostics.notes);
        lines.push(format!(
            "{} different user and kernel stacks were captured; the counts were drained {} times",
            grouped(diagnostics.stacks_sent as u64),
            grouped(diagnostics.drains)
        ));
        lines.extend_from_slice(&diagnostics.unnamed.notes);
    }
    lines
}

/// Returns `230,114 intervals, 138 stacks; nothing lost`.
fn summary(profile: &Profile, events: u64) -> String {
    let unit = match profile.unit {
        Unit::Samples => "sample",
        Unit::Nanoseconds => "interval",
    };
    let Losses {
        events: lost_events,
        stacks,
        threads,
        incomplete_user: _,
        times,
    } = profile.losses;
    let lost = [
        (lost_events, "event"),
        (stacks, "stack"),
        (threads, "thread"),
        (times, "timeline row"),
    ];
    format!(
        "{}, {}; {}",
        count(events, unit),
        count(profile.samples.len() as u64, "stack"),
        list_losses(&lost)
    )
}

/// Returns `nothing lost`, or `lost: ` with each number above 0 and its noun. Nouns are in the
/// singular.
#[must_use]
pub fn list_losses(losses: &[(u64, &str)]) -> String {
    let lost = losses.iter().filter(|(number, _)| *number > 0);
    let lost: Vec<String> = lost.map(|(number, noun)| count(*number, noun)).collect();
    if lost.is_empty() {
        "nothing lost".to_owned()
    } else {
        format!("lost: {}", lost.join(", "))
    }
}

/// Returns `user stacks: 13,385 reached the root; cut short: 24 (0.2 %) read failed`.
fn user_stacks(ends: &WalkEnds, verbose: bool) -> String {
    let total = ends.total().max(1);
    let share = |number: u64| {
        let percent = number as f64 * 100.0 / total as f64;
        format!("{} ({percent:.1} %)", grouped(number))
    };
    let mut text = format!("user stacks: {} reached the root", share(ends.root));
    if verbose && ends.by_frame_pointer > 0 {
        let number = grouped(ends.by_frame_pointer);
        text.push_str(&format!(", {number} of them by frame pointer in part"));
    }
    let cut_short = [
        (ends.no_mapping, "no mapping"),
        (ends.read_failed, "read failed"),
        (ends.too_deep, "too deep"),
        (ends.no_rule, "no rule"),
        (ends.code_32_bit, "32-bit code"),
    ];
    let cut_short = cut_short.into_iter().filter(|(number, _)| *number > 0);
    let cut_short: Vec<String> = cut_short
        .map(|(number, end)| format!("{} {end}", share(number)))
        .collect();
    if !cut_short.is_empty() {
        text.push_str("; cut short: ");
        text.push_str(&cut_short.join(", "));
        if !verbose {
            text.push_str(" (-v names the files)");
        }
    }
    text
}

fn cut_short_in(diagnostics: &Diagnostics) -> Option<String> {
    let files = diagnostics.cut_short_in.iter().take(MAX_FILES);
    let files: Vec<String> = files
        .map(|(file, number)| format!("{file} ({})", grouped(*number)))
        .collect();
    (!files.is_empty()).then(|| format!("user stacks cut short in: {}", files.join(", ")))
}

/// Returns a line for each kind of missing name or waker.
fn missing(diagnostics: &Diagnostics) -> impl Iterator<Item = String> {
    let unnamed = &diagnostics.unnamed;
    let counts = [
        (
            diagnostics.missed_wakers,
            "wake-ups were not seen: their waits have no waker",
        ),
        (
            unnamed.processes,
            "processes ended before their mappings could be read: their frames have no names",
        ),
        (
            process::count_unanswered() as u64,
            "processes' memory did not answer in time and was not read: names and frames may be missing",
        ),
        (
            unnamed.unopened_files,
            "mapped files could not be opened: their functions have no names",
        ),
        (
            unnamed.crowded_files,
            "mapped files exceed the limit of open files: raise it with `ulimit -Hn`",
        ),
        (
            unnamed.crowded_processes,
            "processes have more executable mappings than are read: code in the others has no name",
        ),
        (
            unnamed.unread_files,
            "files had no readable symbols: their functions have no names",
        ),
        (
            unnamed.costly_files,
            "files take too much work to read: some of their functions or lines have no names",
        ),
        (
            unnamed.interpreted,
            "frames of interpreted functions have no names: no capacity was left for them",
        ),
    ];
    let hidden = "kernel symbols are hidden: run as root, or set kernel.kptr_restrict to 0";
    let hidden = unnamed.kernel_hidden.then(|| hidden.to_owned());
    in_words(counts).chain(hidden)
}

/// Returns a line for each limit of capacity that was exceeded.
pub fn left_out(left_out: &LeftOut) -> impl Iterator<Item = String> {
    in_words([
        (
            left_out.counts,
            "events were not counted, as no capacity was left: choose fewer processes with -p",
        ),
        (
            left_out.clocks,
            "events were of threads without a clock, as no capacity was left: choose fewer processes with -p",
        ),
        (
            left_out.targets,
            "processes or cgroups exceed the capacity for targets and are not measured: choose fewer",
        ),
        (
            left_out.deep_cgroups,
            "cgroups lie more than 1024 levels deep and are not measured: give them with --cgroup",
        ),
        (
            left_out.moves,
            "moves between cgroups came too fast to be timed: time counts from when they were seen",
        ),
        (
            left_out.crowded_processes,
            "processes have no unwind tables, as no capacity was left: choose fewer with -p (-v names them)",
        ),
        (
            left_out.crowded_files,
            "mapped files have no unwind tables, as no capacity was left: \
             choose fewer processes with -p (-v names them)",
        ),
        (
            left_out.unread_files,
            "mapped files have no usable unwind tables (-v says why)",
        ),
        (
            left_out.objects,
            "resources were not recorded, as no capacity was left: they appear as `other`",
        ),
        (
            left_out.processes,
            "processes have no command line in the profile, as no capacity was left",
        ),
    ])
}

fn in_words<const N: usize>(counts: [(u64, &'static str); N]) -> impl Iterator<Item = String> {
    let counts = counts.into_iter().filter(|(number, _)| *number > 0);
    counts.map(|(number, words)| format!("{} {words}", grouped(number)))
}

/// Returns a number and its noun: `1 stack`, `2,999 stacks`.
#[must_use]
pub fn count(number: u64, noun: &str) -> String {
    let plural = match noun {
        _ if number == 1 => "",
        "switch" => "es",
        _ => "s",
    };
    format!("{} {noun}{plural}", grouped(number))
}

/// Returns a number with a comma between groups of three digits: `230,114`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_perfect_takes_few_words() {
        let profile = Profile::new(Unit::Nanoseconds);
        let diagnostics = Diagnostics {
            events: 230_114,
            walk_ends: WalkEnds {
                root: 9,
                ..WalkEnds::default()
            },
            ..Diagnostics::default()
        };
        let few = lines(&profile, &diagnostics, false);
        assert_eq!(few, ["230,114 intervals, 0 stacks; nothing lost"]);
        let more = lines(&profile, &diagnostics, true);
        assert_eq!(more[1], "user stacks: 9 (100.0 %) reached the root");
    }

    #[test]
    fn each_kind_of_loss_has_a_line() {
        let mut profile = Profile::new(Unit::Samples);
        profile.losses = Losses {
            events: 1,
            stacks: 2,
            threads: 3000,
            incomplete_user: 4,
            times: 0,
        };
        let mut diagnostics = Diagnostics {
            events: 1,
            walk_ends: WalkEnds {
                root: 6,
                no_mapping: 3,
                code_32_bit: 1,
                ..WalkEnds::default()
            },
            cut_short_in: vec![("libc.so.6".into(), 3), ("a".into(), 1)],
            missed_wakers: 5,
            left_out: LeftOut {
                deep_cgroups: 11,
                crowded_files: 12,
                ..LeftOut::default()
            },
            ..Diagnostics::default()
        };
        diagnostics.unnamed.processes = 6;
        diagnostics.unnamed.kernel_hidden = true;
        let expected = [
            "1 sample, 0 stacks; lost: 1 event, 2 stacks, 3,000 threads",
            "user stacks: 6 (60.0 %) reached the root; cut short: 3 (30.0 %) no mapping, 1 (10.0 %) 32-bit code (-v names the files)",
            "5 wake-ups were not seen: their waits have no waker",
            "6 processes ended before their mappings could be read: their frames have no names",
            "kernel symbols are hidden: run as root, or set kernel.kptr_restrict to 0",
            "11 cgroups lie more than 1024 levels deep and are not measured: give them with --cgroup",
            "12 mapped files have no unwind tables, as no capacity was left: choose fewer processes with -p (-v names them)",
        ];
        assert_eq!(lines(&profile, &diagnostics, false), expected);
        let more = lines(&profile, &diagnostics, true);
        assert!(more.contains(&"user stacks cut short in: libc.so.6 (3), a (1)".to_owned()));
    }

    #[test]
    fn digits_are_grouped_in_threes() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (12_345, "12,345"),
            (1_000_000, "1,000,000"),
        ] {
            assert_eq!(grouped(number), expected);
        }
    }
}
