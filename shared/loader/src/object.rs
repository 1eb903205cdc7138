//! BPF object of a tool, with its constants, variables, maps and programs.
//!
//! A name has the same meaning in all objects. Callers pass a name of `bpf::maps`,
//! `bpf::programs`, `bpf::constants` or `bpf::variables`. The build makes these names, so a
//! misspelt name does not compile.

use std::collections::HashMap;
use std::fs;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

use bpf::{ConstantName, ConstantValue, MapName, ProgramName, VariableName};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Var};
use libbpf_rs::{
    AsRawLibbpf, Link, Map, MapCore, MapHandle, ObjectBuilder, ProgramMut, libbpf_sys,
};
use plain::Plain;

use crate::error::{Context, lossy, missing};
use crate::kernel_types::KernelTypes;
use crate::{Error, Result};

/// Name of the section with constants.
const CONSTANTS: &str = ".rodata";
/// Name of the section with variables.
const VARIABLES: &str = ".bss";

/// Object that is not loaded yet, so callers can configure it.
pub struct OpenObject {
    object: libbpf_rs::OpenObject,
    places: Places,
    /// Reduced kernel types. libbpf opens this file when it loads the object.
    _types: Option<KernelTypes>,
}

/// Object that the kernel has loaded.
pub struct LoadedObject {
    object: libbpf_rs::Object,
    places: Places,
}

/// Section, offset and size of each constant and variable, by name.
struct Places(HashMap<String, Place>);

#[derive(Clone, Copy)]
struct Place {
    section: &'static str,
    offset: usize,
    size: usize,
}

impl OpenObject {
    /// Opens the object of a tool.
    pub fn new(object: &bpf::Object) -> Result<OpenObject> {
        let types = KernelTypes::named(object.types);
        let mut builder = ObjectBuilder::default();
        if let Some(types) = &types {
            let path = types.path();
            let set = builder.btf_custom_path(path);
            set.context("hand over the kernel's types")?;
        }
        let object = builder
            .name(object.name)
            .and_then(|builder| builder.open_memory(object.elf))
            .context(format!("open the BPF object {}", object.name))?;
        let places = Places::read(&object)?;
        Ok(OpenObject {
            object,
            places,
            _types: types,
        })
    }

    /// Sets a constant.
    ///
    /// # Errors
    /// The object has no such constant.
    pub fn set<T: ConstantValue>(&mut self, constant: ConstantName<T>, value: T) -> Result<()> {
        let (name, bytes) = (constant.name(), value.to_bytes());
        let place = self.places.find(name, CONSTANTS, bytes.len())?;
        let mut maps = self.object.maps_mut();
        let mut section = maps.find(|map| map.name().as_encoded_bytes().ends_with(b".rodata"));
        section
            .as_mut()
            .and_then(|map| map.initial_value_mut())
            .and_then(|section| section.get_mut(place.offset..place.offset + place.size))
            .ok_or_else(|| missing(name))?
            .copy_from_slice(bytes.as_slice());
        Ok(())
    }

    /// Sets the capacity of a map, in entries.
    pub fn make_room(&mut self, map: MapName, entries: u32) -> Result<()> {
        let map = map.as_str();
        let mut maps = self.object.maps_mut();
        let mut found = maps.find(|found| found.name() == map);
        let found = found.as_mut().ok_or_else(|| missing(map))?;
        found
            .set_max_entries(entries)
            .context(format!("size the map {map}"))
    }

    /// Sets the capacity of a map of threads to twice the number of living threads.
    pub fn make_room_for_threads(&mut self, map: MapName) -> Result<()> {
        /// Minimum capacity.
        const FEWEST: u32 = 32768;
        self.make_room(map, threads_alive().saturating_mul(2).max(FEWEST))
    }

    /// Uses a map that the kernel already has, in place of a map of the object. The object's map
    /// gets the name of the other map.
    ///
    /// # Errors
    /// Another map of the object already has this name.
    pub fn reuse(&mut self, map: MapName, there: &MapHandle) -> Result<()> {
        let map = map.as_str();
        let name = there.name();
        // libbpf finds the maps of constants and variables by the part of their names after the
        // dot.
        let has_dot = name.as_encoded_bytes().contains(&b'.');
        if has_dot || self.object.maps().any(|own| own.name() == name) {
            return Err(Error::Unsupported(format!(
                "the BPF map `{}` is called as one of this program's is: give it another name when you create it",
                lossy(name)
            )));
        }
        let mut maps = self.object.maps_mut();
        let mut found = maps.find(|found| found.name() == map);
        let found = found.as_mut().ok_or_else(|| missing(map))?;
        found
            .reuse_fd(there.as_fd())
            .context(format!("use another map as {map}"))
    }

    /// Returns whether the object has a program of this name.
    pub fn has_program(&self, program: ProgramName) -> bool {
        let mut programs = self.object.progs();
        programs.any(|found| found.name() == program.as_str())
    }

    /// Sets whether libbpf loads this program.
    pub fn choose(&mut self, program: ProgramName, is_wanted: bool) -> Result<()> {
        let program = program.as_str();
        let mut programs = self.object.progs_mut();
        let mut found = programs.find(|found| found.name() == program);
        let found = found.as_mut().ok_or_else(|| missing(program))?;
        found.set_autoload(is_wanted);
        Ok(())
    }

    /// Loads the object into the kernel.
    pub fn load(self) -> Result<LoadedObject> {
        Ok(LoadedObject {
            object: self.object.load().context("load the BPF program")?,
            places: self.places,
        })
    }
}

