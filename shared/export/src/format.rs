//! The trait of formats of profiles.

use std::io::{self, Write};
use std::ops::BitOr;

use profile::Profile;

use crate::{Options, Written};

/// Data that a format shows and that costs something to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Addresses of frames, which distinguish frames of one function.
    pub addresses: bool,
    /// IDs of threads and processes, which distinguish them.
    pub threads: bool,
    /// IDs of processes, which distinguish them.
    pub processes: bool,
    /// Accounts of threads, ended threads included.
    pub accounts: bool,
    /// Reasons and resources of waits.
    pub reasons: bool,
    /// Threads that released the resources of waits.
    pub wakers: bool,
    /// Intervals and samples have their times.
    pub times: bool,
}

impl Needs {
    /// Nothing beyond names.
    pub const NAMES: Needs = Needs {
        addresses: false,
        threads: false,
        processes: false,
        accounts: false,
        reasons: false,
        wakers: false,
        times: false,
    };
    /// Everything but a timeline.
    pub const ALL: Needs = Needs {
        addresses: true,
        threads: true,
        processes: true,
        accounts: true,
        reasons: true,
        wakers: true,
        times: false,
    };
}

impl BitOr for Needs {
    type Output = Needs;

    fn bitor(self, other: Needs) -> Needs {
        Needs {
            addresses: self.addresses || other.addresses,
            threads: self.threads || other.threads,
            processes: self.processes || other.processes,
            accounts: self.accounts || other.accounts,
            reasons: self.reasons || other.reasons,
            wakers: self.wakers || other.wakers,
            times: self.times || other.times,
        }
    }
}

/// A format for a whole profile, as one stream.
pub trait Format: Sync {
    /// Returns the format's name, which is unique.
    fn name(&self) -> &'static str;

    /// Returns the endings of file names, each with its dot. No other format has them.
    fn endings(&self) -> &'static [&'static str];

    /// Returns the programs that read the format, in Markdown.
    fn readers(&self) -> &'static str;

    /// Returns the data that the profile must have for this format.
    fn needs(&self) -> Needs;

    /// Returns whether the format shows the times of a timeline, if the profile has one.
    fn shows_times(&self) -> bool {
        self.needs().times
    }

    /// Returns whether the format is unfit for a terminal.
    fn is_binary(&self) -> bool {
        false
    }

    /// Writes a profile. A format ignores `options` that do not apply to it.
    ///
    /// # Errors
    /// Returns the errors of `writer`.
    fn write(
        &self,
        profile: &Profile,
        options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written>;
}
