//! Detects the features in which running kernels differ.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bpf::types::SwitchArguments;
use libbpf_rs::btf::types::{DataSec, FuncProto, Ptr, Struct, Typedef};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, ReferencesType};

use crate::arch::PREEMPT_COUNTS;
use crate::error::Context;
use crate::{Error, OpenObject, Result};

mod calls;
mod names;

pub use calls::kernel_calls;
pub use names::kernel_names;

/// Inode number of the initial PID namespace: `PROC_PID_INIT_INO` of include/linux/proc_ns.h.
const INITIAL_PID_NAMESPACE: u64 = 0xeffffffc;

/// Facts about the running kernel, and the caller's PID namespace.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Order of `sched_switch`'s arguments, `enum switch_arguments`.
    pub switch_arguments: SwitchArguments,
    /// Inode number of the caller's PID namespace; 0 if it is the initial one.
    pub pid_namespace: u32,
    /// Distance in bytes from a CPU's run queue to its preemption count (`include/context.h`); 0 if
    /// unknown.
    pub preempt_count_from_runqueue: i64,
    /// True if the kernel has `sched_exit_tp` (since 6.15): programs can then run in a thread that
    /// has returned to a CPU.
    pub shows_returns: bool,
    /// ID of `struct task_struct` in the kernel's BTF; 0 if unknown.
    task_type: u32,
}

/// Feature in which kernels differ.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Name of the feature.
    pub name: &'static str,
    /// State of the feature on this kernel, and the consequence of a missing feature.
    pub here: &'static str,
}

impl Kernel {
    /// Returns this kernel's state of each feature.
    #[must_use]
    pub fn features(&self) -> [Feature; 5] {
        let feature = |name, here| Feature { name, here };
        let state = match self.switch_arguments {
            SwitchArguments::SWITCH_WITHOUT_STATE => "not told at the switch: read from the thread",
            _ => "told at the switch",
        };
        let interrupts = match self.preempt_count_from_runqueue {
            0 => "not told: who woke a thread may be whom an interrupt came to",
            _ => "told from threads",
        };
        let returns = if self.shows_returns {
            "shown: user stacks of long waits are taken then"
        } else {
            "not shown: all user stacks are taken when threads leave"
        };
        let namespace = if self.is_nested() {
            "nested: PIDs are those of this one"
        } else {
            "the initial one"
        };
        [
            feature("BTF", "there"),
            feature("state of who leaves", state),
            feature("wakers in interrupts", interrupts),
            feature("threads that are back", returns),
            feature("PID namespace", namespace),
        ]
    }

    /// Detects the features of the running kernel.
    pub fn probe() -> Result<Kernel> {
        let btf = Btf::from_vmlinux().context("read the kernel's BTF")?;
        if ring_buffer_may_sleep(is_realtime(), &btf) {
            return Err(Error::Unsupported(
                "this PREEMPT_RT kernel's BPF ring buffer takes a sleeping lock and cannot be used in the scheduler: boot 6.12 or later, or a kernel without PREEMPT_RT".into(),
            ));
        }
        let namespace = fs::metadata("/proc/self/ns/pid")
            .context("read /proc/self/ns/pid")?
            .ino();
        Ok(Kernel::described_by(&btf, namespace))
    }

    /// Describes the kernel with the types of `btf`, for a caller in the PID namespace with inode
    /// number `namespace`.
    fn described_by(btf: &Btf<'_>, namespace: u64) -> Kernel {
        let nested = namespace != INITIAL_PID_NAMESPACE;
        let distance = preempt_count_from_runqueue(btf);
        let returns = btf.type_by_name::<Typedef<'_>>("btf_trace_sched_exit_tp");
        Kernel {
            switch_arguments: switch_arguments(btf),
            pid_namespace: if nested { namespace as u32 } else { 0 },
            preempt_count_from_runqueue: distance.unwrap_or(0),
            // Without this distance, programs cannot recognize a wake-up in an interrupt. Such a
            // wake-up could interrupt the capture of a stack at a return.
            shows_returns: returns.is_some() && distance.is_some(),
            task_type: task_type(btf).unwrap_or(0),
        }
    }

    /// Returns whether the caller's PIDs differ from the kernel's, as in a container.
    pub fn is_nested(&self) -> bool {
        self.pid_namespace != 0
    }

    /// Sets the constants about the kernel that all programs need.
    pub fn configure(&self, object: &mut OpenObject) -> Result<()> {
        object.set(bpf::constants::TASK_TYPE, self.task_type)?;
        object.set(bpf::constants::PID_NAMESPACE, self.pid_namespace)
    }
}

/// Returns whether this is a PREEMPT_RT kernel. Other kernels lack this file.
fn is_realtime() -> bool {
    Path::new("/sys/kernel/realtime").exists()
}

