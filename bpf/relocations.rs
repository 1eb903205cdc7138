//! Lists the kernel's types that an object needs for CO-RE.

use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::CString;
use std::path::Path;
use std::{ptr, slice};

use libbpf_rs::btf::{Btf, BtfType, TypeId};
use libbpf_rs::libbpf_sys;

/// Offsets of two fields of `struct btf_ext_header` (libbpf's btf.h): the offset and the length
/// of the relocations.
const OFFSET: usize = 24;
const LENGTH: usize = 28;

/// Returns the names of the kernel's types that the object's relocations name, sorted. The names
/// lack the suffix `___FLAVOUR`, which libbpf ignores as well. The format is that of the
/// kernel's Documentation/bpf/btf.rst.
pub(crate) fn names_of_types(elf: &Path, btf: &Btf<'_>) -> Result<Vec<String>, Box<dyn Error>> {
    let section = beside_types(elf)?;
    let word = |at: usize| -> Result<usize, Box<dyn Error>> {
        let bytes = section.get(at..at + 4).ok_or(".BTF.ext is cut short")?;
        Ok(u32::from_ne_bytes(bytes.try_into()?) as usize)
    };
    let begin = word(4)? + word(OFFSET)?;
    let end = begin + word(LENGTH)?;
    let mut names = BTreeSet::new();
    // The layout: the size of a relocation, then for each section its name, its number of
    // relocations, and the relocations.
    let mut at = begin + 4;
    while at < end {
        let (size, count) = (word(begin)?, word(at + 4)?);
        at += 8;
        for relocation in 0..count {
            let id = word(at + size * relocation + 4)? as u32;
            let found = btf.type_by_id::<BtfType<'_>>(TypeId::from(id));
            let name = found.as_ref().and_then(|found| found.name()?.to_str());
            let name = name.ok_or("a type without a name")?;
            names.insert(name.split("___").next().unwrap_or(name).to_owned());
        }
        at += size * count;
    }
    Ok(names.into_iter().collect())
}

/// Returns the section `.BTF.ext`.
fn beside_types(elf: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let path = CString::new(elf.as_os_str().as_encoded_bytes())?;
    let (mut found, mut size) = (ptr::null_mut(), 0);
    // SAFETY: libbpf returns both or neither, and the bytes live as long as `found`.
    unsafe {
        let types = libbpf_sys::btf__parse_elf(path.as_ptr(), &mut found);
        let bytes = if found.is_null() {
            ptr::null()
        } else {
            libbpf_sys::btf_ext__raw_data(found, &mut size)
        };
        let section =
            (!bytes.is_null()).then(|| slice::from_raw_parts(bytes.cast(), size as usize).to_vec());
        libbpf_sys::btf_ext__free(found);
        libbpf_sys::btf__free(types);
        section.ok_or_else(|| "it has no .BTF.ext".into())
    }
}
