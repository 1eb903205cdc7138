//! Names of functions, which are right or absent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use systemscope_tests::printed::samples::running_ns;
use systemscope_tests::programs::tool::PATIENCE;
use systemscope_tests::programs::workload::{install, scratch};
use systemscope_tests::{Folded, Language, Line, Running, Tool, Turn, Workload, WorkloadBuilder};

fn on_cpu(pid: u32) -> Folded {
    Tool::new("oncputime").pid(pid).args("-F 499").folded(0.5)
}

fn off_cpu(pid: u32) -> Folded {
    Tool::new("offcputime").pid(pid).folded(0.5)
}

#[track_caller]
fn assert_path(folded: &Folded, path: &[&str]) {
    assert!(
        folded.lines.iter().any(|line| line.has_path(path)),
        "no {path:?} in {folded:#?}"
    );
}

#[track_caller]
fn run(program: &str, arguments: &[&Path]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

#[test]
fn cpp_names_are_demangled() {
    let _turn = Turn::share();
    let basket = WorkloadBuilder::new("mangled")
        .language(Language::Cpp)
        .start();
    for folded in [on_cpu(basket.pid()), off_cpu(basket.pid())] {
        assert_path(
            &folded,
            &[
                "main",
                "orchard::Basket<unsigned int>::gather(unsigned int)",
            ],
        );
        assert!(
            folded.frames().all(|frame| !frame.contains("_ZN")),
            "{folded:#?}"
        );
    }
}

#[test]
fn rust_names_are_demangled() {
    let _turn = Turn::share();
    let basket = WorkloadBuilder::new("mangled")
        .language(Language::Rust)
        .start();
    for folded in [on_cpu(basket.pid()), off_cpu(basket.pid())] {
        assert_path(
            &folded,
            &[
                "mangled::main",
                "<mangled::Basket as mangled::Gather>::gather",
            ],
        );
        assert!(
            folded.frames().all(|frame| !frame.contains("17h")),
            "a hash is left: {folded:#?}"
        );
    }
}

/// Only debug information tells an async function from a closure. Without it, no frame is named
/// after an async function.
#[test]
fn async_functions_are_told_from_closures() {
    let _turn = Turn::share();
    let builder = || WorkloadBuilder::new("async_functions").language(Language::Rust);
    let program = builder().start();
    let tool = Tool::new("offcputime").pid(program.pid()).arg("--inline");
    let inlined = tool
        .folded(0.5)
        .only(|line| line.has("async_functions::block"));
    let has = |line: &Line, names: [&str; 3]| {
        let mut frames = line.frames.iter();
        names.iter().all(|name| frames.any(|frame| frame == name))
    };
    let told = [
        "async_functions::turn::{{closure}}::{async block}",
        "async fn async_functions::serve",
        "async fn async_functions::fetch",
    ];
    for folded in [inlined, off_cpu(program.pid())] {
        let blocked = folded.only(|line| line.has("async_functions::block"));
        assert!(blocked.total() > 0, "{folded}");
        assert!(
            blocked.lines.iter().all(|line| has(line, told)),
            "{blocked}"
        );
    }
    let stripped = builder().without_frame_pointers().start();
    let folded = off_cpu(stripped.pid());
    assert_path(
        &folded,
        &[
            "async_functions::serve::{{closure}}",
            "async_functions::fetch::{{closure}}",
        ],
    );
    assert!(
        folded.frames().all(|frame| !frame.contains("async ")),
        "{folded}"
    );
}

#[test]
fn code_made_at_run_time_is_named_by_its_map() {
    let _turn = Turn::share();
    let mut jit = Workload::start("jit", &[60]);
    jit.go();
    let map = PathBuf::from(format!("/tmp/perf-{}.map", jit.pid()));
    for folded in [on_cpu(jit.pid()), off_cpu(jit.pid())] {
        assert_path(
            &folded,
            &["main", "LazyCompile:*spin script.js:7", "burn_and_sleep"],
        );
    }
    fs::remove_file(map).unwrap();
}

#[test]
fn a_map_in_the_targets_own_mount_namespace_is_found() {
    let _turn = Turn::share();
    let folder = scratch();
    let binary = WorkloadBuilder::new("jit").build_into(folder.path());
    let moved =
        PathBuf::from("/var/tmp").join(format!("systemscope-tests-jit-{}", std::process::id()));
    install(&binary, &moved);
    let mut command = Command::new("unshare");
    let script = format!("mount -t tmpfs tmpfs /tmp && exec {} 60", moved.display());
    command.args(["--mount", "sh", "-c", &script]);
    let mut jit = Workload::run(command, binary, folder);
    fs::remove_file(&moved).unwrap();
    jit.go();
    assert!(!Path::new(&format!("/tmp/perf-{}.map", jit.pid())).exists());
    // The binary has been deleted by now.
    assert_path(
        &off_cpu(jit.pid()),
        &["main", "LazyCompile:*spin script.js:7", "burn_and_sleep"],
    );
}

#[test]
fn a_deleted_binary_still_names_its_functions() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    fs::remove_file(simple.binary()).unwrap();
    assert_path(&on_cpu(simple.pid()), &["main", "known_work", "known_burn"]);
    assert_path(
        &off_cpu(simple.pid()),
        &["main", "known_work", "known_sleep"],
    );
}

