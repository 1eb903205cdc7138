//! The two steps of naming, and their shared state. [`crate::naming`] names each kind of location.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use profile::FrameKind;

use crate::frame::Frame;
use crate::location::Location;
use crate::losses::Losses;
use crate::naming::files::sources::Sources;
use crate::naming::files::variables::{Data, Variable};
use crate::naming::interpreted::Interpreted;
use crate::naming::kernel::{AskKernel, tracers};
use crate::naming::namer::Namer;
use crate::naming::perf_map::PerfMaps;
use crate::process::images::{Image, Images};
use crate::process::open;
use crate::process::processes::{Mapping, Processes};
use crate::remote::DebugFiles;
use process::Process;

/// Lowest address that code of a program can have (`vm.mmap_min_addr`).
const LOWEST_ADDRESS: u64 = 4096;

/// Locates addresses in files, and names them.
///
/// A symbolizer keeps every mapped file open. A new symbolizer raises the limit of open files of
/// the whole program to its maximum, and uses up to half of it.
pub struct Symbolizer {
    pub(crate) processes: Processes,
    pub(crate) images: Images,
    perf_maps: Vec<PerfMaps>,
    perf_map_indexes: HashMap<Process, u32>,
    namer: Namer,
    losses: Losses,
    /// Files with a located address, whose debug files were requested; `None` without a source of
    /// debug files.
    requested: Option<HashSet<u32>>,
}

impl Default for Symbolizer {
    fn default() -> Self {
        Self::new()
    }
}

impl Symbolizer {
    /// Returns a symbolizer that searches for separate debug files under `/usr/lib/debug`.
    pub fn new() -> Self {
        Self::with_debug_directories(vec!["/usr/lib/debug".into()])
    }

    /// Returns a symbolizer that searches for separate debug files under these directories.
    pub fn with_debug_directories(directories: Vec<PathBuf>) -> Self {
        Self {
            processes: Processes::default(),
            images: Images::new(open::allow_open_files()),
            perf_maps: Vec::new(),
            perf_map_indexes: HashMap::new(),
            namer: Namer::new(directories),
            losses: Losses::default(),
            requested: None,
        }
    }

    /// Sets the source of debug files that are not on this machine. A debug file is requested when
    /// the first address of its program is located.
    pub fn set_debug_files(&mut self, remote: Arc<dyn DebugFiles>) {
        self.namer.set_debug_files(remote);
        self.requested = Some(HashSet::new());
    }

    /// Lets [`Symbolizer::resolve`] wait for debug files from that source from now on, for all of
    /// them together as long as the source says. Locations that were named before, without their
    /// debug files, can be named again.
    pub fn wait_for_debug_files(&mut self) {
        self.namer.begin_to_wait();
    }

    /// Sets which source places are looked up.
    pub fn look_up_sources(&mut self, sources: Sources) {
        self.namer.look_up_sources(sources);
    }

    /// Sets the function that asks the kernel for names of kernel functions. This is faster than
    /// reading the kernel's list of all functions.
    pub fn ask_kernel(&mut self, ask: AskKernel) {
        self.namer.ask_kernel(ask);
    }

    /// Reads the mappings of a process now, and opens the files behind them.
    ///
    /// Callers use it for targets that they know beforehand, and for processes whose mappings have
    /// changed. The mappings of other processes are read when their first address is located. They
    /// are read again when an address is in no mapping.
    pub fn watch(&mut self, process: Process) {
        let Self {
            processes,
            images,
            losses,
            ..
        } = self;
        processes.read(process, images, losses);
    }

    /// Returns whether another process has this PID now, or whether this process runs another
    /// program now. Its mappings cannot be read again then.
    pub fn has_been_replaced(&self, process: Process) -> bool {
        self.processes.has_been_replaced(process)
    }

