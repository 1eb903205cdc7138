//! Trait of languages, and types of its methods.

use std::any::Any;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use elf::{Elf, Source};
use process::ProcessMemory;
use profile::LanguageName;
use unwind::{GeneratedCode, Memory};

use crate::chain::{Chain, End, Frame};
use crate::locks::Locks;
use crate::reader::Reader;

/// ELF file, whose variables and functions show a runtime.
pub type File<'a> = Elf<&'a dyn Source>;

/// Language whose functions run in a runtime. The runtime keeps frames for them in the memory of
/// its process.
///
/// A process may forge any of its data. An implementation reads them with bounds, and leaves out
/// impossible values.
pub trait Language: Debug + Send + Sync {
    /// Returns the name of the language in flags, marks and captures.
    fn name(&self) -> LanguageName;

    /// Returns the name of the language in sentences.
    fn title(&self) -> &'static str;

    /// Returns the readable versions, in words that fit before "can be read".
    fn readable_versions(&self) -> &'static str;

    /// Returns the number of the language in programs (`enum language` of
    /// `bpf/include/languages/languages.h`).
    fn number(&self) -> u32;

    /// Returns the runtime that an ELF file defines. Most files define none, so an implementation
    /// looks up one symbol first. `file_name` is a path.
    fn find(&self, file: &File<'_>, file_name: &str) -> Option<Runtime>;

    /// Attaches to a process that maps the file of `runtime`. `bias` is the difference between
    /// addresses in the process and in the file. A language overrides this method if its layout
    /// depends on data in the process. Returns `None` if the process has not set these data yet.
    fn attach(&self, runtime: &Runtime, _memory: &ProcessMemory, bias: u64) -> Option<Attached> {
        Some(Attached {
            base: runtime.base.wrapping_add(bias),
            version: runtime.version.clone(),
            layout: runtime.layout.clone(),
        })
    }

    /// Returns whether the frames of the language are on the native stack, in code that the
    /// runtime generates. [`Language::code_frames`] then unwinds them, and no chain leads to them.
    fn is_on_stack(&self) -> bool {
        false
    }

    /// Returns an unwinder of the frames that are on the native stack, which keeps at most `most`
    /// links. `memory` is the memory of the process. The language's header in
    /// `bpf/include/languages` does the same for the current thread.
    fn code_frames<'a>(
        &self,
        _layout: &'a Layout,
        _memory: &'a dyn Pieces,
        _most: usize,
    ) -> Option<Box<dyn CodeFrames + 'a>> {
        None
    }

    /// Returns whether frames with this layout leave anchors on the native stack. Without anchors,
    /// each native frame in [`Runtime::runs_one`] runs one frame.
    fn has_anchors(&self, _layout: &Layout) -> bool {
        true
    }

    /// Returns whether the chain tells which frames each activation of the native function in
    /// [`Runtime::runs_one`] runs, if frames leave no anchors on the native stack
    /// (`interleave/activations.rs`).
    fn counts_activations(&self) -> bool {
        false
    }

    /// Returns whether only the first thread of a process runs functions of the language.
    fn runs_in_first_thread(&self) -> bool {
        false
    }

    /// Reads the frames of a thread that is off the CPU, but at most `most` links. The language's
    /// header in `bpf/include/languages` does the same for the current thread.
    fn walk(
        &self,
        _attached: &Attached,
        _memory: &mut dyn Memory,
        _thread: Thread,
        _most: usize,
    ) -> Chain {
        Chain::empty(End::NoThread)
    }

    /// Returns the frames of the functions that run in a frame of compiled code, innermost first,
    /// because a compiler puts functions into their callers. Any other frame has one function.
    /// Returns `None` if the code cannot be read, or if other code has its address now.
    fn functions(
        &self,
        _layout: &Layout,
        frame: Frame,
        _memory: &ProcessMemory,
    ) -> Option<Vec<Frame>> {
        Some(vec![frame])
    }

    /// Reads the function of a frame; `None` if it cannot be read, or if another function has its
    /// address now.
    fn function(
        &self,
        layout: &Layout,
        frame: Frame,
        reader: &mut Reader<'_>,
    ) -> Option<Arc<dyn Function>>;

    /// Completes the chain of a thread that was interrupted in code of the runtime. A function that
    /// begins has no frame yet.
    fn complete(&self, _layout: &Layout, _chain: &mut Chain, _reader: &mut Reader<'_>) {}

    /// Reads a function from the copy that a program made when the function was about to run.
    fn copied_function(
        &self,
        _layout: &Layout,
        _frame: Frame,
        _copy: &dyn Pieces,
    ) -> Option<Arc<dyn Function>> {
        None
    }

    /// Returns a reader of the names that the runtime itself has for its threads, if it has any.
    fn thread_names(&self, _attached: &Attached) -> Option<Box<dyn ThreadNames>> {
        None
    }

    /// Returns the rules that recognise waits for locks of the language.
    fn locks(&self) -> &'static Locks {
        &Locks::NONE
    }

    /// Returns whether the names of functions are shown with their file. Names in other languages
    /// are unique without it.
    fn names_files(&self) -> bool {
        true
    }

    /// Returns whether a source file is part of the language's library, by its path.
    fn is_library(&self, _file: &str) -> bool {
        false
    }

    /// Returns whether a function is the library's, and runs the first function of a thread.
    fn starts_threads(&self, _function: &str) -> bool {
        false
    }
}

