//! Implementation of [`Language`] for V8.

use std::sync::Arc;

use bpf::types::headers;
use process::ProcessMemory;
use profile::LanguageName;
use unwind::Memory;

use super::code::{Code, Kind};
use super::engine::{self, Isolate};
use super::heap::{Heap, State, is_object};
use super::layout::{self, Layout};
use super::walk::walk;
use crate::interleave::Link;
use crate::language::{self, Attached, File, Function, Language, Runtime, Thread};
use crate::{Chain, End, Frame, Reader};

const NAME: LanguageName = LanguageName::new("node").unwrap();

/// JavaScript, as V8 runs it in Node.js.
#[derive(Clone, Copy, Debug)]
pub struct Node;

impl Language for Node {
    fn name(&self) -> LanguageName {
        NAME
    }

    fn title(&self) -> &'static str {
        "JavaScript"
    }

    fn readable_versions(&self) -> &'static str {
        "those of Node.js 18, 20, 22, 24 and 26 for x86-64"
    }

    fn number(&self) -> u32 {
        headers::language::LANGUAGE_V8.0
    }

    fn find(&self, file: &File<'_>, _file_name: &str) -> Option<Runtime> {
        let found = engine::find(file)?;
        let (major, minor) = found.version;
        let base = match found.known {
            None => 0,
            Some((_, Isolate::OfKey { key, .. })) => key,
            Some((_, Isolate::AtOffset(base) | Isolate::InModule(base))) => base,
        };
        Some(Runtime {
            language: &Node,
            base,
            version: format!("of V8 {major}.{minor}"),
            layout: found
                .known
                .map(|(layout, isolate)| Arc::new(for_programs(layout, isolate))),
            runs_one: Vec::new(),
            data: Vec::new(),
        })
    }

    fn attach(&self, runtime: &Runtime, _memory: &ProcessMemory, bias: u64) -> Option<Attached> {
        let layout = runtime.layout.as_ref();
        let isolate = layout.and_then(|layout| isolate(layout, runtime.base));
        Some(Attached {
            base: match isolate {
                Some(Isolate::AtOffset(offset)) => offset,
                _ => runtime.base.wrapping_add(bias),
            },
            version: runtime.version.clone(),
            layout: runtime.layout.clone(),
        })
    }

    fn walk(
        &self,
        attached: &Attached,
        memory: &mut dyn Memory,
        thread: Thread,
        most: usize,
    ) -> Chain {
        let found = attached.layout.as_ref().and_then(|layout| {
            let isolate = isolate(layout, attached.base)?;
            Some((known_layout(layout)?, isolate))
        });
        match found {
            Some((layout, isolate)) => walk(memory, layout, isolate, thread, most),
            None => Chain::empty(End::NoThread),
        }
    }

    fn function(
        &self,
        layout: &language::Layout,
        frame: Frame,
        reader: &mut Reader<'_>,
    ) -> Option<Arc<dyn Function>> {
        if frame.code == 0 {
            return Some(Arc::new(WebAssembly));
        }
        let mut heap = heap(layout, reader)?;
        if frame.machine_code == 0 {
            return Some(heap.function(frame.code, frame.checksum)?);
        }
        let call = heap.call(frame.code, frame.checksum, frame.machine_code)?;
        Some(Arc::new(call))
    }

    fn complete(&self, layout: &language::Layout, chain: &mut Chain, reader: &mut Reader<'_>) {
        if let Some(mut heap) = heap(layout, reader) {
            complete(chain, &mut heap);
        }
    }

    fn is_library(&self, file: &str) -> bool {
        file.starts_with("node:") || file.contains("/node_modules/")
    }
}

/// Function of WebAssembly, whose name is not read.
#[derive(Debug)]
struct WebAssembly;

impl Function for WebAssembly {
    fn name(&self) -> &str {
        "<wasm>"
    }

    fn file(&self) -> &str {
        ""
    }

    fn first_line(&self) -> u32 {
        0
    }

    fn line(&self, _instruction: i32) -> Option<u32> {
        None
    }

    fn size(&self) -> usize {
        0
    }
}

fn heap<'a>(layout: &language::Layout, reader: &'a mut Reader<'_>) -> Option<Heap<'a>> {
    Some(Heap {
        layout: known_layout(layout)?,
        memory: &reader.memory,
        pieces: &mut reader.pieces,
        state: reader.shared.of::<State>(reader.process),
    })
}

