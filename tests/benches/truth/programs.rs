//! Programs from a distribution's packages, which are kept busy.

use std::any::Any;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::programs::mariadb::Server;
use systemscope_tests::programs::peers::installed;
use systemscope_tests::programs::sources::source;
use systemscope_tests::programs::workload::scratch;
use systemscope_tests::{Running, Workload};
use tempfile::TempDir;

/// Running program with everything that it needs.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) pid: u32,
    /// Parts that the program needs. They are dropped in this order.
    _parts: Vec<Box<dyn Any>>,
}

/// Port on which no other program listens.
const NGINX_PORT: u16 = 47_080;

fn program(name: &'static str, pid: u32, parts: Vec<Box<dyn Any>>) -> Program {
    // The program needs this second to reach a steady state.
    sleep(Duration::from_secs(1));
    Program {
        name,
        pid,
        _parts: parts,
    }
}

fn command(name: &str) -> Command {
    let path = installed(name).unwrap_or_else(|| panic!("{name}, which make installs"));
    Command::new(path)
}

pub(crate) fn mariadb() -> Program {
    let server = Server::start();
    let clients = server.keep_busy(4);
    let parts: Vec<Box<dyn Any>> = vec![Box::new(clients)];
    let pid = server.pid();
    let mut program = program("MariaDB under sysbench", pid, parts);
    program._parts.push(Box::new(server));
    program
}

pub(crate) fn nginx() -> Program {
    let folder = scratch();
    let root = folder.path().display().to_string();
    fs::write(folder.path().join("index.html"), vec![b'x'; 8192]).expect("a file to serve");
    let config = format!(
        "user root; daemon off; master_process off; pid {root}/pid; error_log {root}/error;
        events {{}}
        http {{
            access_log off; client_body_temp_path {root}/a; proxy_temp_path {root}/b;
            fastcgi_temp_path {root}/c; uwsgi_temp_path {root}/d; scgi_temp_path {root}/e;
            server {{ listen 127.0.0.1:{NGINX_PORT}; root {root}; }}
        }}"
    );
    let path = folder.path().join("nginx.conf");
    fs::write(&path, config).expect("a configuration");
    let mut server = command("nginx");
    server
        .arg("-c")
        .arg(&path)
        .arg("-e")
        .arg(folder.path().join("error"));
    let server = Running::spawn(server, true);
    sleep(Duration::from_millis(300));
    let clients = start_clients(&format!("127.0.0.1:{NGINX_PORT}/index.html"));
    let pid = server.pid();
    let parts: Vec<Box<dyn Any>> = vec![Box::new(clients), Box::new(server), Box::new(folder)];
    program("nginx under wrk", pid, parts)
}

pub(crate) fn redis() -> Program {
    let folder = scratch();
    let socket = folder.path().join("socket");
    let mut server = command("redis-server");
    server.args(["--port", "0", "--save", "", "--appendonly", "no"]);
    server.arg("--unixsocket").arg(&socket);
    let server = Running::spawn(server, true);
    sleep(Duration::from_millis(300));
    let mut clients = command("redis-benchmark");
    clients
        .arg("-s")
        .arg(&socket)
        .args(["-l", "-q", "-c", "16"]);
    clients.args(["-t", "set,get,lpush,lrange_100"]);
    let clients = Running::spawn(clients, true);
    let pid = server.pid();
    let parts: Vec<Box<dyn Any>> = vec![Box::new(clients), Box::new(server), Box::new(folder)];
    program("Redis under redis-benchmark", pid, parts)
}

pub(crate) fn python() -> Program {
    let mut interpreter = command("python3");
    interpreter.arg(source("busy.py")).arg("run");
    start_workload("Python, threads", interpreter, scratch())
}

pub(crate) fn node() -> Program {
    let folder = scratch();
    let mut interpreter = command("node");
    // node writes a log into its working directory.
    interpreter
        .arg("--perf-basic-prof")
        .arg(source("busy.js"))
        .current_dir(folder.path());
    let mut program = start_workload("node", interpreter, folder);
    let map = RemovedWhenDropped::map_of(program.pid);
    program._parts.push(Box::new(map));
    program
}

pub(crate) fn java() -> Program {
    let folder = scratch();
    let mut compiler = command("javac");
    compiler
        .arg("-d")
        .arg(folder.path())
        .arg(source("Busy.java"));
    let compiled = Running::spawn(compiler, true).finish_within(Duration::from_secs(60));
    compiled.succeeded();
    let mut machine = command("java");
    machine
        .args(["-XX:+PreserveFramePointer", "-cp"])
        .arg(folder.path())
        .arg("Busy");
    start_workload("Java, frame pointers kept", machine, folder)
}

pub(crate) fn asyncio_server() -> Program {
    let mut interpreter = command("python3");
    interpreter.arg(source("asyncio_server.py"));
    server("asyncio's server under wrk", interpreter)
}

pub(crate) fn node_server() -> Program {
    let mut interpreter = command("node");
    interpreter.arg(source("http_server.js"));
    server("node's server under wrk", interpreter)
}

/// Starts a server that reports its port, and clients for the server.
fn server(name: &'static str, command: Command) -> Program {
    let binary = PathBuf::from(command.get_program());
    let server = Workload::run(command, binary, scratch());
    let clients = start_clients(&format!("127.0.0.1:{}/", server.told("port")));
    let pid = server.pid();
    program(name, pid, vec![Box::new(clients), Box::new(server)])
}

/// Starts sixteen connections that request a page over and over.
fn start_clients(page: &str) -> Running {
    let mut clients = command("wrk");
    clients.args(["-t1", "-c16", "-d120"]);
    clients.arg(format!("http://{page}"));
    Running::spawn(clients, true)
}

fn start_workload(name: &'static str, command: Command, folder: TempDir) -> Program {
    let binary = PathBuf::from(command.get_program());
    let workload = Workload::run(command, binary, folder);
    let pid = workload.pid();
    program(name, pid, vec![Box::new(workload)])
}

/// Perf map that a program leaves in /tmp. It is removed when dropped.
pub(crate) struct RemovedWhenDropped(PathBuf);

impl RemovedWhenDropped {
    pub(crate) fn map_of(pid: u32) -> RemovedWhenDropped {
        RemovedWhenDropped(PathBuf::from(format!("/tmp/perf-{pid}.map")))
    }
}

impl Drop for RemovedWhenDropped {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
