//! Records the event loops of the targets: each `epoll_wait` of a first thread, from which turns
//! are made.

mod turns;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use bpf::types::{EpollWaitEntry, EpollWaitEvent};
use libbpf_rs::{Link, MapCore, MapFlags, RingBuffer, RingBufferBuilder, set_print};
use loader::{Kernel, LoadedObject, OpenObject, iterators};
use profile::ThreadId;
use report::EventLoop;

use turns::Turns;

/// Link of a descriptor in `/proc/PID/fd` that is an epoll instance.
const EPOLL_INSTANCE: &str = "anon_inode:[eventpoll]";

/// Records the waits of the event loops of some processes.
pub(crate) struct LoopRecorder {
    object: LoadedObject,
    waits: RingBuffer<'static>,
    state: Rc<RefCell<State>>,
    _links: Vec<Link>,
}

/// Waits of the event loops that the programs have sent so far.
#[derive(Default)]
struct State {
    /// The window, in ns of CLOCK_MONOTONIC.
    window: (u64, u64),
    /// Turns by the ID of the thread.
    turns: BTreeMap<u32, Turns>,
}

impl LoopRecorder {
    /// Maximum time between two calls of [`LoopRecorder::take`]. The ring buffer has room for more
    /// waits than a thread can make in this time.
    pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

    /// Attaches the programs if a process has an epoll instance. Returns `None` otherwise, because
    /// the programs slow down the system calls of the whole machine.
    ///
    /// # Errors
    /// The kernel refuses the programs.
    pub(crate) fn attach(pids: &[u32]) -> anyhow::Result<Option<LoopRecorder>> {
        let pids: Vec<u32> = pids.iter().copied().filter(|&pid| has_epoll(pid)).collect();
        if pids.is_empty() {
            return Ok(None);
        }
        // libbpf would print a long message if the kernel refused the programs.
        let printed = set_print(None);
        let recorder = LoopRecorder::attach_to(&pids);
        set_print(printed);
        recorder.map(Some)
    }

    fn attach_to(pids: &[u32]) -> anyhow::Result<LoopRecorder> {
        let mut object = OpenObject::new(&bpf::event_loops::OBJECT)?;
        Kernel::probe()?.configure(&mut object)?;
        let object = object.load()?;
        let threads = object.map(bpf::maps::LOOP_THREADS)?;
        let nothing = [0; size_of::<EpollWaitEntry>()];
        for pid in pids.iter().take(threads.max_entries() as usize) {
            threads
                .update(&pid.to_ne_bytes(), &nothing, MapFlags::ANY)
                .context("name the first threads")?;
        }
        let state = Rc::new(RefCell::new(State::default()));
        let receiver = Rc::clone(&state);
        let messages = object.map(bpf::maps::EPOLL_WAITS)?;
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&messages, move |message| {
                if let Some(event) = iterators::copy::<EpollWaitEvent>(message) {
                    let mut state = receiver.borrow_mut();
                    let window = state.window;
                    let turns = state.turns.entry(event.tid).or_default();
                    turns.add(&event, window);
                }
                0
            })
            .context("map the ring buffer of waits")?;
        let waits = builder.build().context("open the ring buffer of waits")?;
        let links = object.attach(&[
            bpf::programs::EPOLL_WAIT_BEGAN,
            bpf::programs::EPOLL_WAIT_ENDED,
        ])?;
        Ok(LoopRecorder {
            object,
            waits,
            state,
            _links: links,
        })
    }

    /// Takes the waits that have ended. The window is in ns of CLOCK_MONOTONIC; its end may be
    /// earlier in a later call, but not before the time of the call.
    ///
    /// # Errors
    /// The ring buffer cannot be read.
    pub(crate) fn take(&mut self, start: u64, stop: u64) -> anyhow::Result<()> {
        self.state.borrow_mut().window = (start, stop);
        self.waits
            .consume()
            .context("read the waits of event loops")
    }

    /// Returns the event loops that were seen, by thread.
    pub(crate) fn finish(self) -> Vec<EventLoop> {
        // A failure leaves waits unread, which the count of lost ones then says.
        let unread = u64::from(self.waits.consume().is_err());
        let lost = self.object.variable(bpf::variables::EPOLL_WAITS_LOST);
        let lost = lost.map_or(1, |lost| lost.get()).saturating_add(unread);
        let threads = self.object.map(bpf::maps::LOOP_THREADS);
        let mut state = self.state.borrow_mut();
        let window = state.window;
        let event_loop = |(&tid, turns): (&u32, &mut Turns)| {
            let entry = threads.as_ref().ok();
            let entry = entry.and_then(|map| map.lookup(&tid.to_ne_bytes(), MapFlags::ANY).ok()?);
            let entry = entry.and_then(|entry| iterators::copy::<EpollWaitEntry>(&entry));
            turns.add_open(&entry.unwrap_or_default(), window);
            let thread = ThreadId { pid: tid, tid };
            turns.summary(thread, lost)
        };
        state.turns.iter_mut().filter_map(event_loop).collect()
    }
}

/// Returns whether a process has an epoll instance. A process that cannot be read has none.
fn has_epoll(pid: u32) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let mut links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.any(|link| link.as_os_str() == EPOLL_INSTANCE)
}
