//! Checks privileges and kernel features before a tool loads anything. An error then names the
//! missing right or feature, instead of the EPERM of a system call.

use std::fs;
use std::path::Path;

use crate::{Error, Result};

/// Capabilities of include/uapi/linux/capability.h.
const CAP_DAC_READ_SEARCH: u32 = 2;
const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_RESOURCE: u32 = 24;
const CAP_SYSLOG: u32 = 34;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;
const CAP_CHECKPOINT_RESTORE: u32 = 40;

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

/// A capability that the suite uses.
pub struct Capability {
    /// Name, as in capabilities(7).
    pub name: &'static str,
    /// The tools that need the capability and their purpose, in words.
    pub purpose: &'static str,
    /// True if this process has the capability.
    pub held: bool,
}

/// Returns the capabilities that the suite uses: first those without which no tool runs, then those
/// that add names or features.
#[must_use]
pub fn capabilities() -> Vec<Capability> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    capabilities_of(effective_capabilities(&status))
}

fn capabilities_of(effective: u64) -> Vec<Capability> {
    let capability = |(name, number, purpose): (_, u32, _)| Capability {
        name,
        purpose,
        held: effective & (1 << number) != 0,
    };
    [
        ("CAP_BPF", CAP_BPF, "every tool: loads BPF programs"),
        ("CAP_PERFMON", CAP_PERFMON, "every tool: traces threads"),
        (
            "CAP_SYS_PTRACE",
            CAP_SYS_PTRACE,
            "tools with stacks: reads memory and mappings of other users' processes",
        ),
        (
            "CAP_SYSLOG",
            CAP_SYSLOG,
            "tools with stacks: names kernel functions where kptr_restrict hides addresses",
        ),
        (
            "CAP_DAC_READ_SEARCH",
            CAP_DAC_READ_SEARCH,
            "tools with stacks: reads programs and libraries that only their owner may read",
        ),
        (
            "CAP_CHECKPOINT_RESTORE",
            CAP_CHECKPOINT_RESTORE,
            "tools with stacks: reads programs and libraries that were deleted or replaced",
        ),
        (
            "CAP_SYS_RESOURCE",
            CAP_SYS_RESOURCE,
            "every tool before Linux 5.11: locks the memory of maps",
        ),
        (
            "CAP_SYS_ADMIN",
            CAP_SYS_ADMIN,
            "--user, with CAP_SETUID and CAP_SETGID: runs a command as another user",
        ),
    ]
    .map(capability)
    .into()
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
