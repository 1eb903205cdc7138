//! One test at a time: the tests measure a machine that they share.

use std::env;
use std::fs::{File, OpenOptions};

use rustix::fs::{FlockOperation, flock};

/// The right to use the machine alone, held until dropped.
///
/// The lock is a file's, so it also holds between test programs that run at
/// the same time.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

impl Turn {
    /// Waits for the turn of this test.
    ///
    /// # Panics
    ///
    /// Without root, which the tools need: the tests do not skip themselves.
    pub fn take() -> Turn {
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
        flock(&lock, FlockOperation::LockExclusive).expect("take the lock of the tests");
        Turn { _lock: lock }
    }
}
