//! Collects messages and counts of a running program.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::mem::offset_of;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bpf::types::{
    ChainLink, CodeChanged, EventKind, InterpretedFunction, Losses, MixedStack, ProcessEvent,
    STACK_DEPTH, StackDump, StackEvent, StackKey, Tally, Thread, ThreadEnd, ThreadState,
};
use libbpf_rs::{AsRawLibbpf, Map, MapCore, MapFlags, RingBuffer, RingBufferBuilder, libbpf_sys};
use loader::iterators::{copy, copy_start};
use loader::maps::{for_each, take_all};
use loader::{Context, Error, LoadedObject, Result, Targets, Variable, monotonic_ns};
use process::Process;
use profile::{RowMap, Table, Text, ThreadId};
use rustix::event::epoll;
use symbolize::DebugFiles;

use crate::record::KernelName;
use crate::record::LeftOut;
use crate::record::StackChoice;
use crate::record::account::Account;
use crate::record::counts::sums::Settled;
use crate::record::counts::{DoubleBuffer, Parts, Sums};
use crate::record::cut::sums_of;
use crate::record::runtime_names::Comm;
use crate::record::stacks::{Outcome, Stacks, UserStack};
use crate::record::stores::Stores;
use crate::record::sums::Key;
use crate::record::thread_names::ThreadNames;
use crate::record::timeline::{Receiver, RowSink, Suspect, Timeline};
use crate::record::window_variables::WindowVariables;
use process::Living;
use unwind_tables::{Dumped, InterpretedFrames, MAX_DUMPS, Unwinder};

/// Interval between sweeps of unused stack IDs.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum messages consumed before the ring position is checked again.
const MESSAGES_AT_ONCE: usize = 64;

/// Data received from a program: stacks, wakers, resources and ended threads. Also has the
/// unwinder.
struct Inbox<'a> {
    stores: Stores,
    ended: Vec<ThreadEnd>,
    unwinder: Option<Unwinder<'a>>,
}

