//! `systemscope` runs the tools of the suite as subcommands, and commands on captures.

mod captures;
mod diff;
mod export;
mod info;
mod programs;
mod report;
mod shell;

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use cli::CommandLine;

use crate::programs::{PROGRAMS, Program, by_name, overview};

#[global_allocator]
static ALLOCATOR: cli::Limited = cli::Limited;

fn main() -> ExitCode {
    let mut words = env::args_os();
    let called = words.next().unwrap_or_default();
    let arguments: Vec<OsString> = words.collect();
    // A program that is started under a tool's name runs that tool.
    let called = Path::new(&called)
        .file_name()
        .and_then(|name| name.to_str());
    let mut tools = PROGRAMS.iter().filter(|program| program.tool.is_some());
    if let Some(program) = tools.find(|program| program.tool == called) {
        return run(program, called.unwrap_or(program.name), arguments);
    }
    let subcommand = arguments.first().and_then(|word| word.to_str());
    if let Some(program) = subcommand.and_then(by_name) {
        let called = format!("systemscope {}", program.name);
        return run(program, &called, arguments.into_iter().skip(1));
    }
    let command_line = CommandLine::new("systemscope", arguments);
    cli::run("systemscope", || {
        // The rest is help, the version, or an unknown subcommand.
        command_line.matches(overview()).map(drop)
    })
}

fn run(program: &Program, called: &str, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    (program.run)(&CommandLine::new(called, arguments))
}
