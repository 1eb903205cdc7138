//! Kernel functions: from the kernel, asked for each, or from `/proc/kallsyms`.
//!
//! The file is streamed past the wanted addresses: it lists every symbol's
//! type and start, and in brackets its module. It has no sizes, so a symbol
//! reaches up to the next one, of whatever type; beyond the kernel's text,
//! and beyond a module, nothing is named.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Result};

use crate::elf::find_build_id;
use crate::lines::{for_each_line, hexadecimal};
use crate::naming::demangle::demangle;
use crate::naming::wanted::Wanted;

const LARGEST: u64 = 1 << 30;
const LONGEST_LINE: usize = 4 << 10;
/// What BPF programs and trampolines do not exceed. The next symbol may be far
/// away, and what lies between need not be listed.
const LARGEST_GENERATED: u64 = 64 << 10;
/// Where the kernel's text starts and ends: no functions.
const BOUNDARIES: [&str; 8] = [
    "_text",
    "_stext",
    "_etext",
    "_sinittext",
    "_einittext",
    "__entry_text_start",
    "__entry_text_end",
    "_end",
];

/// A kernel function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name, demangled.
    pub(crate) name: String,
    /// As it is listed, where that differs.
    pub(crate) system_name: Option<String>,
    /// The module that it is in; `None` for the kernel proper.
    pub(crate) module: Option<String>,
    /// Where it begins.
    pub(crate) start: u64,
}

/// Asks the kernel what it calls each of the addresses, as `%pS` has it (symbol_string()
/// of lib/vsprintf.c): `name+offset/size [module]`. `None` if it cannot be asked.
pub type AskKernel = fn(&[u64]) -> Option<Vec<String>>;

/// More than this the file names in less time than the kernel when asked for each.
const MOST_ASKED: usize = 10_000;

/// What names the wanted addresses, in their order; `None` if the kernel
/// hides its addresses from us (`kernel.kptr_restrict`).
///
/// # Errors
/// If `/proc/kallsyms` cannot be read.
pub(crate) fn functions(
    wanted: &Wanted,
    ask: Option<AskKernel>,
) -> Result<Option<Vec<Option<Function>>>> {
    let addresses = wanted.addresses();
    let ask = ask.filter(|_| addresses.len() <= MOST_ASKED);
    let Some(told) = ask.and_then(|ask| ask(addresses)) else {
        return listed(wanted);
    };
    let told = told.iter().zip(addresses);
    let mut told: Vec<_> = told
        .map(|(text, address)| told_name(text, *address))
        .collect();
    told.resize(addresses.len(), None);
    // What it does not know may be listed all the same, as the trampolines of its tracing.
    let rest = addresses
        .iter()
        .zip(&told)
        .filter(|(_, told)| told.is_none());
    let rest = Wanted::new(rest.map(|(address, _)| *address).collect());
    if rest.addresses().is_empty() {
        return Ok(Some(told));
    }
    let Some(listed) = listed(&rest)? else {
        // Then those that it told are all.
        return Ok(told.iter().any(Option::is_some).then_some(told));
    };
    let mut listed = listed.into_iter();
    for missing in told.iter_mut().filter(|told| told.is_none()) {
        *missing = listed.next().flatten();
    }
    Ok(Some(told))
}

/// A function of a text that the kernel gave for an address in it.
fn told_name(text: &str, address: u64) -> Option<Function> {
    let (text, module) = match text.split_once(" [") {
        Some((text, module)) => (text, Some(module.strip_suffix(']')?.to_owned())),
        None => (text, None),
    };
    let (name, place) = text.rsplit_once("+0x")?;
    let (offset, _) = place.split_once("/0x")?;
    let start = address.checked_sub(u64::from_str_radix(offset, 16).ok()?)?;
    // `/proc/kallsyms` says that these are of a module of their own.
    let module = module.or_else(|| is_program(name).then(|| "bpf".to_owned()));
    (!BOUNDARIES.contains(&name)).then(|| Function::new(name, module, start))
}

