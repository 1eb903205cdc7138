//! Names with characters on which terminals and viewers act, from every source. No output contains
//! such a name unchanged, and none of the names reads as a label of the tools.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::Command;

use profile::{
    Clock, Detail, EndedBy, Frame, FrameKind, Function, Holder, Label, Module, ModuleKind, Process,
    Profile, Rate, Reason, Resource, Sample, Sampling, Side, Socket, Stack, State, Text, Thread,
    ThreadId, Transport, Unit, Wait, WaitKind, Waker, Weight,
};
use systemscope_tests::printed::output::files_below;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Cgroup, Finished, Folded, Tool, Turn, Workload, WorkloadBuilder};

/// Parts of the workload's names. No format contains them by chance.
const SEQUENCES: [&[u8]; 5] = [
    b"\x1b]0;P",
    b"\x1b[1m",
    b"0;P\x07",
    "\u{202e}".as_bytes(),
    "\u{2028}".as_bytes(),
];

/// All formats for people and other programs, without captures.
const FORMATS: &str =
    "folded,html,classic,svg,pprof,speedscope,chrome,firefox,perf-script,json,waits";

/// A cleaned name from each source. The test notices a missing source.
const SOURCES: [&str; 13] = [
    "t?]0:P??:x",
    "folder?]0;P??;???/program?]0;P??;???",
    "hot?[1m??",
    "lock?[1m??",
    "locked?]0;P??",
    "fifo?]0;P??",
    "unix datagrams socket?]0;P??",
    "unix datagrams @abstract?]0;P??",
    "c?[1m??:z",
    "jit?]0;P?;?",
    "/x/?]0;P???.py",
    "Q?[1m?;?x",
    "hostile-?]0;P???",
];

/// Python program with a module and a function whose names no compiler can produce.
const PYTHON: &str = r#"
code = compile("def f():\n    import time\n    time.sleep(0.01)\n", "/x/\x1b]0;P\x07\n\u202e.py", "exec")
space = {}
exec(code, space)
f = space["f"]
name = "Q\x1b[1m\n;\u2028x"
names = {"co_name": name, "co_qualname": name}
names = {key: names[key] for key in names if hasattr(f.__code__, key)}
f.__code__ = f.__code__.replace(**names)
print("ready", flush=True)
while True:
    f()
"#;

/// Checks that output contains none of `SEQUENCES`, and no control characters if it is text.
#[track_caller]
fn assert_clean(what: &str, bytes: &[u8]) {
    for sequence in SEQUENCES {
        let mut windows = bytes.windows(sequence.len());
        assert!(!windows.any(|it| it == sequence), "{what}: {sequence:?}");
    }
    if what.ends_with(".pb.gz") {
        return;
    }
    let text = String::from_utf8_lossy(bytes);
    for line in text.split('\n') {
        let acts = |character: char| {
            character.is_control() && character != '\t'
                || "\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}".contains(character)
                || ('\u{202a}'..='\u{202e}').contains(&character)
                || ('\u{2066}'..='\u{2069}').contains(&character)
        };
        assert!(!line.contains(acts), "{what}: {line:?}");
        let is_json = what.ends_with("json");
        let comes_back = is_json && (line.contains("\\u") || line.contains("\\n"));
        assert!(!comes_back, "{what}: {line}");
    }
    if what.ends_with("folded") {
        Folded::parse(bytes);
    }
}

#[track_caller]
fn assert_clean_run(what: &str, finished: Finished) -> Finished {
    let finished = finished.succeeded();
    assert_clean(&format!("stdout of {what}"), &finished.stdout);
    assert_clean(&format!("stderr of {what}"), finished.stderr.as_bytes());
    finished
}

/// Checks all files in a folder, and their names.
#[track_caller]
fn assert_clean_files(folder: &Path) {
    let files = files_below(folder);
    assert!(!files.is_empty());
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_clean("a file name", name.as_bytes());
        if name.ends_with(".scope") {
            continue;
        }
        let bytes = if name.ends_with(".gz") {
            let unpacked = Command::new("gzip").arg("-dc").arg(&path).output();
            unpacked.unwrap().stdout
        } else {
            fs::read(&path).unwrap()
        };
        assert!(!bytes.is_empty(), "{name}");
        assert_clean(name, &bytes);
    }
}

/// Asserts that all output of `systemscope` on a capture is clean.
#[track_caller]
fn assert_clean_capture(capture: &Path, folder: &Path) {
    let everything = |arguments: &str| {
        let tool = Tool::new("systemscope").args(arguments);
        tool.arg(capture).in_folder(folder)
    };
    let export = format!("export --reasons --addresses --srcline --format {FORMATS} -o exported");
    assert_clean_run("export", everything(&export).run());
    for form in ["table", "svg", "json"] {
        let diff = everything(&format!("diff --format {form}")).arg(capture);
        let shown = assert_clean_run(form, diff.run());
        assert!(!shown.stdout.is_empty());
    }
    assert_clean_files(folder);
}

