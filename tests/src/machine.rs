//! Description of the facts of this machine on which figures depend.

use std::arch::x86_64::__cpuid;
use std::fs;
use std::process::Command;

use crate::cpus_online;

/// Returns the CPU's model and the hypervisor, without any `;`. Documents have one table for each
/// such kind of machine.
pub fn kind() -> String {
    format!("{}, {}", cpu(), hypervisor()).replace(';', ",")
}

/// Returns one line with the facts of this machine on which figures depend. The line begins with
/// the kind of machine:
///
/// `AMD EPYC, KVM; 2 CPUs; L3 32 MiB; clock source tsc; Linux 6.18; 2026-11-22`
pub fn line() -> String {
    let mut parts = vec![kind()];
    parts.extend(read("/sys/class/dmi/id/sys_vendor"));
    parts.push(format!("{} CPUs", cpus_online()));
    parts.extend(l3_kib().map(|kib| match kib % 1024 {
        0 => format!("L3 {} MiB", kib / 1024),
        _ => format!("L3 {kib} KiB"),
    }));
    let clock = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let clock = clock.unwrap_or_else(|| "not told".to_owned());
    parts.push(format!("clock source {clock}"));
    let kernel = read("/proc/sys/kernel/osrelease").expect("the kernel's release");
    parts.push(format!("Linux {kernel}"));
    parts.push(date());
    parts.join("; ")
}

/// Returns the model name of `/proc/cpuinfo`.
fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    name.unwrap_or_else(|| "a CPU without a name".to_owned())
}

/// Returns the hypervisor that CPUID or the kernel names.
fn hypervisor() -> String {
    let told = signature().or_else(|| read("/sys/hypervisor/type"));
    told.unwrap_or_else(|| "no hypervisor told".to_owned())
}

/// Returns the hypervisor's name of 12 bytes. Under a hypervisor, CPUID sets a bit that no CPU
/// sets.
fn signature() -> Option<String> {
    const IS_GUEST: u32 = 1 << 31;
    const NAME: u32 = 0x4000_0000;
    // `__cpuid` became safe after the oldest Rust version that builds this crate.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 CPU has the instruction.
    let (features, name) = unsafe { (__cpuid(1), __cpuid(NAME)) };
    if features.ecx & IS_GUEST == 0 {
        return None;
    }
    let bytes = [name.ebx, name.ecx, name.edx].map(u32::to_le_bytes);
    Some(name_of(&bytes.concat()))
}

fn name_of(signature: &[u8]) -> String {
    let text = String::from_utf8_lossy(signature);
    let text = text.trim_matches(|letter: char| letter == '\0' || letter == ' ');
    let name = match text {
        "KVMKVMKVM" => "KVM",
        "TCGTCGTCGTCG" => "qemu without KVM",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "" => "a hypervisor without a name",
        other => other,
    };
    name.to_owned()
}

/// Returns the size of the level-3 cache of CPU 0.
fn l3_kib() -> Option<u64> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = caches.flatten().filter_map(|cache| {
        let attribute = |name: &str| fs::read_to_string(cache.path().join(name)).ok();
        let is_third = attribute("level")?.trim() == "3";
        let size = attribute("size")?;
        is_third.then(|| size.trim().strip_suffix('K')?.parse().ok())?
    });
    sizes.max()
}

fn date() -> String {
    let date = Command::new("date").arg("+%F").output();
    let date = date.expect("start date").stdout;
    String::from_utf8_lossy(&date).trim().to_owned()
}

/// Returns the text of a one-line file; `None` if the file is missing or empty.
fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.replace(';', ","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told_in_one_line_that_begins_with_its_kind() {
        let line = line();
        assert_eq!(line.lines().count(), 1);
        assert_eq!(line.split(';').next(), Some(kind().as_str()));
        for word in ["CPUs; ", "clock source ", "Linux "] {
            assert!(line.contains(word), "no {word:?} in {line:?}");
        }
    }

    #[test]
    fn a_signature_is_named() {
        assert_eq!(name_of(b"KVMKVMKVM\0\0\0"), "KVM");
        assert_eq!(name_of(b"bhyve bhyve "), "bhyve bhyve");
    }
}