/// Returns whether the ring buffer's lock can sleep. Before 6.12 (kernel commit 8b62645b09f8) the
/// lock of `struct bpf_ringbuf` was a `spinlock_t`, which sleeps under PREEMPT_RT.
fn ring_buffer_may_sleep(is_realtime: bool, btf: &Btf<'_>) -> bool {
    let Some(ring_buffer) = btf.type_by_name::<Struct<'_>>("bpf_ringbuf") else {
        return false;
    };
    let mut locks = ring_buffer
        .iter()
        .filter(|member| member.name.is_some_and(|name| name == "spinlock"))
        .filter_map(|member| btf.type_by_id::<BtfType<'_>>(member.ty));
    is_realtime && locks.any(|lock| lock.name().is_some_and(|name| name == "spinlock_t"))
}

/// Returns the `enum switch_arguments` of `include/clock/clock_events.h`. Its source is the type of
/// the tracepoint's probe: (void *data, bool preempt, …).
fn switch_arguments(btf: &Btf<'_>) -> SwitchArguments {
    let arguments = btf
        .type_by_name::<Typedef<'_>>("btf_trace_sched_switch")
        .and_then(|typedef| Ptr::try_from(typedef.referenced_type()).ok())
        .and_then(|pointer| FuncProto::try_from(pointer.referenced_type()).ok());
    let Some(arguments) = arguments else {
        return SwitchArguments::SWITCH_STATE_LAST;
    };
    let is_pointer = |index: usize| {
        arguments
            .get(index)
            .and_then(|argument| btf.type_by_id::<BtfType<'_>>(argument.ty))
            .is_some_and(|ty| ty.kind() == BtfKind::Ptr)
    };
    match arguments.len() {
        5 if is_pointer(2) => SwitchArguments::SWITCH_STATE_LAST,
        5 => SwitchArguments::SWITCH_STATE_SECOND,
        _ => SwitchArguments::SWITCH_WITHOUT_STATE,
    }
}

fn task_type(btf: &Btf<'_>) -> Option<u32> {
    let found = btf.type_by_name::<Struct<'_>>("task_struct")?;
    Some(found.type_id().into())
}

/// Returns the distance that `include/context.h` needs, or `None` if the kernel lacks a field on
/// the way.
fn preempt_count_from_runqueue(btf: &Btf<'_>) -> Option<i64> {
    let has = |name: &str, member: &str| {
        btf.type_by_name::<Struct<'_>>(name).is_some_and(|found| {
            found
                .iter()
                .any(|of| of.name.is_some_and(|name| name == member))
        })
    };
    // Kernels with CONFIG_FAIR_GROUP_SCHED have both.
    if !has("sched_entity", "cfs_rq") || !has("cfs_rq", "rq") {
        return None;
    }
    let variables = btf.type_by_name::<DataSec<'_>>(".data..percpu")?;
    let offset = |wanted: &str| {
        variables
            .iter()
            .find(|variable| {
                btf.type_by_id::<BtfType<'_>>(variable.ty)
                    .and_then(|found| found.name().map(|name| name == wanted))
                    .unwrap_or(false)
            })
            .map(|variable| i64::from(variable.offset))
    };
    let count = PREEMPT_COUNTS.iter().find_map(|name| offset(name))?;
    Some(count - offset("runqueues")?)
}

