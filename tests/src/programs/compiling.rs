//! Load of many short processes: a C compiler that runs over and over.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cpus_online;
use crate::programs::sources;
use crate::programs::workload::scratch;
use crate::truth::account::children_ns;

/// Names of the threads that compile: the driver, its children, and clang, which `cc` can be.
pub const COMPILERS: [&str; 4] = ["cc", "cc1", "as", "clang"];

/// Result of [`compile_for`].
#[derive(Clone, Copy, Debug)]
pub struct Compiled {
    /// Number of compilations.
    pub times: u64,
    /// CPU time of the compilers in ns, accurate to a tick of the kernel.
    pub cpu_ns: u64,
}

/// Compiles the workloads for `length`, with one compiler for each CPU, and waits for the last
/// compiler to end.
///
/// # Panics
///
/// Panics if there is no compiler.
pub fn compile_for(length: Duration) -> Compiled {
    let folder = scratch();
    let mut sources = sources::all();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    let before = children_ns();
    let end = Instant::now() + length;
    let times = thread::scope(|scope| {
        let compile = |number| {
            let (folder, sources) = (folder.path(), &sources);
            move || {
                let object = folder.join(format!("{number}.o"));
                let until_end = sources.iter().cycle().take_while(|_| Instant::now() < end);
                until_end.map(|source| compile(source, &object)).count() as u64
            }
        };
        let threads: Vec<_> = (0..cpus_online())
            .map(|number| scope.spawn(compile(number)))
            .collect();
        let times = threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread that compiles"));
        times.sum()
    });
    Compiled {
        times,
        cpu_ns: children_ns() - before,
    }
}

fn compile(source: &Path, object: &Path) {
    // Some sources need headers of libraries that may not be installed. Their compilation fails
    // early.
    Command::new("cc")
        .args(["-O2", "-c", "-I"])
        .arg(sources::folder())
        .arg("-o")
        .arg(object)
        .arg(source)
        .stderr(Stdio::null())
        .status()
        .expect("start cc");
}
