//! Explains on stderr why attaching or ending takes long: real-time threads leave no CPU to the
//! tool and to the kernel's work for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::error::say;

/// Time that a phase may last before the watch looks for real-time threads.
const SHORT: Duration = Duration::from_secs(2);
/// Time between the two readings of the threads' run times.
const LOOK: Duration = Duration::from_millis(250);
/// Maximum threads that are read.
const MAX_THREADS: usize = 100_000;
/// `USER_HZ` of the kernel: the unit of times in proc_pid_stat(5) is 10 ms.
const TICKS_PER_SECOND: u64 = 100;
/// `PF_KTHREAD` of the kernel's include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A watch on a phase. The watch prints a line on stderr if real-time threads make the phase long.
/// It ends when it is dropped.
#[derive(Debug)]
pub struct Patience {
    /// Channel whose closing ends the watch; `None` if the watching thread could not start.
    _lasts: Option<Sender<()>>,
}

impl Patience {
    /// Starts to watch a phase of `tool`. `phase` is its name in the message, such as "attaching".
    #[must_use]
    pub fn begin(tool: &str, phase: &'static str) -> Patience {
        let (phase_lasts, ended) = channel();
        let tool = tool.to_owned();
        let begun = Instant::now();
        let watch = thread::Builder::new().name("patience".to_owned());
        let watch = watch.spawn(move || {
            while ended.recv_timeout(SHORT) == Err(RecvTimeoutError::Timeout) {
                if let Some(takers) = describe_takers(&busy_real_time_threads()) {
                    say(format_args!(
                        "{tool}: {phase} has taken {} s so far: real-time threads take {takers}, \
                         and leave other threads hardly any time there; end them, or lower their \
                         priority with `chrt -o -p 0 TID`",
                        begun.elapsed().as_secs()
                    ));
                    return;
                }
            }
        });
        // Without the watching thread no line explains a delay. The phase itself is unaffected.
        Patience {
            _lasts: watch.is_ok().then_some(phase_lasts),
        }
    }
}

/// A real-time thread that wants a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RealTime {
    name: String,
    cpu: u32,
    /// Run time since the thread started, in units of 10 ms.
    ran: u64,
}

/// Returns the real-time threads that run at least half of the time, by ID.
fn busy_real_time_threads() -> BTreeMap<u32, RealTime> {
    let before = runnable_real_time_threads();
    if before.is_empty() {
        return before;
    }
    let begun = Instant::now();
    sleep(LOOK);
    let mut after = runnable_real_time_threads();
    let most = begun.elapsed().as_millis() as u64 * TICKS_PER_SECOND / 1000;
    after.retain(|tid, thread| {
        let ran = before
            .get(tid)
            .map(|before| thread.ran.saturating_sub(before.ran));
        ran.is_some_and(|ran| ran * 2 >= most)
    });
    after
}

fn runnable_real_time_threads() -> BTreeMap<u32, RealTime> {
    let ids = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
    };
    let proc = Path::new("/proc");
    let tasks = ids(proc).map(|pid| proc.join(pid.to_string()).join("task"));
    let threads = tasks.flat_map(|folder| {
        ids(&folder)
            .map(|tid| (tid, folder.join(tid.to_string()).join("stat")))
            .collect::<Vec<_>>()
    });
    let found = threads.take(MAX_THREADS).filter_map(|(tid, file)| {
        let stat = fs::read(file).ok()?;
        Some((tid, parse(&String::from_utf8_lossy(&stat))?))
    });
    found.collect()
}

/// Parses a line of proc_pid_stat(5). Returns `None` unless the thread is a runnable real-time
/// thread of a user process.
fn parse(stat: &str) -> Option<RealTime> {
    /// SCHED_FIFO, SCHED_RR and SCHED_DEADLINE of include/uapi/linux/sched.h.
    const REAL_TIME: [&str; 3] = ["1", "2", "6"];
    // The name may contain any bytes, parentheses and spaces included.
    let (start, rest) = stat.rsplit_once(") ")?;
    let name = start.split_once(" (")?.1;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The first element of `fields` is field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let parsed = |number: usize| field(number)?.parse::<u64>().ok();
    let is_real_time = REAL_TIME.contains(&field(41)?);
    let counts = is_real_time && field(3)? == "R" && parsed(9)? & KERNEL_THREAD == 0;
    counts.then_some(())?;
    Some(RealTime {
        name: name.to_owned(),
        cpu: parsed(39)?.try_into().ok()?,
        ran: parsed(14)?.saturating_add(parsed(15)?),
    })
}

/// Describes the CPUs that the threads occupy, with one thread for each CPU; `None` if there are no
/// threads.
fn describe_takers(threads: &BTreeMap<u32, RealTime>) -> Option<String> {
    /// Maximum CPUs that are named.
    const MAX_NAMED: usize = 4;
    let by_cpu: BTreeMap<u32, (u32, &str)> = (threads.iter())
        .map(|(tid, thread)| (thread.cpu, (*tid, &*thread.name)))
        .collect();
    let named = by_cpu.iter().take(MAX_NAMED);
    let named: Vec<String> = named
        .map(|(cpu, (tid, name))| format!("CPU {cpu} (`{name}`, TID {tid})"))
        .collect();
    let rest = match by_cpu.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    (!named.is_empty()).then(|| named.join(", ") + &rest)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns a line of /proc/PID/stat with these fields, by number; the others are 0.
    fn stat(name: &str, fields: &[(usize, &str)]) -> String {
        let field = |number| {
            let found = fields.iter().find(|(at, _)| *at == number);
            found.map_or("0", |(_, text)| text)
        };
        let rest: Vec<&str> = (3..=52).map(field).collect();
        format!("7 ({name}) {}", rest.join(" "))
    }

    #[test]
    fn real_time_threads_of_processes_take_cpus() {
        let of_process = [(3, "R"), (14, "5"), (15, "6"), (39, "3"), (41, "1")];
        let found = parse(&stat("a) R 1 (", &of_process)).unwrap();
        assert_eq!((&*found.name, found.cpu, found.ran), ("a) R 1 (", 3, 11));
        for (what, field) in [
            ("asleep", (3, "S")),
            ("time-sharing", (41, "0")),
            ("the kernel's own", (9, "2097152")),
        ] {
            let fields = [&[field], &of_process[..]].concat();
            assert_eq!(parse(&stat("x", &fields)), None, "{what}");
        }
        assert_eq!(parse("7 (x) R 1"), None);
    }

    #[test]
    fn many_cpus_are_counted() {
        let thread = |cpu| RealTime {
            name: format!("t{cpu}"),
            cpu,
            ran: 0,
        };
        let threads = |count| (0..count).map(|cpu| (cpu + 10, thread(cpu))).collect();
        assert_eq!(describe_takers(&threads(0)), None);
        let two = describe_takers(&threads(2));
        let told = "CPU 0 (`t0`, TID 10), CPU 1 (`t1`, TID 11)";
        assert_eq!(two.as_deref(), Some(told));
        let six = describe_takers(&threads(6)).unwrap();
        assert!(six.ends_with("CPU 3 (`t3`, TID 13) and 2 more"), "{six}");
    }
}
