//! `TOOL -- COMMAND`: its streams, exit status and end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use systemscope_tests::printed::clocks;
use systemscope_tests::printed::output::files_below;
use systemscope_tests::printed::refusal::{WRONG_COMMAND_LINE, assert_refused};
use systemscope_tests::programs::process::children_of;
use systemscope_tests::programs::tool::{EVERYTHING, PATIENCE, TOOLS};
use systemscope_tests::programs::wallclock::start_measuring;
use systemscope_tests::programs::workload::{install, scratch};
use systemscope_tests::truth::account::state_of;
use systemscope_tests::truth::bpf_objects::{loaded, new_since};
use systemscope_tests::{Finished, Folded, Running, Tool, Turn, WorkloadBuilder, binary, now_ns};

/// Returns a tool that runs `sh -c SCRIPT`.
fn shell(tool: &str, script: &str) -> Tool {
    Tool::new(tool).args("-- sh -c").arg(script)
}

#[test]
fn streams_and_exit_status_are_the_commands() {
    let _turn = Turn::share();
    for tool in TOOLS {
        for (script, code) in [
            ("echo hello", 0),
            ("echo hello; exit 3", 3),
            ("echo hello; kill -9 $$", 128 + 9),
        ] {
            let folder = scratch();
            let finished = shell(tool, script).in_folder(folder.path()).run();
            let stderr = &finished.stderr;
            assert_eq!(finished.stdout, b"hello\n", "{tool} {script}: {stderr}");
            assert_eq!(finished.code, Some(code), "{tool} {script}: {stderr}");
            // The results are in files, and the tool names the files on stderr.
            let files = files_below(folder.path());
            assert!(!files.is_empty(), "{tool} {script}: {stderr}");
            let name = files[0].strip_prefix(folder.path()).unwrap();
            let first = name.components().next().unwrap().as_os_str();
            let first = first.to_str().unwrap().split('.').next().unwrap();
            assert!(stderr.contains(first), "{tool} {script}: {stderr}");
        }
    }
}

#[test]
fn what_cannot_be_executed_is_told_as_a_shell_does() {
    let _turn = Turn::share();
    for tool in TOOLS {
        let folder = scratch();
        let plain = folder.path().join("plain");
        fs::write(&plain, "no program").unwrap();
        let run = |program: &str| {
            Tool::new(tool)
                .arg("--")
                .arg(program)
                .in_folder(folder.path())
                .run()
        };
        let missing = "no-such-program-anywhere";
        assert_refused(tool, &run(missing), &[127], &[missing, "No such file"]);
        let refused = run(plain.to_str().unwrap());
        assert_refused(tool, &refused, &[126], &["plain", "Permission denied"]);
        assert_eq!(files_below(folder.path()), [plain], "{tool}");
    }
}

#[test]
fn a_command_is_a_target_of_its_own() {
    let _turn = Turn::share();
    for (tool, line) in [
        ("oncputime", "-p 1 -- true"),
        ("offcputime", "-n init -t 1 -- true"),
        ("offwaketime", "-t 1 -- true"),
        ("cpudist", "-p 1 -- true"),
        ("wallclock", "1 -- true"),
        ("offcputime", "--no-children -p 1"),
        ("offcputime", "--user nobody -p 1"),
        ("wallclock", "--user no-such-user -- true"),
    ] {
        let finished = Tool::new(tool).args(line).run();
        assert_refused(tool, &finished, &[WRONG_COMMAND_LINE], &[]);
    }
}

#[test]
fn somebody_else_can_run_it() {
    let _turn = Turn::share();
    let folder = scratch();
    let finished = Tool::new("offcputime")
        .args("--user nobody -o seen -- sh -c")
        .arg("id -un; id -Gn; pwd; echo $MARK")
        .env("MARK", "kept")
        .in_folder(folder.path())
        .run()
        .succeeded();
    let stdout = String::from_utf8(finished.stdout).unwrap();
    let mut lines = stdout.lines();
    assert_eq!(lines.next(), Some("nobody"));
    assert_ne!(lines.next(), Some("root"));
    assert_eq!(lines.next(), folder.path().to_str());
    assert_eq!(lines.next(), Some("kept"));
}

/// Python script that prints what a command receives: variables, open files and its session
/// keyring. The script also prints the error number of writing a character into its own terminal's
/// input.
const WHAT_IT_GETS: &str = "
import ctypes, fcntl, os, pty, termios
print(*[os.environ.get(name) for name in ('HOME', 'USER', 'LOGNAME', 'SHELL')])
print(*sorted(int(name) for name in os.listdir('/proc/self/fd'))[:-1])
libc = ctypes.CDLL(None)
print(libc.syscall(int(os.environ['KEYCTL']), 0, -3, 0))
controller, terminal = pty.openpty()
if os.fork():
    os.wait()
