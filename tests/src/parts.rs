//! Parts of a measured table. The command line chooses parts. If a part panics, the other parts are
//! still measured.

use std::env;
use std::ffi::CStr;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::Turn;
use crate::printed::table::{Table, Verdict};

/// Part of a table: its name, and the function that adds its rows.
pub type Part = (&'static str, fn(&mut Table));

/// Words from the command line that choose parts by name.
#[derive(Debug)]
pub struct Wanted(Vec<String>);

impl Wanted {
    /// Reads the command line. Arguments with a leading dash come from cargo and are skipped.
    pub fn read() -> Wanted {
        let words = env::args().skip(1);
        Wanted(words.filter(|word| !word.starts_with('-')).collect())
    }

    /// Returns whether the name contains one of the words. Without words every name is chosen.
    pub fn has(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|word| name.contains(word.as_str()))
    }
}

/// Makes panics print one line without a backtrace, because a missed outcome is no bug of the test.
pub fn print_panics_briefly() {
    panic::set_hook(Box::new(|panic| eprintln!("    {panic}")));
}

/// Mounts tracefs for this process and its children if it is not mounted. Other profilers find no
/// tracepoints without it.
fn mount_tracefs() {
    const TRACEFS: &str = "/sys/kernel/tracing";
    if Path::new(TRACEFS).join("events").exists() {
        return;
    }
    // SAFETY: this process shares nothing with another mount namespace yet.
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

/// Measures the chosen parts, and prints them as one table. Returns failure if a row was missed or
/// a part could not be measured.
pub fn measure(columns: &[&str], parts: &[Part]) -> ExitCode {
    let _turn = Turn::take();
    print_panics_briefly();
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
