//! Numbers of the ELF format, and little-endian fields of its structures.
//!
//! Their source is the System V gABI, chapters 4 and 5. The extensions are GNU's
//! (<https://sourceware.org/gnu-gabi/program-loading-and-dynamic-linking.txt>).

/// `p_type` of a segment that is mapped.
pub const PT_LOAD: u32 = 1;
/// `p_type` of the dynamic section.
pub const PT_DYNAMIC: u32 = 2;
/// `p_type` of notes.
pub const PT_NOTE: u32 = 4;
/// `p_type` of `.eh_frame_hdr`.
pub const PT_GNU_EH_FRAME: u32 = 0x6474_e550;

/// `p_flags`: executable.
pub const PF_X: u32 = 1;
/// `p_flags`: writable.
pub const PF_W: u32 = 2;

/// `sh_type` of contents that the program defines.
pub const SHT_PROGBITS: u32 = 1;
/// `sh_type` of a full symbol table.
pub const SHT_SYMTAB: u32 = 2;
/// `sh_type` of names.
pub const SHT_STRTAB: u32 = 3;
/// `sh_type` of notes.
pub const SHT_NOTE: u32 = 7;
/// `sh_type` of a section without bytes in the file.
pub const SHT_NOBITS: u32 = 8;
/// `sh_type` of the dynamic linker's symbol table.
pub const SHT_DYNSYM: u32 = 11;
/// `sh_type` of the GNU hash table of dynamic symbols.
pub const SHT_GNU_HASH: u32 = 0x6fff_fff6;

/// `sh_flags`: loaded.
pub const SHF_ALLOC: u64 = 2;
/// `sh_flags`: executable.
pub const SHF_EXECINSTR: u64 = 4;
/// `sh_flags`: the contents begin with a compression header.
pub const SHF_COMPRESSED: u64 = 1 << 11;

/// `e_shstrndx` of a file that has the index in `sh_link` of the first section.
pub const SHN_XINDEX: u16 = 0xffff;
/// `st_shndx` of a symbol that another file defines.
pub const SHN_UNDEF: u16 = 0;
/// `st_shndx` of a symbol whose value is not an address.
pub const SHN_ABS: u16 = 0xfff1;

/// `ch_type` of zlib data.
pub const ELFCOMPRESS_ZLIB: u32 = 1;
/// `ch_type` of zstd data.
pub const ELFCOMPRESS_ZSTD: u32 = 2;

/// Type of a symbol without a type, such as a label in assembly.
pub const STT_NOTYPE: u8 = 0;
/// Type of a variable's symbol.
pub const STT_OBJECT: u8 = 1;
/// Type of a function's symbol.
pub const STT_FUNC: u8 = 2;
/// Symbol type of a thread-local variable.
pub const STT_TLS: u8 = 6;
/// Type of the symbol of a function that returns the address of the actual function.
pub const STT_GNU_IFUNC: u8 = 10;

/// `n_type` of the note with the build ID.
pub const NT_GNU_BUILD_ID: u32 = 3;

/// `d_tag` of the hash table of symbols.
pub const DT_HASH: u64 = 4;
/// `d_tag` of the names of symbols.
pub const DT_STRTAB: u64 = 5;
/// `d_tag` of the symbols.
pub const DT_SYMTAB: u64 = 6;
/// `d_tag` of the size of the names.
pub const DT_STRSZ: u64 = 10;
/// `d_tag` of the GNU hash table of symbols.
pub const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// Size of `Elf64_Ehdr`, in bytes.
pub const HEADER_SIZE: usize = 64;
/// Size of `Elf32_Ehdr`, in bytes.
pub const HEADER_SIZE_32: usize = 52;
/// Size of `Elf64_Phdr`, in bytes.
pub const SEGMENT_SIZE: usize = 56;
/// Size of `Elf32_Phdr`, in bytes.
pub const SEGMENT_SIZE_32: usize = 32;
/// Size of `Elf64_Shdr`, in bytes.
pub const SECTION_SIZE: usize = 64;
/// Size of `Elf32_Shdr`, in bytes.
pub const SECTION_SIZE_32: usize = 40;
/// Size of `Elf64_Sym`, in bytes.
pub const SYMBOL_SIZE: usize = 24;
/// Size of `Elf32_Sym`, in bytes.
pub const SYMBOL_SIZE_32: usize = 16;

/// Size of a page, in bytes. Segments are mapped at multiples of this size.
pub const PAGE: u64 = 4096;

/// Little-endian numbers at byte offsets; 0 past the end.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'b>(pub &'b [u8]);

impl Fields<'_> {
    #[inline]
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let rest = self.0.get(at..).and_then(|bytes| bytes.first_chunk());
        rest.copied().unwrap_or([0; N])
    }

    /// Returns the byte at an offset.
    #[inline]
    pub fn u8(&self, at: usize) -> u8 {
        u8::from_le_bytes(self.bytes(at))
    }

    /// Returns the 16-bit number at an offset.
    #[inline]
    pub fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    /// Returns the 32-bit number at an offset.
    #[inline]
    pub fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    /// Returns the 64-bit number at an offset.
    #[inline]
    pub fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    /// Returns the 64-bit number at `at` for a 64-bit file, and the 32-bit number at `at_32` for a
    /// 32-bit file.
    #[inline]
    pub(crate) fn word(&self, is_64_bit: bool, at: usize, at_32: usize) -> u64 {
        if is_64_bit {
            self.u64(at)
        } else {
            self.u32(at_32).into()
        }
    }
}
