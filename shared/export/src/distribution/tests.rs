#![allow(clippy::unwrap_used)]
use profile::spans::{Apart, Distribution, Histogram, Kind, Owner, Row, Scale};

use super::*;
use crate::fixture::written;

/// Builds a distribution from the lengths of each owner's spans, in ns.
fn distribution(scale: Scale, apart: Option<Apart>, rows: &[&[u64]]) -> Distribution {
    let rows = rows.iter().zip(7..).map(|(lengths, id)| {
        let mut histogram = Histogram::new(scale);
        for &length in *lengths {
            histogram.add(length);
        }
        let comm = (id == 7).then(|| "worker".to_owned());
        Row {
            owner: apart.map(|_| Owner { id, comm }),
            histogram,
        }
    });
    Distribution {
        kind: Kind::Running,
        apart,
        scale,
        start_ns: 1_000_000_000,
        end_ns: 2_000_000_000,
        rows: rows.collect(),
    }
}

fn log2_of(distribution: &Distribution, time: Option<&str>, summary: bool) -> String {
    written(|writer| log2::write(distribution, time, summary, writer))
}

fn percentiles_of(distribution: &Distribution, time: Option<&str>) -> String {
    written(|writer| percentiles::write(distribution, time, writer))
}

/// Lengths of spans in ns, from less than 1 µs to 900 µs.
const FEW: &[u64] = &[500, 1_999, 3_999, 9_000, 9_500, 900_000];

#[test]
fn golden_log2() {
    let one = distribution(Scale::Microseconds, None, &[FEW]);
    assert_eq!(
        log2_of(&one, Some("12:34:56"), true),
        include_str!("golden/log2.txt")
    );
    assert_eq!(
        log2_of(&one, None, false),
        include_str!("golden/log2.txt")
            .replacen("12:34:56\n", "", 1)
            .split_once("\navg")
            .unwrap()
            .0
    );
}

#[test]
fn golden_log2_by_owner() {
    let rows: &[&[u64]] = &[FEW, &[4_000_000, 70_000_000]];
    let processes = distribution(Scale::Milliseconds, Some(Apart::Processes), rows);
    assert_eq!(
        log2_of(&processes, None, true),
        include_str!("golden/log2_processes.txt")
    );
    let threads = distribution(Scale::Microseconds, Some(Apart::Threads), &rows[..1]);
    assert!(log2_of(&threads, None, false).starts_with("\n\ntid = 7 worker\n\n     usecs  "));
}

#[test]
fn more_than_32_rows_are_wider() {
    let long = distribution(Scale::Microseconds, None, &[&[1_000, 5_000_000_000_000]]);
    assert_eq!(
        log2_of(&long, None, false),
        include_str!("golden/log2_wide.txt")
    );
}

#[test]
fn golden_percentiles() {
    let rows: &[&[u64]] = &[FEW, &[4_000_000, 70_000_000]];
    let threads = distribution(Scale::Microseconds, Some(Apart::Threads), rows);
    let one = distribution(Scale::Milliseconds, None, &rows[..1]);
    let text = percentiles_of(&threads, Some("12:34:56")) + &percentiles_of(&one, None);
    assert_eq!(text, include_str!("golden/percentiles.txt"));
}

#[test]
fn golden_hgrm() {
    let one = distribution(Scale::Microseconds, None, &[FEW]);
    assert_eq!(
        written(|writer| hgrm::write(&one.sum(), writer)),
        include_str!("golden/turns.hgrm")
    );
    let none = Histogram::new(Scale::Microseconds);
    assert!(
        written(|writer| hgrm::write(&none, writer)).contains("Total count    =            0]")
    );
}

#[test]
fn golden_json() {
    let processes = distribution(Scale::Microseconds, Some(Apart::Processes), &[FEW, &[7]]);
    let one = distribution(Scale::Microseconds, None, &[&[7]]);
    let text = written(|writer| json::write(&processes, Some("12:34:56"), writer))
        + &written(|writer| json::write(&one, None, writer));
    assert_eq!(text, include_str!("golden/spans.json"));
}
