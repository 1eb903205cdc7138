//! The second step, for each kind of location.

pub(crate) mod debug_files;
pub(crate) mod demangle;
pub(crate) mod interpreted;
mod kallsyms;
pub(crate) mod kernel;
pub(crate) mod perf_map;
pub(crate) mod sources;
pub(crate) mod symbols;
pub(crate) mod tracers;
pub(crate) mod variables;
pub(crate) mod vdso;
pub(crate) mod wanted;

use std::collections::HashMap;
use std::io::Result;
use std::sync::Arc;

use profile::marker::UNKNOWN;
use profile::text::unnamed_part;
use profile::{FrameKind, ModuleKind};

use crate::budget::Allowance;
use crate::elf::{Elf, SHT_SYMTAB};
use crate::frame::Module;
use crate::naming::sources::{Place, Sources, has_debug_information, places};
use crate::naming::symbols::Symbol;
use crate::naming::wanted::Wanted;
use crate::{Frame, Location, Symbolizer};

/// What is at an offset in a file.
pub(crate) struct Found {
    /// Its virtual address.
    pub(crate) address: u64,
    /// What covers it.
    pub(crate) symbol: Option<Symbol>,
    /// What the debug information says of it.
    pub(crate) place: Place,
}

impl Symbolizer {
    /// Names what is at offsets in a file, which processes with these IDs map.
    pub(crate) fn resolve_file(&mut self, index: u32, offsets: Vec<u64>, pids: &[u32]) {
        let Some(mapped) = self.images.file(index) else {
            return;
        };
        let path = mapped.path.to_string_lossy().into_owned();
        let allowance = self.budget.allow(pids);
        let mut unread = None;
        let read = Elf::read(&mapped.file, &allowance).and_then(|elf| {
            let has_all = elf.has(SHT_SYMTAB)
                && (self.sources == Sources::None || has_debug_information(&elf));
            let separate = match has_all {
                true => None,
                false => debug_files::find(&elf, &mapped.path, &self.debug_directories)
                    .unwrap_or_else(|error| {
                        unread = Some(error);
                        None
                    }),
            };
            let separate = separate
                .as_ref()
                .and_then(|file| Elf::read(file, &allowance).ok());
            let found = find_at_offsets(&elf, separate.as_ref(), &offsets, self.sources)?;
            Ok((mapped.module.with_build_id(elf.build_id()), found))
        });
        let is_left_out = self.settle(&allowance, &path);
        if let Some(error) = unread.filter(|_| !is_left_out) {
            self.losses.unread_files += 1;
            self.losses.note(&path, format!(".gnu_debugdata: {error}"));
        }
        match read {
            Ok((module, found)) => {
                self.images.set_module(index, Arc::new(module));
                let location = |offset| Location::File {
                    file: index,
                    offset,
                };
                self.keep_found(found, location);
            }
            Err(_) if is_left_out => {}
            Err(error) => {
                self.losses.unread_files += 1;
                self.losses.note(&path, error);
            }
        }
    }

    /// Subtracts what a file took from the budget, and returns whether some of the file was left
    /// out for it, which is counted.
    pub(crate) fn settle(&mut self, allowance: &Allowance, path: &str) -> bool {
        self.budget.settle(allowance);
        if let Some(why) = allowance.refused() {
            self.losses.costly_files += 1;
            self.losses.note(path, why);
        }
        allowance.refused().is_some()
    }

    pub(crate) fn resolve_jit(&mut self, process: u32, addresses: Vec<u64>) {
        let Some(maps) = self.perf_maps.get_mut(process as usize) else {
            return;
        };
        maps.look_last();
        let wanted = Wanted::new(addresses);
        let allowance = self.budget.allow(&[maps.pid()]);
        let names = maps.names(&wanted, &allowance);
        let path = format!("/tmp/perf-{}.map", maps.pid());
        self.settle(&allowance, &path);
        for (&address, name) in wanted.addresses().iter().zip(names) {
            let location = Location::Jit { process, address };
            if let Some(name) = name {
                let symbol = Symbol {
                    name,
                    system_name: None,
                    start: None,
                };
                self.keep(location, Some(symbol), self.nameless(location));
            }
        }
    }

    pub(crate) fn resolve_vdso(&mut self, offsets: Vec<u64>) {
        if offsets.is_empty() {
            return;
        }
        let read = vdso::image().and_then(|file| {
            let allowance = Allowance::alone();
            let elf = Elf::read(&file, &allowance)?;
            Ok((
                elf.build_id(),
                find_at_offsets(&elf, None, &offsets, Sources::None)?,
            ))
        });
        match read {
            Ok((build_id, found)) => {
                self.vdso = Arc::new(self.vdso.with_build_id(build_id));
                self.keep_found(found, |offset| Location::Vdso { offset });
            }
            Err(error) => self.losses.note("[vdso]", error),
        }
    }

