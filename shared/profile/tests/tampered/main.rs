//! Folded stacks that were tampered with: they must neither stop the reader nor
//! take more time and memory than their size warrants.
#![allow(clippy::unwrap_used)]

mod check;

use std::path::Path;
use std::{env, fs};

use check::check;

#[global_allocator]
static ALLOCATOR: tamper::Measured = tamper::Measured;

/// One for each thing that the text says by convention.
const SEEDS: [&str; 4] = [
    "main;f;g 17\nmain;f 3\nmy thread 2 7\n",
    "a-b/c-12/34;main;f(int, int);schedule_[k]_[o] 1500\nx-1/2;[Missed User Stack];-;read_[r] 1\n",
    "a-1/2;main;-;wait_[o];--;wake;-;put;main;b-3/4;--;tick;[timer] 5\n",
    "a-1/2;f_[c] 18446744073709551615\n\r\na-1/2;f_[c] 1",
];

fn seeds() -> Vec<Vec<u8>> {
    SEEDS.map(|seed| seed.as_bytes().to_vec()).to_vec()
}

#[test]
fn tampered_stacks_do_no_harm() {
    tamper::tamper("folded texts", &seeds(), check);
}

#[test]
fn a_line_of_nothing_but_delimiters_is_read() {
    for piece in [&b";"[..], b"--;", b"-;", b";--;a", b"\xff;", b"_[o];"] {
        let mut line = b"x;".to_vec();
        line.extend(piece.repeat(100_000));
        line.extend(b"x 1\n");
        check(&line);
    }
}

/// `SYSTEMSCOPE_FUZZ_SEEDS` names a directory with a folder for the fuzz target,
/// to which the seeds are written.
#[test]
fn seeds_for_the_fuzz_target() {
    let directory = env::var_os("SYSTEMSCOPE_FUZZ_SEEDS");
    for (index, seed) in seeds().iter().enumerate() {
        let read = profile::folded::read(&seed[..], profile::Unit::Samples, false).unwrap();
        assert!(!read.samples.is_empty(), "seed {index}");
        if let Some(directory) = &directory {
            let folder = Path::new(directory).join("folded");
            fs::write(folder.join(format!("seed-{index}")), seed).unwrap();
        }
    }
}
