//! The parts of a table that is measured: which of them were asked for, and one
//! that fails does not take the others along.

use std::env;
use std::ffi::CStr;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::Turn;
use crate::printed::table::{Table, Verdict};

/// A part of a table: its name, and what adds its rows.
pub type Part = (&'static str, fn(&mut Table));

/// What was asked for on the command line, by words of names.
#[derive(Debug)]
pub struct Wanted(Vec<String>);

impl Wanted {
    /// Reads the command line. What cargo adds to it begins with a dash.
    pub fn read() -> Wanted {
        let words = env::args().skip(1);
        Wanted(words.filter(|word| !word.starts_with('-')).collect())
    }

    /// Whether a name has one of the words, or there are none.
    pub fn has(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|word| name.contains(word.as_str()))
    }
}

/// Has panics told without the way there: what is missed is no bug of ours.
pub fn tell_panics_briefly() {
    panic::set_hook(Box::new(|panic| eprintln!("    {panic}")));
}

/// Where nobody has mounted tracefs, others that profile find no tracepoint: this
/// process and what it starts see it in its place then.
fn mount_tracefs() {
    const TRACEFS: &str = "/sys/kernel/tracing";
    if Path::new(TRACEFS).join("events").exists() {
        return;
    }
    // SAFETY: nothing of this process is shared with another mount namespace yet.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.expect("a mount namespace, as root");
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )
    .expect("a mount namespace of our own");
    mount(
        "tracefs",
        TRACEFS,
        "tracefs",
        MountFlags::empty(),
        None::<&CStr>,
    )
    .expect("mount tracefs, as root");
}

/// Measures the parts that were asked for, and prints them as one table. Failure
/// when a row was missed or a part could not be measured.
pub fn measure(columns: &[&str], parts: &[Part]) -> ExitCode {
    let _turn = Turn::take();
    tell_panics_briefly();
    mount_tracefs();
    let wanted = Wanted::read();
    let mut table = Table::new(columns);
    for (name, add_rows) in parts {
        if !wanted.has(name) {
            continue;
        }
        eprintln!("==> {name}");
        if catch_unwind(AssertUnwindSafe(|| add_rows(&mut table))).is_err() {
            let mut cells = vec![""; columns.len()];
            cells[0] = name;
            cells[1] = "could not be measured";
            table.row(&cells, Verdict::Missed);
        }
    }
    table.finish()
}
