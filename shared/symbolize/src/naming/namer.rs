//! Names locations, within one budget of work for all of them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use profile::ModuleKind;

use crate::budget::{Allowance, Budget};
use crate::charged;
use crate::frame::Module;
use crate::location::Location;
use crate::losses::Losses;
use crate::naming::files::debug_files::{DebugFileSearch, Separate};
use crate::naming::files::find_at_offsets;
use crate::naming::files::sources::Sources;
use crate::naming::files::symbols::Symbol;
use crate::naming::files::variables::{self, Data, Variable};
use crate::naming::frames::Frames;
use crate::naming::kernel::{self, AskKernel};
use crate::naming::perf_map::PerfMaps;
use crate::naming::vdso;
use crate::naming::wanted::Wanted;
use crate::process::images::Images;
use crate::remote::DebugFiles;

/// Names locations. Each call adds the data that could not be read to its [`Losses`].
pub(crate) struct Namer {
    pub(crate) frames: Frames,
    debug_files: DebugFileSearch,
    /// Files that were named before their debug files arrived from the remote source.
    pending: HashSet<u32>,
    sources: Sources,
    budget: Budget,
    ask_kernel: Option<AskKernel>,
}

impl Namer {
    pub(crate) fn new(debug_directories: Vec<PathBuf>) -> Namer {
        Namer {
            frames: Frames::new(),
            debug_files: DebugFileSearch::new(debug_directories),
            pending: HashSet::new(),
            sources: Sources::None,
            budget: Budget::new(false),
            ask_kernel: None,
        }
    }

    /// Sets which source places are looked up.
    pub(crate) fn look_up_sources(&mut self, sources: Sources) {
        self.sources = sources;
        self.budget = Budget::new(sources != Sources::None);
    }

    /// Sets the function that asks the kernel for the names of kernel functions.
    pub(crate) fn ask_kernel(&mut self, ask: AskKernel) {
        self.ask_kernel = Some(ask);
    }

    /// Sets the source of debug files that are not on this machine.
    pub(crate) fn set_debug_files(&mut self, remote: Arc<dyn DebugFiles>) {
        self.debug_files.set_remote(remote);
    }

    /// Lets naming wait for that source from now on. Frames that were named without waiting are
    /// named again.
    pub(crate) fn begin_to_wait(&mut self) {
        self.debug_files.begin_to_wait();
        let pending = std::mem::take(&mut self.pending);
        (self.frames).forget(|location| match location {
            Location::File { file, .. } => pending.contains(file),
            _ => false,
        });
    }

    /// Requests the debug file of a file, if the file needs one.
    pub(crate) fn request_debug_file(&self, index: u32, images: &Images) {
        if let Some(mapped) = images.file(index) {
            (self.debug_files).request(&mapped.file, &mapped.path, self.sources);
        }
    }

    /// Names offsets in a file that the processes with these IDs map.
    pub(crate) fn name_file(
        &mut self,
        index: u32,
        offsets: &[u64],
        pids: &[u32],
        images: &mut Images,
        losses: &mut Losses,
    ) {
        let Some(mapped) = images.file(index) else {
            return;
        };
        let path = mapped.path.to_string_lossy().into_owned();
        let allowance = self.budget.allow(pids);
        let mut unread = None;
        let read = charged::read(&mapped.file, &allowance).and_then(|elf| {
            let separate = self.debug_files.find(&elf, &mapped.path, self.sources);
            let Separate { file, is_pending } = separate.unwrap_or_else(|error| {
                unread = Some(error);
                Separate::default()
            });
            if is_pending {
                self.pending.insert(index);
            }
            let separate = file
                .as_ref()
                .and_then(|file| charged::read(file, &allowance).ok());
            let found =
                find_at_offsets(&elf, separate.as_ref(), &mapped.path, offsets, self.sources)?;
            Ok((mapped.module.with_build_id(elf.build_id()), found))
        });
        let is_left_out = self.settle(&allowance, &path, losses);
        if let Some(error) = unread.filter(|_| !is_left_out) {
            losses.unread_files += 1;
            losses.note(&path, format!(".gnu_debugdata: {error}"));
        }
        match read {
            Ok((module, found)) => {
                images.set_module(index, Arc::new(module));
                let location = |offset| Location::File {
                    file: index,
                    offset,
                };
                self.frames.keep_found(found, location, images);
            }
            Err(_) if is_left_out => {}
            Err(error) => {
                losses.unread_files += 1;
                losses.note(&path, error);
            }
        }
    }

    /// Subtracts the work on a file from the budget. Returns whether a part of the file was left
    /// out because of the budget, and counts such a file.
    fn settle(&mut self, allowance: &Allowance, path: &str, losses: &mut Losses) -> bool {
        self.budget.settle(allowance);
        if let Some(why) = allowance.refused() {
            losses.costly_files += 1;
            losses.note(path, why);
        }
        allowance.refused().is_some()
    }