impl LoadedObject {
    /// Loads a tool's object for a test, which must run as root.
    #[cfg(test)]
    #[allow(clippy::unwrap_used)]
    pub(crate) fn of_tests(
        object: &bpf::Object,
        configure: impl FnOnce(&mut OpenObject) -> Result<()>,
    ) -> LoadedObject {
        crate::check_privileges().unwrap();
        let mut object = OpenObject::new(object).unwrap();
        configure(&mut object).unwrap();
        object.load().unwrap()
    }

    /// Returns the map with this name.
    pub fn map(&self, name: MapName) -> Result<Map<'_>> {
        let name = name.as_str();
        let mut maps = self.object.maps();
        let found = maps.find(|map| map.name() == name);
        found.ok_or_else(|| missing(name))
    }

    /// Returns the program with this name.
    pub fn program(&self, name: ProgramName) -> Result<ProgramMut<'_>> {
        let name = name.as_str();
        let mut programs = self.object.progs_mut();
        let found = programs.find(|program| program.name() == name);
        found.ok_or_else(|| missing(name))
    }

    /// Attaches programs to their tracepoints. A program is attached as long as its link lives.
    pub fn attach(&self, programs: &[ProgramName]) -> Result<Vec<Link>> {
        let attach = |&name: &ProgramName| {
            let link = self.program(name)?.attach();
            link.context(format!("attach {}", name.as_str()))
        };
        programs.iter().map(attach).collect()
    }

    /// Returns whether libbpf loaded this program.
    pub fn is_chosen(&self, program: ProgramName) -> Result<bool> {
        let program = self.program(program)?;
        // SAFETY: the program belongs to an object that is loaded.
        Ok(unsafe { libbpf_sys::bpf_program__autoload(program.as_libbpf_object().as_ptr()) })
    }

    /// Returns a variable in memory that the kernel also reads and writes.
    pub fn variable<T: Plain + Copy>(&self, name: VariableName<T>) -> Result<Variable<'_, T>> {
        let name = name.name();
        let place = self.places.find(name, VARIABLES, size_of::<T>())?;
        let mut maps = self.object.maps();
        let section = maps.find(|map| map.name().as_encoded_bytes().ends_with(b".bss"));
        let section = section.ok_or_else(|| missing(name))?;
        let mut size = 0;
        // SAFETY: the map belongs to an object that is loaded.
        let start = unsafe {
            libbpf_sys::bpf_map__initial_value(section.as_libbpf_object().as_ptr(), &mut size)
        };
        let start: NonNull<u8> = NonNull::new(start.cast()).ok_or_else(|| missing(name))?;
        let is_inside = place.offset + place.size <= usize::try_from(size).unwrap_or(0);
        // SAFETY: `is_inside` says that the variable is inside the section.
        let at: NonNull<T> = unsafe { start.add(place.offset) }.cast();
        if is_inside && at.is_aligned() {
            Ok(Variable {
                at,
                object: PhantomData,
            })
        } else {
            Err(missing(name))
        }
    }
}

impl Places {
    fn read(object: &libbpf_rs::OpenObject) -> Result<Places> {
        // SAFETY: the object is open, and outlives the types that are read from it.
        let object = unsafe { object.as_libbpf_object().as_ref() };
        let types = Btf::from_bpf_object(object).context("read the BPF object's types")?;
        let mut places = HashMap::new();
        for section in [CONSTANTS, VARIABLES] {
            let found = types
                .as_ref()
                .and_then(|types| Some((types, types.type_by_name::<DataSec<'_>>(section)?)));
            let Some((types, found)) = found else {
                continue;
            };
            for variable in found.iter() {
                let named = types.type_by_id::<Var<'_>>(variable.ty);
                if let Some(name) = named.and_then(|named| named.name()?.to_str()) {
                    let place = Place {
                        section,
                        offset: variable.offset as usize,
                        size: variable.size,
                    };
                    places.insert(name.to_owned(), place);
                }
            }
        }
        Ok(Places(places))
    }

    /// Returns the place of a constant or variable, if it has this section and this size.
    fn find(&self, name: &str, section: &str, size: usize) -> Result<Place> {
        let place = self.0.get(name).copied();
        let place = place.filter(|place| place.section == section && place.size == size);
        place.ok_or_else(|| missing(name))
    }
}

fn threads_alive() -> u32 {
    // Fourth field of /proc/loadavg: runnable/total scheduling entities.
    fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| {
            let total = text.split_whitespace().nth(3)?.split('/').nth(1)?;
            total.parse().ok()
        })
        .unwrap_or(0)
}

/// Variable of a loaded object.
pub struct Variable<'a, T> {
    at: NonNull<T>,
    object: PhantomData<&'a LoadedObject>,
}

impl<T: Plain + Copy> Variable<'_, T> {
    /// Reads the current value.
    pub fn get(&self) -> T {
        // SAFETY: the address is aligned, and inside the section as long as the object is loaded.
        // Any bytes are a valid value. The read is volatile because the kernel writes the value.
        unsafe { ptr::read_volatile(self.at.as_ptr()) }
    }

    /// Writes the value.
    pub fn set(&self, value: T) {
        // SAFETY: as in `get`. The write is volatile because the kernel reads the value.
        unsafe { ptr::write_volatile(self.at.as_ptr(), value) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_of_the_section_and_the_size_that_are_asked_for() {
        let place = Place {
            section: CONSTANTS,
            offset: 8,
            size: 4,
        };
        let places = Places(HashMap::from([("a".to_owned(), place)]));
        assert_eq!(places.find("a", CONSTANTS, 4).unwrap().offset, 8);
        assert!(places.find("a", VARIABLES, 4).is_err());
        assert!(places.find("a", CONSTANTS, 8).is_err());
        assert!(places.find("b", CONSTANTS, 4).is_err());
    }
}