/// Programs whose names act on terminals and viewers.
pub(crate) struct Hostile {
    native: Workload,
    python: Workload,
}

impl Hostile {
    pub(crate) fn start() -> Hostile {
        let folder = scratch();
        let inside = folder.path().join("inside");
        fs::create_dir(&inside).unwrap();
        let binary = WorkloadBuilder::new("hostile_names").build_into(folder.path());
        let mut command = Command::new(&binary);
        command.arg(&inside);
        let native = Workload::run(command, binary, folder);
        let folder = scratch();
        let script = folder.path().join("script.py");
        fs::write(&script, PYTHON).unwrap();
        let mut command = Command::new("/usr/bin/python3");
        command.arg(&script);
        let python = Workload::run(command, script, folder);
        Hostile { native, python }
    }

    pub(crate) fn pids(&self) -> String {
        format!("{},{}", self.native.pid(), self.python.pid())
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = fs::remove_file(format!("/tmp/perf-{}.map", self.native.pid()));
    }
}

#[test]
fn no_name_reaches_an_output_as_a_target_chose_it() {
    let _turn = Turn::share();
    let hostile = Hostile::start();
    let cgroup = Cgroup::new("hostile-\u{1b}]0;P\u{7}\u{202e}\u{2028}");
    cgroup.take(hostile.native.pid());
    let folder = scratch();
    let inside = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    for tool in ["oncputime", "offcputime", "offwaketime"] {
        let measured = inside(tool);
        let reasons = if tool == "oncputime" { "" } else { "--reasons" };
        let flags = format!(
            "-v {reasons} --addresses --srcline --format {FORMATS},scope -o measured -p {}",
            hostile.pids()
        );
        let run = Tool::attentive(tool).args(&flags).in_folder(&measured);
        assert_clean_run(tool, run.arg("2").run());
        assert_clean_files(&measured);
        let capture = measured.join("measured.scope");
        assert_clean_capture(&capture, &inside(&format!("{tool}-read")));
    }

    let seen = fs::read_to_string(folder.path().join("offcputime/measured.json")).unwrap();
    for source in SOURCES {
        assert!(seen.contains(source), "{source:?} is not in {seen}");
    }

    let by_cgroup = Tool::new("offcputime").arg("--cgroup");
    let by_cgroup = by_cgroup.arg(cgroup.path()).arg("0.3").run();
    let said = assert_clean_run("offcputime --cgroup", by_cgroup);
    assert!(said.stderr.contains("hostile-?]0;P???"), "{}", said.stderr);

    for form in ["", "--percentiles", "--json"] {
        let cpudist = Tool::new("cpudist").args(&format!("-L {form} -p {}", hostile.pids()));
        let stdout = format!("cpudist {form}");
        assert_clean_run(&stdout, cpudist.args("1 1").run());
    }

    let tree = inside("tree");
    let wallclock = |arguments: &str| {
        let tool = Tool::new("wallclock").args(&hostile.pids().replace(',', " "));
        tool.args("-v -d 2").args(arguments).in_folder(&tree)
    };
    assert_clean_run("wallclock", wallclock("-o tree").run());
    assert_clean_files(&tree);
    let told = wallclock(&format!("--children --format {FORMATS},scope -o all"));
    assert_clean_run("wallclock --format", told.run());
    assert_clean_files(&tree);
    let capture = tree.join("all.scope");
    assert_clean_capture(&capture, &inside("tree-read"));
    let report = Tool::new("systemscope").arg("report").arg(capture).run();
    assert_clean_run("report", report);
}

#[test]
fn no_name_of_a_target_reads_as_a_marker() {
    let _turn = Turn::share();
    let hostile = Hostile::start();
    let folded = Tool::new("offwaketime")
        .pid(hostile.native.pid())
        .folded(2.0);
    let of_sleeper = folded.lines.iter().filter(|line| line.comm == "sleeper");
    let wakers: Vec<String> = of_sleeper
        .map(|line| line.waker_comms().remove(0))
        .collect();
    assert!(wakers.iter().any(|waker| waker == "(timer)"), "{wakers:?}");
    assert!(!wakers.iter().any(|waker| waker == "[timer]"), "{wakers:?}");
    // Timers really end the waits of the thread with this name.
    let of_waker = folded.lines.iter().filter(|line| line.comm == "(timer)");
    let wakers: Vec<String> = of_waker.map(|line| line.waker_comms().remove(0)).collect();
    assert!(wakers.iter().any(|waker| waker == "[timer]"), "{wakers:?}");

    let folded = Tool::new("offcputime")
        .pid(hostile.native.pid())
        .folded(2.0);
    for name in ["(Missed User Stack)", "(--)"] {
        let has = |line: &&systemscope_tests::Line| line.has(name);
        assert!(
            folded.lines.iter().any(|line| has(&line)),
            "{name}: {folded}"
        );
    }
}

/// Placeholder in a capture. The hostile text that replaces it has the same length.
const HARMLESS: &str = "QQQQQQQQ";
const HOSTILE: &[u8] = b"\x1b]0;P\x07\n;";

