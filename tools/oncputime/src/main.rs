//! oncputime: where threads spend the time in which they run.

mod arguments;
mod trace;

use std::process::ExitCode;

use arguments::Arguments;

fn main() -> ExitCode {
    cli::run("oncputime", || {
        let arguments: Arguments = cli::parse()?;
        arguments.target.validate()?;
        loader::check_privileges()?;
        let output = cli::Output::new(arguments.output.output.clone())?;
        let mut window = cli::Window::new(arguments.duration.get(), arguments.control.control_fd)?;

        let measured = trace::run(&arguments, &mut window)?;

        window.report(&measured.losses.to_string())?;
        let options = export::folded::Options {
            per_thread: arguments.output.per_thread,
            delimited: arguments.output.delimited,
            annotate_kernel: arguments.output.annotate,
            nanoseconds: false,
        };
        let write = if arguments.output.classic {
            export::classic::write
        } else {
            export::folded::write
        };
        output.write(|writer| write(&measured.profile, &options, writer).map(drop))?;
        measured.report("oncputime", arguments.output.verbose);
        Ok(())
    })
}
