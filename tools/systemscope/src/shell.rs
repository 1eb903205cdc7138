//! Completions for shells and manual pages, made of the flags.

use std::process::ExitCode;

use clap::{Command, Parser};
use clap_complete::Shell;
use clap_mangen::Man as Page;
use cli::{CommandLine, Output};

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

/// The flags of a program, by its name.
pub(crate) type FlagsOf = fn(&str) -> anyhow::Result<Command>;

/// The program that prints completions.
pub(crate) fn complete(command_line: &CommandLine, flags_of: FlagsOf) -> ExitCode {
    cli::run(command_line.called(), || {
        let Completions { shell, program } = command_line.parse()?;
        let shell = match shell.as_str() {
            "zsh" => Shell::Zsh,
            "fish" => Shell::Fish,
            _ => Shell::Bash,
        };
        let mut command = flags_of(&program)?;
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, program, &mut text);
        print(&text)
    })
}

/// The program that prints manual pages.
pub(crate) fn man(command_line: &CommandLine, flags_of: FlagsOf) -> ExitCode {
    cli::run(command_line.called(), || {
        let Man { program } = command_line.parse()?;
        let mut text = Vec::new();
        Page::new(flags_of(&program)?).render(&mut text)?;
        print(&text)
    })
}

fn print(text: &[u8]) -> anyhow::Result<()> {
    Output::new(None)?.write(|writer| writer.write_all(text))
}
