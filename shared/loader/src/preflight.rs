//! Checks privileges and kernel features before a tool loads anything. An error then names the
//! missing right or feature, instead of the EPERM of a system call.

use std::fs;
use std::path::Path;

use crate::{Error, Result};

/// Capabilities of include/uapi/linux/capability.h.
const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYSLOG: u32 = 34;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// File of the kernel's types.
const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

/// Checks that the caller may load tracing programs and that the kernel has BTF.
///
/// # Errors
/// A right or the BTF is missing. The error names it and says what the user should do.
pub fn check_privileges() -> Result<()> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(missing) = missing_capabilities(&status) {
        return Err(Error::Unsupported(format!(
            "{missing} missing: run it as root (sudo), or give the program CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE"
        )));
    }
    if !Path::new(KERNEL_BTF).exists() {
        return Err(Error::Unsupported(format!(
            "this kernel has no BTF type information ({KERNEL_BTF} is missing): boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' kernels are"
        )));
    }
    Ok(())
}

/// Returns each capability that the suite uses, and whether this process has it.
#[must_use]
pub fn capabilities() -> [(&'static str, bool); 5] {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    capabilities_of(effective_capabilities(&status))
}

fn capabilities_of(effective: u64) -> [(&'static str, bool); 5] {
    [
        ("CAP_BPF", CAP_BPF),
        ("CAP_PERFMON", CAP_PERFMON),
        ("CAP_SYS_PTRACE", CAP_SYS_PTRACE),
        ("CAP_SYSLOG", CAP_SYSLOG),
        ("CAP_SYS_ADMIN", CAP_SYS_ADMIN),
    ]
    .map(|(name, capability)| (name, effective & (1 << capability) != 0))
}

fn effective_capabilities(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0)
}

/// Returns the names of missing capabilities, from the text of a process's `/proc/PID/status`.
fn missing_capabilities(status: &str) -> Option<String> {
    let effective = effective_capabilities(status);
    let has = |capability: u32| effective & (1 << capability) != 0;
    if has(CAP_SYS_ADMIN) {
        return None;
    }
    let missing: Vec<&str> = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter(|(capability, _)| !has(*capability))
        .map(|(_, name)| name)
        .collect();
    match missing.as_slice() {
        [] => None,
        [one] => Some(format!("capability {one} is")),
        _ => Some(format!("capabilities {} are", missing.join(" and "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(mask: u64) -> Option<String> {
        missing_capabilities(&format!("Name:\tx\nCapEff:\t{mask:016x}\n"))
    }

    #[test]
    fn root_and_the_two_capabilities_suffice() {
        assert_eq!(missing(0x1ff_ffff_ffff), None);
        assert_eq!(missing(1 << CAP_BPF | 1 << CAP_PERFMON), None);
        assert_eq!(missing(1 << CAP_SYS_ADMIN), None);
    }

    #[test]
    fn names_what_is_missing() {
        assert_eq!(
            missing(0).as_deref(),
            Some("capabilities CAP_BPF and CAP_PERFMON are")
        );
        assert_eq!(
            missing(1 << CAP_BPF).as_deref(),
            Some("capability CAP_PERFMON is")
        );
        assert_eq!(missing_capabilities("").as_deref(), missing(0).as_deref());
    }
}
