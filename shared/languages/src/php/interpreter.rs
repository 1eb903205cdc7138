//! Finds an interpreter in a file, and its version.

use elf::{Elf, Source};
use process::ELF_MACHINE;

/// Global state of PHP without thread safety: `executor_globals` of Zend/zend.c.
const GLOBALS: &str = "executor_globals";
/// Its replacement in thread-safe builds, where each thread has a state of its own.
const THREADS_GLOBALS: &str = "executor_globals_offset";

/// Function that interprets PHP, and the part of it that compilers move elsewhere.
const EXECUTION: [&[u8]; 2] = [b"execute_ex", b"execute_ex.cold"];

/// Function of ext/standard/dl.c that compares `ZEND_MODULE_API_NO`, a date such as 20220829, with
/// the number of an extension.
const COMPARES_API: &[u8] = b"php_load_extension";
/// Maximum size of this function.
const COMPARES_API_LIMIT: u64 = 1 << 14;
/// Dates that are API numbers of PHP 7 and later.
const APIS: std::ops::Range<u32> = 20_150_000..20_991_232;

/// Interpreter that a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// Virtual address of `executor_globals` in the ELF file; 0 if it is thread-safe.
    pub globals: u64,
    /// API number of the version; `None` if it was not found.
    pub api: Option<u32>,
    /// True for a build whose threads have a state each.
    pub is_thread_safe: bool,
    /// Virtual addresses of `execute_ex`. Unknown addresses are zeros.
    pub execution: [(u64, u64); EXECUTION.len()],
}

/// Returns the interpreter that an ELF file contains, from the file's variables and functions.
/// Most files contain none, which takes a few small reads to find out.
pub fn find<S: Source>(elf: &Elf<S>) -> Option<Interpreter> {
    if !elf.header().is_for(ELF_MACHINE) {
        return None;
    }
    let globals = elf.variable(GLOBALS);
    let is_thread_safe = globals.is_none();
    if is_thread_safe {
        elf.variable(THREADS_GLOBALS)?;
    }
    let mut execution = [(0, 0); EXECUTION.len()];
    let mut compares_api = None;
    elf.for_each_function(|name, range| {
        let place = EXECUTION.iter().position(|known| *known == name);
        if let Some(place) = place.and_then(|place| execution.get_mut(place)) {
            *place = (range.start, range.end);
        } else if name == COMPARES_API {
            compares_api = Some(range);
        }
    });
    let size = |range: &std::ops::Range<u64>| (range.end - range.start).min(COMPARES_API_LIMIT);
    let code = compares_api.and_then(|range| elf.initial_bytes(range.start, size(&range)));
    Some(Interpreter {
        globals: globals.map_or(0, |globals| globals.start),
        api: code.as_deref().and_then(api_in),
        is_thread_safe,
        execution,
    })
}

/// Returns the API number in the code of a function, if the code has just one such number.
fn api_in(code: &[u8]) -> Option<u32> {
    let numbers = code.windows(4);
    let mut numbers = numbers
        .filter_map(|bytes| Some(u32::from_le_bytes(*bytes.first_chunk()?)))
        .filter(|number| {
            let (month, day) = (number / 100 % 100, number % 100);
            APIS.contains(number) && (1..=12).contains(&month) && (1..=31).contains(&day)
        });
    let first = numbers.next()?;
    numbers.all(|number| number == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_numbers_are_found_in_code() {
        for (code, expected) in [
            (&b"\x81\x7d\x04\x1d\x8b\x34\x01\x0f"[..], Some(20_220_701)),
            (b"\x81\x7d\x04\x1d\x8b\x34", None),
            // A number whose month is 13.
            (b"\x75\x8d\x34\x01", None),
            (b"\x1d\x8b\x34\x01\x1d\x8b\x34\x01", Some(20_220_701)),
            (b"\x1d\x8b\x34\x01\x1e\x8b\x34\x01", None),
            (b"", None),
        ] {
            assert_eq!(api_in(code), expected, "{code:x?}");
        }
    }
}