else:
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for request in (termios.TIOCSTI, 0x541c):
        try:
            fcntl.ioctl(terminal, request, b'x')
        except OSError as error:
            print(error.errno)
";

#[test]
fn what_somebody_else_runs_gets_nothing_of_roots() {
    const GET_KEYRING_ID: libc::c_long = 0;
    const SESSION_KEYRING: libc::c_long = -3;
    let _turn = Turn::share();
    // SAFETY: the system call takes no pointers.
    let ours = unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION_KEYRING, 0) };
    let folder = scratch();
    let tool = binary("offcputime");
    let line = format!(
        "exec 7</etc/shadow; exec {} --user nobody -o seen -- python3 -c \"$SCRIPT\"",
        tool.display()
    );
    let finished = Tool::at(Path::new("sh"))
        .args("-c")
        .arg(line)
        .env("SCRIPT", WHAT_IT_GETS)
        .env("KEYCTL", libc::SYS_keyctl.to_string())
        .in_folder(folder.path())
        .run()
        .succeeded();
    let stdout = String::from_utf8(finished.stdout).unwrap();
    let lines: Vec<&str> = stdout.lines().collect();
    let [identity, files, keyring, refusals @ ..] = &lines[..] else {
        panic!("{stdout}{}", finished.stderr);
    };
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let entry = passwd.lines().find(|line| line.starts_with("nobody:"));
    let entry: Vec<&str> = entry.unwrap().split(':').collect();
    assert_eq!(
        *identity,
        format!("{} nobody nobody {}", entry[5], entry[6])
    );
    assert_eq!(*files, "0 1 2");
    let theirs: i64 = keyring.parse().unwrap();
    assert!(theirs > 0 && theirs != ours, "{theirs}, ours {ours}");
    // By the kernel's own rule TIOCSTI would succeed, or fail with an input/output error.
    assert_eq!(refusals, [libc::EPERM.to_string(), libc::EPERM.to_string()]);
}

/// Another process of the same user sends signals all the time. The test waits until each command
/// has been executed.
#[test]
fn signals_before_the_command_is_executed_hold_nobody_up() {
    let _turn = Turn::share();
    let folder = scratch();
    let spammer = "
import os, signal, time
end = time.monotonic() + 30
while time.monotonic() < end:
    for name in os.listdir('/proc'):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if os.stat('/proc/' + name).st_uid == os.getuid():
                    os.kill(int(name), signal.SIGSTOP)
                    os.kill(int(name), signal.SIGWINCH)
            except OSError:
                pass
";
    let mut spam = Command::new("setpriv")
        .args("--reuid=65533 --regid=65533 --clear-groups python3 -c".split(' '))
        .arg(spammer)
        .spawn()
        .unwrap();
    let passwd = folder.path().join("passwd");
    let known = fs::read_to_string("/etc/passwd").unwrap();
    fs::write(
        &passwd,
        format!("{known}spammed:x:65533:65533::/:/bin/sh\n"),
    )
    .unwrap();
    for _ in 0..8 {
        let line = format!(
            "mount --bind {} /etc/passwd && exec {} --user spammed -o {} -- sleep 5",
            passwd.display(),
            binary("cpudist").display(),
            folder.path().join("seen").display()
        );
        let running = Tool::at(Path::new("unshare"))
            .args("--mount sh -c")
            .arg(line)
            .start();
        let begun = Instant::now();
        while !children_of(running.pid()).iter().any(|child| {
            fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|comm| comm == "sleep\n")
        }) {
            assert!(begun.elapsed() < PATIENCE, "the command was not executed");
        }
        running.signal(Signal::KILL);
        let _ = running.finish_within(PATIENCE);
    }
    spam.kill().unwrap();
    spam.wait().unwrap();
}

#[test]
fn everything_runs_commands_as_well() {
    let _turn = Turn::share();
    let folder = scratch();
    let finished = Tool::new(EVERYTHING)
        .args("offcpu -o seen -- sh -c")
        .arg("exit 9")
        .in_folder(folder.path())
        .run();
    assert_eq!(finished.code, Some(9), "{}", finished.stderr);
    assert!(folder.path().join("seen").exists());
}

