//! Why a thread was blocked.

use crate::{Detail, Id, Idleness, Label, Labels, Name, Profile, Sample};

/// What a blocked thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Another thread holds it.
    Lock,
    /// Somebody holds a lock of the kernel's.
    KernelLock,
    /// Another thread must announce something: a queue, a semaphore, a barrier.
    Condition,
    /// A thread or a process must end.
    Child,
    /// Any of several sources.
    Events,
    /// A peer must act.
    Network,
    /// A pipe, a local socket, a terminal.
    LocalIpc,
    /// Data are not in memory.
    DiskRead,
    /// Data must be durable.
    DiskWrite,
    /// Memory that was touched must be filled.
    PageFault,
    /// Memory must be freed first.
    Memory,
    /// Held back by a limit.
    Throttle,
    /// It asked for time to pass.
    Sleep,
    /// A signal, a debugger or a thaw must come.
    Stopped,
    /// A driver, a GPU, a guest.
    Device,
    /// Another service of the kernel's.
    Kernel,
    /// What it waited for could not be told.
    Unknown,
}

/// A reason, and what it was in particular: `lock`, `mutex`, `ledger_lock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Why {
    /// The reason.
    pub reason: Reason,
    /// Of which kind.
    pub detail: Detail,
    /// What was waited on, if that is known.
    pub object: Option<Name>,
    /// The thread that held it, if that is known.
    pub holder: Option<Name>,
    /// The thread that ended the wait and where it was, if that was noted.
    pub ended_by: Option<Name>,
    /// Whether the thread had work meanwhile.
    pub idleness: Idleness,
}

/// The keys of the labels that say so.
const REASON: &str = "reason";
const DETAIL: &str = "detail";
const OBJECT: &str = "object";
const HOLDER: &str = "holder";
const ENDED_BY: &str = "ended by";
const IDLENESS: &str = "idleness";

impl Reason {
    /// All there are.
    pub const ALL: [Reason; 17] = [
        Reason::Lock,
        Reason::KernelLock,
        Reason::Condition,
        Reason::Child,
        Reason::Events,
        Reason::Network,
        Reason::LocalIpc,
        Reason::DiskRead,
        Reason::DiskWrite,
        Reason::PageFault,
        Reason::Memory,
        Reason::Throttle,
        Reason::Sleep,
        Reason::Stopped,
        Reason::Device,
        Reason::Kernel,
        Reason::Unknown,
    ];

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reason::Lock => "lock",
            Reason::KernelLock => "kernel lock",
            Reason::Condition => "condition",
            Reason::Child => "child",
            Reason::Events => "events",
            Reason::Network => "network",
            Reason::LocalIpc => "local IPC",
            Reason::DiskRead => "disk read",
            Reason::DiskWrite => "disk write",
            Reason::PageFault => "page fault",
            Reason::Memory => "memory",
            Reason::Throttle => "throttle",
            Reason::Sleep => "sleep",
            Reason::Stopped => "stopped",
            Reason::Device => "device",
            Reason::Kernel => "kernel",
            Reason::Unknown => "unknown",
        }
    }

    /// The reasons that a word means: a name, also with dashes for spaces, or the first
    /// word of names (`disk`).
    #[must_use]
    pub fn named(word: &str) -> Vec<Reason> {
        let word = word.replace('-', " ");
        let of = |is_meant: fn(&str, &str) -> bool| -> Vec<Reason> {
            let all = Reason::ALL.into_iter();
            all.filter(|reason| is_meant(reason.name(), &word))
                .collect()
        };
        let exact = of(str::eq_ignore_ascii_case);
        match exact.is_empty() {
            true => of(|name, word| name.split(' ').next() == Some(word)),
            false => exact,
        }
    }
}

impl Profile {
    /// The labels of samples of which this is known.
    pub fn labels_of(&mut self, why: Option<Why>, is_sampled: bool) -> Option<Id<Labels>> {
        let mut labels = Vec::new();
        if let Some(why) = why {
            let reason = self.names.text(why.reason.name());
            let idleness = self.names.text(why.idleness.name());
            let detail = match why.detail {
                Detail::Named(name) => name,
                known => self.names.text(known.known_name().unwrap_or_default()),
            };
            let said = [
                (REASON, Some(reason)),
                (DETAIL, Some(detail)),
                (OBJECT, why.object),
                (HOLDER, why.holder),
                (ENDED_BY, why.ended_by),
                (IDLENESS, Some(idleness)),
            ];
            for (key, value) in said {
                let key = self.names.text(key);
                labels.extend(value.map(|value| Label { key, value }));
            }
        }
        // Last, so that samples of one reason are beside each other when they are ordered.
        if is_sampled {
            labels.push(self.label_of_sampled());
        }
        (!labels.is_empty()).then(|| self.labels.id(labels.into()))
    }

    /// Why a sample's thread was blocked, if that is said of it.
    #[must_use]
    pub fn why(&self, sample: &Sample) -> Option<Why> {
        let labels = &self.labels[sample.labels?];
        let value = |key: &str| {
            let label = labels.iter().find(|label| &*self.names[label.key] == key);
            label.map(|label| label.value)
        };
        let reason = &*self.names[value(REASON)?];
        let reason = Reason::ALL.into_iter().find(|known| known.name() == reason);
        Some(Why {
            reason: reason?,
            detail: self.detail(value(DETAIL)?),
            object: value(OBJECT),
            holder: value(HOLDER),
            ended_by: value(ENDED_BY),
            idleness: value(IDLENESS)
                .and_then(|name| Idleness::named(&self.names[name]))
                .unwrap_or_default(),
        })
    }

    /// A reason in words: `lock: mutex`.
    #[must_use]
    pub fn kind_told(&self, why: Why) -> String {
        format!("{}: {}", why.reason.name(), self.detail_name(why.detail))
    }

    /// A reason in words with what was waited on: `lock: mutex, ledger_lock, held by writer`,
    /// and with `(idle)` or `(dormant)` where nothing was held up.
    #[must_use]
    pub fn told(&self, why: Why) -> String {
        let mut told = self.kind_told(why);
        for (before, name) in [(", ", why.object), (", held by ", why.holder)] {
            if let Some(name) = name {
                told.push_str(before);
                told.push_str(&self.names[name]);
            }
        }
        if why.idleness.is_idle() {
            told.push_str(" (");
            told.push_str(why.idleness.name());
            told.push(')');
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_reason_or_several() {
        assert_eq!(Reason::named("lock"), [Reason::Lock]);
        assert_eq!(Reason::named("kernel-lock"), [Reason::KernelLock]);
        assert_eq!(Reason::named("kernel"), [Reason::Kernel]);
        assert_eq!(Reason::named("disk"), [Reason::DiskRead, Reason::DiskWrite]);
        assert_eq!(Reason::named("local ipc"), [Reason::LocalIpc]);
        assert!(Reason::named("luck").is_empty());
        for reason in Reason::ALL {
            assert_eq!(Reason::named(reason.name()), [reason]);
        }
    }
}
