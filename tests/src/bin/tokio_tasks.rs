//! Workload: tasks of tokio on worker threads. A client asks a server over a connection every
//! 5 ms, both as tasks, and a task wants a lock that another thread holds most of the time. The
//! program prints "ready", and ends with standard input.
#![allow(clippy::unwrap_used)]

use std::io::{self, Read};
use std::sync::Mutex;
use std::thread::{sleep, spawn};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::time;

static LOCK: Mutex<u64> = Mutex::new(0);

const PAUSE: Duration = Duration::from_millis(5);
const HELD: Duration = Duration::from_millis(20);

async fn serve(mut connection: TcpStream) {
    let mut byte = [0];
    while connection.read_exact(&mut byte).await.is_ok() {
        connection.write_all(&byte).await.unwrap();
    }
}

async fn ask(mut connection: TcpStream) {
    let mut byte = [0];
    loop {
        connection.write_all(&byte).await.unwrap();
        connection.read_exact(&mut byte).await.unwrap();
        time::sleep(PAUSE).await;
    }
}

#[inline(never)]
fn want_lock() {
    *LOCK.lock().unwrap() += 1;
}

/// Blocks its worker thread, as async functions should not.
async fn count() {
    loop {
        want_lock();
        time::sleep(PAUSE).await;
    }
}

fn hold_lock() {
    loop {
        let held = LOCK.lock().unwrap();
        sleep(HELD);
        drop(held);
        sleep(PAUSE);
    }
}

fn main() {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(3).enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let to_server = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (to_client, _) = listener.accept().await.unwrap();
        tokio::spawn(serve(to_client));
        tokio::spawn(ask(to_server.unwrap()));
        tokio::spawn(count());
    });
    spawn(hold_lock);
    println!("ready");
    let _ = io::stdin().read(&mut [0]);
}
