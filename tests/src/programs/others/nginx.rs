//! nginx server of the test's own. A test can replace and end the server's workers one generation
//! at a time.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::programs::process::children_of;
use crate::programs::tool::PATIENCE;
use crate::programs::workload::scratch;
use crate::truth::account::state_of;
use crate::{Account, Finished, Running};

/// Server that forks its workers before any client connects.
#[derive(Debug)]
pub struct Nginx {
    running: Running,
    folder: TempDir,
    port: u16,
}

/// Thread that requests pages from an [`Nginx`] until dropped.
#[derive(Debug)]
pub struct Visitor {
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Incomplete requests. A worker does not end as long as it has one of them.
#[derive(Debug)]
pub struct OpenVisits(#[expect(dead_code, reason = "held open")] Vec<TcpStream>);

impl Nginx {
    /// Starts nginx with `workers` workers, and waits until they run.
    ///
    /// # Panics
    ///
    /// Panics if the workers do not start.
    pub fn start(workers: usize) -> Nginx {
        let folder = scratch();
        let port = free_port();
        let root = folder.path().display();
        fs::write(folder.path().join("index.html"), vec![b'x'; 8192]).expect("a file to serve");
        // With one socket for each worker the kernel distributes connections to all workers.
        let configuration = format!(
            "user root; daemon off; worker_processes {workers}; pid {root}/pid;
            error_log {root}/error;
            events {{}}
            http {{
                access_log off; client_body_temp_path {root}/a; proxy_temp_path {root}/b;
                fastcgi_temp_path {root}/c; uwsgi_temp_path {root}/d; scgi_temp_path {root}/e;
                server {{ listen 127.0.0.1:{port} reuseport; root {root}; }}
            }}"
        );
        let path = folder.path().join("nginx.conf");
        fs::write(&path, configuration).expect("a configuration");
        let mut command = Command::new(server());
        command.arg("-c").arg(&path);
        command.arg("-e").arg(folder.path().join("error"));
        let nginx = Nginx {
            running: Running::spawn(command, true),
            folder,
            port,
        };
        wait_until("nginx has its workers", || {
            nginx.workers().len() == workers && nginx.connect().is_some()
        });
        nginx
    }

    /// Returns the ID of the process that forks the workers.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Returns the IDs of the workers in ascending order, including workers that are ending.
    pub fn workers(&self) -> Vec<u32> {
        let mut workers = children_of(self.pid());
        workers.retain(|&pid| command_line(pid).starts_with("nginx: worker process"));
        workers.sort_unstable();
        workers
    }

    /// Starts a thread that requests pages one after the other.
    pub fn visit(&self) -> Visitor {
        let is_done = Arc::new(AtomicBool::new(false));
        let (port, until) = (self.port, Arc::clone(&is_done));
        let thread = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                // A connection may fail while nginx replaces its workers.
                let _ = ask(port);
            }
        });
        Visitor {
            is_done,
            thread: Some(thread),
        }
    }

    /// Begins requests until each worker has one.
    ///
    /// # Panics
    ///
    /// Panics if a worker gets no request.
    pub fn begin_visits(&self) -> OpenVisits {
        let workers = self.workers();
        let before: Vec<usize> = workers.iter().map(|&pid| sockets_of(pid)).collect();
        let mut visits = Vec::new();
        wait_until("each worker has a visitor", || {
            let mut stream = self.connect().expect("a connection to nginx");
            stream.write_all(b"GET / HTTP/1.1\r\n").expect("a request");
            visits.push(stream);
            sleep(Duration::from_millis(5));
            let now = workers.iter().map(|&pid| sockets_of(pid));
            // Another client that requests pages may have one more socket meanwhile.
            now.zip(&before).all(|(now, before)| now > before + 1)
        });
        OpenVisits(visits)
    }

    /// Makes nginx replace its workers. The old workers end once their `visits` are over. Returns
    /// the accounts that the kernel has of the old workers then.
    ///
    /// # Panics
    ///
    /// Panics if the old workers do not end, or if no workers replace them.
    pub fn reload(&self, visits: OpenVisits) -> Vec<(u32, Account)> {
        let old = self.workers();
        self.running.signal(Signal::HUP);
        wait_until("the old workers shut down", || {
            let told = |&pid: &u32| command_line(pid).ends_with("is shutting down");
            old.iter().all(told) && self.workers().len() == 2 * old.len()
        });
        self.accounts_of_ended(&old, || drop(visits))
    }

    /// Ends nginx, and returns the accounts that the kernel has of its workers then.
    ///
    /// # Panics
    ///
    /// Panics if nginx does not end.
    pub fn finish(self) -> (Vec<(u32, Account)>, Finished) {
        let workers = self.workers();
        let accounts = self.accounts_of_ended(&workers, || {
            for &pid in &workers {
                let pid = Pid::from_raw(pid.cast_signed()).expect("a process ID");
                kill_process(pid, Signal::TERM).expect("end a worker");
            }
            // The signal must come before nginx forks other workers.
            self.running.signal(Signal::TERM);
        });
        (accounts, self.running.finish_within(PATIENCE))
    }

    /// Ends workers by calling `end`, and returns their accounts. nginx is stopped meanwhile, so
    /// the workers remain as zombies, and their accounts no longer change.
    fn accounts_of_ended(&self, workers: &[u32], end: impl FnOnce()) -> Vec<(u32, Account)> {
        self.running.signal(Signal::STOP);
        wait_until("nginx stands still", || {
            state_of(self.pid(), self.pid()) == Some('T')
        });
        end();
        wait_until("the workers have ended", || {
            let mut workers = workers.iter();
            workers.all(|&pid| state_of(pid, pid) == Some('Z'))
        });
        let accounts = workers.iter().map(|&pid| (pid, Account::read(pid, pid)));
        let accounts = accounts
            .map(|(pid, account)| (pid, account.expect("the account of a zombie")))
            .collect();
        self.running.signal(Signal::CONT);
        accounts
    }

    fn connect(&self) -> Option<TcpStream> {
        TcpStream::connect(("127.0.0.1", self.port)).ok()
    }

    /// Returns nginx's error log.
    pub fn errors(&self) -> String {
        fs::read_to_string(self.folder.path().join("error")).unwrap_or_default()
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Requests one page.
fn ask(port: u16) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n")?;
    let mut page = Vec::new();
    stream.read_to_end(&mut page)?;
    Ok(())
}

/// Returns a port on which no program listens now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("its number").port()
}

/// Returns the path of nginx. Distributions install nginx in a directory that a user's PATH does
/// not contain.
fn server() -> PathBuf {
    let places = ["/usr/sbin/nginx", "/usr/bin/nginx"].map(PathBuf::from);
    let mut places = places.into_iter();
    places
        .find(|path| path.exists())
        .expect("nginx, which `make test` installs")
}

fn command_line(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    words.trim_end().to_owned()
}

fn sockets_of(pid: u32) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).expect("a worker's descriptors");
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let is_socket = |path: &PathBuf| path.to_string_lossy().starts_with("socket:");
    targets.filter(is_socket).count()
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "timed out before {what}");
        sleep(Duration::from_millis(5));
    }
}
