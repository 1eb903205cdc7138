//! Implementation of [`Language`] for Ruby.

use std::sync::Arc;

use bpf::types::headers;
use profile::{Detail, LanguageName};
use unwind::Memory;

use super::walk::Place;
use super::{Layout, find, layout, read, read_stopped, walk};
use crate::language::{self, Attached, File, Function, Language, Pieces, Runtime, Thread};
use crate::reader::Reader;
use crate::{Chain, End, Frame, Locks};

const NAME: LanguageName = LanguageName::new("ruby").unwrap();

/// Ruby, as CRuby implements it.
#[derive(Clone, Copy, Debug)]
pub struct Ruby;

impl Language for Ruby {
    fn name(&self) -> LanguageName {
        NAME
    }

    fn title(&self) -> &'static str {
        "Ruby"
    }

    fn readable_versions(&self) -> &'static str {
        "those of 3.0 to 3.4 in a shared library"
    }

    fn number(&self) -> u32 {
        headers::language::LANGUAGE_RUBY.0
    }

    fn find(&self, file: &File<'_>, _file_name: &str) -> Option<Runtime> {
        let found = find(file)?;
        let (major, minor) = found.version;
        let is_known = major == 3;
        let minor = u8::try_from(minor).ok().filter(|_| is_known);
        let known = minor.and_then(layout::by_version);
        let base = found.context.unwrap_or(0);
        let layout = match (known, found.context, found.symbols) {
            (Some(layout), Some(_), Some(symbols)) => {
                Some(for_programs(layout, symbols.wrapping_sub(base)))
            }
            _ => None,
        };
        Some(Runtime {
            language: &Ruby,
            base,
            version: format!("{}.{}", found.version.0, found.version.1),
            layout: layout.map(Arc::new),
            runs_one: language::known_ranges(&found.execution),
            data: Vec::new(),
        })
    }

    fn has_anchors(&self, _layout: &language::Layout) -> bool {
        false
    }

    fn counts_activations(&self) -> bool {
        true
    }

    fn walk(
        &self,
        attached: &Attached,
        memory: &mut dyn Memory,
        thread: Thread,
        most: usize,
    ) -> Chain {
        let layout = attached.layout.as_ref();
        let Some((layout, symbols)) = layout.and_then(|layout| known_layout(layout)) else {
            return Chain::empty(End::NoThread);
        };
        let place = Place {
            context: attached.base,
            symbols: attached.base.wrapping_add(symbols),
        };
        walk(memory, layout, place, thread.pointer, most)
    }

    fn function(
        &self,
        layout: &language::Layout,
        frame: Frame,
        reader: &mut Reader<'_>,
    ) -> Option<Arc<dyn Function>> {
        let read = read(&reader.memory, known_layout(layout)?.0, frame)?;
        Some(Arc::new(read))
    }

    fn copied_function(
        &self,
        layout: &language::Layout,
        frame: Frame,
        copy: &dyn Pieces,
    ) -> Option<Arc<dyn Function>> {
        let read = read_stopped(copy, known_layout(layout)?.0, frame)?;
        Some(Arc::new(read))
    }

    fn locks(&self) -> &'static Locks {
        &LOCKS
    }

    fn is_library(&self, file: &str) -> bool {
        file.starts_with("<internal:") || file.contains("/lib/ruby/")
    }
}

/// The programs recognise waits for the global lock.
const LOCKS: Locks = Locks {
    shared: Some(Detail::Gvl),
    ..Locks::NONE
};

/// Returns the layout of a version, and the distance of `global_symbols` from the runtime's base.
fn known_layout(layout: &language::Layout) -> Option<(&'static Layout, u64)> {
    let known = layout::by_version(u8::try_from(layout.version).ok()?)?;
    let headers::ruby_layout { symbols, .. } = layout.in_programs()?;
    Some((known, symbols))
}

fn for_programs(layout: &Layout, symbols: u64) -> language::Layout {
    let value = headers::ruby_layout {
        symbols,
        frame_bytes: layout.frame_bytes,
        body_lines: layout.body_lines,
        body_count: layout.body_count,
        body_index: layout.body_index,
        line_bytes: layout.line_bytes,
        embedded: layout.embedded,
        thread_native: layout.thread_native,
        thread_node: layout.thread_node,
        native_condition: layout.native_condition,
        native_id: layout.native_id,
        ractor_owner: layout.ractor_owner,
        unused: 0,
    };
    language::Layout::new(&Ruby, layout.minor.into(), &value)
}
