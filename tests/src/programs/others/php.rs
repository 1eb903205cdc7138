//! PHP versions of this machine, and php-fpm.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::versions::{Version, fetched};
use crate::Running;
use crate::programs::process::children_of;
use crate::programs::tool::PATIENCE;
use crate::programs::workload::scratch;

/// Oldest version whose functions the tools read.
const OLDEST: Version = (8, 1);

/// Returns the distribution's PHP and the versions that `scripts/runtimes/fetch.sh` has installed.
///
/// # Panics
///
/// Panics if the distribution has no PHP.
pub fn phps() -> Vec<PathBuf> {
    let path = PathBuf::from("/usr/bin/php");
    assert!(path.exists(), "no {}", path.display());
    [vec![path], fetched("php", OLDEST)].concat()
}

/// Returns the distribution's program of php-fpm.
///
/// # Panics
///
/// Panics if there is none.
fn fpm() -> PathBuf {
    let folder = fs::read_dir("/usr/sbin").expect("a folder of programs");
    let mut paths = folder.flatten().map(|entry| entry.path());
    let is_fpm = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("php-fpm"))
    };
    paths.find(is_fpm).expect("php-fpm")
}

/// Server php-fpm with one worker.
#[derive(Debug)]
pub struct Fpm {
    running: Running,
    folder: TempDir,
}

impl Fpm {
    /// Starts php-fpm with these scripts, and waits until its worker accepts requests.
    ///
    /// # Panics
    ///
    /// Panics if the worker does not start.
    pub fn start(scripts: &[(&str, &str)]) -> Fpm {
        let folder = scratch();
        let root = folder.path().display();
        for (name, text) in scripts {
            fs::write(folder.path().join(name), text).expect("a script");
        }
        let configuration = format!(
            "[global]\nerror_log = {root}/error\ndaemonize = no\n[www]\nlisten = {root}/socket\n\
             user = root\ngroup = root\npm = static\npm.max_children = 1\n"
        );
        let path = folder.path().join("fpm.conf");
        fs::write(&path, configuration).expect("a configuration");
        let mut command = Command::new(fpm());
        command.args(["--allow-to-run-as-root", "--nodaemonize", "--fpm-config"]);
        command.arg(&path);
        let running = Running::spawn(command, true);
        let fpm = Fpm { running, folder };
        let begun = Instant::now();
        while UnixStream::connect(fpm.socket()).is_err() || fpm.workers().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "php-fpm does not start");
            sleep(Duration::from_millis(10));
        }
        fpm
    }

    /// Returns the IDs of the worker processes.
    pub fn workers(&self) -> Vec<u32> {
        children_of(self.running.pid())
    }

    /// Returns the path of a script.
    pub fn script(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Requests a script by FastCGI, and returns the answer with its header.
    ///
    /// # Panics
    ///
    /// Panics if there is no answer.
    pub fn request(&self, name: &str) -> String {
        let mut socket = UnixStream::connect(self.socket()).expect("php-fpm listens");
        let script = self.script(name);
        let parameters = [
            ("REQUEST_METHOD", "GET"),
            ("SCRIPT_NAME", name),
            ("SCRIPT_FILENAME", path_text(&script)),
        ];
        let parameters = parameters.iter().flat_map(|(name, value)| {
            let lengths = [name.len() as u8, value.len() as u8];
            [&lengths[..], name.as_bytes(), value.as_bytes()].concat()
        });
        let parameters: Vec<u8> = parameters.collect();
        // FCGI_BEGIN_REQUEST as a responder, FCGI_PARAMS until an empty one, and FCGI_STDIN.
        let records = [
            record(1, &[0, 1, 0, 0, 0, 0, 0, 0]),
            record(4, &parameters),
            record(4, &[]),
            record(5, &[]),
        ];
        socket.write_all(&records.concat()).expect("a request");
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Returns a record of FastCGI, of request 1.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}
