//! A Debian python3 that is watched by a program of which every stack is sent
//! as a copy, too.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use bpf::SharedConfig;
use loader::Targets;

/// A python3 that runs until it is dropped.
pub(crate) struct Python(Child);

impl Python {
    /// Starts it, and waits until it says in a line that all is loaded.
    pub(crate) fn start(script: &str) -> Python {
        let mut command = Command::new("python3");
        command.args(["-c", script]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3");
        let stdout = child.stdout.take().expect("its output");
        let mut said = String::new();
        BufReader::new(stdout).read_line(&mut said).expect("a line");
        assert_eq!(said, "ready\n");
        Python(child)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// It, and nothing else.
    pub(crate) fn targets(&self) -> Targets {
        Targets {
            pids: vec![self.pid()],
            tids: vec![],
        }
    }

    /// Has its user stacks checked.
    pub(crate) fn configure(&self, config: &mut impl SharedConfig) {
        config.set_stacks(true, false);
        config.set_copy_every_stack(true);
        config.set_only_pid(self.pid());
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
