//! Changes of the machine while tools run: CPUs, clocks, process IDs.

use std::fs;
use std::io;
use std::mem;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Folded, Tool, Workload, WorkloadBuilder, cpus_online};

use crate::fault::{End, Fault, held};
use crate::run::{Run, TOOLS};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "a CPU goes offline and comes back",
        tools: "all",
        outcome: "exit 0; a sleep is there with all of the window; samples go on",
        body: a_cpu_goes_and_comes,
    },
    Fault {
        name: "CLOCK_REALTIME steps an hour ahead, two back, one ahead",
        tools: "all",
        outcome: "exit 0; a sleep is there with all of the window",
        body: the_clock_steps,
    },
    Fault {
        name: "the target's ID goes to another process, while a second target lives",
        tools: "oncputime, offcputime",
        outcome: "exit 0; what was seen of the target is there, and nothing of the newcomer",
        body: an_id_is_used_again,
    },
];

const SECOND_CPU: &str = "/sys/devices/system/cpu/cpu1/online";

/// Second CPU while it is offline. It goes online again when dropped.
struct Offline;

impl Offline {
    fn take() -> io::Result<Offline> {
        fs::write(SECOND_CPU, "0").map(|()| Offline)
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::write(SECOND_CPU, "1").is_ok() {
                return;
            }
            sleep(Duration::from_millis(100));
        }
        eprintln!("abuse: CPU 1 could not be brought back: write 1 into {SECOND_CPU}");
    }
}

/// All tools run at once, so the CPU goes offline only once.
fn a_cpu_goes_and_comes() -> End {
    match fs::read_to_string(SECOND_CPU) {
        Ok(text) if text.trim() == "1" => {}
        _ => return End::CannotHere(format!("there is no {SECOND_CPU} that is on")),
    }
    let simple = Workload::plain("simple");
    let runs = TOOLS.map(|tool| Run::start(tool, simple.pid(), 4.0));
    let runs = runs.map(Run::attached);
    // Some virtual machines hide the events of an idle CPU, so the CPU gets work.
    let mut spinners = Workload::start("spinners", &[cpus_online(), 10]);
    spinners.go();
    let second = Tool::new("oncputime")
        .args("-C 1 -F 99 --duration 5")
        .start();
    sleep(Duration::from_millis(1000));
    match Offline::take() {
        Ok(offline) => {
            sleep(Duration::from_millis(1200));
            drop(offline);
        }
        Err(error) => return End::CannotHere(format!("the CPU stays: {error}")),
    }
    let slept = runs.map(|run| run.finish().whole_sleep_us(4.0));
    let second = second.finish_within(Duration::from_secs(20)).succeeded();
    let samples = Folded::parse(&second.stdout).total();
    // The CPU is online for one second before it goes offline, and for at least two seconds after
    // it comes back.
    assert!(
        samples > 200,
        "{samples} samples of CPU 1 in 5 s at 99 a second"
    );
    held(format!(
        "{samples} samples of that CPU in 5 s at 99 a second; sleeps of 4 s: {:?} us",
        &slept[1..]
    ))
}

/// Moves CLOCK_REALTIME by whole seconds. The kernel adds them to the current time, so steps whose
/// sum is 0 leave the clock unchanged.
fn step_clock(seconds: i64) -> io::Result<()> {
    // An all-zero timex is valid.
    let mut step: libc::timex = unsafe { mem::zeroed() };
    step.modes = libc::ADJ_SETOFFSET;
    step.time.tv_sec = seconds;
    // SAFETY: the pointer is to a local that outlives the call.
    let result = unsafe { libc::clock_adjtime(libc::CLOCK_REALTIME, &raw mut step) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Step of CLOCK_REALTIME ahead, in seconds. It is undone when dropped.
struct Ahead(i64);

impl Ahead {
    fn by(seconds: i64) -> io::Result<Ahead> {
        step_clock(seconds).map(|()| Ahead(seconds))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if let Err(error) = step_clock(-self.0) {
            eprintln!("abuse: the clock is {} s off: {error}", self.0);
        }
    }
}

fn the_clock_steps() -> End {
    let simple = Workload::plain("simple");
    let runs = TOOLS.map(|tool| Run::start(tool, simple.pid(), 2.0));
    let runs = runs.map(Run::attached);
    for seconds in [3600, -3600] {
        match Ahead::by(seconds) {
            Ok(ahead) => {
                sleep(Duration::from_millis(200));
                drop(ahead);
            }
            Err(error) => return End::CannotHere(format!("the clock stays: {error}")),
        }
    }
    let slept = runs.map(|run| run.finish().whole_sleep_us(2.0));
    held(format!(
        "{} samples; sleeps of 2 s: {:?} us",
        slept[0],
        &slept[1..]
    ))
}

/// Starts `names` under the former ID of `simple`.
fn an_id_is_used_again() -> End {
    let bystander = Workload::start("crowd", &[2]);
    let folder = scratch();
    let as_pid = WorkloadBuilder::new("as_pid").build_into(folder.path());
    let mut seen = Vec::new();
    for (tool, function) in [("oncputime", "known_burn"), ("offcputime", "known_sleep")] {
        let simple = Workload::plain("simple");
        let pid = simple.pid();
        let running = Tool::new(tool)
            .args(&format!("-p {pid},{} --duration 3", bystander.pid()))
            .start();
        sleep(Duration::from_millis(1500));
        drop(simple);
        let own = scratch();
        let names = WorkloadBuilder::new("names").build_into(own.path());
        let mut command = Command::new(&as_pid);
        command.arg(pid.to_string()).arg(&names);
        let newcomer = Workload::run(command, names, own);
        let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
        assert_eq!(comm.expect("a process with the old ID").trim(), "names");
        let finished = running.finish_within(Duration::from_secs(20)).succeeded();
        drop(newcomer);
        let folded = Folded::parse(&finished.stdout);
        let of_target = folded.under(function).total();
        assert!(of_target > 0, "{tool} shows no {function}: {folded:.9}");
        let others = folded.only(|line| line.has("named") || line.comm == "names");
        assert_eq!(others.total(), 0, "{tool} shows the newcomer: {others:.9}");
        seen.push(format!(
            "{tool} {of_target} of the target, 0 of the newcomer"
        ));
    }
    held(seen.join("; "))
}