/// Returns a capture with one text of each kind.
pub(crate) fn capture_with(text: &str) -> Profile {
    let name = |what: &str| format!("{what}{text}");
    let mut profile = Profile::new(Unit::Nanoseconds);
    profile.meta.tool = name("offcputime").into();
    profile.meta.tool_version = name("1").into();
    profile.meta.command_line = ["a", "b"].map(|word| Text::from(name(word))).to_vec();
    profile.meta.host = name("host").into();
    profile.meta.kernel = name("6").into();
    profile.meta.targets = name("PID 1").into();
    profile.meta.window.length_ns = 1_000_000_000;
    profile.meta.sampling = Some(Sampling {
        event: name("event").into(),
        rate: Rate::Period(1),
    });
    let names = &mut profile.names;
    let mut named = |what: &str| names.text(&name(what));
    let (comm, path, file) = (named("comm"), named("/module"), named("/file.c"));
    let (build_id, function, mangled) = (named("ab"), named("function"), named("_Z"));
    let unix = Socket::Unix {
        transport: Transport::Stream,
        path: Some(named("object")),
        peer: None,
        side: Side::Asks,
    };
    let holder = Holder {
        comm: named("holder"),
        thread: None,
        shares_name: false,
    };
    let kind = WaitKind::new(Reason::Lock, Detail::Named(named("mutex")));
    let ended_by = EndedBy::Described(named("waker"));
    let wait = profile.waits.id(Wait {
        resource: Some(profile.resources.id(Resource::Socket(unix))),
        holder: Some(holder),
        ended_by: Some(ended_by),
        ..Wait::new(kind)
    });
    let module = profile.modules.id(Module {
        path,
        build_id: Some(build_id),
        kind: ModuleKind::File,
    });
    let function_id = profile.functions.id(Function {
        name: function,
        system_name: Some(mangled),
        file: Some(file),
        line: 1.try_into().ok(),
    });
    let frame = profile.frames.id(Frame {
        module: Some(module),
        address: Some(0x1000),
        function: Some(function_id),
        line: 7.try_into().ok(),
        offset: Some(1),
        ..Frame::named(function, FrameKind::User)
    });
    let stack = Stack {
        user: profile.stacks.add([frame]),
        ..Stack::default()
    };
    let thread = Some(ThreadId { pid: 1, tid: 1 });
    let waker = Waker {
        comm,
        thread,
        stack,
    };
    let (key, value) = (comm, function);
    let labels = profile.labels.id([Label { key, value }].into());
    let sample = Sample {
        state: Some(State::Blocked),
        wakers: Some(profile.wakers.id([waker].into())),
        wait: Some(wait),
        labels: Some(labels),
        ..Sample::new(comm, thread, stack)
    };
    let weight = Weight {
        value: 500_000_000,
        events: 1,
        longest: 500_000_000,
        shortest: 500_000_000,
        squares: 1,
    };
    profile.add(sample, weight);
    profile.threads.push(Thread {
        id: ThreadId { pid: 1, tid: 1 },
        comm,
        clock: Clock {
            ended_ns: 1_000_000_000,
            running_ns: 500_000_000,
            blocked_ns: 500_000_000,
            ..Clock::default()
        },
    });
    profile.processes.push(Process {
        pid: 1,
        executable: name("/exe").into(),
        command_line: vec![name("word").into()],
        cgroup: name("/cgroup").into(),
        ..Process::default()
    });
    profile
}

/// Returns the bytes of a capture as no tool writes it.
fn hostile_capture() -> Vec<u8> {
    let mut whole = Vec::new();
    capture::write(&capture_with(HARMLESS), &mut whole).unwrap();
    let packed = whole
        .windows(4)
        .position(|it| it == [0x28, 0xb5, 0x2f, 0xfd]);
    let packed = packed.expect("the magic number of zstd");
    let mut unpacked = zstd::decode_all(&whole[packed..]).unwrap();
    let places: Vec<usize> = (0..unpacked.len())
        .filter(|&at| unpacked[at..].starts_with(HARMLESS.as_bytes()))
        .collect();
    assert!(places.len() >= 20, "{places:?}");
    for at in places {
        unpacked[at..at + HOSTILE.len()].copy_from_slice(HOSTILE);
    }
    whole.truncate(packed);
    whole.extend(zstd::encode_all(&unpacked[..], 1).unwrap());
    whole
}

#[test]
fn a_hostile_capture_is_read_as_text() {
    let _turn = Turn::share();
    let folder = scratch();
    let capture = folder.path().join("hostile.scope");
    fs::write(&capture, hostile_capture()).unwrap();
    let read = folder.path().join("read");
    fs::create_dir(&read).unwrap();
    assert_clean_capture(&capture, &read);
    let report = Tool::new("systemscope").arg("report").arg(&capture).run();
    let report = assert_clean_run("report", report);
    let shown = String::from_utf8(report.stdout).unwrap();
    assert!(shown.contains("comm?]0:P??:"), "{shown}");
    assert_clean_run("info", Tool::new("systemscope").arg("info").run());
}
