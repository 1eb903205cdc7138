//! A C program that embeds an interpreter and starts its threads itself.

use std::path::PathBuf;
use std::process::Command;

use systemscope_tests::programs::pythons::{Python, pythons};
use systemscope_tests::{Turn, WorkloadBuilder, accounts_at_rest};

use super::{functions, measure};

/// Function of `embedding.c` in each thread, and the Python functions that this function runs.
const C: &str = "run_script";
const PYTHON: [(&str, &str); 3] = [
    ("<string>:<module>", "<string>"),
    ("<string>:outer", "<string>"),
    ("<string>:inner", "<string>"),
];

/// Returns the interpreter's shared library, if any, and the prefix of the interpreter's files.
fn library(python: &Python) -> (Option<PathBuf>, String) {
    const ASK: &str = "import sys, sysconfig; of = sysconfig.get_config_var; \
        print(of('LIBDIR'), of('MULTIARCH') or '.', of('INSTSONAME'), sys.base_prefix, sep='\\n')";
    let output = Command::new(&python.path).args(["-c", ASK]).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [folder, architecture, name, prefix] = lines[..] else {
        panic!("{text}")
    };
    let folder = PathBuf::from(folder);
    let places = [folder.join(architecture).join(name), folder.join(name)];
    let library = places.into_iter().find(|path| path.exists());
    (library, prefix.to_owned())
}

#[test]
#[ignore = "compiles a program against each interpreter"]
fn a_program_that_embeds_an_interpreter_has_its_frames() {
    let _turn = Turn::share();
    let mut embedded = 0;
    for python in pythons() {
        let (Some(library), prefix) = library(&python) else {
            continue;
        };
        embedded += 1;
        let library = library.display().to_string();
        let workload = WorkloadBuilder::new("embedding").args(&[&library]);
        let workload = workload.start_with(|_, command| {
            command.env("PYTHONHOME", &prefix);
        });
        accounts_at_rest(workload.pid());
        let (_, stacks) = measure(workload.pid(), workload.folder(), "");
        assert_eq!(stacks.len(), 3, "{library}: {stacks:#?}");
        for stack in &stacks {
            assert_eq!(functions(&stack.calls()), PYTHON, "{library}: {stack:#?}");
            let place = |name: &str| stack.frames.iter().position(|frame| frame.name == name);
            assert!(place(C) < place(PYTHON[0].0), "{library}: {stack:#?}");
            assert!(place(C).is_some(), "{library}: {stack:#?}");
        }
    }
    assert!(embedded > 0, "no Python of this machine can be embedded");
}
