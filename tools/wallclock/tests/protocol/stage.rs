//! A folder with wallclock, and shell scripts as its children.

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use profile::{Clock, Thread, ThreadId, Unit, folded};
use rustix::process::{Signal, set_parent_process_death_signal};
use tempfile::TempDir;

/// Parses a script's flags: `$control` is the socket, `$pid` the first process.
const PREAMBLE: &str = r#"#!/bin/bash
name=${0##*/}
echo "$$" > "${0%/*}/$name.pid"
echo "$*" > "${0%/*}/$name.arguments.pid"
while [ $# -gt 0 ]; do
    case $1 in
        --control-fd) control=$2; shift ;;
        --pid=*) pid=${1#--pid=} pid=${pid%%,*} ;;
    esac
    shift
done
say() { echo "$*" >&"$control"; }
hear() { read -r -u "$control" verb time || exit 1; }
hears_nothing() { ! read -t 0 -u "$control"; }
fail() { echo "$name: $*" >&2; exit 1; }
# Makes a capture, in samples or nanoseconds, of what is in two files.
capture() {
    UNIT=$1 FILES=$0.made "$MAKER" --exact stage::makes_a_capture --ignored > "$0.maker.pid"
    cat "$0.made.scope.pid"
}
trap '' INT TERM HUP
now() { read -r up _ < /proc/uptime; echo "${up/./}0000000"; }
"#;

/// Receives the window's start and stop. The script replaces a stop of `u64::MAX`, because it
/// exceeds bash's integers.
pub(crate) const READY: &str = r#"
sleep 0.1
hears_nothing || fail 'told something before it was ready'
ready=$(now)
say ready
hear; [ "$verb" = start ] || fail 'start expected'; start=$time
[ "$start" -ge "$ready" ] || fail 'told to start before it was ready'
hear; [ "$verb" = stop ] || fail 'stop expected'; stop=${time/18446744073709551615/9223372036854775807}
"#;

/// Measures until the last stop that was received.
pub(crate) const MEASURE: &str = r#"
while [ "$(now)" -lt "$stop" ]; do
    if read -r -t 0.05 -u "$control" verb time; then stop=$time; fi
done
life=$((stop - start))
"#;

pub(crate) const ON_CPU: &str = r#"
printf 'a/b-%s/%s;main;burn 3\n' "$pid" "$pid" > "$0.made.folded.pid"
: > "$0.made.clocks.pid"
capture samples
echo "oncputime: 3 samples, 0 lost" >&2
"#;

pub(crate) const OFF_CPU: &str = r#"
row() { echo "$pid $1 $start $stop $2 $3 $4 5 6"; }
{
    row "$pid" $((life / 2)) 0 $((life - life / 2))
    for tid in $threads; do row "$tid" 0 0 "$life"; done
} > "$0.made.clocks.pid"
printf 'a/b-%s/%s;main;g;do_nanosleep_[k];schedule_[k]_[o] %s\n' "$pid" "$pid" "$((life / 4))" \
    > "$0.made.folded.pid"
capture nanoseconds
"#;

/// Writes a capture of folded stacks and thread clocks, for the scripts. All threads have the name
/// `a/b`.
#[test]
#[ignore = "a program for the scripts"]
fn makes_a_capture() {
    let files = env::var("FILES").unwrap();
    let unit = match env::var("UNIT").unwrap().as_str() {
        "samples" => Unit::Samples,
        _ => Unit::Nanoseconds,
    };
    let stacks = fs::read(format!("{files}.folded.pid")).unwrap();
    let mut profile = folded::read(&stacks[..], unit, true).unwrap();
    let clocks = fs::read_to_string(format!("{files}.clocks.pid")).unwrap();
    for line in clocks.lines() {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let [pid, tid] = [numbers[0], numbers[1]].map(|id| u32::try_from(id).unwrap());
        profile.threads.push(Thread {
            id: ThreadId { pid, tid },
            comm: profile.names.text("a/b"),
            clock: Clock {
                started_ns: numbers[2],
                ended_ns: numbers[3],
                running_ns: numbers[4],
                runnable_ns: numbers[5],
                blocked_ns: numbers[6],
                voluntary: numbers[7],
                involuntary: numbers[8],
            },
        });
    }
    let file = File::create(format!("{files}.scope.pid")).unwrap();
    capture::write(&profile, file).unwrap();
}

/// A folder with wallclock and two scripts, and a process to measure.
pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    pub(crate) target: Child,
}

impl Stage {
    pub(crate) fn new(on_cpu: &str, off_cpu: &str) -> Stage {
        let folder = TempDir::new().unwrap();
        install(Path::new(env!("CARGO_BIN_EXE_wallclock")), folder.path());
        let sources = TempDir::new().unwrap();
        for (name, body) in [("oncputime", on_cpu), ("offcputime", off_cpu)] {
            let script = sources.path().join(name);
            fs::write(&script, format!("{PREAMBLE}{body}")).unwrap();
            install(&script, folder.path());
        }
        let target = Command::new("sleep").arg("1000").spawn().unwrap();
        Stage { folder, target }
    }

    /// Returns a stage whose scripts run `words` between receiving the window and measuring.
    pub(crate) fn with(words: &str) -> Stage {
        let measure = format!("{READY}{words}\n{MEASURE}");
        Stage::new(
            &format!("{measure}{ON_CPU}"),
            &format!("{measure}{OFF_CPU}"),
        )
    }

    pub(crate) fn whole(threads: &str) -> Stage {
        Stage::new(
            &format!("{READY}{MEASURE}{ON_CPU}"),
            &format!("{READY}{MEASURE}threads='{threads}'{OFF_CPU}"),
        )
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let target = self.target.id().to_string();
        self.untargeted(&[&[&target[..]], arguments].concat())
    }

    /// Returns wallclock's command without a target. The process ends with its test.
    pub(crate) fn untargeted(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("wallclock"));
        // SAFETY: between fork and exec there is one system call.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        command
            .current_dir(self.folder.path())
            .args(arguments)
            .env("MAKER", env::current_exe().unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Returns the names of the files that wallclock made in the folder, in order.
    pub(crate) fn new_files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| {
                !name.ends_with(".pid")
                    && !["wallclock", "oncputime", "offcputime"].contains(&&**name)
            })
            .collect();
        names.sort();
        names
    }

    pub(crate) fn assert_children_ended(&self) {
        for name in ["oncputime.pid", "offcputime.pid"] {
            let pid = fs::read_to_string(self.path(name)).unwrap_or_default();
            // A child that was killed early has not written its ID.
            if let Ok(pid) = pid.trim().parse::<u32>() {
                await_that(|| !Path::new("/proc").join(pid.to_string()).exists());
            }
        }
    }
}

/// Puts an executable copy of `file` into `folder`. Another process writes the copy.
///
/// If this process wrote the file while another test forks, the test's child would hold it open for
/// writing until its execve(2). Executing the file then fails with ETXTBSY.
fn install(file: &Path, folder: &Path) {
    let status = Command::new("install").arg(file).arg(folder).status();
    assert!(status.unwrap().success());
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.target.kill();
        let _ = self.target.wait();
    }
}

pub(crate) fn await_that(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}
