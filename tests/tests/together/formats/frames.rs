//! Details of frames: inlined functions, source lines, offsets and addresses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

use systemscope_tests::{Folded, Tool, Turn, WorkloadBuilder};

fn folded(pid: u32, flags: &str) -> Folded {
    let tool = Tool::new("oncputime")
        .pid(pid)
        .args("-U -F 999 --duration 1");
    Folded::parse(&tool.args(flags).run().succeeded().stdout)
}

#[test]
fn inlined_functions_are_frames_with_their_lines() {
    let _turn = Turn::share();
    let workload = WorkloadBuilder::new("inlined")
        .flag("-g")
        .flag("-O2")
        .start();
    let pid = workload.pid();
    // The symbol table has only the function into which the other functions are inlined.
    let plain = folded(pid, "");
    assert!(plain.total() > 0 && !plain.lines.iter().any(|line| line.has("innermost")));
    let inlined = folded(pid, "--inline -a");
    let whole = inlined.only(|line| {
        let names: Vec<&str> = line.frames.iter().map(String::as_str).collect();
        names.ends_with(&["outermost", "between_[i]", "innermost_[i]"])
    });
    assert!(whole.total() * 10 >= inlined.total() * 9, "{inlined}");
    let lines = folded(pid, "--inline --srcline");
    let burning = lines.only(|line| {
        let leaf = line.frames.last().map_or("", String::as_str);
        leaf.starts_with("innermost (inlined.c:")
    });
    assert!(burning.total() * 10 >= lines.total() * 9, "{lines}");
}

#[test]
fn offsets_and_addresses_lead_to_the_function() {
    let _turn = Turn::share();
    let workload = WorkloadBuilder::new("inlined")
        .flag("-g")
        .flag("-O2")
        .start();
    let text = folded(workload.pid(), "-s --addresses");
    let leaf = text
        .lines
        .iter()
        .find_map(|line| {
            line.frames
                .last()
                .filter(|leaf| leaf.starts_with("outermost+0x"))
        })
        .unwrap_or_else(|| panic!("{text}"));
    let (_, address) = leaf
        .split_once(" [inlined+0x")
        .expect("the function's place in its file");
    let address = format!("0x{}", address.trim_end_matches(']'));
    let found = Command::new("addr2line")
        .args(["-f", "-e"])
        .arg(workload.binary())
        .arg(&address)
        .output()
        .unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let function = found.lines().next().unwrap();
    assert!(
        ["innermost", "between", "outermost"].contains(&function),
        "{leaf}: {found}"
    );
}