/// Returns whether the kernel shows its addresses to every user (`kallsyms_show_value()` in
/// kernel/ksyms_common.c).
#[must_use]
pub fn are_kernel_addresses_public() -> bool {
    let read = |name: &str| -> Option<i32> {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim().parse().ok()
    };
    read("kptr_restrict") == Some(0) && read("perf_event_paranoid").is_some_and(|level| level <= 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Made-up kernel types, in the format of the kernel's Documentation/bpf/btf.rst.
    struct Types {
        words: Vec<u32>,
        strings: Vec<u8>,
        count: u32,
    }

    impl Types {
        fn new() -> Types {
            Types {
                words: Vec::new(),
                strings: vec![0],
                count: 0,
            }
        }

        fn name(&mut self, name: &str) -> u32 {
            let offset = self.strings.len() as u32;
            self.strings.extend_from_slice(name.as_bytes());
            self.strings.push(0);
            offset
        }

        /// Adds a type with `parts` parts, whose words are in `rest`. Returns the type's ID.
        fn add(&mut self, kind: BtfKind, name: &str, of: u32, parts: usize, rest: &[u32]) -> u32 {
            let name = self.name(name);
            let info = (kind as u32) << 24 | parts as u32;
            self.words.extend([name, info, of]);
            self.words.extend(rest);
            self.count += 1;
            self.count
        }

        fn int(&mut self) -> u32 {
            self.add(BtfKind::Int, "int", 4, 0, &[32])
        }

        fn typedef(&mut self, name: &str, of: u32) -> u32 {
            self.add(BtfKind::Typedef, name, of, 0, &[])
        }

        /// Adds a struct with these members, each a name and a type's ID.
        fn structure(&mut self, name: &str, members: &[(&str, u32)]) {
            let mut rest = Vec::new();
            for (member, of) in members {
                rest.extend([self.name(member), *of, 0]);
            }
            self.add(BtfKind::Struct, name, 0, members.len(), &rest);
        }

        /// Adds per-CPU variables, each a name and an offset.
        fn variables(&mut self, variables: &[(&str, u32)]) {
            let int = self.int();
            let mut rest = Vec::new();
            for (name, offset) in variables {
                let variable = self.add(BtfKind::Var, name, int, 0, &[1]);
                rest.extend([variable, *offset, 4]);
            }
            let count = variables.len();
            self.add(BtfKind::DataSec, ".data..percpu", 4096, count, &rest);
        }

        fn read(&self) -> Btf<'static> {
            let length = self.words.len() as u32 * 4;
            let header = [0x1_eb9f, 24, 0, length, length, self.strings.len() as u32];
            let words = header.iter().chain(&self.words);
            let mut bytes: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
            bytes.extend(&self.strings);
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            Btf::from_path(file.path()).unwrap()
        }
    }

    #[test]
    fn a_switch_is_known_by_what_it_is_told_with() {
        let arguments = |are_pointers: &[bool]| {
            let mut types = Types::new();
            let int = types.int();
            let pointer = types.add(BtfKind::Ptr, "", int, 0, &[]);
            let types_of = are_pointers
                .iter()
                .map(|is| if *is { pointer } else { int });
            let rest: Vec<u32> = types_of.flat_map(|of| [0, of]).collect();
            let count = are_pointers.len();
            let function = types.add(BtfKind::FuncProto, "", 0, count, &rest);
            let pointer = types.add(BtfKind::Ptr, "", function, 0, &[]);
            types.typedef("btf_trace_sched_switch", pointer);
            switch_arguments(&types.read())
        };
        // Data of the tracepoint, preemption, previous task, next task. True marks a pointer.
        let before_5_18 = [true, false, true, true];
        let in_5_18 = [true, false, false, true, true];
        let since = [true, false, true, true, false];
        assert_eq!(
            arguments(&before_5_18),
            SwitchArguments::SWITCH_WITHOUT_STATE
        );
        assert_eq!(arguments(&in_5_18), SwitchArguments::SWITCH_STATE_SECOND);
        assert_eq!(arguments(&since), SwitchArguments::SWITCH_STATE_LAST);
        let without_type = switch_arguments(&Types::new().read());
        assert_eq!(without_type, SwitchArguments::SWITCH_STATE_LAST);
    }

    #[test]
    fn a_ring_buffer_may_sleep_where_its_lock_does() {
        let may_sleep = |is_realtime, spinlock: &str, other: &str| {
            let mut types = Types::new();
            let int = types.int();
            let [spinlock, other] = [spinlock, other].map(|name| types.typedef(name, int));
            types.structure("bpf_ringbuf", &[("other", other), ("spinlock", spinlock)]);
            ring_buffer_may_sleep(is_realtime, &types.read())
        };
        let (sleeps, spins) = ("spinlock_t", "raw_spinlock_t");
        assert!(may_sleep(true, sleeps, spins));
        assert!(!may_sleep(false, sleeps, spins));
        assert!(!may_sleep(true, spins, sleeps));
        assert!(!ring_buffer_may_sleep(true, &Types::new().read()));
    }

    /// Makes a kernel in which `struct sched_entity` has the member `entity`, and `struct
    /// cfs_rq` the member `queue`.
    fn made_up(entity: &str, queue: &str, variables: &[(&str, u32)], typedef: &str) -> Kernel {
        let mut types = Types::new();
        let int = types.int();
        types.typedef(typedef, int);
        types.structure("sched_entity", &[(entity, int)]);
        types.structure("cfs_rq", &[(queue, int)]);
        types.variables(variables);
        Kernel::described_by(&types.read(), 5)
    }

    #[test]
    fn the_preemption_count_is_known_by_its_distance_from_the_run_queue() {
        let both = [("other", 4), ("__preempt_count", 40), ("runqueues", 100)];
        let in_hot = [("runqueues", 100), ("pcpu_hot", 8)];
        for (entity, queue, variables, distance) in [
            ("cfs_rq", "rq", &both[..], -60),
            ("cfs_rq", "rq", &in_hot, -92),
            ("cfs_rq", "rq", &both[..2], 0),
            ("cfs_rq", "rq", &both[2..], 0),
            ("other", "rq", &both, 0),
            ("cfs_rq", "other", &both, 0),
        ] {
            let kernel = made_up(entity, queue, variables, "btf_trace_sched_exit_tp");
            assert_eq!(kernel.preempt_count_from_runqueue, distance);
            // Without a known count, a wake-up in an interrupt could interrupt a capture at a
            // return.
            assert_eq!(kernel.shows_returns, distance != 0);
        }
        let kernel = made_up("cfs_rq", "rq", &both, "btf_trace_other");
        assert_eq!(kernel.preempt_count_from_runqueue, -60);
        assert!(!kernel.shows_returns);
    }
}
