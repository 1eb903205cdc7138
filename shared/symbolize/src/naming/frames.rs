//! Frames of locations, with or without names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use profile::marker::UNKNOWN;
use profile::text::unnamed_part;
use profile::{FrameKind, ModuleKind};

use crate::frame::{Frame, Module};
use crate::location::Location;
use crate::naming::files::Found;
use crate::naming::files::symbols::Symbol;
use crate::naming::interpreted::InterpretedFunctions;
use crate::process::images::Images;

/// Frames of locations.
pub(crate) struct Frames {
    named: HashMap<Location, Frame>,
    texts: HashSet<Arc<str>>,
    pub(crate) interpreted: InterpretedFunctions,
    /// Module of the vDSO.
    pub(crate) vdso: Arc<Module>,
    /// Module of code that processes compiled at run time.
    pub(crate) jit: Arc<Module>,
    /// Module of the kernel proper.
    pub(crate) kernel: Arc<Module>,
}

impl Frames {
    pub(crate) fn new() -> Frames {
        Frames {
            named: HashMap::new(),
            texts: HashSet::new(),
            interpreted: InterpretedFunctions::default(),
            vdso: Module::bracketed("vdso", ModuleKind::Vdso).into(),
            jit: Module::bracketed("jit", ModuleKind::Jit).into(),
            kernel: Module::bracketed("kernel.kallsyms", ModuleKind::Kernel).into(),
        }
    }

    /// Returns whether a location has a frame with a name or without.
    pub(crate) fn has(&self, location: Location) -> bool {
        self.named.contains_key(&location)
    }

    /// Removes the frames of some locations, so that they can be named again.
    pub(crate) fn forget(&mut self, is_meant: impl Fn(&Location) -> bool) {
        self.named.retain(|location, _| !is_meant(location));
    }

    /// Returns the frame of a location. If the location was not named, the frame has no symbol.
    pub(crate) fn frame(&self, location: Location, images: &Images) -> Frame {
        match self.named.get(&location) {
            Some(frame) => frame.clone(),
            None => self.nameless(location, images),
        }
    }

    /// Returns the frame of a location that no symbol covers.
    pub(crate) fn nameless(&self, location: Location, images: &Images) -> Frame {
        let module = match location {
            Location::Interpreted { function, line } => {
                return self.interpreted.frame(function, line);
            }
            Location::File { file, .. } => images.file(file).map(|file| &file.module),
            Location::Module { index } => images.module(index),
            Location::Vdso { .. } => Some(&self.vdso),
            Location::Jit { .. } => Some(&self.jit),
            Location::Kernel { .. } => Some(&self.kernel),
            Location::Unknown => None,
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

    /// Stores the symbols and source places that were found at offsets in a file. `location`
    /// returns the location for an offset.
    pub(crate) fn keep_found(
        &mut self,
        found: HashMap<u64, Found>,
        location: impl Fn(u64) -> Location,
        images: &Images,
    ) {
        for (offset, found) in found {
            let location = location(offset);
            let frame = Frame {
                address: Some(found.address),
                source: found.place.source,
                inlined: found.place.inlined,
                ..self.nameless(location, images)
            };
            self.keep(location, found.symbol, frame);
        }
    }

    /// Stores the frame of a location, with the name of the symbol if there is one.
    pub(crate) fn keep(&mut self, location: Location, symbol: Option<Symbol>, mut frame: Frame) {
        if let Some(symbol) = symbol {
            frame.name = symbol.name;
            frame.has_symbol = true;
            let starts = frame.address.zip(symbol.start);
            frame.offset = starts.and_then(|(address, start)| address.checked_sub(start));
            frame.system_name = symbol.system_name.map(|name| self.text(&name));
        }
        frame.name = self.text(&frame.name);
        self.named.insert(location, frame);
    }

    /// Returns the shared copy of a text.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&new));
        new
    }
}
