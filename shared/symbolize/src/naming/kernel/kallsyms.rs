//! Finds kernel functions in `/proc/kallsyms`.
//!
//! The file is streamed past the wanted addresses. It lists the type, the start and the module of
//! every symbol. It lists no sizes, so a symbol reaches up to the next symbol of any type.
//! Addresses after the kernel's text, or after a module, have no name.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Result};

use crate::lines::{for_each_line, hexadecimal};
use crate::naming::demangle::demangle;
use crate::naming::wanted::Wanted;

const LARGEST: u64 = 1 << 30;
const LONGEST_LINE: usize = 4 << 10;
/// Maximum size of a BPF program or trampoline, in bytes. The next symbol may be far away, and the
/// kernel does not list all code in between.
const LARGEST_GENERATED: u64 = 64 << 10;
/// Symbols at the start and the end of the kernel's text, which are not functions.
pub(crate) const BOUNDARIES: [&str; 8] = [
    "_text",
    "_stext",
    "_etext",
    "_sinittext",
    "_einittext",
    "__entry_text_start",
    "__entry_text_end",
    "_end",
];

/// Kernel function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Demangled name.
    pub(crate) name: String,
    /// Name in the list, if it differs.
    pub(crate) system_name: Option<String>,
    /// Module of the function; `None` for the kernel proper.
    pub(crate) module: Option<String>,
    /// First address.
    pub(crate) start: u64,
}

impl Function {
    pub(crate) fn new(symbol: &str, module: Option<String>, start: u64) -> Function {
        let name = demangle(symbol).into_owned();
        Function {
            system_name: (name != symbol).then(|| symbol.to_owned()),
            name,
            module,
            start,
        }
    }
}

/// Returns the functions at the wanted addresses, in the order of the addresses. Returns `None` if
/// the kernel hides its addresses from this program (`kernel.kptr_restrict`).
///
/// # Errors
/// The list cannot be read.
pub(crate) fn listed(wanted: &Wanted) -> Result<Option<Vec<Option<Function>>>> {
    // Kernels without loadable modules lack this file.
    let modules = match File::open("/proc/modules") {
        Ok(file) => modules(file)?,
        Err(_) => HashMap::new(),
    };
    find(File::open("/proc/kallsyms")?, &modules, wanted)
}

/// Returns the end address of each module, from `/proc/modules`.
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

/// Symbol with the highest start below or at an address.
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
    // A symbol is nearest to every address up to the next symbol, and not only to the first one.
    for at in 1..nearest.len() {
        if nearest[at].start < nearest[at - 1].start {
            nearest[at] = nearest[at - 1].clone();
        }
    }
    let functions = nearest.into_iter().zip(wanted.addresses());
    let functions = functions.map(|(symbol, &address)| symbol.covering(address, modules));
    Ok(Some(functions.collect()))
}

/// Parses a line: `ADDRESS TYPE NAME`, followed by `[MODULE]` for a symbol of a module.
pub(crate) fn parse(line: &[u8]) -> Option<(u64, u8, &str, &str)> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let start = hexadecimal(fields.next()?.as_bytes())?;
    let kind = *fields.next()?.as_bytes().first()?;
    let name = fields.next()?;
    let module = fields.next().unwrap_or_default();
    Some((start, kind, name, module.trim_matches(['[', ']'])))
}

/// Returns the rank of a name among names for the same address. The name with the lowest rank is
/// used. Functions come first, then names with the fewest underscores, then global names, then the
/// shortest.
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

    /// Returns the function, if it reaches up to `address`.
    fn covering(self, address: u64, modules: &HashMap<String, u64>) -> Option<Function> {
        if self.start == 0 || !is_text(self.kind) || BOUNDARIES.contains(&self.name.as_str()) {
            return None;
        }
        let module = (!self.module.is_empty()).then_some(self.module);
        let end = match &module {
            // The function ends at the next symbol or at `_etext`.
            None => u64::MAX,
            Some(module) => match modules.get(module) {
                Some(&end) => end,
                None => self.start.saturating_add(LARGEST_GENERATED),
            },
        };
        (address < end).then(|| Function::new(&self.name, module, self.start))
    }
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

    fn module(name: &str, module: &str) -> Option<(String, Option<String>)> {
        Some((name.into(), Some(module.into())))
    }

    /// Returns the name of an address, from these lines of `/proc/kallsyms`.
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
        // Of equally good names, the first one is used.
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
    fn hidden_addresses_are_told_from_unknown_ones() {
        let hidden = b"0000000000000000 T _stext\n0000000000000000 t startup\n";
        let wanted = Wanted::new(vec![0xffff_ffff_8100_0000]);
        assert_eq!(find(&hidden[..], &HashMap::new(), &wanted).unwrap(), None);
    }
}
