//! Threads that fetch debug files while the caller does something else.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use rustix::thread::gettid;
use symbolize::{DebugFiles, FindBuildId};

use crate::build_id::BuildId;
use crate::cache::{Cache, Cached};
use crate::download::{Client, Failure};
use crate::settings::Settings;
use crate::summary::Summary;

/// Number of threads. One slow server then does not hold up the files of others.
const WORKERS: usize = 4;
/// Priority of the threads: they run when nothing else wants the CPU.
const NICENESS: i32 = 19;
/// Maximum number of files that a run asks for. Targets choose build IDs.
const MOST_FILES: usize = 1000;
/// Maximum number of files whose build IDs are still to be found. Each of them is open.
const MOST_FINDS: usize = 256;
/// Maximum size of all files that a run fetches, in bytes.
const MOST_BYTES: u64 = 8 << 30;
/// Maximum number of reasons that are kept.
const MOST_NOTES: usize = 16;
/// Interval between two attempts to lock the folder of a build ID.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// Fetches debug files by build ID in the background.
pub struct Fetcher {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    cache: Cache,
    state: Mutex<State>,
    /// Signals new work, and the end of a download.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    finds: VecDeque<FindBuildId>,
    wanted: VecDeque<BuildId>,
    files: HashMap<BuildId, Progress>,
    /// Indexes of servers that did not answer. They are not asked again.
    unreachable: HashSet<usize>,
    workers: usize,
    idle: usize,
    is_closed: bool,
    bytes: u64,
    summary: Summary,
}

enum Progress {
    /// The file is not there yet. The caller has waited for it if `is_late` is true.
    Pending {
        is_late: bool,
    },
    Done(Option<File>),
}

/// Way in which a file was got.
enum Got {
    Cached(File),
    Fetched(File, u64),
}

impl Fetcher {
    /// Returns a fetcher that keeps its files in this cache. Its threads start with the first
    /// question.
    #[must_use]
    pub fn new(settings: Settings, cache: Cache) -> Fetcher {
        Fetcher {
            shared: Arc::new(Shared {
                client: Client::new(settings),
                cache,
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
        }
    }

    /// Returns the number of files that have not arrived yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        let state = self.shared.state();
        let files = state.files.values();
        let pending = files.filter(|progress| matches!(progress, Progress::Pending { .. }));
        pending.count()
    }

    /// Returns the counts since the last call.
    #[must_use]
    pub fn take_summary(&self) -> Summary {
        let mut state = self.shared.state();
        let mut summary = std::mem::take(&mut state.summary);
        for (build_id, progress) in &mut state.files {
            if let Progress::Pending { is_late } = progress
                && std::mem::take(is_late)
            {
                summary.late += 1;
                note(&mut summary, format!("{build_id} did not arrive in time"));
            }
        }
        summary
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.shared.state().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.shared.client.settings();
        formatter.debug_tuple("Fetcher").field(settings).finish()
    }
}

impl DebugFiles for Fetcher {
    fn request(&self, find: FindBuildId) {
        let mut state = self.shared.state();
        // A file that is left out here is asked for when it is named.
        if state.finds.len() < MOST_FINDS {
            state.finds.push_back(find);
            self.shared.start_worker(&mut state);
            self.shared.changed.notify_all();
        }
    }

