//! Completions for shells and manual pages, made of the flags.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Command, Parser};
use clap_complete::Shell;
use clap_mangen::Man as Page;
use cli::{CommandLine, Output};

use crate::programs::{PROGRAMS, overview};

/// Prints completions for a shell.
#[derive(Parser, Debug)]
#[command(name = "completions")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,

    /// The program: systemscope or one of its tools
    #[arg(default_value = "systemscope")]
    program: String,
}

/// Prints a manual page.
#[derive(Parser, Debug)]
#[command(name = "man")]
pub(crate) struct Man {
    /// The program: systemscope, one of its tools, or a subcommand
    #[arg(default_value = "systemscope")]
    program: String,
}

/// The program that prints completions.
pub(crate) fn complete(command_line: &CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let Completions { shell, program } = command_line.parse()?;
        let shell = match shell.as_str() {
            "zsh" => Shell::Zsh,
            "fish" => Shell::Fish,
            _ => Shell::Bash,
        };
        let mut command = command(&program)?;
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, program, &mut text);
        print(&text)
    })
}

/// The program that prints manual pages.
pub(crate) fn man(command_line: &CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let Man { program } = command_line.parse()?;
        let mut text = Vec::new();
        Page::new(command(&program)?).render(&mut text)?;
        print(&text)
    })
}

fn print(text: &[u8]) -> anyhow::Result<()> {
    Output::new(None)?.write(|writer| writer.write_all(text))
}

/// The flags of a program.
fn command(program: &str) -> anyhow::Result<Command> {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_found() {
        for program in PROGRAMS {
            let command = command(program.tool.unwrap_or(program.name)).unwrap();
            assert!(
                command
                    .get_name()
                    .ends_with(program.tool.unwrap_or(program.name))
            );
        }
        assert_eq!(command("systemscope").unwrap().get_name(), "systemscope");
        let error = command("nonsense").unwrap_err().to_string();
        assert!(
            error.contains("there are systemscope, wallclock, oncputime"),
            "{error}"
        );
    }
}
