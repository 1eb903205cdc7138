//! Layout of a running virtual machine: where its code is, and the offsets of its fields.

use bpf::types::headers::{hotspot_flags, hotspot_heap, hotspot_layout, hotspot_limits};

use super::parks::with_parks;
use super::tables::{Tables, read_word};
use super::threads::{ThreadLayout, add_monitors};
use crate::language::Pieces;

const HOTSPOT_BLOCK_BYTES: hotspot_limits = hotspot_limits::HOTSPOT_BLOCK_BYTES;
const HOTSPOT_CONSTANTS: hotspot_limits = hotspot_limits::HOTSPOT_CONSTANTS;
const HOTSPOT_METHOD_BYTES: hotspot_limits = hotspot_limits::HOTSPOT_METHOD_BYTES;

/// Maximum number of heaps in the code cache.
const MAX_HEAPS: usize = 3;
/// Maximum size of the code cache, in bytes (`CODE_CACHE_SIZE_LIMIT` of globalDefinitions.hpp).
const MAX_CODE: u64 = 2 << 30;
/// Sizes of segments, as log2.
const SEGMENT_SHIFTS: std::ops::RangeInclusive<u32> = 4..=12;
/// Maximum number of codelets of the interpreter.
const MAX_CODELETS: usize = 1024;
/// Maximum number of blocks that are searched for the stubs of a new code cache.
const MAX_STUBS: usize = 2048;
/// Number of blocks for which a compiled method counts in such a search.
const PRICE_OF_A_METHOD: usize = 63;
/// Maximum length of a block, in segments.
const MAX_SEGMENTS: u64 = 1 << 24;
/// Version that the tables of JDK 8 give.
const VERSION_OF_8: u32 = 25;
/// First version whose compressed numbers have no byte 0.
const FIRST_WITHOUT_ZEROS: u32 = 20;
/// Maximum bytes of a name that is compared.
const NAME_BYTES: usize = 64;

/// Place of the index of a class's source file.
#[derive(Clone, Copy, Debug)]
pub(super) enum SourceFile {
    Class(u16),
    Pool(u16),
}

/// Places of the debug information of compiled code.
#[derive(Clone, Copy, Debug)]
pub(super) enum DebugInfo {
    /// All parts are in the blob: JDK 8 to 22.
    Inside {
        scopes: Scopes,
        pcs: u16,
        pcs_end: u16,
        metadata: u16,
    },
    /// The parts are in memory of their own.
    Outside {
        immutable: u16,
        immutable_size: u16,
        scopes: u16,
        pcs: u16,
        mutable: u16,
        relocations_size: u16,
    },
}

/// Field that leads to the scopes of compiled code.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scopes {
    /// The field has the address.
    Address(u16),
    /// The field has the offset from the blob.
    Offset(u16),
}

/// Running virtual machine.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// Layout for programs.
    pub(super) layout: hotspot_layout,
    pub(super) name_index: u16,
    pub(super) method_flags: u16,
    pub(super) pool_bytes: u16,
    pub(super) pool_length: u16,
    pub(super) source_file: SourceFile,
    pub(super) symbol_length: u16,
    pub(super) symbol_body: u16,
    /// Offset of the method in compiled code.
    pub(super) compiled_method: u16,
    pub(super) debug_info: DebugInfo,
    /// Value that each byte of a compressed number exceeds its digit by.
    pub(super) number_base: u32,
    /// Places of data on threads, if the tables have all of them.
    pub(super) threads: Option<ThreadLayout>,
}

/// State of a virtual machine.
pub(super) enum Found {
    /// The machine has not made its code cache yet.
    NotReady,
    /// The tables lack something.
    Unknown,
    Machine(Box<Machine>),
}

/// Returns the virtual machine that the tables describe.
pub(super) fn find(memory: &dyn Pieces, tables: &Tables) -> Found {
    let Some(offsets) = Offsets::new(memory, tables) else {
        return Found::Unknown;
    };
    offsets.machine(memory, tables).unwrap_or(Found::NotReady)
}

