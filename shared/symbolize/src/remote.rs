//! Debug files that are not on this machine.

use std::fmt;
use std::fs::File;
use std::time::{Duration, Instant};

/// Work that finds the build ID of a debug file that is missing on this machine. It returns `None`
/// if no debug file is missing.
pub type FindBuildId = Box<dyn FnOnce() -> Option<Vec<u8>> + Send>;

/// Source of debug files that are not on this machine. This crate does not know where the source
/// gets them.
pub trait DebugFiles: fmt::Debug + Send + Sync {
    /// Requests a debug file that may be asked for later. Returns at once: another thread does the
    /// work, and gets the file.
    fn request(&self, find: FindBuildId);

    /// Returns the debug file with this build ID. Waits for it until the time `until`; without this
    /// time it returns only a file that is already there.
    fn get(&self, build_id: &[u8], until: Option<Instant>) -> Option<File>;

    /// Returns the maximum wait for all debug files together.
    fn patience(&self) -> Duration;
}
