//! The names that the kernel gives when it is asked for each are those that it lists. Needs
//! root.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::fs;

use symbolize::{AskKernel, Frame, Symbolizer};

/// Frames of kernel addresses.
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

/// Each function's start and its name, as listed. BPF programs are left out: others come
/// and go.
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

/// Kernels before 5.13 cannot be asked.
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
    let told = frames(&addresses, Some(ask));
    let listed = frames(&addresses, None);
    for (told, listed) in told.iter().zip(&listed) {
        // Of several names of a function either may take another one.
        let start = told
            .address
            .zip(told.offset)
            .map_or(0, |(at, offset)| at - offset);
        let is_listed = told.name == listed.name || names.contains(&(start, &*told.name));
        assert!(is_listed, "{told:?}, listed {listed:?}");
        assert_eq!((told.offset, &told.module), (listed.offset, &listed.module));
    }
    let same = told
        .iter()
        .zip(&listed)
        .filter(|(told, listed)| told.name == listed.name);
    assert!(same.count() > addresses.len() / 10 * 9);
}