    /// Locates the user-space addresses of a stack, from leaf to root.
    ///
    /// Every address but the leaf is a return address. The leaf is one too, unless `leaf_exact` is
    /// true. A return address may be the first address of another function, so this function
    /// locates the call before it.
    pub fn locate(
        &mut self,
        process: Process,
        addresses: &[u64],
        leaf_exact: bool,
    ) -> Vec<Location> {
        let addresses = look_up_addresses(addresses, leaf_exact);
        addresses
            .map(|address| self.locate_one(process, address))
            .collect()
    }

    /// Locates the kernel addresses of a stack, from leaf to root, like [`Symbolizer::locate`].
    pub fn locate_kernel(&self, addresses: &[u64], leaf_exact: bool) -> Vec<Location> {
        let addresses = look_up_addresses(addresses, leaf_exact);
        addresses
            .map(|address| Location::Kernel { address })
            .collect()
    }

    fn locate_one(&mut self, process: Process, address: u64) -> Location {
        if address < LOWEST_ADDRESS {
            return Location::Unknown;
        }
        let Self {
            processes,
            images,
            losses,
            ..
        } = self;
        let Some(mapping) = processes.mapping(process, address, images, losses) else {
            return Location::Unknown;
        };
        let within = address - mapping.start;
        match mapping.image {
            Image::File(file) => {
                let requested = self.requested.as_mut();
                if requested.is_some_and(|requested| requested.insert(file)) {
                    self.namer.request_debug_file(file, &self.images);
                }
                Location::File {
                    file,
                    offset: mapping.offset.saturating_add(within),
                }
            }
            Image::Jit => self.locate_jit(process, address),
            Image::Vdso => Location::Vdso { offset: within },
            Image::Module(index) => Location::Module { index },
        }
    }

    /// Returns the location of an interpreter's frame in this function at this line. The location
    /// is `Unknown` if the function exceeds the capacity.
    pub fn locate_interpreted(&mut self, function: Interpreted, line: Option<u32>) -> Location {
        let located = self.namer.frames.interpreted.locate(function, line);
        located.unwrap_or_else(|| {
            self.losses.interpreted += 1;
            Location::Unknown
        })
    }

    /// Locates an address in a process's data. The process must still live.
    pub fn locate_data(&mut self, process: Process, address: u64) -> Option<Data> {
        let mapping = self.code_before(process, address)?;
        match mapping.image {
            Image::File(file) => Some(Data {
                file,
                code: mapping.offset,
                distance: address - mapping.start,
            }),
            _ => None,
        }
    }

    /// Returns the last executable mapping that begins before an address.
    fn code_before(&mut self, process: Process, address: u64) -> Option<Mapping> {
        let Self {
            processes,
            images,
            losses,
            ..
        } = self;
        processes.last_before(process, address, images, losses)
    }

    fn locate_jit(&mut self, process: Process, address: u64) -> Location {
        let index = match self.perf_map_indexes.get(&process) {
            Some(&index) => index,
            None => {
                let Some(started) = self.processes.started(process) else {
                    return Location::Unknown;
                };
                let index = self.perf_maps.len() as u32;
                self.perf_maps.push(PerfMaps::new(process, started));
                self.perf_map_indexes.insert(process, index);
                index
            }
        };
        if self.processes.record_instance(process) {
            self.perf_maps[index as usize].search();
        }
        Location::Jit {
            process: index,
            address,
        }
    }

