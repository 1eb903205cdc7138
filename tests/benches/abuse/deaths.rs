//! Deaths of tools, of their children and of targets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use systemscope_tests::programs::binaries::copies;
use systemscope_tests::programs::workload::{install, scratch};
use systemscope_tests::truth::bpf_objects::held_by;
use systemscope_tests::{Tool, Watch, Workload, binary};

use crate::fault::{End, Fault, held};
use crate::leftovers::collect;
use crate::run::{Run, TOOLS, with_each, within};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "kill -9 of oncputime below wallclock",
        tools: "wallclock",
        outcome: "exit 1, names the child and the signal; no files",
        body: || child_of_wallclock_dies("oncputime"),
    },
    Fault {
        name: "kill -9 of offcputime below wallclock",
        tools: "wallclock",
        outcome: "exit 1, names the child and the signal; no files",
        body: || child_of_wallclock_dies("offcputime"),
    },
    Fault {
        name: "kill -9 of wallclock",
        tools: "wallclock",
        outcome: "its children end within 1 s; no files",
        body: wallclock_dies,
    },
    Fault {
        name: "kill -9 of a tool",
        tools: "all",
        outcome: "its BPF objects go with it",
        body: a_tool_dies,
    },
    Fault {
        name: "kill -9 of the target",
        tools: "all",
        outcome: "exit 0 within 3 s, with what was seen until then",
        body: the_target_dies,
    },
    Fault {
        name: "the target exits while a tool attaches, at 12 moments",
        tools: "all",
        outcome: "exit 0, or exit 1 and a message; never a panic, never a wait",
        body: the_target_dies_during_attach,
    },
    Fault {
        name: "the target exits before its frames are named",
        tools: "oncputime, offcputime",
        outcome: "exit 0, its functions by name",
        body: the_target_dies_before_it_is_named,
    },
    Fault {
        name: "a child runs out of the memory of its cgroup",
        tools: "wallclock",
        outcome: "exit 1, names the child and the signal; no files",
        body: a_child_runs_out_of_memory,
    },
];

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process ID");
    kill_process(pid, Signal::KILL).expect("kill a process");
}

fn child_of_wallclock_dies(name: &str) -> End {
    let simple = Workload::plain("simple");
    let run = Run::start("wallclock", simple.pid(), 20.0).attached();
    let killed = Instant::now();
    kill(run.child(name));
    let said = run.finish().assert_failed(&[name, "killed", "SIGKILL"]);
    let took = killed.elapsed();
    assert!(took < Duration::from_secs(5), "it took {took:?} to notice");
    held(format!("exit 1 after {} ms: {said}", took.as_millis()))
}

