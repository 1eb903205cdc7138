//! Layouts of runtimes in the map of `bpf/include/languages/language.h`.

use std::sync::Arc;

use bpf::types::LANGUAGE_LAYOUT_BYTES;
use languages::Layout;
use libbpf_rs::{Map, MapCore, MapFlags};
use loader::{Context, Error, Result};

/// Layouts in the map, without duplicates.
pub(super) struct Layouts<'a> {
    map: Map<'a>,
    known: Vec<Arc<Layout>>,
}

impl<'a> Layouts<'a> {
    pub(super) fn new(map: Map<'a>) -> Layouts<'a> {
        Layouts {
            map,
            known: Vec::new(),
        }
    }

    /// Returns the index of a layout. Adds the layout to the map if it is new.
    pub(super) fn index(&mut self, layout: &Arc<Layout>) -> Result<u32> {
        if let Some(index) = self.known.iter().position(|known| known == layout) {
            return Ok(index as u32);
        }
        let index = self.known.len() as u32;
        let mut value = [0; LANGUAGE_LAYOUT_BYTES];
        let place = value.get_mut(..layout.bytes.len());
        let Some(place) = place.filter(|_| index < self.map.max_entries()) else {
            return Err(Error::Unsupported(format!(
                "there is no room for the layout of its {}",
                layout.language.title()
            )));
        };
        place.copy_from_slice(&layout.bytes);
        self.map
            .update(&index.to_ne_bytes(), &value, MapFlags::ANY)
            .context("enter the layout of a runtime")?;
        self.known.push(Arc::clone(layout));
        Ok(index)
    }

    pub(super) fn get(&self, index: u32) -> Option<&Arc<Layout>> {
        self.known.get(index as usize)
    }
}
