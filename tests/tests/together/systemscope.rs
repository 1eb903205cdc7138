//! `systemscope`: the tools and the commands on captures as its subcommands, and its information
//! about the machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use systemscope_tests::printed::refusal::{FAILED, WRONG_COMMAND_LINE, assert_refused};
use systemscope_tests::programs::tool::{EVERYTHING, TOOLS};
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Folded, Tool, Turn, Workload, binary, cpus_online};

fn systemscope(arguments: &str) -> Tool {
    Tool::new(EVERYTHING).args(arguments)
}

fn stdout_of(tool: Tool) -> String {
    String::from_utf8(tool.run().succeeded().stdout).unwrap()
}

/// Records a workload with a tool.
fn capture(tool: &str, flags: &str, workload: &Workload, to: &Path) {
    let run = Tool::new(tool).args(flags).arg(workload.pid().to_string());
    run.arg("-o").arg(to).run().succeeded();
}

fn phases() -> Workload {
    let mut phases = Workload::start("phases", &[60, 3]);
    phases.go();
    phases
}

/// The command lines are from the documentation of the predecessor.
#[test]
fn the_forerunners_command_lines_work() {
    let _turn = Turn::share();
    let phases = phases();
    let pid = phases.pid().to_string();
    let folder = scratch();
    let run = |line: &str| systemscope(line).in_folder(folder.path()).run().succeeded();
    let folded = run("profile --duration 1 --output folded");
    assert!(!Folded::parse(&folded.stdout).lines.is_empty());
    let folded = run(&format!("profile --pid {pid},1 --duration 1"));
    assert!(
        Folded::parse(&folded.stdout)
            .lines
            .iter()
            .all(|line| line.comm != "swapper")
    );
    let off = run("offcpu --duration 1 --output pprof -o offcpu.pb.gz");
    assert!(off.stdout.is_empty());
    run("profile --duration 1 --output pprof -o profile.pb.gz");
    run("profile --duration 1 --output speedscope -o profile.json");
    for packed in ["offcpu.pb.gz", "profile.pb.gz"] {
        let bytes = fs::read(folder.path().join(packed)).unwrap();
        assert_eq!(bytes[..2], [0x1f, 0x8b], "{packed} is not in gzip's format");
    }
    let json = fs::read_to_string(folder.path().join("profile.json")).unwrap();
    assert!(json.contains("https://www.speedscope.app/file-format-schema.json"));
    let wall = run(&format!("wall {pid} -d 1 -o wall"));
    assert!(String::from_utf8(wall.stdout).unwrap().contains("THREADS"));
    assert!(folder.path().join("wall/report.html").is_file());
}