/// Whether a function is a BPF program (kernel/bpf/core.c, bpf_get_prog_name()) or a
/// trampoline of one (kernel/bpf/trampoline.c).
fn is_program(name: &str) -> bool {
    const TAG_DIGITS: usize = 16;
    let is_tag = |rest: &str| {
        let tag = rest.split('_').next().unwrap_or_default();
        tag.len() == TAG_DIGITS && tag.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let is_number = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    name.strip_prefix("bpf_prog_").is_some_and(is_tag)
        || name.strip_prefix("bpf_trampoline_").is_some_and(is_number)
}

/// The same of those that `/proc/kallsyms` lists.
fn listed(wanted: &Wanted) -> Result<Option<Vec<Option<Function>>>> {
    // A kernel without loadable modules has no such file.
    let modules = match File::open("/proc/modules") {
        Ok(file) => modules(file)?,
        Err(_) => HashMap::new(),
    };
    find(File::open("/proc/kallsyms")?, &modules, wanted)
}

/// Where each module ends.
fn modules(reader: impl Read) -> Result<HashMap<String, u64>> {
    let mut ends = HashMap::new();
    for_each_line(reader, LONGEST_LINE, LARGEST, |line| {
        let line = String::from_utf8_lossy(line);
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let [name, size, _, _, _, start, ..] = fields[..] else {
            return;
        };
        if let (Ok(size), Some(start)) = (size.parse::<u64>(), hexadecimal(start.as_bytes())) {
            ends.insert(name.to_owned(), start.saturating_add(size));
        }
    })?;
    Ok(ends)
}

/// The symbol that starts last before an address.
#[derive(Clone, Default)]
struct Nearest {
    start: u64,
    kind: u8,
    name: String,
    module: String,
}

fn find(
    kallsyms: impl Read,
    modules: &HashMap<String, u64>,
    wanted: &Wanted,
) -> Result<Option<Vec<Option<Function>>>> {
    let mut nearest = vec![Nearest::default(); wanted.addresses().len()];
    let mut hidden = true;
    for_each_line(kallsyms, LONGEST_LINE, LARGEST, |line| {
        let Some((start, kind, name, module)) = parse(line) else {
            return;
        };
        hidden &= start == 0;
        let Some(slot) = nearest.get_mut(wanted.first_from(start)) else {
            return;
        };
        if start > slot.start || (start == slot.start && preference(kind, name) < slot.preference())
        {
            slot.start = start;
            slot.kind = kind;
            for (text, new) in [(&mut slot.name, name), (&mut slot.module, module)] {
                text.clear();
                text.push_str(new);
            }
        }
    })?;
    if hidden {
        return Ok(None);
    }
    // A symbol is nearest to every address up to the next symbol, not only to
    // the first after it.
    for at in 1..nearest.len() {
        if nearest[at].start < nearest[at - 1].start {
            nearest[at] = nearest[at - 1].clone();
        }
    }
    let functions = nearest.into_iter().zip(wanted.addresses());
    let functions = functions.map(|(symbol, &address)| symbol.covering(address, modules));
    Ok(Some(functions.collect()))
}

/// `ADDRESS TYPE NAME` and perhaps `[MODULE]`.
fn parse(line: &[u8]) -> Option<(u64, u8, &str, &str)> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let start = hexadecimal(fields.next()?.as_bytes())?;
    let kind = *fields.next()?.as_bytes().first()?;
    let name = fields.next()?;
    let module = fields.next().unwrap_or_default();
    Some((start, kind, name, module.trim_matches(['[', ']'])))
}

/// Of names for the same address the least is taken: a function, then the
/// fewest underscores, then a global, then the shortest.
fn preference(kind: u8, name: &str) -> (bool, usize, bool, usize) {
    let no_function = !is_text(kind) || BOUNDARIES.contains(&name);
    let underscores = name.len() - name.trim_start_matches('_').len();
    (
        no_function,
        underscores,
        kind.is_ascii_lowercase(),
        name.len(),
    )
}

fn is_text(kind: u8) -> bool {
    matches!(kind, b't' | b'T' | b'w' | b'W')
}

impl Nearest {
    fn preference(&self) -> (bool, usize, bool, usize) {
        preference(self.kind, &self.name)
    }