impl Inbox<'_> {
    fn take(&mut self, message: &[u8]) {
        match copy(message).map(EventKind) {
            Some(EventKind::EVENT_STACK) => self.take_stack(message),
            Some(EventKind::EVENT_MIXED_STACK) => self.take_mixed(message),
            Some(EventKind::EVENT_INTERPRETED_FUNCTION) => self.take_function(message),
            Some(EventKind::EVENT_THREAD_END) => self.ended.extend(copy::<ThreadEnd>(message)),
            Some(EventKind::EVENT_STACK_DUMP) => self.take_dump(message),
            Some(EventKind::EVENT_CODE_CHANGED) => self.take_change(message),
            Some(EventKind::EVENT_PROCESS) => self.take_process(message),
            Some(EventKind::EVENT_WAKER) => copy(message)
                .into_iter()
                .for_each(|event| self.stores.wakers.add(event)),
            Some(EventKind::EVENT_WAKER_CHAIN) => copy(message)
                .iter()
                .for_each(|event| self.stores.wakers.add_chain(event)),
            Some(EventKind::EVENT_OBJECT) => copy(message).iter().for_each(|event| {
                let Stores {
                    stacks,
                    names,
                    objects,
                    ..
                } = &mut self.stores;
                objects.add(event, &mut stacks.symbolizer, names);
            }),
            // EVENT_COUNTS_FILLING, EVENT_MOVED and EVENT_NEWCOMER only wake user space.
            _ => {}
        }
    }

    fn take_stack(&mut self, message: &[u8]) {
        let event: StackEvent = copy_start(message);
        // The message may have fewer frames than its depth says.
        let sent = message.len().saturating_sub(offset_of!(StackEvent, frames)) / size_of::<u64>();
        let depth = sent.min(event.depth as usize).min(STACK_DEPTH);
        self.stores.stacks.add(&event, &event.frames[..depth]);
    }

    fn take_mixed(&mut self, message: &[u8]) {
        const START: usize = offset_of!(MixedStack, links);
        let event: MixedStack = copy_start(message);
        let sent = message.len().saturating_sub(START) / size_of::<ChainLink>();
        let count = sent.min(event.count as usize).min(event.links.len());
        // The CFAs follow the links in the message.
        let cfas = message.get(START + count * size_of::<ChainLink>()..);
        let (cfas, _) = cfas.unwrap_or_default().as_chunks();
        let cfas = cfas.iter().take(event.depth as usize);
        let cfas: Vec<u64> = cfas.map(|cfa| u64::from_ne_bytes(*cfa)).collect();
        let unwinder = self.unwinder.as_ref();
        if let Some(layout) = unwinder.and_then(|unwinder| unwinder.layout(event.layout)) {
            let links = &event.links[..count];
            let frames = InterpretedFrames::from_event(&event, links, Arc::clone(layout));
            self.stores.stacks.add_mixed(&event, frames, &cfas);
        }
    }

    fn take_function(&mut self, message: &[u8]) {
        let event: InterpretedFunction = copy_start(message);
        let unwinder = self.unwinder.as_ref();
        if let Some(layout) = unwinder.and_then(|unwinder| unwinder.layout(event.layout)) {
            self.stores.stacks.add_function(&event, layout);
        }
    }

    fn take_dump(&mut self, message: &[u8]) {
        const START: usize = offset_of!(StackDump, stack);
        if let (Some(stack), Some(unwinder)) = (message.get(START..), &mut self.unwinder) {
            let event: StackDump = copy_start(message);
            let stack = &stack[..stack.len().min(event.bytes as usize)];
            // If the unwinder has no capacity for the dump, the stack counts as missed.
            unwinder.add_dump(Dumped::from_event(&event, stack));
        }
    }

    fn take_change(&mut self, message: &[u8]) {
        if let (Some(event), Some(unwinder)) = (copy::<CodeChanged>(message), &mut self.unwinder) {
            unwinder.queue_scan(Process {
                pid: event.pid,
                instance: event.instance,
            });
        }
    }

    fn take_process(&mut self, message: &[u8]) {
        const START: usize = offset_of!(ProcessEvent, command_line);
        let event: ProcessEvent = copy_start(message);
        let arguments = message.get(START..).unwrap_or_default();
        let length = arguments.len().min(event.length as usize);
        if length > 0
            && let Some(unwinder) = &mut self.unwinder
        {
            unwinder.schedule_scans(Process {
                pid: event.pid,
                instance: event.instance,
            });
        }
        self.stores
            .stacks
            .add_process_event(&event, &arguments[..length]);
    }

    /// Continues the unwinder's work, or finishes it if `last` is true, and adds the unwound
    /// stacks. Returns how many more dumps the unwinder accepts. `stack_of` returns the ID of the
    /// stack with which a task is off the CPU.
    fn unwind(&mut self, last: bool, stack_of: impl Fn(u64) -> Option<u64>) -> Option<i64> {
        let unwinder = self.unwinder.as_mut()?;
        let symbolizer = &mut self.stores.stacks.symbolizer;
        let walked = if last {
            unwinder.finish(symbolizer)
        } else {
            unwinder.work(symbolizer)
        };
        let allowance = unwinder.allowance();
        for (process, runtime) in unwinder.take_runtimes() {
            self.stores.add_runtime(process, runtime);
        }
        for (mut dumped, walk) in walked {
            let sent = self.stores.stacks.take_frames_of_dump(dumped.id);
            let interpreted = (sent.or(dumped.interpreted.take()))
                .or_else(|| unwinder.late_interpreted_frames(&dumped, &stack_of));
            let user = UserStack {
                frames: &walk.addresses,
                is_exact: dumped.leaf_is_exact,
                outcome: Some(Outcome::from(&walk)),
                stack_pointer: dumped.registers.stack_pointer(),
                cfas: &walk.cfas,
                interpreted: interpreted.as_ref(),
            };
            self.stores.stacks.add_user(dumped.id, dumped.process, user);
        }
        allowance
    }

    /// Returns IDs that no process will use again. Records of threads that are off the CPU may
    /// still contain some of these IDs.
    fn unused(&self, living: &Living) -> HashSet<u64> {
        let stacks = self.stores.stacks.unused(living);
        stacks.chain(self.stores.wakers.unused(living)).collect()
    }

    fn forget(&mut self, unused: &HashSet<u64>, living: &Living) {
        self.stores.stacks.forget(unused);
        self.stores.wakers.forget(unused);
        self.stores.stacks.forget_ended(living);
        self.stores.wakers.forget_ended(living);
        self.stores.objects.forget_ended(living);
        self.stores.names.forget_ended(living);
    }

    /// Settles the sums whose stacks, wakers and resources have arrived. With `living`, an ID of a
    /// process that has ended counts as missed, unless its dump still waits to be unwound. If user
    /// space refused stacks or wakers, IDs of other processes may count as missed, too.
    fn settle(&mut self, sums: &mut Sums, living: Option<&Living>) {
        let unwinder = self.unwinder.as_ref();
        let waits = |id| unwinder.is_some_and(|unwinder| unwinder.has_dump(id));
        let has_refused = self.stores.stacks.has_refused() || self.stores.wakers.has_refused();
        let is_lost =
            |pid, id| living.is_some_and(|living| has_refused || !living.has(pid)) && !waits(id);
        self.stores
            .wakers
            .settle(&self.stores.stacks, &self.stores.names, is_lost);
        sums.settle(self.stores.arrived(), is_lost);
    }
}

