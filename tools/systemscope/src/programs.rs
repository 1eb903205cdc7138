//! What there is to run: the tools, by what they do, and what is done with captures.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Command, CommandFactory};
use cli::{CommandLine, run_tool};

use crate::{diff, export, info, report, shell};

/// A subcommand.
pub(crate) struct Program {
    /// What it is called here.
    pub(crate) name: &'static str,
    /// What it is called where it is a program of its own.
    pub(crate) tool: Option<&'static str>,
    /// Runs it.
    pub(crate) run: fn(&CommandLine) -> ExitCode,
    /// Its flags.
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

/// All of them.
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

/// The program of a name, its own or the tool's.
pub(crate) fn by_name(name: &str) -> Option<&'static Program> {
    let mut programs = PROGRAMS.iter();
    programs.find(|program| program.name == name || program.tool == Some(name))
}

/// The flags of a program: systemscope, one of its tools, or a subcommand.
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
                "there is no program `{program}`: there are systemscope, {}",
                tools.join(", ")
            )
        })?;
    Ok((own.command)())
}

/// All of it as one command: for help, and for shells.
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
            "Where the wall-clock time of programs goes: on the CPU, waiting for a CPU, or blocked",
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
  systemscope wall 1234 -o run.scope        # all of it, for later
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
            error.contains("there are systemscope, wallclock, oncputime"),
            "{error}"
        );
    }
}