    pub(crate) fn resolve_kernel(&mut self, addresses: Vec<u64>) {
        if addresses.is_empty() || self.losses.kernel_hidden {
            return;
        }
        let wanted = Wanted::new(addresses);
        let functions = match kernel::functions(&wanted, self.ask_kernel) {
            Ok(Some(functions)) => functions,
            Ok(None) => {
                self.losses.kernel_hidden = true;
                self.losses.note(
                    "/proc/kallsyms",
                    "addresses are hidden by kernel.kptr_restrict",
                );
                return;
            }
            Err(error) => {
                self.losses.kernel_hidden = true;
                self.losses.note("/proc/kallsyms", error);
                return;
            }
        };
        self.kernel = Arc::new(self.kernel.with_build_id(kernel::build_id(None)));
        let mut modules: HashMap<String, Arc<Module>> = HashMap::new();
        for (&address, function) in wanted.addresses().iter().zip(functions) {
            let Some(function) = function else { continue };
            let location = Location::Kernel { address };
            let mut frame = self.nameless(location);
            if let Some(name) = function.module {
                let new = |name: &String| {
                    let module = Module::bracketed(name, ModuleKind::KernelModule);
                    Arc::new(module.with_build_id(kernel::build_id(Some(name))))
                };
                let module = modules.entry(name);
                frame.module = Some(Arc::clone(module.or_insert_with_key(new)));
            }
            let symbol = Symbol {
                name: function.name.into(),
                system_name: function.system_name.map(Arc::from),
                start: Some(function.start),
            };
            self.keep(location, Some(symbol), frame);
        }
    }

    /// Keeps what was found in a file, of which all is known but that.
    fn keep_found(&mut self, found: HashMap<u64, Found>, location: impl Fn(u64) -> Location) {
        for (offset, found) in found {
            let location = location(offset);
            let frame = Frame {
                address: Some(found.address),
                source: found.place.source,
                inlined: found.place.inlined,
                ..self.nameless(location)
            };
            self.keep(location, found.symbol, frame);
        }
    }

    /// Keeps the frame of a location, with the name of the symbol if there is one.
    pub(crate) fn keep(&mut self, location: Location, symbol: Option<Symbol>, mut frame: Frame) {
        if let Some(symbol) = symbol {
            frame.name = symbol.name;
            frame.has_symbol = true;
            let starts = frame.address.zip(symbol.start);
            frame.offset = starts.and_then(|(address, start)| address.checked_sub(start));
            frame.system_name = symbol.system_name.map(|name| self.text(&name));
        }
        frame.name = self.text(&frame.name);
        self.frames.insert(location, frame);
    }

    /// The frame of a location that no symbol covers.
    pub(crate) fn nameless(&self, location: Location) -> Frame {
        if let Location::Interpreted { function, line } = location {
            return self.interpreted_frame(function, line);
        }
        let module = match location {
            Location::File { file, .. } => self.images.file(file).map(|file| &file.module),
            Location::Module { index } => self.images.module(index),
            Location::Vdso { .. } => Some(&self.vdso),
            Location::Jit { .. } => Some(&self.jit),
            Location::Kernel { .. } => Some(&self.kernel),
            Location::Interpreted { .. } | Location::Unknown => None,
        };
        let name = match module {
            Some(module) if module.kind == ModuleKind::File => unnamed_part(&module.name).into(),
            Some(module) if module.kind == ModuleKind::Vdso => format!("[{}]", module.name).into(),
            _ => UNKNOWN.into(),
        };
        let address = match location {
            Location::Jit { address, .. } | Location::Kernel { address } => Some(address),
            _ => None,
        };
        let kind = match location {
            Location::Kernel { .. } => FrameKind::Kernel,
            _ => FrameKind::User,
        };
        Frame {
            module: module.cloned(),
            address,
            ..Frame::without_symbol(name, kind)
        }
    }
}

/// What is at offsets in a file, as far as it says where they are mapped.
pub(crate) fn find_at_offsets(
    elf: &Elf<'_>,
    separate: Option<&Elf<'_>>,
    offsets: &[u64],
    sources: Sources,
) -> Result<HashMap<u64, Found>> {
    // Where a file is mapped is up to its own headers, never its debug file's.
    let addresses = offsets
        .iter()
        .filter_map(|&offset| Some((offset, elf.address(offset)?)));
    let addresses: Vec<_> = addresses.collect();
    let wanted = Wanted::new(addresses.iter().map(|&(_, address)| address).collect());
    let symbols = symbols::names(elf, separate, &wanted)?;
    let debug = [Some(elf), separate].into_iter().flatten();
    let mut debug = debug.filter(|elf| sources != Sources::None && has_debug_information(elf));
    // What makes no sense there is no reason to be without names.
    let places = debug.next_back().map(|elf| places(elf, &wanted, sources));
    let places = places.and_then(Result::ok).unwrap_or_default();
    let found = addresses.into_iter().map(|(offset, address)| {
        let index = wanted.first_from(address);
        let found = Found {
            address,
            symbol: symbols.get(index).cloned().flatten(),
            place: places.get(index).cloned().unwrap_or_default(),
        };
        (offset, found)
    });
    Ok(found.collect())
}
