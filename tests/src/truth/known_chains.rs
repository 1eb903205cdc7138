//! The workloads `chains` and `exceptions`. They have no frame pointers, and the call chains of
//! their threads are known.

use std::collections::BTreeMap;
use std::iter::once;

use crate::{Chain, Language, Workload, WorkloadBuilder, accounts_at_rest};

/// Workload with the known calls of its threads.
#[derive(Debug)]
pub struct Program {
    name: &'static str,
    language: Language,
    /// Calls of each thread at its wait, by thread name, outermost first.
    pub calls: BTreeMap<&'static str, Vec<&'static str>>,
}

/// Links of the call chains in the C workload `chains`. Each thread calls the links in its own
/// rotated order.
const LINKS: [&[&str]; 8] = [
    &["in_small"],
    &["in_array"],
    &["in_vla"],
    &["in_aligned"],
    &["in_many", "with_many"],
    &["after_tail"],
    &["in_saved"],
    &["in_huge"],
];

/// Returns the calls of a thread of the C workload `chains`: its root and loop, the links rotated
/// by its number, and its end.
pub fn turned(root: [&'static str; 2], number: usize, end: &[&'static str]) -> Vec<&'static str> {
    let links = (0..LINKS.len()).map(|link| LINKS[(number + link) % LINKS.len()]);
    once(&root[..])
        .chain(links)
        .chain(once(end))
        .flatten()
        .copied()
        .collect()
}

/// Root and loop of the main thread of `chains` in C.
pub const MAIN: [&str; 2] = ["main", "main_loop"];
/// Root and loop of its other threads.
pub const THREAD: [&str; 2] = ["thread_root", "thread_loop"];

impl Program {
    /// Returns the C workload, with all kinds of frames that compilers lay out.
    pub fn c() -> Program {
        let ends: [(_, &[_]); 9] = [
            ("nanosleep", &["end_nanosleep"]),
            ("read", &["end_read"]),
            ("cond_wait", &["end_cond_wait"]),
            ("futex", &["end_futex"]),
            ("epoll_wait", &["end_epoll_wait"]),
            ("signal", &["end_signal", "on_signal", "in_handler"]),
            (
                "other_stack",
                &["end_other_stack", "on_signal", "in_handler"],
            ),
            (
                "interrupted",
                &["end_interrupted", "on_signal", "in_handler"],
            ),
            ("fault", &["end_fault", "fault", "on_signal", "in_handler"]),
        ];
        let mut calls = BTreeMap::from([
            ("chains", turned(MAIN, 0, &["end_nanosleep"])),
            ("leaver", vec!["leave_with_input"]),
            ("waker", vec!["wake"]),
        ]);
        for (index, (comm, end)) in ends.into_iter().enumerate() {
            calls.insert(comm, turned(THREAD, index + 1, end));
        }
        Program {
            name: "chains",
            language: Language::C,
            calls,
        }
    }

    /// Returns the C++ workload, with exceptions and the frames that they cause. gdb alone checks
    /// lambdas and templates.
    pub fn cpp() -> Program {
        let threads: [(_, &[_]); 5] = [
            ("catch", &["catch_in_catch", "catch_it", "end_nanosleep"]),
            (
                "destructor",
                &[
                    "catches_cleanup",
                    "cleans_up",
                    "wait_in_destructor",
                    "end_nanosleep",
                ],
            ),
            (
                "function",
                &["through_function", "from_lambda", "end_nanosleep"],
            ),
            ("callback", &["sorts", "compare", "end_nanosleep"]),
            (
                "terminate",
                &[
                    "terminates",
                    "not_throwing",
                    "pass_it",
                    "on_terminate",
                    "end_nanosleep",
                ],
            ),
        ];
        let threads = threads.map(|(comm, calls)| (comm, [&THREAD[..], calls].concat()));
        Program {
            name: "exceptions",
            language: Language::Cpp,
            calls: threads
                .into_iter()
                .chain([("exceptions", vec!["main"])])
                .collect(),
        }
    }

    /// Returns the Rust workload, with the waits of the standard library. gdb alone checks the
    /// frames of the library, the frames of closures, and the program's `main`.
    pub fn rust() -> Program {
        let threads: [(_, &[_]); 5] = [
            ("chains", &["end_sleep"]),
            ("park", &["end_park"]),
            ("condvar", &["end_condvar"]),
            ("read", &["end_read"]),
            ("panic", &["end_panic", "cleans_up", "end_sleep"]),
        ];
        let links = ["thread_loop", "in_closure", "in_array", "in_boxed"];
        let threads = threads.map(|(comm, end)| (comm, [&links[..], end].concat()));
        Program {
            name: "chains",
            language: Language::Rust,
            calls: threads
                .into_iter()
                .chain([("leaver", vec![]), ("waker", vec![])])
                .collect(),
        }
    }

    /// Returns a builder for the workload, with `mode` as its argument.
    pub fn builder(&self, mode: &str) -> WorkloadBuilder {
        WorkloadBuilder::new(self.name)
            .language(self.language)
            .without_frame_pointers()
            .args(&[mode])
    }

    /// Starts the workload in `mode`.
    pub fn start(&self, mode: &str) -> Workload {
        self.builder(mode).start()
    }

    /// Starts the workload with waits that never end, and returns when all its threads wait.
    pub fn hold(&self) -> Workload {
        let held = self.start("hold");
        accounts_at_rest(held.pid());
        held
    }

    /// Returns the whole call chains of the threads of a held workload, by thread name.
    pub fn chains(&self, held: &Workload) -> BTreeMap<String, Chain> {
        Chain::all_of(held.pid(), &self.calls)
    }
}
