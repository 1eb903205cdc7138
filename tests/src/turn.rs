//! Lock between tests. Tests that measure the cost of the tools have the machine to themselves, and
//! all other tests share it.

use std::env;
use std::fs::{File, OpenOptions};

use rustix::fs::{FlockOperation, flock};

/// Right to use the machine, held until dropped.
///
/// The lock is on a file, so it also holds between test programs that run at the same time.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

impl Turn {
    /// Waits until no other test runs, and keeps other tests waiting.
    ///
    /// # Panics
    ///
    /// Panics without root. The tools need root, and no test skips itself.
    pub fn take() -> Turn {
        Turn::lock(FlockOperation::LockExclusive)
    }

    /// Waits until no test has the machine to itself.
    ///
    /// # Panics
    ///
    /// Panics without root.
    pub fn share() -> Turn {
        Turn::lock(FlockOperation::LockShared)
    }

    fn lock(operation: FlockOperation) -> Turn {
        assert!(
            rustix::process::geteuid().is_root(),
            "the end-to-end tests load BPF programs and need root: run `make test` or `sudo -E cargo test`"
        );
        let path = env::temp_dir().join("systemscope-tests.lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .unwrap_or_else(|error| panic!("open the lock {}: {error}", path.display()));
        flock(&lock, operation).expect("take the lock of the tests");
        Turn { _lock: lock }
    }
}
