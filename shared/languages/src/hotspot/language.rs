//! Implementation of [`Language`] for Java in HotSpot.

use std::sync::Arc;

use bpf::types::headers;
use process::ProcessMemory;
use profile::LanguageName;

use super::layout::{self, Found, Machine};
use super::locks::LOCKS;
use super::step::Walker;
use super::tables::{Addresses, Tables, VARIABLES};
use super::threads::JavaThreadNames;
use super::{compiled, method};
use crate::chain::Frame;
use crate::language::{
    Attached, CodeFrames, File, Function, Language, Layout, Pieces, Runtime, ThreadNames,
};
use crate::locks::Locks;
use crate::reader::Reader;

const NAME: LanguageName = LanguageName::new("java").unwrap();

/// File that contains the virtual machine.
const LIBRARY: &str = "libjvm.so";

/// Java, as HotSpot implements it.
#[derive(Clone, Copy, Debug)]
pub struct Java;

impl Language for Java {
    fn name(&self) -> LanguageName {
        NAME
    }

    fn title(&self) -> &'static str {
        "Java"
    }

    fn readable_versions(&self) -> &'static str {
        "HotSpot of OpenJDK 8 and later"
    }

    fn number(&self) -> u32 {
        headers::language::LANGUAGE_HOTSPOT.0
    }

    fn find(&self, file: &File<'_>, file_name: &str) -> Option<Runtime> {
        // The machine has many symbols, and most files have none of these.
        if file_name.rsplit('/').next() != Some(LIBRARY) {
            return None;
        }
        let data = VARIABLES.map(|name| file.variable(name).map(|at| at.start));
        let data: Option<Vec<u64>> = data.into_iter().collect();
        Some(Runtime {
            language: &Java,
            base: 0,
            version: "of another kind".to_owned(),
            layout: None,
            runs_one: Vec::new(),
            data: data?,
        })
    }

    fn attach(&self, runtime: &Runtime, memory: &ProcessMemory, bias: u64) -> Option<Attached> {
        let addresses = <Addresses>::try_from(&*runtime.data).ok()?;
        let tables = Tables::read(memory, addresses.map(|at| at.wrapping_add(bias)))?;
        let version = layout::version(memory, &tables);
        let layout = match layout::find(memory, &tables) {
            Found::NotReady => return None,
            Found::Unknown => None,
            Found::Machine(machine) => Some(Arc::new(for_programs(*machine))),
        };
        Some(Attached {
            base: addresses[0].wrapping_add(bias),
            version: version.unwrap_or_else(|| runtime.version.clone()),
            layout,
        })
    }

    fn is_on_stack(&self) -> bool {
        true
    }

    fn code_frames<'a>(
        &self,
        layout: &'a Layout,
        memory: &'a dyn Pieces,
        most: usize,
    ) -> Option<Box<dyn CodeFrames + 'a>> {
        let machine: &Machine = layout.details()?;
        Some(Box::new(Walker::new(machine, memory, most)))
    }

    fn functions(
        &self,
        layout: &Layout,
        frame: Frame,
        memory: &ProcessMemory,
    ) -> Option<Vec<Frame>> {
        let machine: &Machine = layout.details()?;
        let code = &machine.layout;
        if frame.code.wrapping_sub(code.code_start) >= code.code_bytes {
            return Some(vec![frame]);
        }
        compiled::functions(memory, machine, frame)
    }

    fn function(
        &self,
        layout: &Layout,
        frame: Frame,
        reader: &mut Reader<'_>,
    ) -> Option<Arc<dyn Function>> {
        let method = method::read(
            &reader.memory,
            layout.details()?,
            frame.code,
            frame.checksum,
        )?;
        Some(Arc::new(method))
    }

    fn thread_names(&self, attached: &Attached) -> Option<Box<dyn ThreadNames>> {
        let machine: &Machine = attached.layout.as_ref()?.details()?;
        Some(Box::new(JavaThreadNames::new(machine)?))
    }

    fn locks(&self) -> &'static Locks {
        &LOCKS
    }

    fn names_files(&self) -> bool {
        false
    }

    fn is_library(&self, file: &str) -> bool {
        let library = ["java/", "javax/", "jdk/", "sun/", "com/sun/"];
        library.iter().any(|package| file.starts_with(package))
    }

    fn starts_threads(&self, function: &str) -> bool {
        function.starts_with("java.lang.Thread.run")
    }
}

fn for_programs(machine: Machine) -> Layout {
    let layout = Layout::new(&Java, 0, &machine.layout);
    Layout {
        details: Some(Arc::new(machine)),
        ..layout
    }
}