/// Registers of a thread that is off the CPU.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    /// Thread pointer (`fsbase`), which is `pthread_self()`.
    pub pointer: u64,
    /// Stack pointer.
    pub stack_pointer: u64,
}

/// Runtime that a file defines.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// Language of the runtime.
    pub language: &'static dyn Language,
    /// Virtual address, in the file, of the runtime's root data. All other data are found from
    /// there.
    pub base: u64,
    /// Version of the runtime, for display.
    pub version: String,
    /// Layout; `None` if it is unknown for this version, or differs between processes.
    pub layout: Option<Arc<Layout>>,
    /// Virtual addresses of the code that runs frames one by one, if frames leave no anchors.
    pub runs_one: Vec<(u64, u64)>,
    /// Virtual addresses of further data, in an order that the language defines.
    pub data: Vec<u64>,
}

/// Returns the ranges of code that are known. Ranges that were not found are empty.
pub(crate) fn known_ranges(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let known = ranges.iter().copied();
    known.filter(|(start, end)| start < end).collect()
}

/// Runtime in a process.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Address of the root data of the runtime.
    pub base: u64,
    /// Version of the runtime, for display.
    pub version: String,
    /// Layout; `None` if the frames cannot be read.
    pub layout: Option<Arc<Layout>>,
}

/// Offsets of data in a runtime's memory.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Language of the runtime.
    pub language: &'static dyn Language,
    /// Version, as a number that the language defines.
    pub version: u32,
    /// Bytes of the struct that programs use, from the language's header. There are at most
    /// [`bpf::types::LANGUAGE_LAYOUT_BYTES`].
    pub bytes: Vec<u8>,
    /// Further data on the runtime, which only its language knows.
    pub details: Option<Arc<dyn Details>>,
}

/// Details of a runtime, which only its language knows.
pub trait Details: Any + Debug + Send + Sync {}

impl<T: Any + Debug + Send + Sync> Details for T {}

impl Layout {
    /// Returns the details, if they are a `T`.
    #[must_use]
    pub fn details<T: Details>(&self) -> Option<&T> {
        let details: &dyn Any = self.details.as_deref()?;
        details.downcast_ref()
    }
}

/// Unwinder of a language's frames on the native stack of one thread.
pub trait CodeFrames: GeneratedCode {
    /// Returns the frames that were unwound.
    fn into_chain(self: Box<Self>) -> Chain;
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

/// Reader of the names that a runtime has for the threads of one process. The kernel's names have
/// 15 bytes.
pub trait ThreadNames: Debug + Send {
    /// Passes the threads that are new since the last call to `found`; with `all`, all threads.
    /// Returns `None` if the threads cannot be read.
    fn read(
        &mut self,
        memory: &ProcessMemory,
        all: bool,
        found: &mut dyn FnMut(FoundThread<'_>),
    ) -> Option<()>;

    /// Returns the class at `class`, to which an object led on which a thread waited.
    fn class(&self, memory: &ProcessMemory, class: u64) -> Option<Class>;

    /// Returns whether a name counts only if the kernel's name is its beginning, because the
    /// memory of names can change while they are read.
    fn must_extend_comm(&self) -> bool;
}

/// Class of an object on which threads wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class<N = String> {
    /// Name of the class as the language writes it.
    pub name: N,
    /// True if the object is a lock whenever a thread waits on it.
    pub is_lock: bool,
}

/// Thread of a runtime.
pub struct FoundThread<'a> {
    /// Thread ID in the PID namespace of the process.
    pub tid: u32,
    /// Reads the name of the thread; `None` if it cannot be read.
    pub name: &'a mut dyn FnMut() -> Option<String>,
}

/// Function that frames of a runtime run.
pub trait Function: Debug + Send + Sync {
    /// Returns the qualified name of the function. It may contain any characters.
    fn name(&self) -> &str;

    /// Returns the path of the source file, as the runtime has recorded it; empty if there is none.
    fn file(&self) -> &str;

    /// Returns the first line of the function, starting at 1; 0 if it is unknown.
    fn first_line(&self) -> u32;

    /// Returns the line of a frame at `instruction`, if this instruction has a line.
    fn line(&self, instruction: i32) -> Option<u32>;

    /// Returns the functions that a compiler put into this one at the position of the frame,
    /// innermost first.
    fn inlined(&self) -> &[Inlined] {
        &[]
    }

    /// Returns whether tracebacks of the language itself show a frame at `instruction`.
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

/// Function whose code a compiler put into the function that called it.
#[derive(Clone, Debug)]
pub struct Inlined {
    /// Function.
    pub function: Arc<dyn Function>,
    /// Line of the frame, if it is known.
    pub line: Option<u32>,
}

/// Memory that is read in pieces.
pub trait Pieces {
    /// Returns up to `most` bytes at `start`. Returns fewer if the rest cannot be read.
    fn bytes(&self, start: u64, most: usize) -> Vec<u8>;
}

impl Pieces for ProcessMemory {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        ProcessMemory::bytes(self, start, most)
    }
}
