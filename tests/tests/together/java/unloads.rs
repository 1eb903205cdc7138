//! Classes that the machine unloads while it is measured. Other classes get their memory.

use std::process::Command;
use std::thread::sleep;

use systemscope_tests::programs::javas::{Java, compile, java};
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Tool, Turn, Workload, patiently};

use super::{MARK, WARM_UP};

/// Classes of the program. The thread `loads-N` runs the class with its number.
const CLASSES: [&str; 3] = ["Class0.", "Class1.", "Class2."];

/// Checks that no frame has the name of a class that another thread runs.
fn assert_classes_are_right(java: &Java) {
    let folder = scratch();
    compile(&source("Unloads.java"), folder.path());
    let mut command = Command::new(&java.path);
    command.arg("-cp").arg(folder.path()).arg("Unloads");
    let workload = Workload::run(command, java.path.clone(), folder);
    sleep(WARM_UP);
    for (tool, flags) in [("oncputime", "-F 499"), ("offcputime", "")] {
        patiently(|| {
            let tool = Tool::new(tool).args(flags).pid(workload.pid());
            let folded = tool.folded(3.0);
            let (mut right, mut gone) = (0, 0);
            for line in &folded.lines {
                let Some(number) = line.comm.strip_prefix("loads-") else {
                    continue;
                };
                let own = format!("Class{number}.");
                let foreign = CLASSES.iter().filter(|class| **class != own);
                let has = |class: &&&str| line.frames.iter().any(|it| it.starts_with(**class));
                assert_eq!({ foreign }.find(has), None, "{java:?}: {line}");
                if line.has(&format!("{own}inner")) {
                    right += line.value;
                } else if line.frames.iter().any(|frame| frame.starts_with(MARK)) {
                    gone += line.value;
                }
            }
            assert!(right > 0 && right > gone / 10, "{java:?}: {folded}");
        });
    }
}

#[test]
fn classes_that_are_unloaded_are_not_taken_for_others() {
    let _turn = Turn::share();
    assert_classes_are_right(&java());
}
