//! Trait of languages, and the types that its methods take and return.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use elf::{Elf, Source};
use process::ProcessMemory;
use profile::LanguageName;
use unwind::Memory;

use crate::chain::{Chain, Frame};
use crate::locks::Locks;

/// Variables and functions of an ELF file, in which a runtime is searched for.
pub type File<'a> = Elf<&'a dyn Source>;

/// Language whose functions run in a runtime of their own. The runtime keeps frames for them in
/// the memory of its process.
///
/// Any data of a process may be forged: an implementation bounds them, and leaves out what cannot
/// be right.
pub trait Language: Debug + Send + Sync {
    /// Returns the language's name in flags, marks and captures.
    fn name(&self) -> LanguageName;

    /// Returns the language's name in sentences.
    fn title(&self) -> &'static str;

    /// Returns the versions that can be read, as words that fit before "can be read".
    fn readable_versions(&self) -> &'static str;

    /// Returns the number by which programs know the language: `enum language` of
    /// `bpf/include/languages/languages.h`.
    fn number(&self) -> u32;

    /// Returns the runtime that an ELF file defines. Most files define none, so an implementation
    /// first searches for one symbol. `file_name` is a path.
    fn find(&self, file: &File<'_>, file_name: &str) -> Option<Runtime>;

    /// Attaches to a process that maps the file of `runtime`. `bias` is the difference between
    /// addresses in the process and in the file. A language overrides this if its layout
    /// follows from what the process has in memory.
    fn attach(&self, runtime: &Runtime, _memory: &ProcessMemory, bias: u64) -> Attached {
        Attached {
            base: runtime.base.wrapping_add(bias),
            layout: runtime.layout.clone(),
        }
    }

    /// Returns whether frames of this layout leave anchors on the native stack. Without them,
    /// a native frame in [`Runtime::runs_one`] runs one frame.
    fn has_anchors(&self, _layout: &Layout) -> bool {
        true
    }

    /// Reads the frames of a thread that does not run, `most` links at most, as the language's
    /// header in `bpf/include/languages` does for the current thread. `thread_pointer` is the
    /// thread's `fsbase`, which is `pthread_self()`.
    fn walk(
        &self,
        attached: &Attached,
        memory: &mut dyn Memory,
        thread_pointer: u64,
        most: usize,
    ) -> Chain;

    /// Reads the function of a frame; `None` if another function has taken its address, or it
    /// cannot be read.
    fn function(
        &self,
        layout: &Layout,
        frame: Frame,
        memory: &ProcessMemory,
    ) -> Option<Arc<dyn Function>>;

    /// Reads a function from the copy that a program made while the function was about to run.
    fn copied_function(
        &self,
        layout: &Layout,
        frame: Frame,
        copy: &dyn Pieces,
    ) -> Option<Arc<dyn Function>>;

    /// Returns the rules that recognise waits for the language's locks.
    fn locks(&self) -> &'static Locks {
        &Locks::NONE
    }
}

/// Runtime in a file.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// Language of the runtime.
    pub language: &'static dyn Language,
    /// Virtual address in the file of the runtime's root data, from which all else is found.
    pub base: u64,
    /// Version of the runtime, for display.
    pub version: String,
    /// Layout; `None` if it is not known for this version, or differs between processes.
    pub layout: Option<Arc<Layout>>,
    /// Virtual addresses of the code that runs frames one by one, if frames leave no anchors.
    pub runs_one: Vec<(u64, u64)>,
}

/// Runtime in a process.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Address of the runtime's root data.
    pub base: u64,
    /// Layout; `None` if the frames cannot be read.
    pub layout: Option<Arc<Layout>>,
}

/// Offsets of the data in a runtime's memory.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Language of the runtime.
    pub language: &'static dyn Language,
    /// Version, as a number that the language defines.
    pub version: u32,
    /// Bytes of the struct in the language's header that programs use: at most
    /// [`bpf::types::LANGUAGE_LAYOUT_BYTES`].
    pub bytes: Vec<u8>,
}

impl PartialEq for Layout {
    fn eq(&self, other: &Layout) -> bool {
        let key = |layout: &Layout| (layout.language.number(), layout.version);
        key(self) == key(other) && self.bytes == other.bytes
    }
}

impl Eq for Layout {}

impl Hash for Layout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.language.number(), self.version, &self.bytes).hash(state);
    }
}

/// Function that frames run.
pub trait Function: Debug + Send + Sync {
    /// Returns the qualified name of the function. It may contain any characters.
    fn name(&self) -> &str;

    /// Returns the path of the source file, as the runtime has it.
    fn file(&self) -> &str;

    /// Returns the function's first line, from 1 on; 0 if that is not known.
    fn first_line(&self) -> u32;

    /// Returns the line of a frame at `instruction`, if it has one.
    fn line(&self, instruction: i32) -> Option<u32>;

    /// Returns whether the language's own tracebacks show a frame at `instruction`.
    fn is_shown(&self, _instruction: i32) -> bool {
        true
    }

    /// Returns whether the table of lines was read.
    fn has_lines(&self) -> bool {
        true
    }

    /// Returns the size of the function in memory, in bytes.
    fn size(&self) -> usize;
}

/// Memory that is read in pieces.
pub trait Pieces {
    /// Returns up to `most` bytes from `start` on, as far as they can be read.
    fn bytes(&self, start: u64, most: usize) -> Vec<u8>;
}

impl Pieces for ProcessMemory {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        ProcessMemory::bytes(self, start, most)
    }
}
