//! Kernel messages about kernel threads that were runnable but got no CPU for half a minute or
//! longer. Messages about CPUs that are stuck in the kernel do not count, because a tested program
//! can cause them.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;

/// Parts of the messages in `kernel/workqueue.c` and `kernel/rcu/tree_stall.h`.
const STALLS: [&str; 2] = ["workqueue lockup", "kthread starved for"];

/// Kernel log from the moment that it is opened. `Documentation/ABI/testing/dev-kmsg` describes the
/// format.
pub(crate) struct KernelLog(Option<File>);

impl KernelLog {
    /// Opens the log at its end. It stays empty if this process may not read it.
    pub(crate) fn from_now() -> KernelLog {
        let mut options = OpenOptions::new();
        options.read(true);
        options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let file = options.open("/dev/kmsg").and_then(|mut file| {
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        });
        KernelLog(file.ok())
    }

    /// Returns the next message about a starved kernel thread.
    pub(crate) fn stall(&mut self) -> Option<String> {
        let file = self.0.as_mut()?;
        let mut record = [0; 8192];
        loop {
            match file.read(&mut record) {
                Ok(length) => {
                    let record = String::from_utf8_lossy(&record[..length]);
                    if let Some(message) = stall_in(&record) {
                        return Some(message.to_owned());
                    }
                }
                // The kernel has overwritten the next record.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => return None,
            }
        }
    }
}

/// Returns the message of a record, `priority,number,time,flags;message`, if it is about a starved
/// kernel thread.
fn stall_in(record: &str) -> Option<&str> {
    let message = record.split_once(';')?.1.lines().next()?;
    STALLS
        .iter()
        .any(|stall| message.contains(stall))
        .then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_kept_from_their_cpus_are_told_from_other_news() {
        let starved = "rcu: rcu_preempt kthread starved for 14752 jiffies! g1216573 ->cpu=1";
        let record = format!("3,2345,5980471185,-;{starved}\n SUBSYSTEM=rcu\n");
        assert_eq!(stall_in(&record), Some(starved));
        let other = "6,2346,5980471186,-;audit: a program is called soft\n COMM=soft lockup\n";
        assert_eq!(stall_in(other), None);
        assert_eq!(stall_in("soft lockup"), None);
    }
}