#[test]
fn a_replaced_binary_lends_no_names() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    // Another program gets the same path. Its functions are at other addresses.
    fs::remove_file(simple.binary()).unwrap();
    let other = scratch();
    fs::copy(
        WorkloadBuilder::new("phases").build_into(other.path()),
        simple.binary(),
    )
    .unwrap();
    for folded in [on_cpu(simple.pid()), off_cpu(simple.pid())] {
        assert!(
            folded
                .lines
                .iter()
                .any(|line| line.has_path(&["main", "known_work"])),
            "{folded:#?}"
        );
        for stranger in [
            "one_round",
            "work",
            "drive",
            "calibrate",
            "f",
            "g",
            "h",
            "i",
        ] {
            assert!(
                folded.under(stranger).lines.is_empty(),
                "{stranger} is of the other program: {folded:#?}"
            );
        }
    }
}

#[test]
fn a_process_that_ends_first_keeps_its_names() {
    let _turn = Turn::share();
    for tool in ["oncputime -F 499", "offcputime"] {
        // Another target keeps the tool running until this target has ended.
        let other = Workload::start("crowd", &[1]);
        let mut simple = Workload::plain("simple");
        let (name, arguments) = tool.split_once(' ').unwrap_or((tool, ""));
        let running = Tool::new(name)
            .pid(simple.pid())
            .pid(other.pid())
            .args(arguments)
            .start_measuring();
        // Before it ends, the program has run and slept.
        let enough = running_ns(simple.pid()) + 200_000_000;
        while running_ns(simple.pid()) < enough {
            sleep(Duration::from_millis(10));
        }
        simple.kill();
        while simple.is_running() {
            sleep(Duration::from_millis(10));
        }
        fs::remove_file(simple.binary()).unwrap();
        running.signal(Signal::INT);
        let finished = running.finish_within(PATIENCE).succeeded();
        let folded = Folded::parse(&finished.stdout);
        assert_path(
            &folded,
            &[
                "main",
                "known_work",
                if name == "oncputime" {
                    "known_burn"
                } else {
                    "known_sleep"
                },
            ],
        );
    }
}

/// Builds `simple`, moves its debug information to `debug`, and strips it.
fn stripped_into(folder: &Path, flags: &[&str], debug: &Path) -> PathBuf {
    let builder = flags
        .iter()
        .fold(WorkloadBuilder::new("simple"), |builder, flag| {
            builder.flag(flag)
        });
    let binary = builder.build_into(folder);
    run("objcopy", &[Path::new("--only-keep-debug"), &binary, debug]);
    run("strip", &[Path::new("--strip-all"), &binary]);
    binary
}

fn start_simple(binary: PathBuf, folder: tempfile::TempDir) -> Workload {
    Workload::run(Command::new(&binary), binary, folder)
}

#[test]
fn a_debug_file_is_found_by_its_link() {
    let _turn = Turn::share();
    let folder = scratch();
    let debug = folder.path().join("simple.debug");
    let binary = stripped_into(folder.path(), &["-Wl,--build-id=none"], &debug);
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(&debug);
    run("objcopy", &[Path::new(&link), &binary]);
    // No distribution puts the file into `.debug` beside the binary, but gdb looks there, too.
    fs::create_dir(folder.path().join(".debug")).unwrap();
    fs::rename(&debug, folder.path().join(".debug/simple.debug")).unwrap();
    let simple = start_simple(binary, folder);
    assert_path(
        &off_cpu(simple.pid()),
        &["main", "known_work", "known_sleep"],
    );
}

