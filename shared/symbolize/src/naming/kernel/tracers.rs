//! Finds the tracer's own frames in kernel stacks.

use crate::arch::is_interrupt_entry;

/// Returns for each frame of a kernel stack, from leaf to root, whether it is the tracer's.
///
/// An interrupt during a BPF program can run another BPF program on top of it. The frames above and
/// below the interrupt's entry are therefore examined separately.
pub(crate) fn find_tracers<'n>(names: &[&'n str]) -> Vec<bool> {
    // The frames of an exception belong to the BPF program, so they are no entry.
    let is_entry = |name: &&'n str| is_interrupt_entry(name);
    let mut tracers = Vec::with_capacity(names.len());
    for part in names.split_inclusive(is_entry) {
        let count = tracer_frames(part.iter().copied());
        tracers.extend((0..part.len()).map(|at| at < count));
    }
    tracers
}

/// Returns the number of frames, counted from the leaf, that are the tracer's.
///
/// A BPF program at a tracepoint runs on top of `__traceiter_EVENT` and `bpf_trace_run*`. A BPF
/// program that visits every thread runs on top of `bpf_iter_run_prog`. All frames from the leaf up
/// to the last of these functions are the tracer's. The rule uses names, because the number of
/// frames differs between kernels.
fn tracer_frames<'n>(names: impl Iterator<Item = &'n str> + Clone) -> usize {
    let is_hook = |name: &str| {
        let starts = ["__traceiter_", "bpf_trace_run", "bpf_iter_run_prog"];
        starts.iter().any(|start| name.starts_with(start))
    };
    let is_program = |name: &str| {
        let starts = ["bpf_prog_", "bpf_trampoline_", "bpf_dispatcher_"];
        starts.iter().any(|start| name.starts_with(start))
    };
    let hooks = names.clone().enumerate().filter(|(_, name)| is_hook(name));
    let hooked = hooks.last().map_or(0, |(at, _)| at + 1);
    hooked
        + names
            .skip(hooked)
            .take_while(|name| is_program(name))
            .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_of_the_tracer_is_not_cut_off_with_it() {
        let stack = [
            "bpf_prog_2_waking",
            "__traceiter_sched_waking",
            "hrtimer_interrupt",
            "asm_sysvec_apic_timer_interrupt",
            "htab_map_hash",
            "bpf_prog_1_exit",
            "__traceiter_sched_process_exit",
            "do_exit",
        ];
        let left = |names: &[&'static str]| -> Vec<&str> {
            let pairs = names.iter().zip(find_tracers(names));
            pairs
                .filter(|(_, tracers)| !tracers)
                .map(|(name, _)| *name)
                .collect()
        };
        assert_eq!(left(&stack), [stack[2], stack[3], stack[7]]);
        // The stack of a sample has only the interrupted code, and no frames of the interrupt.
        assert_eq!(left(&stack[4..]), ["do_exit"]);
        assert_eq!(left(&stack[2..4]), stack[2..4]);
    }
}
