//! The second step, for each kind of location.

use std::collections::HashMap;
use std::io::Result;
use std::sync::Arc;

use profile::FrameKind;

use crate::elf::{Elf, SHT_SYMTAB};
use crate::wanted::Wanted;
use crate::{Frame, Location, Symbolizer, debug_files, kernel, symbols, vdso};

impl Symbolizer {
    pub(crate) fn resolve_file(&mut self, index: u32, offsets: Vec<u64>) {
        let Some(mapped) = self.images.file(index) else {
            return;
        };
        let module = Arc::clone(&mapped.name);
        let named = Elf::read(&mapped.file).and_then(|elf| {
            let separate = match elf.has(SHT_SYMTAB) {
                true => None,
                false => debug_files::find(&elf, &mapped.path, &self.debug_directories),
            };
            let separate = separate.as_ref().and_then(|file| Elf::read(file).ok());
            names_at_offsets(&elf, separate.as_ref(), &offsets)
        });
        let path = mapped.path.to_string_lossy().into_owned();
        let names = named.unwrap_or_else(|error| {
            self.losses.unread_files += 1;
            self.losses.note(&path, error);
            HashMap::new()
        });
        for (offset, name) in names {
            let frame = user_frame(self.text(&name), Some(Arc::clone(&module)));
            let location = Location::File {
                file: index,
                offset,
            };
            self.frames.insert(location, frame);
        }
    }

    pub(crate) fn resolve_jit(&mut self, process: u32, addresses: Vec<u64>) {
        let Some(maps) = self.perf_maps.get_mut(process as usize) else {
            return;
        };
        maps.look_last();
        let wanted = Wanted::new(addresses);
        let names = maps.names(&wanted);
        for (&address, name) in wanted.addresses().iter().zip(names) {
            if let Some(name) = name {
                let frame = user_frame(self.text(&name), None);
                self.frames
                    .insert(Location::Jit { process, address }, frame);
            }
        }
    }

    pub(crate) fn resolve_vdso(&mut self, offsets: Vec<u64>) {
        if offsets.is_empty() {
            return;
        }
        let named = vdso::image().and_then(|file| {
            Elf::read(&file).and_then(|elf| names_at_offsets(&elf, None, &offsets))
        });
        let names = named.unwrap_or_else(|error| {
            self.losses.note("[vdso]", error);
            HashMap::new()
        });
        let module = self.text("[vdso]");
        for (offset, name) in names {
            let frame = user_frame(self.text(&name), Some(Arc::clone(&module)));
            self.frames.insert(Location::Vdso { offset }, frame);
        }
    }

    pub(crate) fn resolve_kernel(&mut self, addresses: Vec<u64>) {
        if addresses.is_empty() || self.losses.kernel_hidden {
            return;
        }
        let wanted = Wanted::new(addresses);
        let functions = match kernel::functions(&wanted) {
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
        for (&address, function) in wanted.addresses().iter().zip(functions) {
            let Some(function) = function else { continue };
            let frame = Frame {
                name: self.text(&function.name),
                module: function.module.map(|module| self.text(&module)),
                kind: FrameKind::Kernel,
            };
            self.frames.insert(Location::Kernel { address }, frame);
        }
    }
}

fn user_frame(name: Arc<str>, module: Option<Arc<str>>) -> Frame {
    Frame {
        name,
        module,
        kind: FrameKind::User,
    }
}

/// Names the functions at offsets in a file.
pub(crate) fn names_at_offsets(
    elf: &Elf<'_>,
    separate: Option<&Elf<'_>>,
    offsets: &[u64],
) -> Result<HashMap<u64, Arc<str>>> {
    // Where a file is mapped is up to its own headers, never its debug file's.
    let addresses = offsets
        .iter()
        .filter_map(|&offset| Some((offset, elf.address(offset)?)));
    let addresses: Vec<_> = addresses.collect();
    let wanted = Wanted::new(addresses.iter().map(|&(_, address)| address).collect());
    let names = symbols::names(elf, separate, &wanted)?;
    let named = addresses.into_iter().filter_map(|(offset, address)| {
        Some((offset, names.get(wanted.first_from(address))?.clone()?))
    });
    Ok(named.collect())
}
