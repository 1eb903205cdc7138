//! Forks a command that stops right after its execve(2).

use std::env;
use std::ffi::{CString, OsString, c_char};
use std::io::{self, PipeWriter, Read, Write, pipe};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStringExt;
use std::ptr;

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use super::user::{User, open_files};

/// Starts a command under ptrace and returns its process after execve(2). The process is stopped
/// before its first instruction. The kernel kills it if this process ends before it detaches.
/// The calling thread is the tracer.
///
/// Another process of `user` may send signals meanwhile. This function drops signals that would
/// stop the command, and delivers the others.
///
/// # Errors
/// The command cannot be executed, or a signal ended it first.
pub(super) fn spawn_held(words: &[OsString], user: Option<&User>) -> io::Result<Pid> {
    let arguments = strings(words.iter().cloned())?;
    let environment = strings(environment(user).into_iter().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        name
    }))?;
    let (arguments, environment) = (pointers(&arguments), pointers(&environment));
    let files = user.map(|_| open_files()).unwrap_or_default();
    let (mut failure, their_failure) = pipe()?;
    // SAFETY: the child only makes system calls, with arguments prepared before the fork.
    let child = match unsafe { fork() }? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => execute(&arguments, &environment, user, &files, their_failure),
    };
    drop(their_failure);
    let outcome = await_execution(child);
    if outcome.is_err() {
        let _ = nix::sys::signal::kill(child, Signal::SIGKILL);
        let _ = waitpid(child, None);
    }
    // The child's own error is more precise than its exit status.
    let mut error = [0; size_of::<i32>()];
    if outcome.is_err() && failure.read_exact(&mut error).is_ok() {
        return Err(io::Error::from_raw_os_error(i32::from_ne_bytes(error)));
    }
    outcome.map(|()| child)
}

/// Returns the command's environment: this process's own, with the variables of the user.
fn environment(user: Option<&User>) -> Vec<(OsString, OsString)> {
    let theirs: Vec<_> = (user.map(User::environment).into_iter())
        .flatten()
        .collect();
    let is_theirs = |name: &OsString| theirs.iter().any(|(own, _)| own == name);
    let ours = env::vars_os().filter(|(name, _)| !is_theirs(name));
    ours.chain(theirs.iter().cloned()).collect()
}

fn strings(words: impl Iterator<Item = OsString>) -> io::Result<Vec<CString>> {
    let strings = words.map(|word| CString::new(word.into_vec()));
    strings.collect::<Result<_, _>>().map_err(io::Error::from)
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr());
    pointers.chain([ptr::null()]).collect()
}

/// Continues the child until its execve(2) succeeds.
fn await_execution(child: Pid) -> io::Result<()> {
    let mut is_watched = false;
    loop {
        let status = match waitpid(child, Some(WaitPidFlag::__WALL)) {
            Err(nix::Error::EINTR) => continue,
            status => status?,
        };
        let signal = match status {
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXEC) => return Ok(()),
            // The child still runs as root, so no other user can have sent this signal.
            WaitStatus::Stopped(_, Signal::SIGSTOP) if !is_watched => {
                is_watched = true;
                let options = Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACEEXEC;
                ptrace::setoptions(child, options)?;
                None
            }
            WaitStatus::Stopped(_, signal) => {
                Some(signal).filter(|signal| !is_stop_signal(*signal))
            }
            WaitStatus::Signaled(_, signal, _) => {
                let text =
                    format!("{signal} ended the new process before it could execute the command");
                return Err(io::Error::other(text));
            }
            WaitStatus::Exited(..) => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => None,
        };
        match ptrace::cont(child, signal) {
            // The child was killed; the next wait reports it.
            Ok(()) | Err(nix::Error::ESRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_stop_signal(signal: Signal) -> bool {
    use Signal::{SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
    matches!(signal, SIGSTOP | SIGTSTP | SIGTTIN | SIGTTOU)
}

/// Executes the command in the child, or writes the error number to `failure`.
fn execute(
    arguments: &[*const c_char],
    environment: &[*const c_char],
    user: Option<&User>,
    files: &[i32],
    mut failure: PipeWriter,
) -> ! {
    let become_command = || -> nix::Result<()> {
        // Signals are reset as a shell does: Rust ignores SIGPIPE, and a caller may block signals.
        // SAFETY: a signal set is plain data, which sigemptyset() writes.
        unsafe {
            let mut none = MaybeUninit::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
        ptrace::traceme()?;
        raise(Signal::SIGSTOP)?;
        if let Some(user) = user {
            user.take_over(files)?;
        }
        // SAFETY: both are lists of strings that end in a null pointer.
        unsafe { libc::execvpe(arguments[0], arguments.as_ptr(), environment.as_ptr()) };
        Err(nix::Error::last())
    };
    if let Err(error) = become_command() {
        let _ = failure.write_all(&(error as i32).to_ne_bytes());
    }
    // SAFETY: _exit() ends this process and runs none of the parent's destructors.
    unsafe { libc::_exit(1) }
}
