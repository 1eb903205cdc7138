//! MariaDB server of the test's own, and sysbench as its clients.

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Running;
use crate::programs::workload::scratch;

/// Server with a database in a directory of its own, ended when dropped. The server needs no
/// service manager, and listens only on a socket in that directory.
#[derive(Debug)]
pub struct Server {
    running: Running,
    folder: TempDir,
}

/// Paths of the server in distributions.
const SERVERS: [&str; 4] = [
    "/usr/sbin/mariadbd",
    "/usr/libexec/mariadbd",
    "/usr/bin/mariadbd",
    "/usr/sbin/mysqld",
];

fn run(program: &str, arguments: &[OsString]) {
    let mut command = Command::new(program);
    command.args(arguments);
    Running::spawn(command, true)
        .finish_within(Duration::from_secs(60))
        .succeeded();
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

impl Server {
    /// Installs a database and starts the server on it.
    pub fn start() -> Server {
        let folder = scratch();
        let data = option("--datadir=", &folder.path().join("data"));
        run(
            "mariadb-install-db",
            &[
                "--no-defaults".into(),
                "--user=root".into(),
                "--skip-test-db".into(),
                "--auth-root-authentication-method=normal".into(),
                data.clone(),
            ],
        );
        let program = SERVERS.iter().find(|path| Path::new(path).exists());
        let mut command = Command::new(program.expect("mariadbd, which `make test` installs"));
        command
            .args(["--no-defaults", "--user=root", "--skip-networking"])
            .arg(data)
            .arg(option("--socket=", &folder.path().join("socket")))
            .arg(option("--pid-file=", &folder.path().join("pid")))
            .arg("--innodb-buffer-pool-size=64M");
        let mut server = Server {
            running: Running::spawn(command, true),
            folder,
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        while UnixStream::connect(server.socket()).is_err() {
            let runs = server.running.is_running();
            assert!(
                runs && Instant::now() < deadline,
                "mariadbd does not start to listen"
            );
            sleep(Duration::from_millis(50));
        }
        let create = ["--execute", "CREATE DATABASE sbtest"].map(OsString::from);
        let mut arguments = vec!["--no-defaults".into(), "--user=root".into()];
        arguments.push(option("--socket=", &server.socket()));
        arguments.extend(create);
        run("mariadb", &arguments);
        run("sysbench", &server.sysbench("prepare", 1));
        server
    }

    /// Returns the server's process ID.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Starts sysbench with `clients` connections that read until dropped.
    pub fn keep_busy(&self, clients: u32) -> Running {
        let mut command = Command::new("sysbench");
        command.args(self.sysbench("run", clients));
        let running = Running::spawn(command, true);
        sleep(Duration::from_millis(500));
        running
    }

    /// Returns the number of transactions a second that `clients` connections reach in `seconds`.
    pub fn transactions_per_second(&self, clients: u32, seconds: u32) -> f64 {
        let mut command = Command::new("sysbench");
        command.args(self.sysbench("run", clients));
        command.arg(format!("--time={seconds}"));
        let output = command.output().expect("start sysbench");
        let said = String::from_utf8_lossy(&output.stdout);
        // The line has the form " transactions: 8321 (2772.83 per sec.)".
        let line = said.lines().find(|line| line.contains("transactions:"));
        let rate = line.and_then(|line| line.split('(').nth(1)?.split(' ').next()?.parse().ok());
        rate.unwrap_or_else(|| panic!("no transactions in:\n{said}"))
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn sysbench(&self, what: &str, clients: u32) -> Vec<OsString> {
        let mut arguments = vec![
            "oltp_read_only".into(),
            option("--mysql-socket=", &self.socket()),
            format!("--threads={clients}").into(),
        ];
        let others = [
            "--mysql-user=root",
            "--tables=1",
            "--table-size=10000",
            "--time=600",
        ];
        arguments.extend(others.map(OsString::from));
        arguments.push(what.into());
        arguments
    }
}