fn wallclock_dies() -> End {
    let simple = Workload::plain("simple");
    let run = Run::start("wallclock", simple.pid(), 20.0).attached();
    let children = ["oncputime", "offcputime"].map(|name| run.child(name));
    let killed = Instant::now();
    run.running.signal(Signal::KILL);
    within(Duration::from_secs(1), "the end of the children", || {
        children.iter().for_each(|&pid| collect(pid));
        let gone = children
            .iter()
            .all(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        gone.then_some(())
    });
    let took = killed.elapsed();
    let outcome = run.finish();
    assert_eq!(outcome.finished.signal, Some(libc::SIGKILL));
    outcome.assert_no_files();
    held(format!("children gone after {} ms", took.as_millis()))
}

fn a_tool_dies() -> End {
    let simple = Workload::plain("simple");
    for tool in &TOOLS[..4] {
        let run = Run::start(tool, simple.pid(), 20.0).attached();
        let objects = held_by(run.running.pid());
        assert!(!objects.is_empty(), "{tool} holds no BPF object");
        run.running.signal(Signal::KILL);
        let outcome = run.finish();
        assert_eq!(outcome.finished.signal, Some(libc::SIGKILL));
        outcome.assert_no_files();
    }
    held("nothing left")
}

fn the_target_dies() -> End {
    held(with_each(&TOOLS, |tool| {
        let simple = Workload::plain("simple");
        let run = Run::start(tool, simple.pid(), 30.0).attached();
        // The target lives for one second of samples, and one more because the window may open
        // late.
        sleep(Duration::from_secs(2));
        let killed = Instant::now();
        drop(simple);
        let outcome = run.finish();
        let took = killed.elapsed();
        assert!(
            took < Duration::from_secs(3),
            "{tool} took {took:?} to notice"
        );
        let seen = outcome.slept_us();
        assert!(
            tool == "oncputime" || seen > 1_000_000,
            "{tool} shows {seen} us of more than 1 s"
        );
        format!("after {} ms", took.as_millis())
    }))
}

fn the_target_dies_during_attach() -> End {
    const MOMENTS: u64 = 12;
    held(with_each(&TOOLS, |tool| {
        let mut whole = 0;
        for moment in 0..MOMENTS {
            let simple = Workload::plain("simple");
            let run = Run::start(tool, simple.pid(), 1.0);
            sleep(Duration::from_millis(moment * 25));
            drop(simple);
            let begun = Instant::now();
            let finished = run.finish().finished;
            let stderr = &finished.stderr;
            assert!(
                begun.elapsed() < Duration::from_secs(5),
                "{tool} waits: {stderr}"
            );
            assert!(!stderr.contains("panicked"), "{tool}: {stderr}");
            match finished.code {
                Some(0) => whole += 1,
                Some(1) => {
                    let last = stderr.lines().last().unwrap_or_default();
                    assert!(
                        last.starts_with(tool),
                        "{tool} fails without a word: {stderr}"
                    );
                }
                other => panic!(
                    "{tool} ended with {other:?}, {:?}: {stderr}",
                    finished.signal
                ),
            }
        }
        format!("exit 0 {whole} times, exit 1 {} times", MOMENTS - whole)
    }))
}

/// The target ends before its frames are named. A tool names frames after it has told its parent
/// that everything is collected, and before it writes the output.
fn the_target_dies_before_it_is_named() -> End {
    for (tool, function) in [("oncputime", "known_burn"), ("offcputime", "known_sleep")] {
        let simple = Workload::plain("simple");
        let pid = simple.pid();
        let mut watch = match tool {
            "oncputime" => Watch::oncputime(pid, "-F 499"),
            _ => Watch::offcputime(pid, ""),
        };
        watch.open();
        sleep(Duration::from_millis(500));
        // The target ends a moment before the window closes.
        drop(simple);
        let folded = watch.close().folded;
        assert!(
            folded.under(function).total() > 0,
            "{tool} lost {function}: {folded:.9}"
        );
        let unknown = folded.under("[unknown]");
        assert!(
            unknown.total() * 100 <= folded.total(),
            "{tool} named too little: {unknown:.9}"
        );
    }
    held("functions named")
}

/// Cgroup with memory accounting, removed when dropped.
struct Cgroup {
    folder: PathBuf,
    /// File with the memory in use. The next two files set the limit and count the killed
    /// processes.
    usage: &'static str,
    limit: &'static str,
    kills: &'static str,
}

impl Cgroup {
    fn make() -> Result<Cgroup, String> {
        let root = Path::new("/sys/fs/cgroup");
        let name = format!("systemscope-abuse-{}", std::process::id());
        let controllers = fs::read_to_string(root.join("cgroup.subtree_control"));
        let cgroup = if controllers.is_ok_and(|names| names.contains("memory")) {
            Cgroup {
                folder: root.join(name),
                usage: "memory.current",
                limit: "memory.max",
                kills: "memory.events",
            }
        } else {
            Cgroup {
                folder: root.join("memory").join(name),
                usage: "memory.usage_in_bytes",
                limit: "memory.limit_in_bytes",
                kills: "memory.oom_control",
            }
        };
        let made = fs::create_dir(&cgroup.folder);
        made.map_err(|error| format!("{}: {error}", cgroup.folder.display()))?;
        Ok(cgroup)
    }

    fn number(&self, file: &str) -> u64 {
        let text = fs::read_to_string(self.folder.join(file)).expect("a file of a cgroup");
        text.trim().parse().expect("a number")
    }

    /// Sets the limit to `bytes` more than the memory in use.
    fn leave(&self, bytes: u64) {
        let limit = (self.number(self.usage) + bytes).to_string();
        fs::write(self.folder.join(self.limit), limit).expect("limit a cgroup's memory");
    }

    /// Returns the number of the cgroup's processes that the kernel killed for lack of memory.
    fn kills(&self) -> u64 {
        let events = fs::read_to_string(self.folder.join(self.kills)).expect("a cgroup's events");
        let kills = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "));
        kills.expect("a count of kills").parse().expect("a number")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The `offcputime` beside this wallclock is a script. It enters the cgroup, and executes
/// offcputime.
fn a_child_runs_out_of_memory() -> End {
    let cgroup = match Cgroup::make() {
        Ok(cgroup) => cgroup,
        Err(error) => return End::CannotHere(format!("no memory cgroup can be made: {error}")),
    };
    let tools = copies(&["wallclock", "oncputime"]);
    let scripts = scratch();
    let script = scripts.path().join("offcputime");
    let text = format!(
        "#!/bin/sh\necho $$ >{}/cgroup.procs\nexec {} \"$@\"\n",
        cgroup.folder.display(),
        binary("offcputime").display()
    );
    fs::write(&script, text).expect("write a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("make it a program");
    install(&script, tools.path());

    let mut paths = Workload::start("paths", &[1, 17]);
    let command = Tool::at(&tools.path().join("wallclock"));
    let command = command.args(&format!("{} -d 30 -m 1 -o out", paths.pid()));
    let run = Run::start_as("wallclock", command).attached();
    cgroup.leave(2 << 20);
    // The workload makes very many stacks, and offcputime keeps all of them.
    paths.go();
    let said = run
        .finish()
        .assert_failed(&["offcputime was killed", "SIGKILL"]);
    let kills = cgroup.kills();
    assert!(kills > 0, "the kernel killed no process: {said}");
    held(format!("killed by the kernel; {said}"))
}
