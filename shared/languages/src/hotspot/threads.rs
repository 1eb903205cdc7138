//! Threads of a virtual machine, and the names that Java gives them.

use std::collections::HashSet;

use process::ProcessMemory;

use super::heap::{Classes, Heap};
use super::layout::Machine;
use super::tables::{Tables, read_word};
use crate::language::{FoundThread, Pieces, ThreadNames};

/// Maximum number of threads of a machine that are read.
const MAX_THREADS: usize = 16 << 10;
/// Maximum bytes of a thread, up to the end of the fields that are read.
const MAX_THREAD: u16 = 4096;

/// List of the machine's threads.
#[derive(Clone, Copy, Debug)]
enum List {
    /// Array, which the machine replaces whenever a thread begins or ends.
    Array {
        list: u64,
        length: u16,
        threads: u16,
    },
    /// Chain, and the number of threads: JDK 8 and 11.
    Chain { first: u64, next: u16, count: u64 },
}

/// Places of data on threads.
#[derive(Clone, Debug)]
pub(super) struct ThreadLayout {
    pub(super) heap: Heap,
    list: List,
    system_thread: u16,
    thread_id: u16,
    object: u16,
    /// True if the thread has the address of the reference to its object.
    has_handle: bool,
}

impl ThreadLayout {
    pub(super) fn read(memory: &dyn Pieces, tables: &Tables, major: u32) -> Option<ThreadLayout> {
        let list = match tables.address("ThreadsSMRSupport::_java_thread_list") {
            Some(list) => List::Array {
                list,
                length: tables.offset(&["ThreadsList::_length"])?,
                threads: tables.offset(&["ThreadsList::_threads"])?,
            },
            None => List::Chain {
                first: tables.address("Threads::_thread_list")?,
                next: tables.offset(&["JavaThread::_next"])?,
                count: tables.address("Threads::_number_of_threads")?,
            },
        };
        let layout = ThreadLayout {
            heap: Heap::read(memory, tables, major)?,
            list,
            system_thread: tables.offset(&["JavaThread::_osthread", "Thread::_osthread"])?,
            thread_id: tables.offset(&["OSThread::_thread_id"])?,
            object: tables.offset(&["JavaThread::_threadObj"])?,
            has_handle: tables.type_of("JavaThread::_threadObj")? == "OopHandle",
        };
        let last = layout.system_thread.max(layout.object);
        (last < MAX_THREAD).then_some(layout)
    }

    /// Returns a number that changes when a thread begins or ends.
    fn version(&self, memory: &dyn Pieces) -> Option<u64> {
        match self.list {
            List::Array { list, .. } => read_word(memory, list),
            List::Chain { count, first, .. } => {
                let count = read_word(memory, count)? & u64::from(u32::MAX);
                Some(read_word(memory, first)?.wrapping_add(count))
            }
        }
    }

    /// Returns the addresses of all threads.
    fn threads(&self, memory: &dyn Pieces) -> Option<Vec<u64>> {
        match self.list {
            List::Array {
                list,
                length,
                threads,
            } => {
                let list = read_word(memory, list).filter(|list| *list != 0)?;
                let length = read_word(memory, list.checked_add(length.into())?)? as u32;
                let array = read_word(memory, list.checked_add(threads.into())?)?;
                let bytes = memory.bytes(array, (length as usize).min(MAX_THREADS) * 8);
                let (words, _) = bytes.as_chunks();
                Some(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
            }
            List::Chain { first, next, .. } => {
                let mut threads = Vec::new();
                let mut thread = read_word(memory, first)?;
                while thread != 0 && threads.len() < MAX_THREADS {
                    threads.push(thread);
                    thread = read_word(memory, thread.checked_add(next.into())?)?;
                }
                Some(threads)
            }
        }
    }

    /// Returns the ID of the thread at `thread`, in the PID namespace of the process.
    fn id(&self, memory: &dyn Pieces, thread: u64) -> Option<u32> {
        let system = read_word(memory, thread.checked_add(self.system_thread.into())?)?;
        let id = read_word(memory, system.checked_add(self.thread_id.into())?)? as u32;
        (id != 0 && system != 0).then_some(id)
    }
}

/// Reader of the names of a machine's threads.
#[derive(Debug)]
pub(super) struct JavaThreadNames {
    machine: Machine,
    layout: ThreadLayout,
    classes: Classes,
    /// Threads that were read.
    known: HashSet<(u64, u32)>,
    version: Option<u64>,
}

impl JavaThreadNames {
    pub(super) fn new(machine: &Machine) -> Option<JavaThreadNames> {
        Some(JavaThreadNames {
            machine: machine.clone(),
            layout: machine.threads.clone()?,
            classes: Classes::default(),
            known: HashSet::new(),
            version: None,
        })
    }

    /// Reads the name of a thread. Its object must lead back to the thread.
    fn name(&mut self, memory: &ProcessMemory, thread: u64) -> Option<String> {
        let JavaThreadNames {
            machine,
            layout,
            classes,
            ..
        } = self;
        let heap = &layout.heap;
        let read_object = || {
            let value = read_word(memory, thread.checked_add(layout.object.into())?)?;
            let value = if layout.has_handle {
                read_word(memory, value)?
            } else {
                value
            };
            heap.address(value)
        };
        let object = read_object()?;
        let class = heap.class(memory, object)?;
        let class = heap.ancestor(memory, machine, class, "java/lang/Thread")?;
        let of = (&*machine, heap);
        let back = classes.field(memory, of, class, "eetop")?;
        if read_word(memory, object.checked_add(back)?)? != thread {
            return None;
        }
        let place = object.checked_add(classes.field(memory, of, class, "name")?)?;
        let name = read_string(classes, memory, of, place)?;
        // The collector may have moved the object or the string meanwhile.
        let is_same =
            read_object()? == object && read_word(memory, object.checked_add(back)?)? == thread;
        is_same.then_some(name)
    }
}

/// Reads the string to which the reference at `place` leads. JDK 8 keeps the name of a thread in a
/// string, too.
fn read_string(
    classes: &mut Classes,
    memory: &ProcessMemory,
    of: (&Machine, &Heap),
    place: u64,
) -> Option<String> {
    let string = of.1.reference(memory, place)?;
    let text = classes.string(memory, of, string)?;
    (of.1.reference(memory, place)? == string).then_some(text)
}

impl ThreadNames for JavaThreadNames {
    fn read(
        &mut self,
        memory: &ProcessMemory,
        all: bool,
        found: &mut dyn FnMut(FoundThread<'_>),
    ) -> Option<()> {
        let version = self.layout.version(memory)?;
        if self.version == Some(version) && !all {
            return Some(());
        }
        let threads = self.layout.threads(memory)?;
        let before = std::mem::take(&mut self.known);
        let mut is_complete = true;
        for thread in threads {
            let Some(id) = self.layout.id(memory, thread) else {
                continue;
            };
            let is_known = before.contains(&(thread, id));
            if is_known && !all {
                self.known.insert((thread, id));
                continue;
            }
            let mut was_read = false;
            let mut name = || {
                let name = self.name(memory, thread);
                was_read = name.is_some();
                name
            };
            found(FoundThread {
                tid: id,
                name: &mut name,
            });
            if was_read {
                self.known.insert((thread, id));
            } else {
                // The thread may have no object yet.
                is_complete = false;
            }
        }
        self.version = is_complete.then_some(version);
        Some(())
    }

    fn must_extend_comm(&self) -> bool {
        self.layout.heap.moves_any_time
    }
}
