//! The subcommands: the tools under shorter names, and commands on captures.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Command, CommandFactory};
use cli::{CommandLine, run_tool};

use crate::{diff, export, info, report, shell};

/// A subcommand.
pub(crate) struct Program {
    /// Name as a subcommand.
    pub(crate) name: &'static str,
    /// Name as a program of its own, if it is one.
    pub(crate) tool: Option<&'static str>,
    /// Runs the subcommand from its command line to its exit status.
    pub(crate) run: fn(&CommandLine) -> ExitCode,
    /// Returns the flags of the subcommand.
    pub(crate) command: fn() -> Command,
}

impl Program {
    const fn tool(
        name: &'static str,
        tool: &'static str,
        run: fn(&CommandLine) -> ExitCode,
        command: fn() -> Command,
    ) -> Program {
        Program {
            name,
            tool: Some(tool),
            run,
            command,
        }
    }

    const fn own(
        name: &'static str,
        run: fn(&CommandLine) -> ExitCode,
        command: fn() -> Command,
    ) -> Program {
        Program {
            name,
            tool: None,
            run,
            command,
        }
    }
}

/// All subcommands, in the order of `--help`.
pub(crate) const PROGRAMS: &[Program] = &[
    Program::tool(
        "wall",
        "wallclock",
        wallclock::run,
        wallclock::Arguments::command,
    ),
    Program::tool(
        "profile",
        "oncputime",
        run_tool::<oncputime::Arguments>,
        oncputime::Arguments::command,
    ),
    Program::tool(
        "offcpu",
        "offcputime",
        run_tool::<offcputime::Arguments>,
        offcputime::Arguments::command,
    ),
    Program::tool(
        "offwake",
        "offwaketime",
        run_tool::<offwaketime::Arguments>,
        offwaketime::Arguments::command,
    ),
    Program::tool("dist", "cpudist", cpudist::run, cpudist::Arguments::command),
    Program::own("export", export::run, export::Arguments::command),
    Program::own("report", report::run, report::Arguments::command),
    Program::own("diff", diff::run, diff::Arguments::command),
    Program::own("info", info::run, info::Arguments::command),
    Program::own(
        "completions",
        |line| shell::complete(line, flags_of),
        shell::Completions::command,
    ),
    Program::own(
        "man",
        |line| shell::man(line, flags_of),
        shell::Man::command,
    ),
];

/// Returns the program with this name as a subcommand or as a tool.
pub(crate) fn by_name(name: &str) -> Option<&'static Program> {
    let mut programs = PROGRAMS.iter();
    programs.find(|program| program.name == name || program.tool == Some(name))
}

/// Returns the flags of a program: systemscope, one of its tools, or a subcommand.
fn flags_of(program: &str) -> anyhow::Result<Command> {
    if program == "systemscope" {
        return Ok(overview());
    }
    let mut programs = PROGRAMS.iter();
    if let Some(tool) = programs.find(|known| known.tool == Some(program)) {
        return Ok((tool.command)());
    }
    let mut programs = PROGRAMS.iter();
    let own = programs
        .find(|known| known.name == program)
        .ok_or_else(|| {
            let tools = PROGRAMS
                .iter()
                .map(|known| known.tool.unwrap_or(known.name));
            let tools: Vec<&str> = tools.collect();
            anyhow!(
                "there is no program `{program}`; give one of systemscope, {}",
                tools.join(", ")
            )
        })?;
    Ok((own.command)())
}

/// Returns the whole suite as one command, for help and completions.
pub(crate) fn overview() -> Command {
    let subcommands = PROGRAMS.iter().map(|program| {
        let command = (program.command)().name(program.name);
        match program.tool {
            Some(tool) => command.visible_alias(tool),
            None => command,
        }
    });
    Command::new("systemscope")
        .version(env!("CARGO_PKG_VERSION"))
        .about(
            "Show where the wall-clock time of programs goes: on the CPU, waiting for a CPU, or blocked",
        )
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .subcommands(subcommands)
}

const EXAMPLES: &str = "\
Examples:
  systemscope wall 1234                     # 30 s of every thread of process 1234
  systemscope profile -p 1234 10 -o on.svg  # where it runs
  systemscope offcpu -p 1234 10 -o off.pb.gz
                                            # where it waits, for `go tool pprof`
  systemscope wall 1234 -o run.scope        # a capture of everything, for later
  systemscope report run.scope
  systemscope export run.scope -o run.speedscope.json";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_found() {
        for program in PROGRAMS {
            let command = flags_of(program.tool.unwrap_or(program.name)).unwrap();
            assert!(
                command
                    .get_name()
                    .ends_with(program.tool.unwrap_or(program.name))
            );
        }
        assert_eq!(flags_of("systemscope").unwrap().get_name(), "systemscope");
        let error = flags_of("nonsense").unwrap_err().to_string();
        assert!(
            error.contains("give one of systemscope, wallclock, oncputime"),
            "{error}"
        );
    }
}
