//! Made-up language. Everything that a language needs is in this module.

use std::sync::Arc;

use checks::toy::types::{language, toy_layout};
use languages::interleave::Link;
use languages::{
    Attached, Chain, End, File, Frame, Function, Language, Layout, Pieces, Reader, Runtime, Thread,
};
use plain::Plain;
use profile::LanguageName;
use unwind::Memory;

const NAME: LanguageName = LanguageName::new("toy").unwrap();
/// Number of threads of a runtime, and size of a thread's entry in bytes. The entry has the
/// thread's ID and its innermost frame.
const THREADS: u64 = 4;
const THREAD_BYTES: u64 = 16;
/// Size of a function, in bytes. A function consists of its name.
const NAME_BYTES: usize = 24;

/// Layout of `struct frame` of `runtime.c`.
const LAYOUT: toy_layout = toy_layout {
    caller: 0,
    function: 8,
    line: 16,
    unused: 0,
};

#[repr(transparent)]
struct ForPrograms(toy_layout);

// SAFETY: the type is repr(C), and consists of integers without padding.
unsafe impl Plain for ForPrograms {}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Toy;

impl Language for Toy {
    fn name(&self) -> LanguageName {
        NAME
    }

    fn title(&self) -> &'static str {
        "Toy"
    }

    fn readable_versions(&self) -> &'static str {
        "all"
    }

    fn number(&self) -> u32 {
        language::LANGUAGE_TOY.0
    }

    fn find(&self, file: &File<'_>, _file_name: &str) -> Option<Runtime> {
        // SAFETY: the value consists of integers without padding.
        let bytes = unsafe { plain::as_bytes(&ForPrograms(LAYOUT)) }.to_vec();
        Some(Runtime {
            language: &Toy,
            base: file.variable("toy_runtime")?.start,
            version: "1".to_owned(),
            layout: Some(Arc::new(Layout {
                language: &Toy,
                version: 1,
                bytes,
                details: None,
            })),
            runs_one: Vec::new(),
            data: Vec::new(),
        })
    }

    fn walk(
        &self,
        attached: &Attached,
        memory: &mut dyn Memory,
        thread: Thread,
        most: usize,
    ) -> Chain {
        let threads = (0..THREADS).map(|index| attached.base + index * THREAD_BYTES);
        let mut is_this = |entry: &u64| memory.word(*entry) == Some(thread.pointer);
        let Some(thread) = threads.into_iter().find(|thread| is_this(thread)) else {
            return Chain::empty(End::NoThread);
        };
        let mut links = Vec::new();
        let mut next = memory.word(thread + 8);
        let end = loop {
            let frame = match next {
                Some(0) => break End::Whole,
                Some(_) if links.len() == most => break End::TooDeep,
                Some(frame) => frame,
                None => break End::ReadFailed,
            };
            let Some(link) = link(memory, frame) else {
                break End::ReadFailed;
            };
            links.push(link);
            next = memory.word(frame);
        };
        Chain {
            links,
            end,
            interrupted: None,
        }
    }

    fn function(
        &self,
        layout: &Layout,
        frame: Frame,
        reader: &mut Reader<'_>,
    ) -> Option<Arc<dyn Function>> {
        self.copied_function(layout, frame, &reader.memory)
    }

    fn copied_function(
        &self,
        _layout: &Layout,
        frame: Frame,
        copy: &dyn Pieces,
    ) -> Option<Arc<dyn Function>> {
        let bytes = copy.bytes(frame.code, NAME_BYTES);
        let start = bytes.first_chunk()?;
        let length = bytes.iter().position(|&byte| byte == 0)?;
        let name = String::from_utf8_lossy(&bytes[..length]).into_owned();
        (u32::from_le_bytes(*start) == frame.checksum).then(|| Arc::new(Named(name)) as _)
    }
}

fn link(memory: &mut dyn Memory, frame: u64) -> Option<Link<Frame>> {
    let code = memory.word(frame + u64::from(LAYOUT.function))?;
    if code == 0 {
        return Some(Link::Anchor(frame));
    }
    Some(Link::Frame(Frame {
        code,
        instruction: memory.word(frame + u64::from(LAYOUT.line))? as i32,
        checksum: memory.word(code)? as u32,
        machine_code: 0,
    }))
}

#[derive(Debug)]
struct Named(String);

impl Function for Named {
    fn name(&self) -> &str {
        &self.0
    }

    fn file(&self) -> &str {
        "/srv/program.toy"
    }

    fn first_line(&self) -> u32 {
        1
    }

    fn line(&self, instruction: i32) -> Option<u32> {
        u32::try_from(instruction).ok()
    }

    fn size(&self) -> usize {
        self.0.len()
    }
}
