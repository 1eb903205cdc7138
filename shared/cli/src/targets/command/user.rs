//! The user that a command runs as, and the privileges that it must not inherit from root.

use std::ffi::OsString;
use std::fs;
use std::os::fd::RawFd;

use nix::unistd::{self, Gid, Uid};

use super::accounts::Account;
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
    /// Looks up a user by name, with all groups.
    ///
    /// # Errors
    /// No user has this name, or the user database cannot be read.
    pub fn named(name: &str) -> Result<User, String> {
        match Account::named(name) {
            Ok(Some(account)) => Ok(User {
                name: name.to_owned(),
                uid: Uid::from_raw(account.uid),
                gid: Gid::from_raw(account.gid),
                groups: account.groups.into_iter().map(Gid::from_raw).collect(),
                home: account.home.into(),
                shell: account.shell.into(),
            }),
            Ok(None) => Err("there is no such user; `getent passwd` lists all users".to_owned()),
            Err(error) => Err(format!("cannot look up the user: {error}")),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the environment variables that login(1) sets for the user.
    pub(super) fn environment(&self) -> [(OsString, OsString); 4] {
        [
            ("HOME".into(), self.home.clone()),
            ("USER".into(), self.name.clone().into()),
            ("LOGNAME".into(), self.name.clone().into()),
            ("SHELL".into(), self.shell.clone()),
        ]
    }

    /// Changes this process to the user, before it executes a command. The process gets a session
    /// keyring of its own, closes `open_files` on exec, and cannot type into root's terminal. The
    /// function only makes system calls, as it runs between fork and exec.
    pub(super) fn take_over(&self, open_files: &[RawFd]) -> nix::Result<()> {
        for file in open_files {
            // SAFETY: fcntl() sets a flag; it fails without effect on a closed descriptor.
            unsafe { libc::fcntl(*file, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        deny_terminal_input()?;
        unistd::setgroups(&self.groups)?;
        unistd::setgid(self.gid)?;
        unistd::setuid(self.uid)?;
        const JOIN_SESSION_KEYRING: libc::c_long = 1;
        // SAFETY: a plain system call. Without a name the kernel makes a new keyring.
        let joined = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, 0) };
        match nix::Error::result(joined) {
            // A kernel without keyrings has no keyring to protect.
            Ok(_) | Err(nix::Error::ENOSYS) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Returns the open descriptors above the standard streams.
pub(super) fn open_files() -> Vec<RawFd> {
    let entries = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|file| *file > libc::STDERR_FILENO).collect()
}

/// Installs a seccomp filter that refuses `TIOCSTI` and `TIOCLINUX` to this process and its
/// children. Both put characters into the terminal, which root's shell reads later.
///
/// The filter needs `CAP_SYS_ADMIN` instead of `no_new_privs`, so that the command can run
/// set-user-ID programs.
fn deny_terminal_input() -> nix::Result<()> {
    // Offsets in struct seccomp_data of linux/seccomp.h.
    const NUMBER: u32 = 0;
    const SECOND_ARGUMENT: u32 = 24;
    // TIOCSTI and TIOCLINUX. The filter checks all of `IOCTLS` in either system call table. In the
    // other table such a number is a call that does not take these values.
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

/// Returns a statement that skips `skipped` statements if the loaded word equals `value`.
fn jump(value: u32, skipped: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: skipped,
        jf: 0,
        k: value,
    }
}