/// Completes the chain of a thread that was interrupted in machine code. A function that begins or
/// returns has no frame. The frame pointer is then the caller's, and the address to which the
/// function returns is still on top of the stack.
fn complete(chain: &mut Chain, heap: &mut Heap<'_>) {
    let Some(interrupted) = chain.interrupted else {
        return;
    };
    let first = chain.links.iter_mut().find_map(|link| match link {
        Link::Frame(frame) => Some(frame),
        _ => None,
    });
    let Some(first) = first else {
        return;
    };
    let is_compiled = !interrupted.is_in_file;
    let code = is_compiled
        .then(|| heap.code_at(interrupted.address))
        .flatten();
    let own = code.and_then(|code| frame_of(&code, interrupted.begins, heap));
    let is_own = own.is_none_or(|own| own.code == first.code);
    let is_in_code = code.is_some_and(|code| code.kind != Kind::Other);
    if is_in_code && is_own {
        return;
    }
    // The first frame may be the builtin's own, or its caller's, which is no builtin. Code of the
    // interpreter has no frame either, but it is no callee of the function that it runs.
    let is_in_callee = interrupted.is_in_file
        && first.machine_code != 0
        && (heap.info(first.code)).is_some_and(|info| is_object(info.code));
    if first.machine_code == interrupted.address {
        // The frame goes on where the interrupted code returns to.
        first.machine_code = interrupted.returns_to.map_or(0, |address| address - 1);
        if interrupted.returns_to.is_none() {
            first.instruction = -1;
        }
    }
    if let Some(interrupted) = &mut chain.interrupted {
        interrupted.is_in_callee = is_in_callee;
    }
    if let Some(own) = own.filter(|_| !is_own) {
        let frame = Frame {
            instruction: -1,
            machine_code: interrupted.address,
            ..own
        };
        chain.links.insert(0, Link::Frame(frame));
    }
}

/// Returns a frame of the function that machine code was made for.
fn frame_of(code: &Code, begins: Option<Frame>, heap: &mut Heap<'_>) -> Option<Frame> {
    match code.kind {
        Kind::Optimized => {
            let address = heap.optimized_function(code)?;
            let info = heap.info(address)?;
            Some(Frame {
                code: address,
                instruction: -1,
                checksum: info.checksum(),
                machine_code: 0,
            })
        }
        Kind::Baseline => {
            let begins = begins?;
            let info = heap.info(begins.code)?;
            let is_own = heap.bytecode(info.code)? == heap.bytecode(code.data)?;
            is_own.then_some(begins)
        }
        Kind::Other => None,
    }
}

/// Returns the layout for a language's layout, whose version has the version of V8.
fn known_layout(layout: &language::Layout) -> Option<&'static Layout> {
    layout::by_version((layout.version >> 8 & 0xff, layout.version & 0xff))
}

/// Returns the place of the isolate, with the base of the runtime.
fn isolate(layout: &language::Layout, base: u64) -> Option<Isolate> {
    use headers::v8_isolate_place as Place;
    let value: headers::v8_layout = layout.in_programs()?;
    match Place(value.isolate_place.into()) {
        Place::V8_ISOLATE_OF_KEY => Some(Isolate::OfKey {
            key: base,
            is_created: base.wrapping_add_signed(value.key_created.into()),
        }),
        Place::V8_ISOLATE_AT_OFFSET => Some(Isolate::AtOffset(base)),
        Place::V8_ISOLATE_IN_MODULE => Some(Isolate::InModule(base)),
        _ => None,
    }
}

fn for_programs(layout: &Layout, isolate: Isolate) -> language::Layout {
    use headers::v8_isolate_place as Place;
    let place = match isolate {
        Isolate::OfKey { .. } => Place::V8_ISOLATE_OF_KEY,
        Isolate::AtOffset(_) => Place::V8_ISOLATE_AT_OFFSET,
        Isolate::InModule(_) => Place::V8_ISOLATE_IN_MODULE,
    };
    let value = headers::v8_layout {
        c_entry_fp: layout.c_entry_fp,
        fast_c_call_fp: layout.fast_c_call_fp,
        key_created: match isolate {
            Isolate::OfKey { key, is_created } => is_created.wrapping_sub(key) as i32,
            _ => 0,
        },
        isolate_place: place.0 as u16,
        function_shared: layout.function_shared,
        info_name: layout.info_name,
        info_script: layout.info_script,
        code_bytecode: layout.code_data,
        first_bytecode: layout.bytecode_data - 1,
        builtin_exit: layout.builtin_exit,
        wasm: layout.wasm,
    };
    let (major, minor) = layout.version;
    language::Layout::new(&Node, major << 8 | minor, &value)
}