/// Runs `TOOL -- sleep 100`, and sends a signal to the tool or to its process group. Returns the
/// result of the tool and the number of its files.
fn interrupt(tool: &str, signal: Signal, group: bool) -> (Finished, usize) {
    let folder = scratch();
    let running = Tool::new(tool)
        .args("-- sleep 100")
        .in_folder(folder.path())
        .start();
    // Not every tool prints a line when it starts to measure. The command sleeps only after the
    // tool has released it.
    let runs = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name == "sleep\n") && state_of(*pid, *pid) == Some('S')
    };
    let deadline = Instant::now() + PATIENCE;
    while !children_of(running.pid()).iter().any(runs) {
        assert!(
            Instant::now() < deadline,
            "{tool} does not release the command"
        );
        sleep(Duration::from_millis(10));
    }
    // After this time the window is open.
    sleep(Duration::from_millis(200));
    if group {
        running.signal_group(signal);
    } else {
        running.signal(signal);
    }
    let finished = running.finish_within(PATIENCE);
    (finished, files_below(folder.path()).len())
}

#[test]
fn ctrl_c_reaches_the_command_and_what_was_seen_is_written() {
    let _turn = Turn::share();
    for tool in TOOLS {
        let (finished, files) = interrupt(tool, Signal::INT, true);
        assert_eq!(finished.code, Some(130), "{tool}: {}", finished.stderr);
        assert!(files > 0, "{tool}: {}", finished.stderr);
    }
}

#[test]
fn a_tool_that_is_told_to_end_tells_its_command() {
    let _turn = Turn::share();
    for tool in TOOLS {
        let (finished, files) = interrupt(tool, Signal::TERM, false);
        assert_eq!(finished.code, Some(143), "{tool}: {}", finished.stderr);
        assert!(files > 0, "{tool}: {}", finished.stderr);
    }
}

#[test]
fn measuring_may_end_before_the_command() {
    let _turn = Turn::share();
    let folder = scratch();
    let start = Instant::now();
    let finished = Tool::new("offcputime")
        .args("-o seen.folded --duration 0.3 -- sh -c")
        .arg("sleep 2; exit 5")
        .in_folder(folder.path())
        .run();
    assert_eq!(finished.code, Some(5), "{}", finished.stderr);
    assert!(start.elapsed() >= Duration::from_secs(2));
    let folded = Folded::parse(&fs::read(folder.path().join("seen.folded")).unwrap());
    let slept = folded.total();
    // The shell and `sleep` are each blocked for at most the window.
    assert!((300_000..=610_000).contains(&slept), "{slept} us: {folded}");
}

#[test]
#[ignore = "starts 200 tools one after another: minutes"]
fn two_hundred_commands_are_all_seen_and_leave_nothing_behind() {
    let turn = Turn::share();
    let folder = scratch();
    let path = folder.path().join("clocks");
    let before = loaded();
    for round in 0..200 {
        let finished = Tool::new("offcputime")
            .args("-o folded --clocks clocks -- true")
            .in_folder(folder.path())
            // The tools write temporary files there. The variable also identifies all processes
            // that this test started.
            .env("TMPDIR", folder.path())
            .run()
            .succeeded();
        let rows = clocks::read(&path);
        let seen: Vec<&str> = rows.iter().map(|row| &*row.comm).collect();
        assert_eq!(seen, ["true"], "round {round}: {}", finished.stderr);
        assert!(rows[0].running_ns > 0, "round {round}: {rows:?}");
        assert_eq!(files_below(folder.path()).len(), 2, "round {round}");
    }
    let left = started_with("TMPDIR", folder.path());
    assert!(left.is_empty(), "{left:?} are left");
    // Other tests end before this test has the machine to itself. The objects of their tools are
    // gone then.
    drop(turn);
    let _turn = Turn::take();
    let deadline = Instant::now() + PATIENCE;
    // The kernel frees an object some time after its last descriptor is closed.
    while let left = new_since(&before, &[])
        && !left.is_empty()
    {
        assert!(Instant::now() < deadline, "{left:?} are left");
        sleep(Duration::from_millis(50));
    }
}

/// Returns the processes whose environment has this value for this variable.
fn started_with(variable: &str, value: &Path) -> Vec<u32> {
    let wanted = format!("{variable}={}", value.display()).into_bytes();
    let has_variable = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|it| it == wanted)
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(has_variable).collect()
}

