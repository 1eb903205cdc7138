//! Waits that set off a trigger of a recorder.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use profile::{Idleness, Text, ThreadId, Wait, WaitKind};

use crate::record::sums::Key;
use crate::record::{Collector, Delay, Stores, Suspect, Trigger};

/// Time after which waits are found again: later waits of a thread may show more.
const KNOWN_FOR: Duration = Duration::from_secs(10);

/// A wait that set off a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// The trigger.
    pub trigger: Trigger,
    /// The thread that waited.
    pub thread: ThreadId,
    /// Name of the thread.
    pub comm: Text,
    /// Length of the wait, in ns.
    pub length_ns: u64,
    /// Kind of the wait, if the thread was blocked.
    pub kind: Option<WaitKind>,
}

/// Idleness of waits that were as long as a trigger says.
#[derive(Default)]
pub struct Verdicts {
    waits: HashMap<Key, Wait>,
    /// Time at which the waits were last found.
    since: Option<Instant>,
}

impl Verdicts {
    /// Returns the first wait that set off a trigger since the last call, if there is one. A thread
    /// that was blocked must have had work: the reason of its wait or its other waits show that.
    pub fn find_trigger(&mut self, collector: &mut Collector<'_>) -> Option<Fired> {
        if self.since.is_none_or(|since| since.elapsed() > KNOWN_FOR) {
            self.waits.clear();
            self.since = Some(Instant::now());
        }
        let mut suspects = collector.take_suspects().into_iter();
        suspects.find_map(|(suspect, key)| match suspect.trigger.delay {
            Delay::Blocked => {
                let wait = self.wait(key, collector)?;
                (wait.idleness == Idleness::Waiting)
                    .then(|| describe(&suspect, Some(wait.kind), collector))
            }
            Delay::Runnable => Some(describe(&suspect, None, collector)),
        })
    }

    /// Returns the wait of a key.
    fn wait(&mut self, key: Key, collector: &mut Collector<'_>) -> Option<Wait> {
        if !self.waits.contains_key(&key) {
            let found = collector.with_recent(key.thread, Stores::find_waits);
            self.waits.extend(found);
        }
        self.waits.get(&key).copied()
    }
}

fn describe(suspect: &Suspect, kind: Option<WaitKind>, collector: &Collector<'_>) -> Fired {
    let Suspect { trigger, part, key } = suspect;
    Fired {
        trigger: *trigger,
        thread: part.thread,
        comm: collector.thread_name(part.thread, &key.comm),
        length_ns: trigger.length_ns(part),
        kind,
    }
}