/// Collector of one program's reports. It exists from the attachment of the program to its end.
pub struct Collector<'a> {
    object: &'a LoadedObject,
    counts: DoubleBuffer<'a>,
    window: WindowVariables<'a>,
    /// Number of stacks that programs may still send as dumps.
    dumps_allowed: Variable<'a, i64>,
    /// Number of drains of the ring buffer. Each drain renews the share of every process.
    turn: Variable<'a, u64>,
    ring: RingBuffer<'a>,
    /// Receiver of the timeline, if one is recorded.
    timeline: Option<Receiver<'a>>,
    inbox: Rc<RefCell<Inbox<'a>>>,
    sums: Sums,
    parts: Parts,
    thread_names: ThreadNames,
    /// Records of threads, if the object has a thread clock. The records contain IDs.
    threads: Option<Map<'a>>,
    swept: Instant,
}

/// Data that a program reported in a window.
pub struct Collected {
    /// Sums by thread and stack.
    pub(crate) sums: Sums,
    /// Length of each part of the window, in ns, and the counts in that part.
    pub(crate) parts: Vec<(u64, Tally)>,
    /// Intervals that were still open when the window closed.
    pub(crate) open: Vec<Tally>,
    /// Stacks, wakers and resources of the sums.
    pub(crate) stores: Stores,
    /// Filter of threads by name.
    pub(super) thread_names: ThreadNames,
    /// Accounts of the threads that ended inside the window.
    pub(crate) ended: Vec<ThreadEnd>,
    /// Accounts of all threads, if the object has a thread clock.
    pub(crate) accounts: Vec<Account>,
    /// Number of drains of the counts.
    pub(crate) drains: u64,
    /// Counts of events for which the kernel's buffers had no capacity.
    pub(crate) lost: Losses,
    /// Notes on the unwind tables, which `-v` prints.
    pub(crate) notes: Vec<String>,
    /// Counts of data that exceeded a limit of capacity.
    pub(crate) left_out: LeftOut,
    /// Timeline, if one was recorded.
    pub(crate) timeline: Option<Timeline>,
    /// Time from which on a recorder kept what happened, in ns of CLOCK_MONOTONIC; `None` without a
    /// recorder.
    pub(crate) start_ns: Option<u64>,
}

