//! Implementation of [`Language`] for PHP.

use std::sync::Arc;

use bpf::types::headers;
use profile::LanguageName;
use unwind::Memory;

use super::{Layout, find, layout, read, read_stopped, walk};
use crate::language::{self, Attached, File, Function, Language, Pieces, Runtime, Thread};
use crate::reader::Reader;
use crate::{Chain, End, Frame};

const NAME: LanguageName = LanguageName::new("php").unwrap();

/// PHP, as the Zend engine implements it.
#[derive(Clone, Copy, Debug)]
pub struct Php;

impl Language for Php {
    fn name(&self) -> LanguageName {
        NAME
    }

    fn title(&self) -> &'static str {
        "PHP"
    }

    fn readable_versions(&self) -> &'static str {
        "those of 8.1 to 8.6 that are not thread-safe"
    }

    fn number(&self) -> u32 {
        headers::language::LANGUAGE_PHP.0
    }

    fn find(&self, file: &File<'_>, file_name: &str) -> Option<Runtime> {
        let found = find(file)?;
        let layout = found.api.and_then(layout::by_api);
        let number = match (layout, found.api) {
            (Some(layout), _) => format!("8.{}", layout.minor),
            (None, Some(api)) => format!("of module API {api}"),
            (None, None) => "of an unknown version".to_owned(),
        };
        let version = if found.is_thread_safe {
            format!("{number}, thread-safe")
        } else {
            number
        };
        let has_requests = !is_command_line(file_name);
        let readable = layout.filter(|_| !found.is_thread_safe);
        Some(Runtime {
            language: &Php,
            base: found.globals,
            version,
            layout: readable.map(|layout| Arc::new(for_programs(layout, has_requests))),
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

    fn runs_in_first_thread(&self) -> bool {
        true
    }

    fn walk(
        &self,
        attached: &Attached,
        memory: &mut dyn Memory,
        _thread: Thread,
        most: usize,
    ) -> Chain {
        let layout = attached.layout.as_ref();
        let Some((layout, has_requests)) = layout.and_then(|layout| known_layout(layout)) else {
            return Chain::empty(End::NoThread);
        };
        walk(memory, layout, has_requests, attached.base, most)
    }

    fn function(
        &self,
        layout: &language::Layout,
        frame: Frame,
        reader: &mut Reader<'_>,
    ) -> Option<Arc<dyn Function>> {
        let (layout, has_requests) = known_layout(layout)?;
        let read = read(
            &reader.memory,
            layout,
            has_requests,
            frame.code,
            frame.checksum,
        )?;
        Some(Arc::new(read))
    }

    fn copied_function(
        &self,
        layout: &language::Layout,
        frame: Frame,
        copy: &dyn Pieces,
    ) -> Option<Arc<dyn Function>> {
        let (layout, has_requests) = known_layout(layout)?;
        let read = read_stopped(copy, layout, has_requests, frame.code, frame.checksum)?;
        Some(Arc::new(read))
    }
}

/// Returns whether a file is PHP's program for the command line, such as `php8.2`. Its functions
/// last as long as the process.
fn is_command_line(file_name: &str) -> bool {
    let name = file_name.rsplit('/').next().unwrap_or(file_name);
    let version = name.strip_prefix("php");
    version.is_some_and(|rest| {
        rest.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

/// Number of a layout whose functions end with a request, beside the API number.
const HAS_REQUESTS: u32 = 1 << 31;

/// Returns the layout of a version, and whether functions end with a request.
fn known_layout(layout: &language::Layout) -> Option<(&'static Layout, bool)> {
    let known = layout::by_api(layout.version & !HAS_REQUESTS)?;
    Some((known, layout.version & HAS_REQUESTS != 0))
}

fn for_programs(layout: &Layout, has_requests: bool) -> language::Layout {
    let value = headers::php_layout {
        current: layout.current,
        function_count: layout.function_count,
        function_opcodes: layout.function_opcodes,
        function_file: layout.function_file,
        function_bytes: layout.function_bytes(),
        has_requests: has_requests.into(),
    };
    let requests = if has_requests { HAS_REQUESTS } else { 0 };
    language::Layout::new(&Php, layout.api | requests, &value)
}
