//! Idleness of blocked threads.

/// State of a blocked thread's work: pending or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Idleness {
    /// Work was pending, and something held the thread up.
    Waiting,
    /// The thread waited for new work.
    Idle,
    /// The thread was blocked in the whole window, and nothing shows that work was pending.
    Dormant,
    /// The tool does not know whether work was pending.
    #[default]
    Unknown,
}

impl Idleness {
    /// All values, in the order of the enum.
    pub const ALL: [Idleness; 4] = [
        Idleness::Waiting,
        Idleness::Idle,
        Idleness::Dormant,
        Idleness::Unknown,
    ];

    /// Returns the name, such as `waiting`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Idleness::Waiting => "waiting",
            Idleness::Idle => "idle",
            Idleness::Dormant => "dormant",
            Idleness::Unknown => "unknown",
        }
    }

    /// Returns whether the thread had no work pending: it was idle or dormant.
    #[must_use]
    pub fn is_idle(self) -> bool {
        matches!(self, Idleness::Idle | Idleness::Dormant)
    }

    /// Returns the idleness with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Idleness> {
        let mut all = Idleness::ALL.into_iter();
        all.find(|known| known.name() == name)
    }
}