    fn get(&self, build_id: &[u8], until: Option<Instant>) -> Option<File> {
        let build_id = BuildId::new(build_id)?;
        let mut state = self.shared.state();
        state.want(&build_id);
        self.shared.start_worker(&mut state);
        self.shared.changed.notify_all();
        loop {
            match state.files.get_mut(&build_id)? {
                Progress::Done(file) => return file.as_ref()?.try_clone().ok(),
                Progress::Pending { is_late } => {
                    let left = until?.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        *is_late = true;
                        return None;
                    }
                    let changed = &self.shared.changed;
                    let waited = changed.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    fn patience(&self) -> Duration {
        self.shared.client.settings().patience
    }
}

impl State {
    /// Adds a file to the files that are fetched, if it is new.
    fn want(&mut self, build_id: &BuildId) {
        if self.files.contains_key(build_id) {
            return;
        }
        let is_taken = self.files.len() < MOST_FILES;
        let progress = if is_taken {
            self.wanted.push_back(build_id.clone());
            Progress::Pending { is_late: false }
        } else {
            self.summary.refused += 1;
            note(
                &mut self.summary,
                format!("{build_id} is one of more than {MOST_FILES} files"),
            );
            Progress::Done(None)
        };
        // Build IDs beyond the limit are few: each is of an open file.
        self.files.insert(build_id.clone(), progress);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts one more thread, if there is more work than idle threads.
    fn start_worker(self: &Arc<Self>, state: &mut State) {
        let work = state.finds.len() + state.wanted.len();
        if state.workers >= WORKERS || work <= state.idle {
            return;
        }
        let shared = Arc::clone(self);
        let worker = thread::Builder::new().name("debuginfod".to_owned());
        match worker.spawn(move || shared.work()) {
            Ok(_) => state.workers += 1,
            Err(error) if state.workers == 0 => {
                note(
                    &mut state.summary,
                    format!("no thread could be started: {error}"),
                );
                state.summary.failed += state.wanted.len() as u64;
                for build_id in std::mem::take(&mut state.wanted) {
                    state.files.insert(build_id, Progress::Done(None));
                }
                state.finds.clear();
            }
            Err(_) => {}
        }
    }

    /// Works until the fetcher is dropped.
    fn work(self: &Arc<Self>) {
        // The threads must not take CPU time from what is measured. Without a lower priority they
        // still mostly wait.
        let _ = setpriority_process(Some(gettid()), NICENESS);
        let mut state = self.state();
        while !state.is_closed {
            if let Some(find) = state.finds.pop_front() {
                drop(state);
                let found = find().and_then(|build_id| BuildId::new(&build_id));
                state = self.state();
                if let Some(build_id) = found {
                    state.want(&build_id);
                    self.start_worker(&mut state);
                }
            } else if let Some(build_id) = state.wanted.pop_front() {
                drop(state);
                let got = self.get(&build_id);
                state = self.state();
                let file = state.count(&build_id, got);
                state.files.insert(build_id, Progress::Done(file));
                self.changed.notify_all();
            } else {
                state.idle += 1;
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }

    /// Gets a file from the cache, or else from the first server that has it.
    fn get(&self, build_id: &BuildId) -> Result<Got, Failure> {
        let failed = |error: std::io::Error| {
            Failure::Failed(format!("{build_id}: cannot use the cache: {error}"))
        };
        let entry = self.cache.entry(build_id).map_err(failed)?;
        let look_up = || match entry.look_up() {
            Cached::File(file) => Some(Ok(Got::Cached(file))),
            Cached::Absent => Some(Err(Failure::Absent)),
            Cached::Unknown => None,
        };
        if let Some(known) = look_up() {
            return known;
        }
        // Another tool of the suite may be fetching the file: wallclock runs two of them.
        while !entry.lock() {
            if self.state().is_closed {
                return Err(Failure::Failed(format!(
                    "{build_id}: another tool fetches it"
                )));
            }
            thread::sleep(LOCK_INTERVAL);
        }
        if let Some(known) = look_up() {
            return known;
        }
        let mut failure = Failure::Absent;
        for (index, server) in self.client.settings().servers.iter().enumerate() {
            if self.state().unreachable.contains(&index) {
                failure = Failure::Failed(format!("{server}: it did not answer before"));
                continue;
            }
            let fetched = self
                .client
                .fetch(server, build_id, &entry, |bytes| self.charge(bytes));
            match fetched {
                Ok((partial, size)) => {
                    let file = entry.finish(partial).map_err(failed)?;
                    return Ok(Got::Fetched(file, size));
                }
                Err(Failure::Absent) => {}
                Err(Failure::Refused(why)) => {
                    failure = Failure::Refused(format!("{server}, {build_id}: {why}"));
                }
                Err(Failure::Unreachable(why)) => {
                    self.state().unreachable.insert(index);
                    failure = Failure::Failed(format!("{server}: {why}"));
                }
                Err(Failure::Failed(why)) => {
                    failure = Failure::Failed(format!("{server}, {build_id}: {why}"));
                }
            }
        }
        if matches!(failure, Failure::Absent) {
            entry.note_absent();
        }
        Err(failure)
    }

    /// Charges for bytes of a download.
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        let mut state = self.state();
        state.bytes += bytes;
        if state.is_closed {
            return Err(Failure::Failed("the tool ends".to_owned()));
        }
        if state.bytes > MOST_BYTES {
            let why = format!("the files of a run have more than {MOST_BYTES} bytes");
            return Err(Failure::Refused(why));
        }
        Ok(())
    }
}

impl State {
    /// Counts the outcome for a file, and returns the file.
    fn count(&mut self, build_id: &BuildId, got: Result<Got, Failure>) -> Option<File> {
        let summary = &mut self.summary;
        match got {
            Ok(Got::Cached(file)) => {
                summary.cached += 1;
                return Some(file);
            }
            Ok(Got::Fetched(file, size)) => {
                summary.fetched += 1;
                summary.bytes += size;
                return Some(file);
            }
            Err(Failure::Absent) => {
                summary.absent += 1;
                note(summary, format!("no server has {build_id}"));
            }
            Err(Failure::Refused(why)) => {
                summary.refused += 1;
                note(summary, why);
            }
            Err(Failure::Unreachable(why) | Failure::Failed(why)) => {
                summary.failed += 1;
                note(summary, why);
            }
        }
        None
    }
}

/// Adds a reason, up to the maximum number.
fn note(summary: &mut Summary, why: String) {
    if summary.notes.len() < MOST_NOTES && !summary.notes.contains(&why) {
        summary.notes.push(why);
    }
}