impl<'a> Collector<'a> {
    /// Makes a collector for an object that is loaded and captures these stacks. Its window must
    /// not be open yet.
    pub fn new(object: &'a LoadedObject, choice: &StackChoice) -> Result<Self> {
        let inbox = Rc::new(RefCell::new(Inbox {
            stores: Stores::new(choice),
            ended: Vec::new(),
            unwinder: choice.unwinder(object)?,
        }));
        let receiver = Rc::clone(&inbox);
        let events = object.map(bpf::maps::EVENTS)?;
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&events, move |message| {
                receiver.borrow_mut().take(message);
                0
            })
            .context("map the ring buffer")?;
        let ring = builder.build().context("open the ring buffer")?;
        Ok(Collector {
            object,
            counts: DoubleBuffer::for_counts(object)?,
            window: WindowVariables::new(object)?,
            dumps_allowed: object.variable(bpf::variables::DUMPS_ALLOWED)?,
            turn: object.variable(bpf::variables::EVENTS_TURN)?,
            ring,
            timeline: match choice.timeline_least_ns {
                Some(_) => Some(Receiver::new(object, choice.recorder.as_ref())?),
                None => None,
            },
            inbox,
            sums: Sums::new(choice.per_process, choice.per_thread),
            parts: Parts::new(),
            thread_names: ThreadNames::new(choice.thread_names.clone()),
            threads: object.map(bpf::maps::THREADS).ok(),
            swept: Instant::now(),
        })
    }

    /// Opens the window at `start`, and closes it at `stop` if that is known. Both are in ns of
    /// CLOCK_MONOTONIC.
    pub fn open_window(&mut self, start: u64, stop: Option<u64>) {
        self.dumps_allowed.set(MAX_DUMPS as i64);
        self.window.start.set(start);
        self.parts.begin(start);
        self.close_window(stop);
        if let Some(unwinder) = &mut self.inbox.borrow_mut().unwinder {
            unwinder.schedule_released();
        }
    }

    fn close_window(&mut self, stop: Option<u64>) {
        if let Some(stop) = stop {
            self.window.stop.set(stop);
            if let Some(timeline) = &self.timeline {
                timeline.set_stop(stop);
            }
        }
    }

    /// Returns a descriptor that is readable when user space should take messages at once.
    pub fn readiness(&self) -> Result<OwnedFd> {
        const ACTION: &str = "watch the ring buffer";
        let all = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(io::Error::from)
            .context(ACTION)?;
        let timeline = self.timeline.as_ref().map(Receiver::ring);
        for ring in [Some(&self.ring), timeline].into_iter().flatten() {
            // SAFETY: the ring buffer's descriptor is open as long as the ring buffer lives.
            let fd = unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) };
            let data = epoll::EventData::new_u64(0);
            epoll::add(&all, fd, data, epoll::EventFlags::IN)
                .map_err(io::Error::from)
                .context(ACTION)?;
        }
        Ok(all)
    }

    /// Takes the messages that have arrived. Moves the window's end to `stop` if that is known.
    pub fn take(&mut self, stop: Option<u64>) -> Result<()> {
        self.close_window(stop);
        self.consume()?;
        let stack_of = |task| stack_of(self.threads.as_ref()?, task);
        if let Some(dumps) = self.inbox.borrow_mut().unwind(false, stack_of) {
            self.dumps_allowed.set(dumps);
        }
        self.inbox.borrow_mut().stores.names.refresh();
        self.settle_timeline();
        // Programs also ask for a drain when half of the capacity is used.
        if self.counts.used() >= self.counts.room() / 2 {
            self.drain()?;
        }
        self.end_part()?;
        if self.swept.elapsed() >= SWEEP_INTERVAL {
            self.swept = Instant::now();
            self.sweep()?;
            self.forget_old();
        }
        Ok(())
    }

    /// Consumes the messages that have arrived: stacks first, then the rows that refer to them.
    fn consume(&mut self) -> Result<()> {
        self.turn.set(self.turn.get() + 1);
        consume(&self.ring)?;
        self.timeline.as_mut().map_or(Ok(()), Receiver::take)
    }

    /// Settles the rows of the timeline whose stacks, wakers and resources have arrived.
    fn settle_timeline(&mut self) {
        if let Some(timeline) = &self.timeline {
            let stores = &mut self.inbox.borrow_mut().stores;
            stores
                .wakers
                .settle(&stores.stacks, &stores.names, |_, _| false);
            timeline.with_timeline(|timeline| {
                timeline.settle(&mut self.sums, stores.arrived(), |_, _| false);
            });
        }
    }

    /// Returns whether a recorder keeps the last part of the window. All sums are then those of its
    /// rows.
    fn records(&self) -> bool {
        self.timeline.as_ref().is_some_and(Receiver::records)
    }

    /// Returns the time before which a recorder keeps nothing, in ns of CLOCK_MONOTONIC; 0 without a
    /// recorder.
    pub(crate) fn oldest_ns(&self) -> u64 {
        let oldest_ns = self.timeline.as_ref().and_then(Receiver::oldest_ns);
        oldest_ns.unwrap_or(0)
    }

    /// Forgets the threads that ended before the part of the window that a recorder keeps.
    fn forget_old(&mut self) {
        let oldest_ns = self.oldest_ns();
        let ended = &mut self.inbox.borrow_mut().ended;
        let old = ended.iter().filter(|end| end.ended < oldest_ns).count();
        if old > ended.len() / 2 {
            ended.retain(|end| end.ended >= oldest_ns);
        }
    }

    /// Takes the waits that are as long as a trigger says, with their keys. A wait whose stacks have
    /// not arrived stays.
    pub(crate) fn take_suspects(&mut self) -> Vec<(Suspect, Key)> {
        let inbox = self.inbox.borrow();
        let (sums, arrived) = (&mut self.sums, inbox.stores.arrived());
        let timeline = self.timeline.as_ref();
        let take = |timeline: &mut Timeline| {
            let recent = timeline.recent.as_mut()?;
            let mut settled = Vec::new();
            for suspect in recent.take_suspects() {
                match sums.settled_key(suspect.key, arrived) {
                    Some(key) => settled.push((suspect, key)),
                    None => recent.return_suspect(suspect),
                }
            }
            Some(settled)
        };
        let suspects = timeline.and_then(|receiver| receiver.with_timeline(take));
        suspects.unwrap_or_default()
    }

    /// Calls `body` with the stacks, wakers and resources, with the sums of a recorder's rows of a
    /// thread, and with the names of threads.
    pub(crate) fn with_recent<T>(
        &mut self,
        thread: ThreadId,
        body: impl FnOnce(&mut Stores, &RowMap<Key, Tally>, &mut Table<KernelName>) -> T,
    ) -> T {
        let timeline = self.timeline.as_ref();
        let sums = timeline.map(|it| it.with_timeline(|timeline| sums_of(timeline, thread)));
        let stores = &mut self.inbox.borrow_mut().stores;
        body(stores, &sums.unwrap_or_default(), self.sums.comms_mut())
    }

    /// Returns the name of a thread as it is printed.
    pub(crate) fn thread_name(&self, thread: ThreadId, comm: &Comm) -> Text {
        self.inbox.borrow().stores.names.printed(thread, comm)
    }

    /// Passes the rows of the timeline to `sink` from now on.
    pub(crate) fn stream_timeline(&mut self, sink: RowSink) {
        if let Some(timeline) = &mut self.timeline {
            timeline.set_sink(sink);
        }
    }

    /// Takes the receiver of the timeline, whose messages the caller takes from now on.
    pub(crate) fn take_timeline(&mut self) -> Option<Receiver<'a>> {
        self.timeline.take()
    }

    /// Adds an interval whose end no program saw.
    pub(crate) fn add(&mut self, key: StackKey, tally: &Tally) {
        let stores = &self.inbox.borrow().stores;
        if !self.records() && self.thread_names.include(&key.comm, stores.own_name(&key)) {
            self.parts.add(tally);
            self.sums.add(key, tally, stores.arrived());
        }
    }

    /// Restarts the parts of the window at `start`, when the first target appeared.
    pub fn begin_parts(&mut self, start: u64) {
        self.parts = Parts::new();
        self.parts.begin(start);
    }

    /// Ends the current part of the window, if it has its full length.
    fn end_part(&mut self) -> Result<()> {
        let now = monotonic_ns();
        if self.parts.is_over(now) {
            let begun = Instant::now();
            if self.counts.used() > 0 {
                self.drain()?;
            }
            self.parts.end(now, begun.elapsed());
        }
        Ok(())
    }

    /// Removes the IDs that no process will use again.
    fn sweep(&mut self) -> Result<()> {
        let Some(living) = Living::read() else {
            return Ok(());
        };
        let mut unused = self.inbox.borrow().unused(&living);
        if !unused.is_empty() {
            if let Some(threads) = &self.threads {
                // Any word of a record may be an ID.
                for_each(threads, "the thread clocks", |_, words| {
                    for word in words.chunks_exact(size_of::<u64>()).filter_map(copy) {
                        unused.remove(&word);
                    }
                })?;
            }
            // The maps may still have counts under IDs that no record contains any more. The drain
            // takes these counts before the IDs are removed.
            self.drain()?;
        }
        let mut inbox = self.inbox.borrow_mut();
        inbox.settle(&mut self.sums, Some(&living));
        // Open sums still refer to their stacks by ID.
        for id in self.sums.open_ids().chain(inbox.stores.wakers.open_ids()) {
            unused.remove(&id);
        }
        if let Some(timeline) = &self.timeline {
            timeline.with_timeline(|timeline| {
                for id in timeline.open_ids() {
                    unused.remove(&id);
                }
                timeline.rows.keys.forget_ids();
            });
        }
        inbox.forget(&unused, &living);
        Ok(())
    }

    /// Builds the unwind tables of the targets. Waits at most `FOR_TARGETS` for the tables of named
    /// targets, and at most `FOR_EVERYTHING` for the tables of a whole machine.
    pub fn prepare(&mut self, targets: &Targets) -> Result<()> {
        /// Time after which the collector no longer waits for a file.
        const FOR_TARGETS: Duration = Duration::from_secs(10);
        const FOR_EVERYTHING: Duration = Duration::from_millis(500);
        let inbox = &mut *self.inbox.borrow_mut();
        if let Some(unwinder) = &mut inbox.unwinder {
            let patience = if targets.is_everything() {
                FOR_EVERYTHING
            } else {
                FOR_TARGETS
            };
            let processes = targets.processes(self.object)?;
            // The first stacks of a target may not arrive before the target ends.
            if !targets.is_everything() {
                inbox.stores.stacks.look_up_processes(&processes);
            }
            unwinder.prepare(&processes, &mut inbox.stores.stacks.symbolizer, patience);
            for (process, runtime) in unwinder.take_runtimes() {
                inbox.stores.add_runtime(process, runtime);
            }
        }
        Ok(())
    }

    /// Sets the source of debug files that are not on this machine. They are requested when the
    /// first stack with their program arrives. Only [`Collected::name`] waits for them.
    pub fn set_debug_files(&mut self, remote: Arc<dyn DebugFiles>) {
        let inbox = &mut *self.inbox.borrow_mut();
        inbox.stores.stacks.symbolizer.set_debug_files(remote);
    }

    /// Calls `body` with the stacks that have arrived, and with the unwinder.
    pub(crate) fn with_stacks<T>(
        &self,
        body: impl FnOnce(&mut Stacks, Option<&mut Unwinder<'a>>) -> T,
    ) -> T {
        let inbox = &mut *self.inbox.borrow_mut();
        body(&mut inbox.stores.stacks, inbox.unwinder.as_mut())
    }

    /// Switches programs to the other map, and adds up the counts of the previous map.
    fn drain(&mut self) -> Result<()> {
        let records = self.records();
        let full = self.counts.swap()?;
        // Stacks must arrive before the counts that refer to them.
        self.turn.set(self.turn.get() + 1);
        consume(&self.ring)?;
        let inbox = &mut *self.inbox.borrow_mut();
        inbox.stores.names.refresh();
        inbox
            .stores
            .wakers
            .settle(&inbox.stores.stacks, &inbox.stores.names, |_, _| false);
        let (sums, parts, names) = (&mut self.sums, &mut self.parts, &mut self.thread_names);
        take_all(full, "the counts", |key: StackKey, tally: Tally| {
            if !records && names.include(&key.comm, inbox.stores.own_name(&key)) {
                parts.add(&tally);
                sums.add(key, &tally, inbox.stores.arrived());
            }
        })
    }

    /// Returns all collected data. The programs must be detached.
    pub fn finish(mut self) -> Result<Collected> {
        // A program may still run after its link is closed, and may count into either map.
        self.drain()?;
        self.drain()?;
        // The programs are detached, so no record shows with which stack a thread is off the CPU.
        self.inbox.borrow_mut().unwind(true, |_| None);
        self.inbox.borrow_mut().stores.names.read(true);
        let lost = self.window.lost.get();
        let Collector {
            ring,
            inbox,
            sums,
            parts,
            thread_names,
            counts,
            timeline,
            ..
        } = self;
        drop(ring);
        let inbox = Rc::into_inner(inbox).map(RefCell::into_inner);
        let Some(Inbox {
            stores,
            ended,
            unwinder,
        }) = inbox
        else {
            let source = io::Error::other("it is still in use");
            return Err(Error::System {
                action: "cannot close the ring buffer".into(),
                source,
            });
        };
        Ok(Collected {
            sums,
            parts: parts.ended(),
            open: Vec::new(),
            stores,
            thread_names,
            ended,
            accounts: Vec::new(),
            drains: counts.swaps(),
            lost,
            left_out: (unwinder.as_ref()).map_or_else(LeftOut::default, |it| it.missing().into()),
            notes: unwinder.map_or(Vec::new(), |unwinder| unwinder.notes()),
            timeline: timeline.map(Receiver::finish).transpose()?,
            start_ns: None,
        })
    }
}

