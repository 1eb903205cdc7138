//! Targets with misleading files or names, and two instances of a tool on one target.

use std::collections::HashSet;
use std::fs;

use systemscope_tests::printed::output::files_below;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Folded, Tool, Workload, WorkloadBuilder};

use crate::fault::{End, Fault, held};
use crate::run::{Run, TOOLS, arguments, with_each};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "another program takes the place of the target's file while it runs",
        tools: "all",
        outcome: "exit 0; functions by their names in the file that runs",
        body: the_file_is_replaced,
    },
    Fault {
        name: "hostile thread names",
        tools: "oncputime, offcputime, offwaketime",
        outcome: "exit 0; one line a stack, no control characters, all threads there",
        body: hostile_names_in_stacks,
    },
    Fault {
        name: "hostile thread names",
        tools: "wallclock",
        outcome: "exit 0; no file outside of its folder",
        body: hostile_names_in_files,
    },
    Fault {
        name: "two instances of each at once",
        tools: "all",
        outcome: "exit 0; in each a sleep is there with all of the window",
        body: two_at_once,
    },
];

fn the_file_is_replaced() -> End {
    let other = scratch();
    let naps = WorkloadBuilder::new("naps").build_into(other.path());
    held(with_each(&TOOLS, |tool| {
        let simple = Workload::plain("simple");
        let run = Run::start(tool, simple.pid(), 2.0).attached();
        // The new file is on the same file system, as a package manager would have it.
        let beside = simple.folder().join("new");
        fs::copy(&naps, &beside).expect("copy a program");
        fs::rename(&beside, simple.binary()).expect("replace a program");
        run.finish().whole_sleep_us(2.0).to_string()
    }))
}

fn hostile_names_in_stacks() -> End {
    let names = Workload::plain("names");
    held(with_each(&TOOLS[..3], |tool| {
        let flags = arguments(tool, names.pid(), 1.5);
        let finished = Run::start_as(tool, Tool::new(tool).args(&flags).arg("--per-thread"))
            .finish()
            .finished
            .succeeded();
        // The parser rejects text that is not folded.
        let folded = Folded::parse_per_thread(&finished.stdout);
        let threads: HashSet<_> = folded.lines.iter().filter_map(|line| line.thread).collect();
        assert!(
            threads.len() >= 15,
            "{tool} shows {} threads of 15",
            threads.len()
        );
        format!("{} threads", threads.len())
    }))
}

fn hostile_names_in_files() -> End {
    let names = Workload::plain("names");
    let folder = scratch();
    let inside = folder.path().join("a/b/c");
    fs::create_dir_all(&inside).expect("a folder");
    let run = Tool::new("wallclock").args(&arguments("wallclock", names.pid(), 1.0));
    run.in_folder(&inside).run().succeeded();
    let files = files_below(folder.path());
    let stray: Vec<_> = files
        .iter()
        .filter(|path| !path.starts_with(&inside))
        .collect();
    assert!(stray.is_empty(), "files outside of the folder: {stray:?}");
    for path in files
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "folded"))
    {
        Folded::parse(&fs::read(path).expect("folded stacks"));
    }
    held(format!("{} files, all inside", files.len()))
}

fn two_at_once() -> End {
    let simple = Workload::plain("simple");
    let pairs = TOOLS.map(|tool| [(); 2].map(|()| Run::start(tool, simple.pid(), 2.0)));
    let slept: Vec<_> = pairs
        .into_iter()
        .flatten()
        .map(|run| {
            let tool = run.tool;
            format!("{tool} {}", run.finish().whole_sleep_us(2.0))
        })
        .collect();
    held(slept.join("; "))
}
