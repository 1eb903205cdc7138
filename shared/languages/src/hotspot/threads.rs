//! Threads of a virtual machine, and the names that Java gives them.

use std::collections::HashSet;

use process::ProcessMemory;

use bpf::types::headers::{hotspot_flags, hotspot_layout};

use super::heap::{Classes, Heap};
use super::layout::Machine;
use super::parks;
use super::tables::{Tables, read_word};
use crate::language::{Class, FoundThread, Pieces, ThreadNames};
use crate::pthread_values::first_values;

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
    pub(super) object: u16,
    /// True if the thread has the address of the reference to its object.
    pub(super) has_handle: bool,
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

/// Adds the places of monitors and of their holders to the layout for programs. Without them
/// programs find no monitors.
pub(super) fn add_monitors(
    memory: &dyn Pieces,
    tables: &Tables,
    threads: &ThreadLayout,
    layout: &mut hotspot_layout,
) -> Option<()> {
    /// First version with handles in monitors, by a field that appeared then.
    const HANDLE: &str = "ObjectMonitor::_next_om";
    let field = |names: &[&str]| tables.offset(names);
    let pthread_id = field(&["OSThread::_pthread_id"])?;
    let key = find_key(memory, threads, pthread_id)?;
    let mut flags = layout.flags;
    let set = |flags: &mut u16, flag: hotspot_flags| *flags |= flag.0 as u16;
    let mut monitors = *layout;
    match threads.list {
        List::Array {
            list,
            length,
            threads,
        } => {
            (monitors.threads, monitors.list_length, monitors.list_array) = (list, length, threads);
        }
        List::Chain { first, next, .. } => {
            set(&mut flags, hotspot_flags::HOTSPOT_THREADS_ARE_CHAIN);
            (monitors.threads, monitors.next_thread) = (first, next);
        }
    }
    let of_thread = |field: &str| {
        let names = [format!("JavaThread::{field}"), format!("Thread::{field}")];
        tables.offset(&names.each_ref().map(String::as_str))
    };
    monitors.system_thread = threads.system_thread;
    monitors.thread_id = threads.thread_id;
    monitors.pthread_id = pthread_id;
    monitors.stack_base = of_thread("_stack_base")?;
    let size = of_thread("_stack_size")?;
    monitors.pending_monitor = of_thread("_current_pending_monitor")?;
    monitors.waiting_monitor = of_thread("_current_waiting_monitor")?;
    monitors.owner_id = of_thread("_monitor_owner_id").unwrap_or(0);
    if let Some(locks) = of_thread("_lock_stack") {
        let inner = |name: &str| field(&[name]);
        if let (Some(top), Some(base)) = (inner("LockStack::_top"), inner("LockStack::_base[0]")) {
            monitors.lock_stack_top = locks.checked_add(top)?;
            monitors.lock_stack = locks.checked_add(base)?;
        }
    }
    monitors.monitor_owner = field(&["ObjectMonitor::_owner"])?;
    monitors.monitor_object = field(&["ObjectMonitor::_object"])?;
    if field(&[HANDLE]).is_some() {
        set(&mut flags, hotspot_flags::HOTSPOT_OBJECT_HAS_HANDLE);
    }
    if let Some(class) = threads.heap.class_place() {
        monitors.class_offset = class.offset;
        monitors.class_base = class.base;
        monitors.class_shift = class.shift;
        if class.is_address {
            set(&mut flags, hotspot_flags::HOTSPOT_CLASS_IS_ADDRESS);
        }
    }
    monitors.flags = flags;
    monitors.thread_key = key;
    if size == monitors.stack_base.checked_add(8)? {
        *layout = monitors;
    }
    Some(())
}

/// Returns the key of `pthread_setspecific` under which each thread of the machine keeps itself.
/// `None` if no thread does, or the C library is another one than glibc.
fn find_key(memory: &dyn Pieces, layout: &ThreadLayout, pthread_id: u16) -> Option<u16> {
    /// Threads that are looked at.
    const MOST: usize = 8;
    let own = |thread: u64| {
        let system = read_word(memory, thread.checked_add(layout.system_thread.into())?)?;
        let pointer = read_word(memory, system.checked_add(pthread_id.into())?)?;
        let values = first_values(memory, pointer)?;
        let key = values.iter().position(|value| *value == thread)?;
        u16::try_from(key).ok()
    };
    let threads = layout.threads(memory)?;
    threads.into_iter().take(MOST).find_map(own)
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

/// Returns the name of a class as Java writes it: `shop.Account`, or `byte[]`.
fn java_name(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let inner = element
        .strip_prefix('L')
        .and_then(|inner| inner.strip_suffix(';'));
    let element = match (dimensions, element, inner) {
        (0, name, _) | (_, _, Some(name)) => name,
        (_, "B", _) => "byte",
        (_, "C", _) => "char",
        (_, "D", _) => "double",
        (_, "F", _) => "float",
        (_, "I", _) => "int",
        (_, "J", _) => "long",
        (_, "S", _) => "short",
        (_, "Z", _) => "boolean",
        (_, other, _) => other,
    };
    // A hidden class has its address behind its name.
    let element = element.replace('/', ".").replacen("+0x", "/0x", 1);
    element + &"[]".repeat(dimensions)
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

    fn class(&self, memory: &ProcessMemory, class: u64) -> Option<Class> {
        let name = Heap::class_name(memory, &self.machine, class)?;
        Some(Class {
            is_lock: parks::is_lock(&name),
            name: java_name(&name),
        })
    }

    fn must_extend_comm(&self) -> bool {
        self.layout.heap.moves_any_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_written_as_in_java() {
        assert_eq!(java_name("shop/Account$Row"), "shop.Account$Row");
        assert_eq!(java_name("[[Lshop/Account;"), "shop.Account[][]");
        assert_eq!(java_name("[B"), "byte[]");
        assert_eq!(java_name("a/B$$Lambda+0x12"), "a.B$$Lambda/0x12");
        assert_eq!(java_name("["), "[]");
    }
}