    /// The function, if it reaches up to `address`.
    fn covering(self, address: u64, modules: &HashMap<String, u64>) -> Option<Function> {
        if self.start == 0 || !is_text(self.kind) || BOUNDARIES.contains(&self.name.as_str()) {
            return None;
        }
        let module = (!self.module.is_empty()).then_some(self.module);
        let end = match &module {
            // The next symbol or `_etext` ends it.
            None => u64::MAX,
            Some(module) => match modules.get(module) {
                Some(&end) => end,
                None => self.start.saturating_add(LARGEST_GENERATED),
            },
        };
        (address < end).then(|| Function::new(&self.name, module, self.start))
    }
}

impl Function {
    fn new(symbol: &str, module: Option<String>, start: u64) -> Function {
        let name = demangle(symbol).into_owned();
        Function {
            system_name: (name != symbol).then(|| symbol.to_owned()),
            name,
            module,
            start,
        }
    }
}

/// The build ID of the kernel, or of one of its modules.
pub(crate) fn build_id(module: Option<&str>) -> Option<Vec<u8>> {
    const MOST_BYTES: u64 = 64 << 10;
    let path = match module {
        None => "/sys/kernel/notes".to_owned(),
        Some(module) => format!("/sys/module/{module}/notes/.note.gnu.build-id"),
    };
    let mut notes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MOST_BYTES).read_to_end(&mut notes).ok()?;
    find_build_id(&notes)
}

/// Which frames of a kernel stack, leaf first, are the tracer's.
///
/// An interrupt that comes while a program runs can have another one run on top
/// of it: what is above the interrupt's entry and what is below are looked at
/// each by itself.
pub(crate) fn are_tracers<'n>(names: &[&'n str]) -> Vec<bool> {
    // arch/x86/include/asm/idtentry.h. An exception is the program's own.
    let is_entry =
        |name: &&'n str| name.starts_with("asm_sysvec_") || *name == "asm_common_interrupt";
    let mut tracers = Vec::with_capacity(names.len());
    for part in names.split_inclusive(is_entry) {
        let count = tracer_frames(part.iter().copied());
        tracers.extend((0..part.len()).map(|at| at < count));
    }
    tracers
}

