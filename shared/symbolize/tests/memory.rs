//! Memory does not grow with the size of the symbol tables.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::fmt::Write;
use std::process::Command;

use common::{Running, Workshop, names, run, symbolizer};

/// Most memory that this process has had resident, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn half_a_million_symbols_cost_next_to_nothing() {
    const FUNCTIONS: usize = 500_000;
    let workshop = Workshop::new();
    let mut source = String::from(".text\n");
    for number in 0..FUNCTIONS {
        let name = format!("function_with_quite_a_long_name_{number}");
        writeln!(
            source,
            ".globl {name}\n.type {name},@function\n{name}: ret\n.size {name},1"
        )
        .unwrap();
    }
    std::fs::write(workshop.path("many.s"), source).unwrap();
    let main = r#"
#include <stdio.h>
#include <unistd.h>
extern char function_with_quite_a_long_name_0;
int main(void) { printf("%p\n", (void *)&function_with_quite_a_long_name_0); fflush(stdout); pause(); }
"#;
    std::fs::write(workshop.path("main.c"), main).unwrap();
    let program = workshop.path("program");
    let sources = [workshop.path("main.c"), workshop.path("many.s")];
    run(Command::new("cc").arg("-o").arg(&program).args(sources));

    let running = Running::start(&program);
    let before = peak();
    let mut symbolizer = symbolizer(&[]);
    let wanted: Vec<u64> = (0..FUNCTIONS as u64).step_by(1000).collect();
    let addresses: Vec<u64> = wanted
        .iter()
        .map(|number| running.addresses[0] + number + 1)
        .collect();
    let located = symbolizer.locate(running.process(), &addresses, false);
    let found = names(&mut symbolizer, &located);
    for (name, number) in found.iter().zip(wanted) {
        assert_eq!(*name, format!("function_with_quite_a_long_name_{number}"));
    }
    let grown = peak() - before;
    assert!(grown < 8 << 10, "{grown} KiB");
}