    /// Names addresses of code that a process compiled. `process` is the index of the process in
    /// locations.
    pub(crate) fn name_jit(
        &mut self,
        process: u32,
        maps: &mut PerfMaps,
        addresses: Vec<u64>,
        images: &Images,
        losses: &mut Losses,
    ) {
        maps.search_last();
        let wanted = Wanted::new(addresses);
        let allowance = self.budget.allow(&[maps.pid()]);
        let names = maps.names(&wanted, &allowance);
        let path = format!("/tmp/perf-{}.map", maps.pid());
        self.settle(&allowance, &path, losses);
        for (&address, name) in wanted.addresses().iter().zip(names) {
            let location = Location::Jit { process, address };
            if let Some(name) = name {
                let symbol = Symbol {
                    name,
                    system_name: None,
                    start: None,
                };
                let frame = self.frames.nameless(location, images);
                self.frames.keep(location, Some(symbol), frame);
            }
        }
    }

    /// Names offsets in the vDSO.
    pub(crate) fn name_vdso(&mut self, offsets: &[u64], images: &Images, losses: &mut Losses) {
        if offsets.is_empty() {
            return;
        }
        let read = vdso::image().and_then(|file| {
            let allowance = Allowance::alone();
            let elf = charged::read(&file, &allowance)?;
            let found = find_at_offsets(&elf, None, Path::new(""), offsets, Sources::None)?;
            Ok((elf.build_id(), found))
        });
        match read {
            Ok((build_id, found)) => {
                self.frames.vdso = Arc::new(self.frames.vdso.with_build_id(build_id));
                let location = |offset| Location::Vdso { offset };
                self.frames.keep_found(found, location, images);
            }
            Err(error) => losses.note("[vdso]", error),
        }
    }

    /// Names addresses of the kernel.
    pub(crate) fn name_kernel(
        &mut self,
        addresses: Vec<u64>,
        images: &Images,
        losses: &mut Losses,
    ) {
        if addresses.is_empty() || losses.kernel_hidden {
            return;
        }
        let wanted = Wanted::new(addresses);
        let functions = match kernel::functions(&wanted, self.ask_kernel) {
            Ok(Some(functions)) => functions,
            Ok(None) => {
                losses.kernel_hidden = true;
                losses.note(
                    "/proc/kallsyms",
                    "addresses are hidden by kernel.kptr_restrict",
                );
                return;
            }
            Err(error) => {
                losses.kernel_hidden = true;
                losses.note("/proc/kallsyms", error);
                return;
            }
        };
        let module = &self.frames.kernel;
        self.frames.kernel = Arc::new(module.with_build_id(kernel::build_id(None)));
        let mut modules: HashMap<String, Arc<Module>> = HashMap::new();
        for (&address, function) in wanted.addresses().iter().zip(functions) {
            let Some(function) = function else { continue };
            let location = Location::Kernel { address };
            let mut frame = self.frames.nameless(location, images);
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
            self.frames.keep(location, Some(symbol), frame);
        }
    }

    /// Names data of a file that the processes with these IDs map. Leaves out addresses outside of
    /// the file's data.
    pub(crate) fn name_variables(
        &mut self,
        file: u32,
        located: &[Data],
        pids: &[u32],
        images: &Images,
        losses: &mut Losses,
    ) -> Vec<(Data, Variable)> {
        let Some(mapped) = images.file(file) else {
            return Vec::new();
        };
        let module = mapped.module.name.to_string();
        let allowance = self.budget.allow(pids);
        let read = charged::read(&mapped.file, &allowance).and_then(|elf| {
            // Naming the functions of the file also reports an error of its debug file.
            let separate = self.debug_files.find(&elf, &mapped.path, Sources::None);
            let file = separate.unwrap_or_default().file;
            let separate = file
                .as_ref()
                .and_then(|file| charged::read(file, &allowance).ok());
            variables::find(&elf, separate.as_ref(), located)
        });
        let is_left_out = self.settle(&allowance, &module, losses);
        match read {
            Ok(found) => {
                let named = found.into_iter().map(|(data, address, symbol)| {
                    let start = symbol.as_ref().and_then(|symbol| symbol.start);
                    let variable = Variable {
                        symbol: symbol.map(|symbol| symbol.name.to_string()),
                        offset: address - start.unwrap_or(0),
                        module: module.clone(),
                    };
                    (data, variable)
                });
                named.collect()
            }
            Err(error) => {
                if !is_left_out {
                    losses.note(&module, error);
                }
                Vec::new()
            }
        }
    }
}