    /// Names locations. Names each distinct location once, and all locations of a file together.
    ///
    /// Callers pass all locations that they print, and then call [`Symbolizer::frames`]. A location
    /// that is already named costs nothing.
    pub fn resolve(&mut self, locations: impl IntoIterator<Item = Location>) {
        let mut files: HashMap<u32, Vec<u64>> = HashMap::new();
        let mut jits: HashMap<u32, Vec<u64>> = HashMap::new();
        let mut vdso = Vec::new();
        let mut kernel = Vec::new();
        let mut seen = HashSet::new();
        for location in locations {
            if self.namer.frames.has(location) || !seen.insert(location) {
                continue;
            }
            match location {
                Location::File { file, offset } => files.entry(file).or_default().push(offset),
                Location::Jit { process, address } => {
                    jits.entry(process).or_default().push(address);
                }
                Location::Vdso { offset } => vdso.push(offset),
                Location::Kernel { address } => kernel.push(address),
                Location::Module { .. } | Location::Interpreted { .. } | Location::Unknown => {}
            }
        }
        let Self {
            processes,
            images,
            perf_maps,
            namer,
            losses,
            ..
        } = self;
        let pids = processes.pids();
        for file in images.by_size(files.keys().copied()) {
            let pids = pids.get(&file).map_or(&[][..], Vec::as_slice);
            let offsets = files.remove(&file).unwrap_or_default();
            namer.name_file(file, &offsets, pids, images, losses);
        }
        let mut jits: Vec<_> = jits.into_iter().collect();
        jits.sort_by_key(|(process, _)| perf_maps.get(*process as usize).map(PerfMaps::size));
        for (process, addresses) in jits {
            if let Some(maps) = perf_maps.get_mut(process as usize) {
                namer.name_jit(process, maps, addresses, images, losses);
            }
        }
        namer.name_vdso(&vdso, images, losses);
        namer.name_kernel(kernel, images, losses);
        let frames = &mut namer.frames;
        for location in seen {
            if !frames.has(location) {
                frames.keep(location, None, frames.nameless(location, images));
            }
        }
    }

    /// Names located variables, and all variables of a file together. Leaves out addresses outside
    /// of the files' data.
    pub fn variables(&mut self, located: impl Iterator<Item = Data>) -> HashMap<Data, Variable> {
        let mut files: HashMap<u32, Vec<Data>> = HashMap::new();
        for data in located {
            files.entry(data.file).or_default().push(data);
        }
        let pids = self.processes.pids();
        let mut variables = HashMap::new();
        for file in self.images.by_size(files.keys().copied()) {
            let located = files.remove(&file).unwrap_or_default();
            let pids = pids.get(&file).map_or(&[][..], Vec::as_slice);
            let (images, losses) = (&self.images, &mut self.losses);
            let named = self
                .namer
                .name_variables(file, &located, pids, images, losses);
            variables.extend(named);
        }
        variables
    }

    /// Returns the frame of a location.
    ///
    /// [`Symbolizer::resolve`] provides its name. A location that was not resolved has only the
    /// name of its module.
    pub fn frame(&self, location: Location) -> Frame {
        self.namer.frames.frame(location, &self.images)
    }

    /// Returns the frames of a located stack, from root to leaf.
    ///
    /// Leaves out the tracer's own frames of a kernel stack. [`Symbolizer::resolve`] provides the
    /// names. A location that was not resolved has only the name of its module. Equal names that
    /// were resolved are the same `Arc`.
    pub fn frames(&self, located: &[Location]) -> Vec<Frame> {
        let frames = located.iter().map(|location| self.frame(*location));
        let mut frames: Vec<_> = frames.collect();
        let kernel = frames
            .iter()
            .take_while(|frame| frame.kind == FrameKind::Kernel);
        let names: Vec<&str> = kernel.map(|frame| &*frame.name).collect();
        let mut tracers = tracers::find_tracers(&names).into_iter();
        frames.retain(|_| !tracers.next().unwrap_or(false));
        frames.reverse();
        frames
    }

    /// Returns the counts of data that could not be read.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }
}

/// Converts return addresses to addresses of the calls.
fn look_up_addresses(addresses: &[u64], leaf_exact: bool) -> impl Iterator<Item = u64> {
    let exact = usize::from(leaf_exact);
    let calls = addresses
        .iter()
        .skip(exact)
        .map(|address| address.saturating_sub(1));
    addresses.iter().take(exact).copied().chain(calls)
}