/// Returns the layout without the addresses of the code.
#[cfg(test)]
pub(super) fn parse(memory: &dyn Pieces, tables: &Tables) -> Option<Machine> {
    Some(Offsets::new(memory, tables)?.machine)
}

/// Returns the version as text, such as `17.0.15+6-Debian-1deb12u1`.
pub(super) fn version(memory: &dyn Pieces, tables: &Tables) -> Option<String> {
    let text = read_word(
        memory,
        tables.address("Abstract_VM_Version::_s_vm_release")?,
    )?;
    let bytes = memory.bytes(text, NAME_BYTES);
    let length = bytes.iter().position(|byte| *byte == 0)?;
    let is_plain = |byte: &u8| byte.is_ascii_graphic();
    let text = bytes
        .get(..length)
        .filter(|text| text.iter().all(is_plain))?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Offsets of fields, which the tables give.
struct Offsets {
    heap_memory: u16,
    heap_segments: u16,
    heap_shift: u16,
    space_low: u16,
    space_low_boundary: u16,
    space_high_boundary: u16,
    blob_name: u16,
    blob_size: u16,
    block_length: BlockLength,
    major: u32,
    machine: Machine,
}

/// Type of the length of a block, in segments.
#[derive(Clone, Copy, Debug)]
enum BlockLength {
    Word,
    HalfWord,
}

impl Offsets {
    fn new(memory: &dyn Pieces, tables: &Tables) -> Option<Offsets> {
        let field = |name: &str| tables.offset(&[name]);
        let is_8 = tables.address("CodeCache::_heap").is_some();
        let major = tables.address("Abstract_VM_Version::_vm_major_version")?;
        let major = read_word(memory, major)? as u32;
        let major = if is_8 && major == VERSION_OF_8 {
            8
        } else {
            major
        };
        let layout = code_layout(tables, is_8)?;
        let block_length = match layout.block_used {
            ..8 => BlockLength::HalfWord,
            _ => BlockLength::Word,
        };
        let source_in_pool = field("ConstantPool::_source_file_name_index");
        let source_in_class = field("InstanceKlass::_source_file_name_index");
        let source_file = source_in_pool.map(SourceFile::Pool);
        let machine = Machine {
            layout,
            name_index: field("ConstMethod::_name_index")?,
            method_flags: tables.offset(&["ConstMethod::_flags", "ConstMethod::_flags._flags"])?,
            pool_bytes: tables.size("ConstantPool")?,
            pool_length: field("ConstantPool::_length")?,
            source_file: source_file.or_else(|| source_in_class.map(SourceFile::Class))?,
            symbol_length: field("Symbol::_length")?,
            symbol_body: field("Symbol::_body")?,
            compiled_method: tables.offset(&["CompiledMethod::_method", "nmethod::_method"])?,
            debug_info: debug_info(tables)?,
            number_base: u32::from(major >= FIRST_WITHOUT_ZEROS),
            threads: None,
        };
        Some(Offsets {
            heap_memory: field("CodeHeap::_memory")?,
            heap_segments: field("CodeHeap::_segmap")?,
            heap_shift: field("CodeHeap::_log2_segment_size")?,
            space_low: field("VirtualSpace::_low")?,
            space_low_boundary: field("VirtualSpace::_low_boundary")?,
            space_high_boundary: field("VirtualSpace::_high_boundary")?,
            blob_name: field("CodeBlob::_name")?,
            blob_size: field("CodeBlob::_size")?,
            block_length,
            major,
            machine,
        })
    }

    /// Adds the addresses of the machine's code; `None` if the code cache is not ready.
    fn machine(mut self, memory: &dyn Pieces, tables: &Tables) -> Option<Found> {
        let word = |address: u64| read_word(memory, address);
        let heaps = heaps(memory, tables)?;
        let call_stub = word(tables.address("StubRoutines::_call_stub_return_address")?)?;
        let mut found = [hotspot_heap {
            low: u64::MAX,
            segments: 0,
        }; MAX_HEAPS];
        if heaps.is_empty() || heaps.len() > MAX_HEAPS || call_stub == 0 {
            return None;
        }
        let (mut start, mut end) = (u64::MAX, 0);
        for (place, heap) in found.iter_mut().zip(&heaps) {
            let code = heap.wrapping_add(self.heap_memory.into());
            let segments = heap.wrapping_add(self.heap_segments.into());
            let shift = word(heap.wrapping_add(self.heap_shift.into()))? as u32;
            let at = |space: u64, offset: u16| word(space.wrapping_add(offset.into()));
            *place = hotspot_heap {
                low: at(code, self.space_low)?,
                segments: at(segments, self.space_low)?,
            };
            start = start.min(at(code, self.space_low_boundary)?);
            end = end.max(at(code, self.space_high_boundary)?);
            self.machine.layout.segment_shift = shift as u16;
            if !SEGMENT_SHIFTS.contains(&shift) || place.low == 0 || place.segments == 0 {
                return None;
            }
        }
        found.sort_by_key(|heap| heap.low);
        let size = end.checked_sub(start).filter(|size| *size <= MAX_CODE)?;
        let layout = &mut self.machine.layout;
        (layout.code_start, layout.code_bytes) = (start, size);
        layout.heaps = found;
        layout.call_stub_return = call_stub;
        self.find_stubs(memory);
        self.find_entries(memory, tables);
        let layout = &self.machine.layout;
        let has_code = layout.interpreter_bytes > 0 && call_stub.wrapping_sub(start) < size;
        // The machine makes its heap before the interpreter.
        let threads = ThreadLayout::read(memory, tables, self.major);
        if let Some(threads) = &threads {
            add_monitors(memory, tables, threads, &mut self.machine.layout);
            if let Some(layout) = with_parks(memory, tables, &self.machine, threads) {
                self.machine.layout = layout;
            }
        }
        self.machine.threads = threads;
        has_code.then(|| Found::Machine(Box::new(self.machine)))
    }

    /// Finds the stubs that need rules of their own, by their names. The machine makes them first.
    fn find_stubs(&mut self, memory: &dyn Pieces) {
        let Machine { layout, .. } = &mut self.machine;
        let header = u64::from(layout.block_header);
        let offset = |bytes: &[u8], at: u16, size: usize| {
            let field = bytes.get(usize::from(at)..)?.get(..size)?;
            Some(
                field
                    .iter()
                    .rev()
                    .fold(0, |word, byte| word << 8 | u64::from(*byte)),
            )
        };
        let mut names: Vec<(u64, Vec<u8>)> = Vec::new();
        for heap in layout.heaps.into_iter().filter(|heap| heap.segments != 0) {
            let mut block = heap.low;
            let mut left = MAX_STUBS;
            while left > 0 && (layout.interpreter_bytes == 0 || layout.uncommon_trap == 0) {
                left -= 1;
                let bytes = memory.bytes(block, layout.block_bytes.into());
                let length = match self.block_length {
                    BlockLength::Word => offset(&bytes, 0, 8),
                    BlockLength::HalfWord => offset(&bytes, 0, 4),
                };
                let length = length.filter(|length| (1..=MAX_SEGMENTS).contains(length));
                let Some(length) = length else {
                    break;
                };
                let is_used = offset(&bytes, layout.block_used, 1) == Some(1);
                let kind = offset(&bytes, layout.kind, 8).map(|kind| kind & layout.kind_mask);
                if is_used && kind == Some(layout.compiled) {
                    // Stubs and methods are in heaps of their own, or the stubs come first.
                    left = left.saturating_sub(PRICE_OF_A_METHOD);
                } else if is_used
                    && let Some(name) = offset(
                        &bytes,
                        self.blob_name.saturating_add(layout.block_header),
                        8,
                    )
                {
                    if !names.iter().any(|(known, _)| *known == name) {
                        names.push((name, memory.bytes(name, NAME_BYTES)));
                    }
                    let known = names.iter().find(|(known, _)| *known == name);
                    let text = known.map_or(&[][..], |(_, text)| text);
                    if text.starts_with(b"Interpreter\0") {
                        let size = offset(
                            &bytes,
                            self.blob_size.saturating_add(layout.block_header),
                            4,
                        );
                        layout.interpreter_start = block.wrapping_add(header);
                        layout.interpreter_bytes = size.unwrap_or(0);
                    } else if text.starts_with(b"DeoptimizationBlob\0") {
                        layout.deoptimization = block;
                    } else if text.starts_with(b"UncommonTrapBlob\0") {
                        layout.uncommon_trap = block;
                    }
                }
                block = block.saturating_add(length << layout.segment_shift);
            }
        }
    }

    /// Finds the codelets with which the interpreter enters methods. They are adjacent.
    fn find_entries(&mut self, memory: &dyn Pieces, tables: &Tables) {
        let field = |base: u64, names: &[&str]| {
            read_word(memory, base.checked_add(tables.offset(names)?.into())?)
        };
        let layout = &mut self.machine.layout;
        let found = || -> Option<(u64, u64)> {
            let queue = read_word(memory, tables.address("AbstractInterpreter::_code")?)?;
            let mut codelet = field(queue, &["StubQueue::_stub_buffer"])?;
            let count = field(queue, &["StubQueue::_number_of_stubs"])? as u32 as usize;
            let mut entries: Option<(u64, u64)> = None;
            for _ in 0..count.min(MAX_CODELETS) {
                let size = field(codelet, &["InterpreterCodelet::_size"])? as u32;
                let text = field(codelet, &["InterpreterCodelet::_description"])?;
                let next = codelet.checked_add(size.into())?;
                if memory.bytes(text, 12) == b"method entry" {
                    entries = match entries {
                        Some((start, end)) if end == codelet => Some((start, next)),
                        Some(_) => break,
                        None => Some((codelet, next)),
                    };
                }
                codelet = next;
            }
            entries
        };
        if let Some((start, end)) = found() {
            layout.entries_start = start;
            layout.entries_bytes = end - start;
        }
    }
}

/// Returns the addresses of the code cache's heaps.
fn heaps(memory: &dyn Pieces, tables: &Tables) -> Option<Vec<u64>> {
    let word = |address: u64| read_word(memory, address);
    if let Some(heap) = tables.address("CodeCache::_heap") {
        return Some(vec![word(heap).filter(|heap| *heap != 0)?]);
    }
    let list = word(tables.address("CodeCache::_heaps")?).filter(|list| *list != 0)?;
    let length = tables.offset(&["GrowableArrayBase::_len", "GenericGrowableArray::_len"])?;
    let data = tables.offset(&["GrowableArray<int>::_data"])?;
    let length = word(list.checked_add(length.into())?)? as u32 as usize;
    let data = word(list.checked_add(data.into())?)?;
    let heaps =
        (0..length.min(MAX_HEAPS + 1)).map(|index| word(data.checked_add(8 * index as u64)?));
    heaps.collect()
}

/// Returns the bits of a symbol's first word without its reference count. The count is the lower half
/// of `_hash_and_refcount`, or a field of its own before JDK 13.
fn symbol_bits(tables: &Tables) -> u64 {
    let count = tables.offset(&["Symbol::_hash_and_refcount", "Symbol::_refcount"]);
    let shift = count.map_or(u32::MAX, |offset| 8 * u32::from(offset));
    0xffff_u64.checked_shl(shift).map_or(0, |count| !count)
}

/// Returns the parts of the layout that do not depend on addresses.
fn code_layout(tables: &Tables, is_8: bool) -> Option<hotspot_layout> {
    let field = |names: &[&str]| tables.offset(names);
    let header = tables.size("HeapBlock")?;
    let blob = |names: &[&str]| tables.offset(names)?.checked_add(header);
    let code_is_offset = field(&["CodeBlob::_code_begin"]).is_none();
    let entry_is_offset = field(&["nmethod::_verified_entry_point"]).is_none();
    let flag = |is_set: bool, flag: hotspot_flags| if is_set { flag.0 as u16 } else { 0 };
    let deoptimize = blob(&[
        "CompiledMethod::_deopt_handler_begin",
        "nmethod::_deopt_handler_entry_offset",
        "nmethod::_deopt_handler_offset",
        "nmethod::_deoptimize_offset",
    ])?;
    let deoptimize_handle = blob(&[
        "CompiledMethod::_deopt_mh_handler_begin",
        "nmethod::_deopt_mh_handler_offset",
        "nmethod::_deoptimize_mh_offset",
    ]);
    // The header of compiled methods has a size that no other blob's header has. In the first
    // version with a field for the kind, the size has two bytes.
    let size_is_short = field(&["CodeBlob::_code_begin"]).is_none() && !is_8;
    let layout = hotspot_layout {
        kind_mask: if size_is_short { 0xffff } else { 0xffff_ffff },
        compiled: tables.size("nmethod")?.into(),
        block_header: header,
        block_used: field(&["HeapBlock::Header::_used"])?,
        kind: blob(&["CodeBlob::_header_size"])?,
        frame_size: blob(&["CodeBlob::_frame_size"])?,
        code_begin: blob(&["CodeBlob::_code_begin", "CodeBlob::_code_offset"])?,
        compile_id: blob(&["nmethod::_compile_id"])?,
        original_pc: blob(&["nmethod::_orig_pc_offset"])?,
        deoptimize,
        deoptimize_handle: deoptimize_handle.unwrap_or(deoptimize),
        verified_entry: blob(&[
            "nmethod::_verified_entry_point",
            "nmethod::_verified_entry_offset",
        ])?,
        flags: flag(code_is_offset, hotspot_flags::HOTSPOT_CODE_IS_OFFSET)
            | flag(entry_is_offset, hotspot_flags::HOTSPOT_ENTRY_IS_OFFSET),
        symbol_bits: symbol_bits(tables),
        pool_holder: field(&["ConstantPool::_pool_holder"])?,
        class_name: field(&["Klass::_name"])?,
        const_method_bytes: tables.size("ConstMethod")?,
        code_size: field(&["ConstMethod::_code_size"])?,
        bytecode_slot: if is_8 { -7 } else { -8 },
        thread_key: hotspot_limits::HOTSPOT_NO_KEY.0 as u16,
        ..hotspot_layout::default()
    };
    let last = [
        layout.kind,
        layout.frame_size,
        layout.code_begin,
        layout.compile_id,
        layout.original_pc,
        layout.deoptimize,
        layout.deoptimize_handle,
        layout.verified_entry,
        layout.block_used,
    ];
    let block_bytes = last.into_iter().max()?.checked_add(8)?;
    let most_constants = HOTSPOT_CONSTANTS.0 + HOTSPOT_METHOD_BYTES.0 - 8;
    let fits = u32::from(block_bytes) <= HOTSPOT_BLOCK_BYTES.0
        && (HOTSPOT_CONSTANTS.0..=most_constants).contains(&layout.code_size.into());
    fits.then_some(hotspot_layout {
        block_bytes,
        ..layout
    })
}

/// Returns the places of the debug information.
fn debug_info(tables: &Tables) -> Option<DebugInfo> {
    let field = |name: &str| tables.offset(&[name]);
    let scopes_offset = field("nmethod::_scopes_data_offset");
    let pcs = field("nmethod::_scopes_pcs_offset")?;
    if let Some(immutable) = field("nmethod::_immutable_data") {
        return Some(DebugInfo::Outside {
            immutable,
            immutable_size: field("nmethod::_immutable_data_size")?,
            scopes: scopes_offset?,
            pcs,
            mutable: field("CodeBlob::_mutable_data")?,
            relocations_size: field("CodeBlob::_relocation_size")?,
        });
    }
    let address = field("CompiledMethod::_scopes_data_begin");
    Some(DebugInfo::Inside {
        scopes: match (address, scopes_offset) {
            (Some(address), _) => Scopes::Address(address),
            (None, offset) => Scopes::Offset(offset?),
        },
        pcs,
        pcs_end: field("nmethod::_dependencies_offset")?,
        metadata: field("nmethod::_metadata_offset")?,
    })
}