/// How many frames from the leaf on are the tracer's.
///
/// A program on a tracepoint runs on top of `__traceiter_EVENT` and
/// `bpf_trace_run*`, one that visits every thread on top of
/// `bpf_iter_run_prog`; everything up to the one nearest the root is the
/// tracer's. By name, for the number of frames differs between kernels.
fn tracer_frames<'n>(names: impl Iterator<Item = &'n str> + Clone) -> usize {
    let is_hook = |name: &str| {
        let starts = ["__traceiter_", "bpf_trace_run", "bpf_iter_run_prog"];
        starts.iter().any(|start| name.starts_with(start))
    };
    let is_program = |name: &str| {
        let starts = ["bpf_prog_", "bpf_trampoline_", "bpf_dispatcher_"];
        starts.iter().any(|start| name.starts_with(start))
    };
    let hooks = names.clone().enumerate().filter(|(_, name)| is_hook(name));
    let hooked = hooks.last().map_or(0, |(at, _)| at + 1);
    hooked
        + names
            .skip(hooked)
            .take_while(|name| is_program(name))
            .count()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const KALLSYMS: &[u8] = b"\
0000000000000000 A fixed_percpu_data\n\
ffffffff81000000 T _stext\n\
ffffffff81000000 T _text\n\
ffffffff81000000 t startup\n\
ffffffff81001000 T __ia32_sys_read\n\
ffffffff81001000 T __x64_sys_read\n\
ffffffff81002000 t _RNvCs1234_7mycrate3foo\n\
ffffffff81003000 T _etext\n\
ffffffff82000000 D jiffies\n\
ffffffffc0000000 t first\t[nf_tables]\n\
ffffffffc0001000 t last\t[nf_tables]\n\
ffffffffc0100000 t bpf_prog_0123\t[bpf]\n";

    fn names(addresses: &[u64]) -> Vec<Option<(String, Option<String>)>> {
        let modules = modules(&b"nf_tables 8192 0 - Live 0xffffffffc0000000\nshort 1\n"[..]);
        let wanted = Wanted::new(addresses.to_vec());
        let found = find(KALLSYMS, &modules.unwrap(), &wanted).unwrap().unwrap();
        let pair = |function: Function| (function.name, function.module);
        found
            .into_iter()
            .map(|function| function.map(pair))
            .collect()
    }

    fn kernel(name: &str) -> Option<(String, Option<String>)> {
        Some((name.into(), None))
    }

    fn module(name: &str, module: &str) -> Option<(String, Option<String>)> {
        Some((name.into(), Some(module.into())))
    }

    #[test]
    fn functions_reach_up_to_the_next_symbol() {
        let found = names(&[
            0xffff_ffff_8100_0000,
            0xffff_ffff_8100_0fff,
            0xffff_ffff_8100_1000,
            0xffff_ffff_8100_1fff,
            0xffff_ffff_8100_2001,
        ]);
        let expected = [
            kernel("startup"),
            kernel("startup"),
            kernel("__x64_sys_read"),
            kernel("__x64_sys_read"),
            kernel("mycrate::foo"),
        ];
        assert_eq!(found, expected);
    }

    /// What names an address, by lines of `/proc/kallsyms`.
    fn named(kallsyms: &str, address: u64) -> Option<String> {
        let wanted = Wanted::new(vec![address]);
        let found = find(kallsyms.as_bytes(), &HashMap::new(), &wanted);
        let function = found.unwrap().unwrap().remove(0)?;
        Some(function.name)
    }

    #[test]
    fn of_several_names_the_plainest_is_taken_wherever_it_stands() {
        for [plain, other] in [
            ["T zz_long", "D aa"],
            ["t zz_long", "T _text"],
            ["t zz_long", "T __a"],
            ["t zz_long", "T _a"],
            ["T zz_long", "t aa"],
            ["t aa", "t aaa"],
            ["w zz", "t zzz"],
        ] {
            for [first, second] in [[plain, other], [other, plain]] {
                let lines = format!("1000 {first}\n1000 {second}\n");
                let name = named(&lines, 0x1008);
                assert_eq!(name.as_deref(), Some(&plain[2..]), "{lines}");
            }
        }
        // Of equals the first.
        assert_eq!(
            named("1000 t bb\n1000 t aa\n", 0x1000).as_deref(),
            Some("bb")
        );
    }

    #[test]
    fn symbols_may_come_in_any_order() {
        let lines = "1000 t __nearer\n800 T far\n";
        assert_eq!(named(lines, 0x1008).as_deref(), Some("__nearer"));
    }

    #[test]
    fn nothing_outside_text_and_modules_is_named() {
        let found = names(&[
            0,
            0xffff_ffff_80ff_ffff,
            0xffff_ffff_8100_3000,
            0xffff_ffff_8200_0004,
            0xffff_ffff_c000_1fff,
            0xffff_ffff_c000_2000,
            0xffff_ffff_c010_0010,
            0xffff_ffff_c011_0000,
            u64::MAX,
        ]);
        let expected = [
            None,
            None,
            None,
            None,
            module("last", "nf_tables"),
            None,
            module("bpf_prog_0123", "bpf"),
            None,
            None,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_the_kernel_tells_is_read() {
        let named = |text: &str| {
            let function = told_name(text, 0x1020)?;
            Some((function.name, function.module, function.start))
        };
        let told = |name: &str, module: Option<&str>, start| {
            Some((name.to_owned(), module.map(str::to_owned), start))
        };
        assert_eq!(named("schedule+0x20/0x140"), told("schedule", None, 0x1000));
        let nested = named("nft_do_chain+0x1/0x5b0 [nf_tables]");
        assert_eq!(nested, told("nft_do_chain", Some("nf_tables"), 0x101f));
        let demangled = named("_RNvCs1234_7mycrate3foo+0x0/0x4");
        assert_eq!(demangled, told("mycrate::foo", None, 0x1020));
        for program in [
            "bpf_prog_0123456789abcdef_switch",
            "bpf_prog_0123456789abcdef",
            "bpf_trampoline_6442461290",
        ] {
            assert_eq!(
                named(&format!("{program}+0x1/0x9")),
                told(program, Some("bpf"), 0x101f)
            );
        }
        for function in ["bpf_prog_run_xdp", "bpf_prog_put", "bpf_trampoline_enter"] {
            assert_eq!(
                named(&format!("{function}+0x1/0x9")),
                told(function, None, 0x101f)
            );
        }
        let nothing = [
            "0x1020",
            "",
            "_etext+0x20/0x40",
            "f+0x1021/0x2000",
            "f+0xg/0x1",
            "f+0x1",
            "f+0x1/0x2 [m",
        ];
        for text in nothing {
            assert_eq!(named(text), None, "{text}");
        }
    }

    #[test]
    fn what_the_kernel_does_not_tell_may_be_listed() {
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap();
        let line = symbols.lines().find(|line| line.ends_with(" T vfs_read"));
        let (start, ..) = parse(line.unwrap().as_bytes()).unwrap();
        let wanted = Wanted::new(vec![start + 1, 0x10, u64::MAX]);
        let tell_none = |addresses: &[u64]| Some(vec!["?".to_owned(); addresses.len()]);
        let tell_one = |_: &[u64]| Some(vec!["f+0x8/0x10".to_owned()]);
        let names = |ask: AskKernel| -> Vec<Option<String>> {
            let found = functions(&wanted, Some(ask)).unwrap().unwrap();
            found
                .into_iter()
                .map(|found| found.map(|function| function.name))
                .collect()
        };
        let read = || Some("vfs_read".to_owned());
        assert_eq!(names(tell_none), [None, read(), None]);
        assert_eq!(names(tell_one), [Some("f".to_owned()), read(), None]);
        assert_eq!(names(|_| None), [None, read(), None]);
    }

    #[test]
    fn hidden_addresses_are_told_from_unknown_ones() {
        let hidden = b"0000000000000000 T _stext\n0000000000000000 t startup\n";
        let wanted = Wanted::new(vec![0xffff_ffff_8100_0000]);
        assert_eq!(find(&hidden[..], &HashMap::new(), &wanted).unwrap(), None);
    }

    #[test]
    fn every_function_of_this_kernel_has_a_name_of_its_own() {
        let mut starts = Vec::new();
        for_each_line(
            File::open("/proc/kallsyms").unwrap(),
            4096,
            LARGEST,
            |line| {
                if let Some((start, b'T', name, "")) = parse(line)
                    && name.starts_with("vfs_")
                {
                    starts.push((start, name.to_owned()));
                }
            },
        )
        .unwrap();
        assert!(starts.len() > 20);
        let wanted = Wanted::new(starts.iter().map(|(start, _)| start + 1).collect());
        let found = functions(&wanted, None).unwrap().unwrap();
        for (start, name) in starts {
            let function = found[wanted.first_from(start + 1)].clone().unwrap();
            assert_eq!(function.name, name);
        }
    }

    #[test]
    fn the_tracer_is_cut_off_by_name() {
        let count = |names: &[&str]| tracer_frames(names.iter().copied());
        let switch = [
            "bpf_prog_1_switch",
            "bpf_trace_run4",
            "__traceiter_sched_switch",
            "__schedule",
            "schedule",
        ];
        assert_eq!(count(&switch), 3);
        assert_eq!(count(&switch[1..]), 2);
        assert_eq!(count(&["[unknown]", "bpf_trace_run4", "__schedule"]), 2);
        assert_eq!(
            count(&["bpf_prog_1", "bpf_trampoline_2", "do_nanosleep"]),
            2
        );
        assert_eq!(count(&["do_nanosleep", "bpf_prog_1"]), 0);
        assert_eq!(count(&switch[..3]), 3);
        assert_eq!(count(&[]), 0);
    }

    #[test]
    fn an_interrupt_of_the_tracer_is_not_cut_off_with_it() {
        let stack = [
            "bpf_prog_2_waking",
            "__traceiter_sched_waking",
            "hrtimer_interrupt",
            "asm_sysvec_apic_timer_interrupt",
            "htab_map_hash",
            "bpf_prog_1_exit",
            "__traceiter_sched_process_exit",
            "do_exit",
        ];
        let left = |names: &[&'static str]| -> Vec<&str> {
            let pairs = names.iter().zip(are_tracers(names));
            pairs
                .filter(|(_, tracers)| !tracers)
                .map(|(name, _)| *name)
                .collect()
        };
        assert_eq!(left(&stack), [stack[2], stack[3], stack[7]]);
        // A sample: what was interrupted, and nothing of the interrupt.
        assert_eq!(left(&stack[4..]), ["do_exit"]);
        assert_eq!(left(&stack[2..4]), stack[2..4]);
    }
}
