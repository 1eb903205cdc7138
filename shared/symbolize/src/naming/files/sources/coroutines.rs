//! Async functions of Rust, from debug information.
//!
//! The compiler makes an async function into a state machine, whose poll function gets the symbol
//! of a closure: `path::{{closure}}`. Only the name of its entry (DW_AT_name) tells what it was:
//! `{async_fn#0}`, `{async_block#0}` or `{async_closure#0}` (rustc's
//! `compiler/rustc_codegen_ssa/src/debuginfo/type_names.rs`).

use std::collections::{HashMap, HashSet};

use addr2line::gimli::{self, DwoId, UnitRef, UnitSectionOffset, constants};

use super::Slice;
use crate::naming::files::symbols::Symbol;

/// Kind of a coroutine in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coroutine {
    /// `async fn`.
    Function,
    /// `async { … }`.
    Block,
    /// `async || …`.
    Closure,
}

impl Coroutine {
    /// Returns the kind for the name of an entry.
    fn of_entry(name: &[u8]) -> Option<Coroutine> {
        let name = name.strip_prefix(b"{")?.strip_suffix(b"}")?;
        let end = name.iter().position(|&byte| byte == b'#')?;
        match &name[..end] {
            b"async_fn" => Some(Coroutine::Function),
            b"async_block" => Some(Coroutine::Block),
            b"async_closure" => Some(Coroutine::Closure),
            _ => None,
        }
    }

    /// Returns the name of the poll function as the source has it. `name` is the demangled name of
    /// its symbol.
    pub(crate) fn name(self, name: &str) -> Option<String> {
        let path = path_of_closure(name)?;
        Some(match self {
            Coroutine::Function => format!("async fn {path}"),
            Coroutine::Block => format!("{path}::{{async block}}"),
            Coroutine::Closure => format!("{path}::{{async closure}}"),
        })
    }
}

/// Returns the path of the function that contains a closure with this demangled name, or `None` for
/// another name. The older mangling calls it `{{closure}}`, the newer one `{closure#0}`.
pub(crate) fn path_of_closure(name: &str) -> Option<&str> {
    let (path, last) = name.rsplit_once("::")?;
    let is_closure = last == "{{closure}}" || last.starts_with("{closure#") && last.ends_with('}');
    is_closure.then_some(path)
}

/// Coroutines of the units that were read.
#[derive(Default)]
pub(super) struct Coroutines {
    /// By symbol (DW_AT_linkage_name).
    by_symbol: HashMap<Box<[u8]>, Coroutine>,
    /// By first address. Debug information with lines only has no symbols.
    by_start: HashMap<u64, Coroutine>,
    /// Units that were read. A unit in a file of its own has an identifier beside its offset.
    read: HashSet<(UnitSectionOffset, Option<DwoId>)>,
}

impl Coroutines {
    /// Adds the coroutines of a unit. Entries after invalid ones are left out.
    pub(super) fn add(&mut self, unit: UnitRef<'_, Slice<'_>>) {
        if self.read.insert((unit.header.offset(), unit.dwo_id)) {
            // Entries before an invalid one count.
            let _ = self.read_entries(unit);
        }
    }

    fn read_entries(&mut self, unit: UnitRef<'_, Slice<'_>>) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let Some(entry) = entries.read_abbreviation()? else {
                continue;
            };
            if entry.tag() != constants::DW_TAG_subprogram {
                entries.skip_attributes(entry.attributes())?;
                continue;
            }
            let (mut kind, mut symbol, mut start) = (None, None, None);
            for attribute in entry.attributes() {
                let attribute = entries.read_attribute(*attribute)?;
                let value = attribute.value();
                match attribute.name() {
                    constants::DW_AT_name => {
                        kind = Coroutine::of_entry(unit.attr_string(value)?.slice());
                    }
                    constants::DW_AT_linkage_name => symbol = Some(unit.attr_string(value)?),
                    constants::DW_AT_low_pc => start = unit.attr_address(value)?,
                    _ => {}
                }
            }
            let Some(kind) = kind else { continue };
            if let Some(symbol) = symbol {
                self.by_symbol.insert(symbol.slice().into(), kind);
            }
            if let Some(start) = start {
                self.by_start.insert(start, kind);
            }
        }
        Ok(())
    }

    /// Returns the kind of the function with this symbol.
    pub(super) fn with_symbol(&self, symbol: &str) -> Option<Coroutine> {
        self.by_symbol.get(symbol.as_bytes()).copied()
    }

    /// Returns the kind of the function of a symbol of the file.
    pub(super) fn of(&self, symbol: &Symbol) -> Option<Coroutine> {
        let at_start = || self.by_start.get(&symbol.start?).copied();
        (symbol.system_name.as_deref())
            .and_then(|name| self.with_symbol(name))
            .or_else(at_start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coroutines_have_the_names_of_the_source() {
        let function = Coroutine::of_entry(b"{async_fn#0}");
        assert_eq!(function, Some(Coroutine::Function));
        for other in [
            &b"{closure#0}"[..],
            b"{async_fn}",
            b"async_fn#0",
            b"{gen_fn#0}",
            b"",
        ] {
            assert_eq!(Coroutine::of_entry(other), None);
        }
        for (kind, name, expected) in [
            (
                Coroutine::Function,
                "site::serve::{{closure}}",
                Some("async fn site::serve"),
            ),
            (
                Coroutine::Function,
                "site::serve::{closure#0}",
                Some("async fn site::serve"),
            ),
            (
                Coroutine::Block,
                "main::{{closure}}",
                Some("main::{async block}"),
            ),
            (
                Coroutine::Closure,
                "main::{closure#12}",
                Some("main::{async closure}"),
            ),
            (Coroutine::Function, "site::serve", None),
            (Coroutine::Function, "{{closure}}", None),
        ] {
            assert_eq!(kind.name(name).as_deref(), expected);
        }
    }
}
