//! Errors between a command line and a running program.

use std::ffi::OsStr;
use std::io;

/// Error with the action that failed; its source is the kernel's answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller lacks a right or the kernel a feature. The text names it, and says what to
    /// do.
    #[error("{0}")]
    Unsupported(String),
    /// A BPF operation failed.
    #[error("{action}: {source}")]
    Bpf {
        /// Action that failed.
        action: String,
        /// Answer of the library.
        source: libbpf_rs::Error,
    },
    /// A system call failed.
    #[error("{action}: {source}")]
    System {
        /// Action that failed.
        action: String,
        /// Answer of the kernel.
        source: io::Error,
    },
}

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Makes the error for an object that was built without a map, a program or a variable.
pub(crate) fn missing(what: &str) -> Error {
    Error::Unsupported(format!(
        "the BPF program has no {what}: it is not one of ours"
    ))
}

/// Adds the action that failed to an error.
pub trait Context<T> {
    /// Adds `action`, which completes "cannot …": `attach sched_switch`.
    fn context(self, action: impl Into<String>) -> Result<T>;
}

impl<T> Context<T> for libbpf_rs::Result<T> {
    fn context(self, action: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::Bpf {
            action: format!("cannot {}", action.into()),
            source,
        })
    }
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, action: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::System {
            action: format!("cannot {}", action.into()),
            source,
        })
    }
}

/// Returns the name as text, for messages.
pub(crate) fn lossy(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}
