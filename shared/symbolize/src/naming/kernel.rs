//! Names kernel functions: asks the kernel for single names, or reads its list of all names.

mod kallsyms;
pub(crate) mod tracers;

use std::fs::File;
use std::io::{Read, Result};

use elf::find_build_id;

use crate::naming::kernel::kallsyms::{BOUNDARIES, Function, listed};
use crate::naming::wanted::Wanted;

/// Function that asks the kernel for the names of addresses. The format is that of `%pS`
/// (symbol_string() of lib/vsprintf.c): `name+offset/size [module]`. It returns `None` if the
/// kernel cannot be asked.
pub type AskKernel = fn(&[u64]) -> Option<Vec<String>>;

/// Maximum number of addresses for which the kernel is asked. For more addresses, reading
/// `/proc/kallsyms` is faster.
const MAX_ASKED: usize = 10_000;

/// Returns the functions at the wanted addresses, in the order of the addresses. Returns `None` if
/// the kernel hides its addresses from this program (`kernel.kptr_restrict`).
///
/// # Errors
/// `/proc/kallsyms` cannot be read.
pub(crate) fn functions(
    wanted: &Wanted,
    ask: Option<AskKernel>,
) -> Result<Option<Vec<Option<Function>>>> {
    let addresses = wanted.addresses();
    let ask = ask.filter(|_| addresses.len() <= MAX_ASKED);
    let Some(answers) = ask.and_then(|ask| ask(addresses)) else {
        return listed(wanted);
    };
    let mut functions: Vec<_> = answers
        .iter()
        .zip(addresses)
        .map(|(text, address)| parse_answer(text, *address))
        .collect();
    functions.resize(addresses.len(), None);
    // The list may have functions for which the kernel gives no name, such as trampolines of
    // ftrace.
    let rest = addresses
        .iter()
        .zip(&functions)
        .filter(|(_, function)| function.is_none());
    let rest = Wanted::new(rest.map(|(address, _)| *address).collect());
    if rest.addresses().is_empty() {
        return Ok(Some(functions));
    }
    let Some(listed) = listed(&rest)? else {
        // The list hides its addresses, so only the functions that the kernel named are known.
        return Ok(functions.iter().any(Option::is_some).then_some(functions));
    };
    let mut listed = listed.into_iter();
    for missing in functions.iter_mut().filter(|function| function.is_none()) {
        *missing = listed.next().flatten();
    }
    Ok(Some(functions))
}

/// Parses the kernel's text for an address, and returns the function.
fn parse_answer(text: &str, address: u64) -> Option<Function> {
    let (text, module) = match text.split_once(" [") {
        Some((text, module)) => (text, Some(module.strip_suffix(']')?.to_owned())),
        None => (text, None),
    };
    let (name, place) = text.rsplit_once("+0x")?;
    let (offset, _) = place.split_once("/0x")?;
    let start = address.checked_sub(u64::from_str_radix(offset, 16).ok()?)?;
    // `/proc/kallsyms` lists these functions in a module `bpf`.
    let module = module.or_else(|| is_program(name).then(|| "bpf".to_owned()));
    (!BOUNDARIES.contains(&name)).then(|| Function::new(name, module, start))
}

/// Returns whether a function is a BPF program (kernel/bpf/core.c, bpf_get_prog_name()) or a
/// trampoline of a BPF program (kernel/bpf/trampoline.c).
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

/// Returns the build ID of the kernel, or of a kernel module.
pub(crate) fn build_id(module: Option<&str>) -> Option<Vec<u8>> {
    const MAX_BYTES: u64 = 64 << 10;
    let path = match module {
        None => "/sys/kernel/notes".to_owned(),
        Some(module) => format!("/sys/module/{module}/notes/.note.gnu.build-id"),
    };
    let mut notes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut notes).ok()?;
    find_build_id(&notes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::naming::kernel::kallsyms::parse;

    #[test]
    fn what_the_kernel_tells_is_read() {
        let named = |text: &str| {
            let function = parse_answer(text, 0x1020)?;
            Some((function.name, function.module, function.start))
        };
        let expected = |name: &str, module: Option<&str>, start| {
            Some((name.to_owned(), module.map(str::to_owned), start))
        };
        assert_eq!(
            named("schedule+0x20/0x140"),
            expected("schedule", None, 0x1000)
        );
        let nested = named("nft_do_chain+0x1/0x5b0 [nf_tables]");
        assert_eq!(nested, expected("nft_do_chain", Some("nf_tables"), 0x101f));
        let demangled = named("_RNvCs1234_7mycrate3foo+0x0/0x4");
        assert_eq!(demangled, expected("mycrate::foo", None, 0x1020));
        for program in [
            "bpf_prog_0123456789abcdef_switch",
            "bpf_prog_0123456789abcdef",
            "bpf_trampoline_6442461290",
        ] {
            assert_eq!(
                named(&format!("{program}+0x1/0x9")),
                expected(program, Some("bpf"), 0x101f)
            );
        }
        for function in [
            "bpf_prog_run_xdp",
            "bpf_prog_put",
            "bpf_prog_add",
            "bpf_trampoline_enter",
        ] {
            assert_eq!(
                named(&format!("{function}+0x1/0x9")),
                expected(function, None, 0x101f)
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
}
