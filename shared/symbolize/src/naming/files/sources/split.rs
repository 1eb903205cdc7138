//! Split DWARF: entries of units in files of their own (DWARF 5, section 7.3.5).
//!
//! The program keeps a skeleton of each unit, with its addresses and lines. The entries of its
//! functions are in a `.dwo` file that the compiler wrote, or in one `.dwp` file for the whole
//! program. The program names the files, so any file of this machine may be opened. It counts only
//! if it has the ID of the unit.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Error, Result};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::gimli::{
    Dwarf, DwarfPackage, DwarfPackageSections, DwarfSections, DwoId, EndianSlice, LittleEndian,
    Section, SectionId, Unit,
};

use super::Slice;
use super::size::Count;
use crate::budget::Allowance;
use crate::charged;
use crate::process::open;

/// Unit whose entries are in another file.
pub(super) struct Skeleton<'d> {
    pub(super) id: DwoId,
    pub(super) unit: Unit<Slice<'d>>,
    /// Path of the `.dwo` file, as the compiler wrote it.
    path: PathBuf,
}

impl<'d> Skeleton<'d> {
    /// Returns the skeleton that a unit is; `None` if its entries are in the same file.
    pub(super) fn new(dwarf: &Dwarf<Slice<'d>>, unit: Unit<Slice<'d>>) -> Option<Skeleton<'d>> {
        let id = unit.dwo_id?;
        let name = unit.dwo_name().ok()??;
        let name = dwarf.attr_string(&unit, name).ok()?;
        let folder = unit.comp_dir.map_or(&[][..], |folder| folder.slice());
        let path =
            [folder, name.slice()].map(|bytes| Path::new(std::ffi::OsStr::from_bytes(bytes)));
        Some(Skeleton {
            id,
            path: path[0].join(path[1]),
            unit,
        })
    }
}

/// Contents of the files with entries.
#[derive(Default)]
pub(super) struct SplitFiles {
    package: Option<DwarfPackageSections<Vec<u8>>>,
    units: Vec<(DwoId, DwarfSections<Vec<u8>>)>,
}

impl SplitFiles {
    /// Reads the files with the entries of these units, for a program that was mapped from `path`.
    /// Subtracts the numbers of bytes from `room`. Files that are missing or cannot be read are
    /// left out.
    pub(super) fn read(
        path: &Path,
        skeletons: &[Skeleton<'_>],
        room: &mut u64,
        allowance: &Allowance,
    ) -> SplitFiles {
        if skeletons.is_empty() {
            return SplitFiles::default();
        }
        let mut package = path.as_os_str().to_owned();
        package.push(".dwp");
        let package = package_at(Path::new(&package), room, allowance);
        let known = package.as_ref().and_then(borrow_package);
        let is_in_package = |id: DwoId| {
            known
                .as_ref()
                .is_some_and(|known| known.cu_index.find(id.0).is_some())
        };
        let skeletons = skeletons.iter();
        let missing = skeletons.filter(|skeleton| !is_in_package(skeleton.id));
        let units = missing.filter_map(|skeleton| {
            // The program may have been moved together with its files.
            let beside = path.parent()?.join(skeleton.path.file_name()?);
            let mut places = [skeleton.path.clone(), beside].into_iter();
            let sections = places.find_map(|place| {
                let (file, _) = open::regular_here(place).ok()?;
                let load = |id: SectionId| contents(&file, id, room, allowance);
                DwarfSections::load(load).ok()
            });
            Some((skeleton.id, sections?))
        });
        let units = units.collect();
        SplitFiles { package, units }
    }

    /// Returns the entries of each unit. Leaves out units whose file has another ID, or takes too
    /// much memory.
    pub(super) fn units<'s>(
        &'s self,
        parent: &Dwarf<Slice<'s>>,
        skeletons: &[Skeleton<'s>],
        count: &mut Count<'_>,
    ) -> HashMap<DwoId, Arc<Dwarf<Slice<'s>>>> {
        let package = self.package.as_ref().and_then(borrow_package);
        let sections: HashMap<DwoId, _> = self.units.iter().map(|(id, it)| (*id, it)).collect();
        let units = skeletons.iter().filter_map(|skeleton| {
            let packaged = package.as_ref();
            let packaged = packaged.and_then(|it| it.find_cu(skeleton.id, parent).ok()?);
            let unit = match packaged {
                Some(unit) => unit,
                None => {
                    let mut unit = sections.get(&skeleton.id)?.borrow(|bytes| endian(bytes));
                    unit.make_dwo(parent);
                    unit
                }
            };
            let size = unit.debug_info.reader().len() as u64;
            let is_from_unit = count.check_split(&unit, size, skeleton).ok()?;
            is_from_unit.then(|| (skeleton.id, Arc::new(unit)))
        });
        units.collect()
    }
}

fn endian(bytes: &[u8]) -> Slice<'_> {
    EndianSlice::new(bytes, LittleEndian)
}

fn borrow_package(sections: &DwarfPackageSections<Vec<u8>>) -> Option<DwarfPackage<Slice<'_>>> {
    let borrowed = sections.borrow(|bytes| endian(bytes), endian(&[]));
    borrowed.ok()
}

fn package_at(
    path: &Path,
    room: &mut u64,
    allowance: &Allowance,
) -> Option<DwarfPackageSections<Vec<u8>>> {
    let (file, _) = open::regular_here(path).ok()?;
    let load = |id: SectionId| -> std::result::Result<_, addr2line::gimli::Error> {
        contents(&file, id, room, allowance).map_err(|_| addr2line::gimli::Error::Io)
    };
    DwarfPackageSections::load(load).ok()
}

/// Reads a section of a file with entries of units.
fn contents(file: &File, id: SectionId, room: &mut u64, allowance: &Allowance) -> Result<Vec<u8>> {
    let Some(name) = id.dwo_name() else {
        return Ok(Vec::new());
    };
    let elf = charged::read(file, allowance)?;
    charged::check(allowance, elf.contents(name, room)).map_err(Error::other)
}