#[test]
fn a_shells_tree_is_without_the_tools_that_it_runs() {
    let _turn = Turn::share();
    let folder = scratch();
    for (tool, arguments) in [
        ("wallclock", "$$ -d 1 -o run.json"),
        ("offcputime", "-p $$ -o run.json 1"),
    ] {
        let script = format!("sleep 100 & \"$0\" {arguments} --children; kill $!");
        let finished = Tool::at(Path::new("sh"))
            .arg("-c")
            .arg(script)
            .arg(binary(tool))
            .in_folder(folder.path())
            .run();
        let path = folder.path().join("run.json");
        let profile = fs::read(&path).unwrap_or_else(|_| panic!("{}", finished.stderr));
        fs::remove_file(path).unwrap();
        let profile: serde_json::Value = serde_json::from_slice(&profile).unwrap();
        let threads = profile["threads"].as_array().unwrap().iter();
        let mut names: Vec<&str> = threads.map(|it| it["comm"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["sh", "sleep"], "{tool}: {}", finished.stderr);
    }
}

#[test]
fn the_first_of_a_name_is_waited_for() {
    let _turn = Turn::share();
    let folder = scratch();
    // The thread of a script has the script's name. A program with a long name is found by its
    // file.
    let script = folder.path().join("awaited-by-a-long-name.sh");
    fs::write(&script, "#!/bin/sh\nexec sleep 0.3\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("awaited-with-a-long-name");
    let sleeper = WorkloadBuilder::new("sleeper").build_into(folder.path());
    install(&sleeper, &program);
    for (awaited, argument) in [(&script, None), (&program, Some("300"))] {
        let name = awaited.file_name().unwrap();
        let mut tool = Tool::new("offcputime")
            .args("--wait --clocks clocks -o folded -n")
            .arg(name)
            .in_folder(folder.path())
            .start();
        tool.wait_until_said("Waiting for", PATIENCE);
        let before = now_ns();
        let status = Command::new(awaited).args(argument).status().unwrap();
        let after = now_ns();
        assert!(status.success());
        let finished = tool.finish_within(PATIENCE).succeeded();
        let rows = clocks::read(&folder.path().join("clocks"));
        let [row] = &rows[..] else {
            panic!("{rows:#?} {}", finished.stderr);
        };
        assert!(before < row.started_ns && row.ended_ns < after, "{row:?}");
        assert!(row.lifetime_ns() >= 300_000_000, "{row:?}");
        assert!(
            row.running_ns > 0 && row.blocked_ns >= 300_000_000,
            "{row:?}"
        );
    }
}

/// With `--await` a parent tool says that no process had the name when the parent looked. Two
/// processes have the name by now.
#[test]
fn whoever_has_the_name_already_is_the_first() {
    let _turn = Turn::share();
    let folder = scratch();
    let program = folder.path().join("awaited-and-here");
    install(Path::new("/bin/sleep"), &program);
    let sleepers = [(); 2].map(|()| {
        let mut sleep = Command::new(&program);
        sleep.arg("1000");
        Running::spawn(sleep, true)
    });
    let mut pids = sleepers.each_ref().map(Running::pid);
    pids.sort_unstable();
    let flags = "--await awaited-and-here --duration 0.3 --clocks clocks -o folded";
    let tool = Tool::new("offcputime").args(flags).in_folder(folder.path());
    tool.start().finish_within(PATIENCE).succeeded();
    let rows = clocks::read(&folder.path().join("clocks"));
    let mut measured: Vec<u32> = rows.iter().map(|row| row.pid).collect();
    measured.sort_unstable();
    assert_eq!(measured, pids);
}

#[test]
fn many_long_names_are_waited_for() {
    let _turn = Turn::share();
    let folder = scratch();
    let names = ["first", "second", "third", "fourth", "fifth"];
    let names = names.map(|name| format!("{name}-of-five-long-names"));
    let program = folder.path().join(&names[4]);
    install(Path::new("/bin/sleep"), &program);
    let mut tool = Tool::new("offcputime").args("--wait --clocks clocks -o folded");
    for name in &names {
        tool = tool.arg("-n").arg(name);
    }
    let mut tool = tool.in_folder(folder.path()).start();
    tool.wait_until_said("Waiting for", PATIENCE);
    let status = Command::new(&program).arg("0.3").status().unwrap();
    assert!(status.success());
    tool.finish_within(PATIENCE).succeeded();
    let rows = clocks::read(&folder.path().join("clocks"));
    assert_eq!(rows.len(), 1, "{rows:#?}");
}

#[test]
fn wallclock_waits_as_well() {
    let _turn = Turn::share();
    let folder = scratch();
    let program = folder.path().join("awaited-once");
    install(Path::new("/bin/sleep"), &program);
    let tool = Tool::new("wallclock").args("awaited-once --wait -d 20 -o run.json");
    let tool = start_measuring(tool.in_folder(folder.path()));
    let status = Command::new(&program).arg("0.3").status().unwrap();
    assert!(status.success());
    let finished = tool.finish_within(PATIENCE).succeeded();
    let profile = fs::read(folder.path().join("run.json")).unwrap();
    let profile: serde_json::Value = serde_json::from_slice(&profile).unwrap();
    let threads = profile["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 1, "{}", finished.stderr);
    let window = profile["meta"]["window"]["start_ns"].as_u64().unwrap();
    let started = threads[0]["started_ns"].as_u64().unwrap();
    // The window opens when the thread starts.
    assert!(started.abs_diff(window) < 1_000_000, "{started} {window}");
}