impl Collected {
    /// Adds an interval that was open when the window closed.
    pub(crate) fn add(&mut self, key: StackKey, tally: &Tally) {
        if self
            .thread_names
            .include(&key.comm, self.stores.own_name(&key))
        {
            self.open.push(*tally);
            self.sums.add(key, tally, self.stores.arrived());
        }
    }

    /// Adds the accounts of the threads whose last name passes the filter.
    pub(crate) fn add_accounts(&mut self, accounts: Vec<Account>) {
        let accounts = accounts.into_iter();
        let wanted = accounts.filter(|account| {
            let own = self.stores.names.get(account.id(), account.comm());
            self.thread_names.include(account.comm(), own)
        });
        self.accounts.extend(wanted);
    }

    /// Returns the expression that filters threads, if it matched no name.
    pub fn unseen_thread_name(&self) -> Option<&str> {
        self.thread_names.unseen()
    }

    /// Returns the sum of all counts over all stacks.
    pub fn total(&self) -> Tally {
        self.sums.total()
    }

    /// Returns the time from which on a recorder kept what happened, in ns of CLOCK_MONOTONIC;
    /// `None` without a recorder.
    #[must_use]
    pub fn start_ns(&self) -> Option<u64> {
        self.start_ns
    }

    /// Returns the sums by stack, as [`Collected::settle`] leaves them.
    pub(crate) fn settled(&mut self) -> Settled {
        self.settle();
        self.sums.take_settled()
    }

