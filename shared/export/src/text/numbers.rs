//! Texts of figures.

/// Minimum share of a whole that counts as nearly the whole, in per cent.
const NEARLY_ALL: u64 = 95;

/// Returns nanoseconds in seconds with three decimals.
pub fn seconds(nanoseconds: u64) -> String {
    format!("{:.3}", nanoseconds as f64 / 1e9)
}

/// Returns a part of a whole in per cent with one decimal; `-` if the whole is 0.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "-".to_owned()
    } else {
        format!("{:.1}", part as f64 / whole as f64 * 100.0)
    }
}

/// Returns a coverage in per cent, rounded down, so that 100.0 means that nothing is missing.
/// Returns `-` if there is no coverage.
pub fn coverage(share: Option<f64>) -> String {
    match share {
        Some(share) => format!("{:.1}", (share * 1000.0).floor() / 10.0),
        None => "-".to_owned(),
    }
}

/// Returns a part of a whole in whole per cent with the unit; `-` if the whole is 0.
pub fn whole_percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "-".to_owned()
    } else {
        format!("{:.0} %", part as f64 / whole as f64 * 100.0)
    }
}

/// Returns a length of time, in the unit and with the decimals that fit `whole`.
pub fn part_of(nanoseconds: u64, whole: u64) -> String {
    let time = nanoseconds as f64;
    match whole {
        10_000_000_000.. => format!("{:.1} s", time / 1e9),
        1_000_000_000.. => format!("{:.2} s", time / 1e9),
        100_000_000.. => format!("{:.0} ms", time / 1e6),
        1_000_000.. => format!("{:.1} ms", time / 1e6),
        _ => format!("{:.0} µs", time / 1e3),
    }
}

/// Returns a length of time in the unit that fits it: `12.0 s`, `2.22 s`, `11 ms`, `1.5 ms`, `40
/// µs`.
pub fn duration(nanoseconds: u64) -> String {
    let time = nanoseconds as f64;
    match nanoseconds {
        9_995_000_000.. => format!("{:.1} s", time / 1e9),
        999_500_000.. => format!("{:.2} s", time / 1e9),
        9_950_000.. => format!("{:.0} ms", time / 1e6),
        999_500.. => format!("{:.1} ms", time / 1e6),
        0 => "0 s".to_owned(),
        _ => format!("{:.0} µs", time / 1e3),
    }
}

/// Returns whether a part is nearly all of a whole, so that reports leave out the rest.
pub fn is_nearly_all(part: u64, whole: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(NEARLY_ALL)
}

/// Returns a number with a noun: `1 thread`, `2 threads`, `2 processes`, `2 switches`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = match (number, noun.ends_with('s') || noun.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {noun}{plural}")
}
