//! `systemscope completions` and `systemscope man`, which print shell completions and manual pages.

use std::process::ExitCode;

use clap::{Command, Parser};
use clap_complete::Shell;
use clap_mangen::Man as Page;
use cli::{CommandLine, Output};

/// Print completions for a shell.
#[derive(Parser, Debug)]
#[command(name = "completions")]
pub(crate) struct Completions {
    /// Shell that the completions are for
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,

    /// Program: systemscope or one of its tools
    #[arg(default_value = "systemscope")]
    program: String,

    #[command(flatten)]
    help: cli::HelpFlag,
}

/// Print a manual page.
#[derive(Parser, Debug)]
#[command(name = "man")]
pub(crate) struct Man {
    /// Program: systemscope, one of its tools, or a subcommand
    #[arg(default_value = "systemscope")]
    program: String,

    #[command(flatten)]
    help: cli::HelpFlag,
}

/// Function that returns the flags of a program by its name.
pub(crate) type FlagsOf = fn(&str) -> anyhow::Result<Command>;

/// Runs `systemscope completions` from its command line to its exit status.
pub(crate) fn complete(command_line: &CommandLine, flags_of: FlagsOf) -> ExitCode {
    cli::run(command_line.called(), || {
        let Completions { shell, program, .. } = command_line.parse()?;
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

/// Runs `systemscope man` from its command line to its exit status.
pub(crate) fn man(command_line: &CommandLine, flags_of: FlagsOf) -> ExitCode {
    cli::run(command_line.called(), || {
        let Man { program, .. } = command_line.parse()?;
        let mut text = Vec::new();
        // clap_mangen leaves out the text of flags that `-h` hides.
        let command = flags_of(&program)?.mut_args(|arg| arg.hide_short_help(false));
        Page::new(command).render(&mut text)?;
        print(&text)
    })
}

fn print(text: &[u8]) -> anyhow::Result<()> {
    Output::new(None)?.write(|writer| writer.write_all(text))
}
