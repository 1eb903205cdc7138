//! Time to build an unwind table.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Instant;

use systemscope_tests::printed::table::{Table, Verdict};

use crate::figures::{WALL_CLOCK, format_spread};

const ROUNDS: usize = 5;
const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";
const FOLDERS: [&str; 4] = [
    "/usr/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/bin",
];

/// Measures the tables of libc and of this machine's largest library, with the files in the page
/// cache.
pub(crate) fn build(table: &mut Table) {
    let files = FOLDERS
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten())
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| Some((entry.metadata().ok()?.len(), entry.path())));
    let largest = files.max().map(|(_, path)| path);
    for path in [PathBuf::from(LIBC)].into_iter().chain(largest) {
        let Ok(file) = File::open(&path) else {
            continue;
        };
        let mut rows = 0;
        let times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let begun = Instant::now();
                rows = unwind::build(&file).expect("a table").table.rows.len();
                begun.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let size = file.metadata().map_or(0, |data| data.len() >> 20);
        let what = format!("ms for the table of {name}, {size} MiB, {rows} rows");
        let cells = [&what, "unwind", &format_spread(&times, 1), WALL_CLOCK, ""];
        table.row(&cells, Verdict::Figure);
    }
}
