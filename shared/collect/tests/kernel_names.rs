//! Compares the kernel's answers for single addresses with the names that the kernel lists. Needs
//! root.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::fs;

use symbolize::{AskKernel, Frame, Symbolizer};

/// Returns the frames of kernel addresses. With `ask`, the kernel names them.
fn frames(addresses: &[u64], ask: Option<AskKernel>) -> Vec<Frame> {
    let mut symbolizer = Symbolizer::new();
    if let Some(ask) = ask {
        symbolizer.ask_kernel(ask);
    }
    let located = symbolizer.locate_kernel(addresses, true);
    symbolizer.resolve(located.iter().copied());
    let frames = located.iter().map(|location| symbolizer.frame(*location));
    frames.collect()
}

/// Returns the start and the name of each function in the list. Leaves out BPF programs, because
/// they come and go during the test.
fn functions(symbols: &str) -> Vec<(u64, &str)> {
    let functions = symbols.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let start = u64::from_str_radix(fields.next()?, 16).ok()?;
        let is_function = matches!(fields.next()?, "t" | "T" | "w" | "W");
        let name = fields.next()?;
        let is_bpf = fields.next() == Some("[bpf]");
        (is_function && !is_bpf).then_some((start, name))
    });
    functions.filter(|(start, _)| *start > 0).collect()
}

/// Returns the version of the kernel. Kernels before 5.13 cannot be asked for names.
fn kernel_release() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn the_kernel_tells_what_it_lists() {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap();
    let functions = functions(&symbols);
    let names: HashSet<_> = functions.iter().copied().collect();
    let some = functions.iter().step_by(17);
    let addresses: Vec<u64> = some.map(|(start, _)| start + 2).collect();
    assert!(addresses.len() > 1000);
    let ask = |addresses: &[u64]| loader::kernel_names(addresses).ok();
    if kernel_release() >= (5, 13) {
        let names = loader::kernel_names(&addresses[..1]).unwrap();
        assert!(names[0].contains("+0x"), "{names:?}");
    }
    let asked = frames(&addresses, Some(ask));
    let listed = frames(&addresses, None);
    for (asked, listed) in asked.iter().zip(&listed) {
        // If a function has several names, the kernel and the list may choose different ones.
        let start = asked
            .address
            .zip(asked.offset)
            .map_or(0, |(at, offset)| at - offset);
        let is_listed = asked.name == listed.name || names.contains(&(start, &*asked.name));
        assert!(is_listed, "{asked:?}, listed {listed:?}");
        assert_eq!(
            (asked.offset, &asked.module),
            (listed.offset, &listed.module)
        );
    }
    let same = asked
        .iter()
        .zip(&listed)
        .filter(|(asked, listed)| asked.name == listed.name);
    assert!(same.count() > addresses.len() / 10 * 9);
}
