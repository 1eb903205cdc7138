//! In the copy of the tree in which all changes are built in: which of them is made.
//!
//! `MUTANT` is the change's number; none is made where it is not set. `MUTANTS_SEEN` names a
//! file that each function with changes is appended to when it first runs.
#![allow(missing_docs, unreachable_pub, clippy::all, dead_code)]

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

const FUNCTIONS: usize = 1 << 14;
static SEEN: [AtomicBool; FUNCTIONS] = [const { AtomicBool::new(false) }; FUNCTIONS];

static CHOICE: OnceLock<(u32, Option<OsString>)> = OnceLock::new();
/// 0 before the variables are read, 1 while they are, then 2.
static STAGE: AtomicU8 = AtomicU8::new(0);

/// The number of the change that is made, in the function whose first change has this number.
pub(crate) fn made(first: u32) -> u32 {
    if STAGE.load(Ordering::Acquire) != 2 {
        // A changed allocator is asked for memory by what follows.
        if STAGE.swap(1, Ordering::AcqRel) != 0 {
            return 0;
        }
        let number = env::var("MUTANT").ok().and_then(|text| text.parse().ok());
        let _ = CHOICE.set((number.unwrap_or(0), env::var_os("MUTANTS_SEEN")));
        STAGE.store(2, Ordering::Release);
    }
    let Some((number, seen)) = CHOICE.get() else {
        return 0;
    };
    if let Some(path) = seen
        && !SEEN[first as usize].swap(true, Ordering::Relaxed)
        && let Ok(mut file) = File::options().append(true).create(true).open(path)
    {
        let _ = file.write_all(format!("{first}\n").as_bytes());
    }
    *number
}

/// An iterator that is one of two.
#[derive(Clone)]
pub(crate) enum One<A, B> {
    First(A),
    Second(B),
}

impl<A: Iterator, B: Iterator<Item = A::Item>> Iterator for One<A, B> {
    type Item = A::Item;

    fn next(&mut self) -> Option<A::Item> {
        match self {
            One::First(iterator) => iterator.next(),
            One::Second(iterator) => iterator.next(),
        }
    }
}