    /// Settles all sums and rows. No more messages arrive, so an ID without a message counts as
    /// missed.
    pub(crate) fn settle(&mut self) {
        self.stores
            .wakers
            .settle(&self.stores.stacks, &self.stores.names, |_, _| true);
        let arrived = self.stores.arrived();
        self.sums.settle(arrived, |_, _| true);
        if let Some(timeline) = &mut self.timeline {
            timeline.settle(&mut self.sums, arrived, |_, _| true);
        }
    }
}

/// Consumes the messages that are in the ring buffer now. Stops there, because new messages may
/// arrive faster than this function consumes them.
pub(crate) fn consume(messages: &RingBuffer<'_>) -> Result<()> {
    // SAFETY: the ring buffer is open as long as `messages` lives, and has one ring.
    let ring = unsafe { libbpf_sys::ring_buffer__ring(messages.as_libbpf_object().as_ptr(), 0) };
    // SAFETY: as for `ring`.
    let end = unsafe { libbpf_sys::ring__producer_pos(ring) };
    // SAFETY: as for `ring`.
    while unsafe { libbpf_sys::ring__consumer_pos(ring) } < end {
        match messages.consume_raw_n(MESSAGES_AT_ONCE) {
            // A program has reserved the next message, but has not filled it yet.
            0 => break,
            error @ ..0 => {
                let source = io::Error::from_raw_os_error(-error);
                let action = "cannot read the ring buffer".into();
                return Err(Error::System { action, source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the ID of the stack with which a task is off the CPU. A waker may have woken the task,
/// but the task has not run.
pub(crate) fn stack_of(threads: &Map<'_>, task: u64) -> Option<u64> {
    let record = threads.lookup(&task.to_ne_bytes(), MapFlags::ANY);
    let thread = copy::<Thread>(&record.ok().flatten()?)?;
    (thread.state() != ThreadState::Running).then_some(thread.user)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests;
