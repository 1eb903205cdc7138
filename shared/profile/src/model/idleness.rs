//! Whether a blocked thread had work.

/// What a blocked thread had to do meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Idleness {
    /// Work was pending: something held it up.
    Waiting,
    /// It waited for new work.
    Idle,
    /// It was blocked as long as it was measured, and nothing says that it was held up.
    Dormant,
    /// Nothing tells.
    #[default]
    Unknown,
}

impl Idleness {
    /// All there are.
    pub const ALL: [Idleness; 4] = [
        Idleness::Waiting,
        Idleness::Idle,
        Idleness::Dormant,
        Idleness::Unknown,
    ];

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Idleness::Waiting => "waiting",
            Idleness::Idle => "idle",
            Idleness::Dormant => "dormant",
            Idleness::Unknown => "unknown",
        }
    }

    /// Whether the thread had nothing to do.
    #[must_use]
    pub fn is_idle(self) -> bool {
        matches!(self, Idleness::Idle | Idleness::Dormant)
    }

    pub(crate) fn named(name: &str) -> Option<Idleness> {
        let mut all = Idleness::ALL.into_iter();
        all.find(|known| known.name() == name)
    }
}
