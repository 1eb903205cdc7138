//! Roles of threads, from their names.

use profile::ThreadId;

/// Returns the role of a thread, from its name. The text is safe in the name of a file.
pub(crate) fn role(id: ThreadId, comm: &str) -> String {
    let name = comm.to_lowercase();
    let known = if id.tid == id.pid {
        "main"
    } else if name.contains("cuda") && name.contains("evthandlr") {
        "cuda-event"
    } else if name.contains("cuda") {
        "cuda-compute"
    } else if name.contains("eal-intr") {
        "dpdk-interrupt"
    } else if name.contains("rte_mp") {
        "dpdk-multiprocess"
    } else if name.contains("telemetry") {
        "telemetry"
    } else {
        return safe(comm);
    };
    known.to_owned()
}

/// Returns the name with `_` for each leading dot, and for every character but ASCII letters, digits
/// and `._:+@`.
fn safe(name: &str) -> String {
    let dots = name.len() - name.trim_start_matches('.').len();
    let rest = name[dots..].chars().map(|character| match character {
        '.' | '_' | ':' | '+' | '@' => character,
        _ if character.is_ascii_alphanumeric() => character,
        _ => '_',
    });
    "_".repeat(dots).chars().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role_of(comm: &str) -> String {
        role(ThreadId { pid: 1, tid: 2 }, comm)
    }

    #[test]
    fn roles() {
        let main = ThreadId { pid: 5, tid: 5 };
        assert_eq!(role(main, "cuda00001400006"), "main");
        for (comm, expected) in [
            ("cuda-EvtHandlr", "cuda-event"),
            ("cuda00001400006", "cuda-compute"),
            ("eal-intr-thread", "dpdk-interrupt"),
            ("rte_mp_handle", "dpdk-multiprocess"),
            ("telemetry-v2", "telemetry"),
            ("ib-io Reader 3", "ib_io_Reader_3"),
        ] {
            assert_eq!(role_of(comm), expected);
        }
    }

    #[test]
    fn any_name_is_safe_in_a_file_system() {
        for (comm, expected) in [
            ("kworker/u:1", "kworker_u:1"),
            ("../../etc", "___.._etc"),
            ("...", "___"),
            ("a\nb\u{7f}", "a_b_"),
            ("caf\u{e9}\u{fffd}", "caf__"),
            ("-rf *", "_rf__"),
            ("[unnamed]", "_unnamed_"),
            ("", ""),
        ] {
            assert_eq!(role_of(comm), expected);
        }
    }
}
