//! `systemscope info` prints the facts about the machine that a fault report needs.

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use cli::{CommandLine, Output};
use formats::FORMATS;
use loader::{Capability, Event, Feature, Kernel};
use rustix::process::{Resource, getrlimit};

/// Print the facts about this machine that a fault report needs.
#[derive(Parser, Debug)]
#[command(name = "info")]
pub(crate) struct Arguments {
    #[command(flatten)]
    help: cli::HelpFlag,
}

/// Runs `systemscope info` from its command line to its exit status.
pub(crate) fn run(command_line: &CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let Arguments { help: _ } = command_line.parse()?;
        Output::new(None)?.write(write)
    })
}

fn write(writer: &mut dyn Write) -> io::Result<()> {
    let mut line = |name: &str, value: &str| writeln!(writer, "{name:<22} {value}");
    line("systemscope", env!("CARGO_PKG_VERSION"))?;
    line("kernel", &kernel())?;
    line("machine", &machine())?;
    line("distribution", &distribution())?;
    line("privileges", &describe(loader::check_privileges()))?;
    for Capability {
        name,
        purpose,
        held,
    } in loader::capabilities()
    {
        let held = if held { "held" } else { "missing" };
        line(name, &format!("{held}; {purpose}"))?;
    }
    for (name, file) in [
        ("kptr_restrict", "kernel/kptr_restrict"),
        ("perf_event_paranoid", "kernel/perf_event_paranoid"),
        (
            "max samples per second",
            "kernel/perf_event_max_sample_rate",
        ),
        ("unprivileged BPF", "kernel/unprivileged_bpf_disabled"),
        ("maximum threads", "kernel/threads-max"),
    ] {
        line(name, &setting(file))?;
    }
    let files = getrlimit(Resource::Nofile);
    let limit =
        |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    line(
        "open files",
        &format!("{}, at most {}", limit(files.current), limit(files.maximum)),
    )?;
    match Kernel::probe() {
        Ok(kernel) => {
            for Feature { name, here } in kernel.features() {
                line(name, here)?;
            }
        }
        Err(error) => line("BTF", &error.to_string())?,
    }
    line("hardware counters", hardware_counters())?;
    line("kernel's functions", kernel_functions())?;
    let formats: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
    line("formats", &formats.join(", "))
}

/// Returns the kernel's name, release and version, as uname(2) has them.
fn kernel() -> String {
    let uname = rustix::system::uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    format!(
        "{} {} {}",
        part(uname.sysname()),
        part(uname.release()),
        part(uname.version())
    )
}

fn machine() -> String {
    let uname = rustix::system::uname();
    let cpus = loader::online_cpus().map_or(0, |cpus| cpus.len());
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown CPU", |(_, model)| model);
    format!(
        "{}, {cpus} CPUs: {model}",
        uname.machine().to_string_lossy()
    )
}

fn distribution() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or("unknown", |name| name.trim_matches('"'))
        .to_owned()
}

fn setting(file: &str) -> String {
    let text = fs::read_to_string(format!("/proc/sys/{file}"));
    text.map_or("unknown".to_owned(), |text| text.trim().to_owned())
}

fn hardware_counters() -> &'static str {
    if Event::CPU_CYCLES.is_counted() {
        "available: cycles trigger samples"
    } else {
        "none usable: the CPU clock triggers samples"
    }
}

fn kernel_functions() -> &'static str {
    match (loader::check_privileges(), loader::kernel_names(&[])) {
        (Err(_), _) => "unknown without privileges",
        (_, Ok(_)) => "named by the kernel, one by one",
        (_, Err(_)) => "found in /proc/kallsyms",
    }
}

/// Returns `enough`, or the error that names the missing privileges.
fn describe(outcome: loader::Result<()>) -> String {
    match outcome {
        Ok(()) => "enough".to_owned(),
        Err(error) => error.to_string(),
    }
}
