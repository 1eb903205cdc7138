//! Django site under gunicorn, and a client that requests it all the time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::Running;
use crate::programs::nginx::{free_port, wait_until};
use crate::programs::sources::source;
use crate::programs::workload::scratch;

/// Master process of gunicorn, with two workers of two threads each.
#[derive(Debug)]
pub struct Site {
    running: Running,
    folder: TempDir,
    port: u16,
}

/// Returns the path of a program that `tests/pypi/requirements.txt` installs from `PyPI`.
///
/// # Panics
///
/// Panics if the program is not installed.
pub fn from_pypi(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("pypi/venv/bin");
    let path = folder.join(name);
    assert!(path.exists(), "{name}, which `make test` installs");
    path
}

impl Site {
    /// Starts the site, and waits until the site answers.
    ///
    /// # Panics
    ///
    /// Panics if the site does not answer.
    pub fn start() -> Site {
        let folder = scratch();
        let port = free_port();
        let mut command = Command::new(from_pypi("python"));
        // The script's first line names the Python of the directory in which the script was first
        // installed.
        command.arg(from_pypi("gunicorn"));
        command.args(["--workers=2", "--worker-class=gthread", "--threads=2"]);
        command.args(["--log-level=warning", "--no-control-socket"]);
        command.arg(format!("--bind=127.0.0.1:{port}"));
        let site = source("django_site.py");
        command.arg("--pythonpath").arg(site.with_file_name(""));
        command.arg("django_site:application");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.current_dir(folder.path());
        let mut site = Site {
            running: Running::spawn(command, true),
            folder,
            port,
        };
        wait_until("the site has answered", || {
            assert!(site.running.is_running(), "gunicorn has ended");
            site.has_answered()
        });
        site
    }

    /// Returns the ID of the process that forks the workers.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Returns a directory for the test's own files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts four connections that request the page over and over until dropped.
    pub fn visit(&self) -> Running {
        let mut command = Command::new("wrk");
        command.args(["-t1", "-c4", "-d1h"]);
        command.arg(format!("http://127.0.0.1:{}/", self.port));
        Running::spawn(command, true)
    }

    fn has_answered(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
            return false;
        };
        let mut page = String::new();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").is_ok()
            && stream.read_to_string(&mut page).is_ok()
            && page.contains(" 200 OK")
    }
}
