//! A user whom a command runs as, and what root keeps to itself then.

use std::ffi::{CString, OsString};
use std::fs;
use std::os::fd::RawFd;

use nix::unistd::{self, Gid, Uid};

use crate::arch::IOCTLS;

/// A user to run a command as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    home: OsString,
    shell: OsString,
}

impl User {
    /// Looks a user up by name, with all groups.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<User, String> {
        let find = || -> nix::Result<Option<User>> {
            let Some(found) = unistd::User::from_name(name)? else {
                return Ok(None);
            };
            let text = CString::new(name).map_err(|_| nix::Error::EINVAL)?;
            Ok(Some(User {
                name: name.to_owned(),
                uid: found.uid,
                gid: found.gid,
                groups: unistd::getgrouplist(&text, found.gid)?,
                home: found.dir.into(),
                shell: found.shell.into(),
            }))
        };
        match find() {
            Ok(Some(user)) => Ok(user),
            Ok(None) => Err("there is no such user; `getent passwd` lists them".to_owned()),
            Err(error) => Err(format!("cannot look the user up: {}", error.desc())),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The variables that say who the user is, as login(1) sets them.
    pub(super) fn environment(&self) -> [(OsString, OsString); 4] {
        [
            ("HOME".into(), self.home.clone()),
            ("USER".into(), self.name.clone().into()),
            ("LOGNAME".into(), self.name.clone().into()),
            ("SHELL".into(), self.shell.clone()),
        ]
    }

    /// Makes this process, which is about to execute a command, that user's: with a session
    /// keyring of its own, without `open_files`, and unable to type into root's terminal.
    /// Makes system calls only.
    pub(super) fn take_over(&self, open_files: &[RawFd]) -> nix::Result<()> {
        for file in open_files {
            // SAFETY: sets a flag. A number that is not open is none of the command's either.
            unsafe { libc::fcntl(*file, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        deny_terminal_input()?;
        unistd::setgroups(&self.groups)?;
        unistd::setgid(self.gid)?;
        unistd::setuid(self.uid)?;
        const JOIN_SESSION_KEYRING: libc::c_long = 1;
        // SAFETY: a plain system call. Without a name the keyring is new, and the user's.
        let joined = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, 0) };
        match nix::Error::result(joined) {
            // A kernel without keyrings has none to keep.
            Ok(_) | Err(nix::Error::ENOSYS) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Descriptors above the standard streams that are open now.
pub(super) fn open_files() -> Vec<RawFd> {
    let entries = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|file| *file > libc::STDERR_FILENO).collect()
}

/// Installs a seccomp filter that refuses `TIOCSTI` and `TIOCLINUX` to this process and its
/// children: both put characters into the terminal, which root's shell reads later. Needs `CAP_SYS_ADMIN`, and
/// does without `no_new_privs`, so that the command may run set-user-ID programs.
fn deny_terminal_input() -> nix::Result<()> {
    // From linux/seccomp.h: struct seccomp_data.
    const NUMBER: u32 = 0;
    const SECOND_ARGUMENT: u32 = 24;
    // In the other table of a machine these numbers are of calls that have other arguments.
    const REQUESTS: [u32; 2] = [0x5412, 0x541c];
    let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    let mut filter = [
        load(NUMBER),
        jump(IOCTLS[0], 3),
        jump(IOCTLS[1], 2),
        jump(IOCTLS[2], 1),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
        load(SECOND_ARGUMENT),
        jump(REQUESTS[0], 2),
        jump(REQUESTS[1], 1),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
        statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        ),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the kernel reads the program, which lives until the call returns.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    };
    match nix::Error::result(outcome) {
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

fn statement(code: u32, operand: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k: operand,
    }
}

/// Skips as many statements where what was loaded is `value`.
fn jump(value: u32, skipped: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: skipped,
        jf: 0,
        k: value,
    }
}