#[test]
fn under_a_tools_name_it_is_that_tool() {
    let _turn = Turn::share();
    let phases = phases();
    let folder = scratch();
    for tool in TOOLS {
        let link = folder.path().join(tool);
        symlink(binary(EVERYTHING), &link).unwrap();
        let version = stdout_of(Tool::at(&link).arg("--version"));
        assert!(version.starts_with(&format!("{tool} ")), "{version}");
        let subcommand = stdout_of(systemscope(tool).arg("--help"));
        let own = stdout_of(Tool::new(tool).arg("--help"));
        let usage = |text: &str| {
            let lines = text.lines().filter(|line| !line.starts_with("Usage: "));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(usage(&subcommand), usage(&own));
    }
    // If the program is alone in a folder, it runs itself as wallclock's children.
    let alone = scratch();
    let program = alone.path().join("wallclock");
    let everything = alone.path().join(EVERYTHING);
    fs::copy(binary(EVERYTHING), &everything).unwrap();
    symlink(&everything, &program).unwrap();
    let run = Tool::at(&program).env("PATH", "/nonexistent").args("-d 1");
    let run = run
        .arg(phases.pid().to_string())
        .arg("-o")
        .arg(alone.path().join("run.scope"));
    let told = stdout_of(run);
    assert!(told.contains("phases") || told.contains("worker"), "{told}");
}

#[test]
fn reports_are_wallclocks_tables() {
    let _turn = Turn::share();
    let phases = phases();
    let pid = phases.pid();
    let folder = scratch();
    let file = |name: &str| -> PathBuf { folder.path().join(name) };
    let run = Tool::new("wallclock")
        .arg(pid.to_string())
        .args("-d 1 -f 199 -o");
    let told = stdout_of(run.arg(file("run.scope")));
    let report = stdout_of(systemscope("report").arg(file("run.scope")));
    // Only the run itself knows the programs that had the CPUs.
    let without_cpus = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|line| !line.contains("waiting for a CPU "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(without_cpus(&report), without_cpus(&told));
    let first = format!("phases (PID {pid}) · ");
    assert!(report.starts_with(&first), "{report}");
    for text in [
        stdout_of(systemscope("report").arg("--explain")),
        stdout_of(Tool::new("wallclock").arg("--explain")),
    ] {
        assert!(text.contains("runnable   ready to run"), "{text}");
    }

    // The off-CPU part alone has no stacks of running time.
    capture(
        "offcputime",
        "--states --duration 1 -p",
        &phases,
        &file("off.scope"),
    );
    let alone = stdout_of(systemscope("report").arg(file("off.scope")));
    assert!(
        alone.contains("100 %") && alone.contains("no samples"),
        "{alone}"
    );
    capture(
        "oncputime",
        "-F 999 --duration 1 -p",
        &phases,
        &file("on.scope"),
    );
    let refused = systemscope("report").arg(file("on.scope")).run();
    assert_refused("systemscope report", &refused, &[FAILED], &["no accounts"]);
    let refused = systemscope("report")
        .arg(file("on.scope"))
        .arg(file("off.scope"))
        .run();
    assert_refused(
        "systemscope report",
        &refused,
        &[FAILED],
        &["different windows"],
    );
}

#[test]
fn a_capture_that_is_none_or_not_whole_is_refused_and_parts_can_be_had() {
    let _turn = Turn::share();
    let phases = phases();
    let folder = scratch();
    let file = |name: &str| -> PathBuf { folder.path().join(name) };
    capture("offcputime", "--duration 1 -p", &phases, &file("off.scope"));
    let whole = fs::read(file("off.scope")).unwrap();
    fs::write(file("none.scope"), "a;b 1\n").unwrap();
    fs::write(file("empty.scope"), "").unwrap();
    fs::write(file("cut.scope"), &whole[..whole.len() - 5]).unwrap();
    let mut later = whole.clone();
    later[7] += 1;
    fs::write(file("later.scope"), later).unwrap();
    for (name, told) in [
        ("none.scope", "this is no capture of systemscope"),
        ("empty.scope", "cut off"),
        ("cut.scope", "--partial uses the readable part"),
        ("later.scope", "use a later one"),
        ("missing.scope", "No such file"),
    ] {
        let bad = file(name);
        for command in ["export", "report"] {
            let refused = systemscope(command).arg(&bad).run();
            assert_refused(
                &format!("systemscope {command}"),
                &refused,
                &[FAILED],
                &[name, told],
            );
        }
        let refused = systemscope("diff").arg(file("off.scope")).arg(&bad).run();
        assert_refused("systemscope diff", &refused, &[FAILED], &[name, told]);
    }
    let partial = systemscope("export --partial --nanoseconds").arg(file("cut.scope"));
    let partial = partial.run().succeeded();
    assert!(
        partial.stderr.contains("could be read"),
        "{}",
        partial.stderr
    );
    let all = stdout_of(systemscope("export --nanoseconds").arg(file("off.scope")));
    let all: Vec<&str> = all.lines().collect();
    let partial = String::from_utf8(partial.stdout).unwrap();
    assert!(partial.lines().all(|line| all.contains(&line)), "{partial}");
}

#[test]
fn what_cannot_be_written_or_compared_is_told() {
    let _turn = Turn::share();
    let phases = phases();
    let folder = scratch();
    let file = |name: &str| -> PathBuf { folder.path().join(name) };
    capture("offcputime", "--duration 1 -p", &phases, &file("off.scope"));
    capture(
        "offcputime",
        "-m 5000 --duration 1 -p",
        &phases,
        &file("long.scope"),
    );
    capture(
        "oncputime",
        "-F 999 --duration 1 -p",
        &phases,
        &file("on.scope"),
    );
    let export = |line: &str| {
        let tool = systemscope("export")
            .in_folder(folder.path())
            .arg(file("off.scope"));
        tool.args(line).run()
    };
    for (line, told) in [
        ("--format trace", "the formats are folded, html, svg, pprof"),
        ("--format svg,json", "-o"),
        ("-o a.svg -o ./a.svg", "two outputs go to"),
        ("--format svg -o a -o b", "1 formats and 2 files"),
    ] {
        assert_refused(
            "systemscope export",
            &export(line),
            &[WRONG_COMMAND_LINE],
            &[told],
        );
    }
    assert_refused(
        "systemscope export",
        &export("-o no/such.svg"),
        &[FAILED],
        &["no/such.svg"],
    );
    let refused = Tool::new("cpudist").args("--format pprof 1 1").run();
    assert_refused(
        "cpudist",
        &refused,
        &[WRONG_COMMAND_LINE],
        &["pprof", "json", "hgrm"],
    );
    let diff =
        |before: &str, after: &str| systemscope("diff").arg(file(before)).arg(file(after)).run();
    let told = "one counts samples, the other time";
    assert_refused(
        "systemscope diff",
        &diff("off.scope", "on.scope"),
        &[FAILED],
        &[told],
    );
    let told = "from 1 us on, the other from 5000 us on";
    assert_refused(
        "systemscope diff",
        &diff("off.scope", "long.scope"),
        &[FAILED],
        &[told],
    );
    let refused = systemscope("nonsense").run();
    assert_refused(
        "systemscope",
        &refused,
        &[WRONG_COMMAND_LINE],
        &["nonsense"],
    );
}

#[test]
fn a_program_held_against_itself_has_not_changed() {
    let _turn = Turn::share();
    let phases = phases();
    let folder = scratch();
    let file = folder.path().join("run.scope");
    let run = Tool::new("wallclock").arg(phases.pid().to_string());
    run.args("-d 1 -f 199 -o").arg(&file).run().succeeded();
    let diff = |flags: &str| stdout_of(systemscope("diff").arg(&file).arg(&file).args(flags));
    let table = diff("-n 1000");
    assert!(
        table.contains(" main") && table.contains("blocked"),
        "{table}"
    );
    let rows = table
        .lines()
        .skip_while(|line| !line.contains("change"))
        .skip(1);
    assert!(
        rows.clone().count() > 5 && rows.clone().all(|row| row.starts_with('~')),
        "{table}"
    );
    assert!(diff("--stacks").contains(";main"));
    assert!(diff("--format svg").trim_end().ends_with("</svg>"));
    let object: serde_json::Value = serde_json::from_str(&diff("--format json")).unwrap();
    let changes = object["functions"].as_array().unwrap();
    assert!(changes.iter().all(|change| change["significant"] == false));
}

#[test]
fn the_machine_completions_and_pages_are_told() {
    let _turn = Turn::share();
    let info = stdout_of(systemscope("info"));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(info.contains(release.trim()), "{info}");
    let line_of = |path: &str, start: &str| {
        let text = fs::read_to_string(path).unwrap();
        let line = text.lines().find(|line| line.starts_with(start)).unwrap();
        line[start.len()..]
            .trim_matches([' ', '\t', ':', '"'])
            .to_owned()
    };
    let machine = format!(
        "{}, {} CPUs: {}",
        std::env::consts::ARCH,
        cpus_online(),
        line_of("/proc/cpuinfo", "model name")
    );
    for (name, value) in [
        ("machine", machine),
        ("distribution", line_of("/etc/os-release", "PRETTY_NAME=")),
        ("privileges", "enough".to_owned()),
        (
            "kptr_restrict",
            line_of("/proc/sys/kernel/kptr_restrict", ""),
        ),
        (
            "maximum threads",
            line_of("/proc/sys/kernel/threads-max", ""),
        ),
    ] {
        assert!(
            info.lines().any(|line| {
                let found = line.strip_prefix(name);
                found.is_some_and(|found| found.trim() == value)
            }),
            "{name} is not {value}: {info}"
        );
    }
    for name in ["BTF", "privileges", "formats", "open files"] {
        assert!(info.lines().any(|line| line.starts_with(name)), "{info}");
    }
    // The test runs as root.
    let said = |name: &str| {
        info.lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
    };
    let tracing = said("CAP_BPF").trim_start();
    assert!(tracing.starts_with("held; every tool"), "{info}");
    let functions = said("kernel's functions");
    assert!(
        functions.contains("by the kernel") || functions.contains("/proc/kallsyms"),
        "{info}"
    );
    // Without `-e` oncputime prints the event that drives its samples.
    let oncputime = Tool::new("oncputime").args("-F 49 --duration 1");
    let told = oncputime.run().succeeded().stderr;
    let is_clock = told.contains("cpu-clock");
    assert_eq!(
        said("hardware counters").contains("none"),
        is_clock,
        "{info}"
    );
    for program in TOOLS.into_iter().chain([EVERYTHING]) {
        for (shell, own) in [
            ("bash", "complete -F _"),
            ("zsh", "#compdef "),
            ("fish", "complete -c "),
        ] {
            let text = stdout_of(systemscope("completions").arg(shell).arg(program));
            assert!(
                text.contains(program) && text.contains("help") && text.contains(own),
                "{shell} {program}"
            );
        }
        let page = stdout_of(systemscope("man").arg(program));
        assert!(page.contains(".TH") && page.contains(program), "{program}");
    }
    let folder = scratch();
    let file = folder.path().join("systemscope.bash");
    fs::write(&file, stdout_of(systemscope("completions bash"))).unwrap();
    Tool::at(Path::new("bash"))
        .arg("-n")
        .arg(&file)
        .run()
        .succeeded();
}