/// File under /usr/lib/debug that is removed when dropped.
struct InstalledDebugFile(PathBuf);

impl Drop for InstalledDebugFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        // `remove_dir` removes only folders that are empty.
        for folder in self.0.ancestors().skip(1).take(2) {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[test]
fn a_debug_file_is_found_by_its_build_id() {
    let _turn = Turn::share();
    // It is unlikely that another file has this build ID.
    let (first, rest) = ("5c", "0be57e57e57e57e57e57e57e57e57e57e57e5c");
    let folder = scratch();
    let debug = folder.path().join("away");
    let binary = stripped_into(
        folder.path(),
        &[&format!("-Wl,--build-id=0x{first}{rest}")],
        &debug,
    );
    let installed =
        InstalledDebugFile(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug").into());
    fs::create_dir_all(installed.0.parent().unwrap()).unwrap();
    fs::copy(&debug, &installed.0).unwrap();
    let simple = start_simple(binary, folder);
    assert_path(
        &off_cpu(simple.pid()),
        &["main", "known_work", "known_sleep"],
    );
}

#[test]
fn a_stripped_binary_shows_its_module_and_no_wrong_name() {
    let _turn = Turn::share();
    let folder = scratch();
    let nowhere = scratch();
    // Dynamic symbols remain. An address near a symbol does not belong to the symbol.
    let binary = stripped_into(
        folder.path(),
        &["-rdynamic", "-Wl,--build-id=none"],
        &nowhere.path().join("debug"),
    );
    let exported = start_simple(binary, folder);
    assert_path(
        &off_cpu(exported.pid()),
        &["main", "known_work", "known_sleep"],
    );

    let folder = scratch();
    let binary = stripped_into(
        folder.path(),
        &["-Wl,--build-id=none"],
        &nowhere.path().join("debug"),
    );
    let stripped = start_simple(binary, folder);
    for folded in [on_cpu(stripped.pid()), off_cpu(stripped.pid())] {
        let of_main_thread = folded.only(|line| line.has("[simple]"));
        assert!(of_main_thread.total() > 0, "{folded:#?}");
        for line in &of_main_thread.lines {
            let own = ["main", "known_work", "known_burn", "known_sleep"];
            assert!(
                !line.has("_init") && !own.iter().any(|name| line.has(name)),
                "a name for code that has none: {line:#?}"
            );
        }
    }
}

#[test]
fn kernel_functions_are_named() {
    let _turn = Turn::share();
    let simple = Workload::plain("simple");
    let folded = Tool::new("offcputime")
        .pid(simple.pid())
        .args("-K")
        .folded(0.5);
    let frames: Vec<&str> = folded.frames().collect();
    assert!(frames.contains(&"hrtimer_nanosleep"), "{frames:?}");
    assert!(
        frames.iter().all(|frame| !frame.contains("[unknown]")),
        "{frames:?}"
    );
}

/// Setting below `/proc/sys/kernel`. Its old value is restored when dropped.
struct Setting {
    path: PathBuf,
    before: String,
}

impl Setting {
    fn set(name: &str, value: &str) -> Setting {
        let path = Path::new("/proc/sys/kernel").join(name);
        let before = fs::read_to_string(&path).unwrap();
        fs::write(&path, value).unwrap();
        Setting { path, before }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        fs::write(&self.path, &self.before).unwrap();
    }
}

#[test]
#[ignore = "changes what the kernel shows to all users"]
fn kernel_addresses_are_written_only_where_everybody_may_read_them() {
    let _turn = Turn::take();
    let sleeper = Running::asleep();
    for (restrict, paranoid, are_public) in [("0", "1", true), ("0", "2", false), ("2", "1", false)]
    {
        let _restrict = Setting::set("kptr_restrict", restrict);
        let _paranoid = Setting::set("perf_event_paranoid", paranoid);
        for (format, mark) in [("json", "\"0xffffffff"), ("perf-script", "\tffffffff")] {
            let output = Tool::new("offcputime")
                .pid(sleeper.pid())
                .args("1 --format")
                .arg(format)
                .run()
                .succeeded();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.contains("hrtimer_nanosleep"), "{text}");
            let setting = format!("{restrict} {paranoid} {format}");
            assert_eq!(text.contains(mark), are_public, "{setting}: {text}");
        }
    }
}
