//! Time of day.

/// Returns `HH:MM:SS` in the local time zone.
pub(crate) fn now() -> String {
    // SAFETY: both calls write to locals that outlive them, and all-zero bytes are a valid tm.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        let seconds = libc::time(std::ptr::null_mut());
        libc::localtime_r(&raw const seconds, &raw mut time);
        time
    };
    format!("{:02}:{:02}:{:02}", time.tm_hour, time.tm_min, time.tm_sec)
}
