//! Helpers for numbers and folders.

use std::fs;
use std::path::{Path, PathBuf};

/// Asserts that `measured` is within `tolerance` of `truth`. All three have the same unit.
///
/// # Panics
///
/// Panics if the difference is larger than `tolerance`.
#[track_caller]
pub fn assert_close(what: &str, measured: u64, truth: u64, tolerance: u64) {
    let difference = measured.abs_diff(truth);
    assert!(
        difference <= tolerance,
        "{what}: measured {measured}, should be {truth} within {tolerance}, is off by {difference}"
    );
}

/// Returns `parts` thousandths of a value.
pub fn per_mille(value: u64, parts: u64) -> u64 {
    value * parts / 1000
}

/// Returns the median: the upper one of the two middle values if their number is even.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the minimum and the maximum of some values.
pub fn spread(values: &[f64]) -> (f64, f64) {
    let fold = |choose: fn(f64, f64) -> f64, start| values.iter().copied().fold(start, choose);
    (
        fold(f64::min, f64::INFINITY),
        fold(f64::max, f64::NEG_INFINITY),
    )
}

/// Returns all files below a folder, sorted. Symbolic links are not followed.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 100.0]), 3.0);
    }

    #[test]
    #[should_panic(expected = "off by 11")]
    fn what_is_too_far_off_fails() {
        assert_close("x", 111, 100, per_mille(1000, 10));
    }
}
