//! The trait of languages, and the types that its methods take and return.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use elf::{Elf, Source};
use process::ProcessMemory;
use profile::LanguageName;
use unwind::Memory;

use crate::chain::{Chain, Frame};
use crate::locks::Locks;

/// The variables and functions of an ELF file, in which a runtime is looked for.
pub type File<'a> = Elf<&'a dyn Source>;

/// A language whose functions a runtime of its own runs. The runtime keeps frames for them in the
/// memory of its process.
///
/// Whatever is read of a process may have been forged: an implementation bounds it, and
/// leaves out what cannot be right.
pub trait Language: Debug + Send + Sync {
    /// Returns the language's name in flags, marks and captures.
    fn name(&self) -> LanguageName;

    /// Returns the language's name in sentences.
    fn title(&self) -> &'static str;

    /// Returns which versions can be read, in words that end "… can be read".
    fn readable_versions(&self) -> &'static str;

    /// Returns the number by which programs know the language: `enum language` of
    /// `bpf/include/languages/languages.h`.
    fn number(&self) -> u32;

    /// Returns the runtime that an ELF file defines. Most files define none, so an
    /// implementation looks for one symbol first. `file_name` is a path.
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

    /// Reads the function of a frame; `None` if another one has its address by now, or
    /// it cannot be read.
    fn function(
        &self,
        layout: &Layout,
        frame: Frame,
        memory: &ProcessMemory,
    ) -> Option<Arc<dyn Function>>;

    /// Reads the same from what a program has copied while the function was about to
    /// run.
    fn copied_function(
        &self,
        layout: &Layout,
        frame: Frame,
        copy: &dyn Pieces,
    ) -> Option<Arc<dyn Function>>;

    /// Returns how waits for the language's locks are recognised.
    fn locks(&self) -> &'static Locks {
        &Locks::NONE
    }
}

/// A runtime in a file.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// Its language.
    pub language: &'static dyn Language,
    /// Virtual address, as the file has it, of what leads to everything else.
    pub base: u64,
    /// Its version, for people.
    pub version: String,
    /// Its layout; `None` if that is not known of this version, or differs between processes.
    pub layout: Option<Arc<Layout>>,
    /// Virtual addresses of the code that runs frames one by one, if frames leave no anchors.
    pub runs_one: Vec<(u64, u64)>,
}

/// A runtime in a process.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Address of what leads to everything else.
    pub base: u64,
    /// Its layout; `None` if its frames cannot be read.
    pub layout: Option<Arc<Layout>>,
}

/// The places at which a runtime keeps what is read of it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The language.
    pub language: &'static dyn Language,
    /// The version, by a number of the language's own.
    pub version: u32,
    /// The struct of the language's header that programs go by:
    /// [`bpf::types::LANGUAGE_LAYOUT_BYTES`] at most.
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

/// A function that frames run.
pub trait Function: Debug + Send + Sync {
    /// Returns the name with what the function belongs to, with whatever characters it has.
    fn name(&self) -> &str;

    /// Returns the path of the source file, as the runtime has it.
    fn file(&self) -> &str;

    /// Returns the line where it begins, from 1 on; 0 if that is not known.
    fn first_line(&self) -> u32;

    /// Returns the line of a frame at `instruction`, if it has one.
    fn line(&self, instruction: i32) -> Option<u32>;

    /// Returns whether the language's own tracebacks show a frame at `instruction`.
    fn is_shown(&self, _instruction: i32) -> bool {
        true
    }

    /// Returns whether all was read that tells lines.
    fn has_lines(&self) -> bool {
        true
    }

    /// Returns how many bytes of memory it takes.
    fn size(&self) -> usize;
}

/// Memory of which pieces are read.
pub trait Pieces {
    /// Returns up to `most` bytes from `start` on, as far as there are any.
    fn bytes(&self, start: u64, most: usize) -> Vec<u8>;
}

impl Pieces for ProcessMemory {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        ProcessMemory::bytes(self, start, most)
    }
}
