//! Ports on which processes listen. They show the side of a connection that a socket is on.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use bpf::types::{ObjectEvent, SocketSide};

/// TCP_LISTEN of `include/net/tcp_states.h`, in the format of /proc/net/tcp.
const LISTENS: &str = "0A";
/// Maximum number of bytes that are read of a list. Listening sockets come first in the list.
const MAX_READ: u64 = 1 << 20;
/// Interval after which the ports are read again for a port that was not found.
const FRESH: Duration = Duration::from_secs(1);
/// Maximum number of processes whose ports are kept.
const MAX_KEPT: usize = 1024;

/// Ports of listening sockets and the time of their read, by process.
#[derive(Default)]
pub(super) struct Listeners(HashMap<u32, (Instant, HashSet<u16>)>);

impl Listeners {
    /// Returns the side of a connection that a socket is on. The event has the side if the kernel
    /// chose one of the two ports. Otherwise the port with a listening socket shows the side.
    pub(super) fn side(&mut self, event: &ObjectEvent) -> SocketSide {
        let side = SocketSide(event.side.into());
        let (local, remote) = (event.local_port, event.remote_port);
        if side != SocketSide::SIDE_UNKNOWN || local == 0 || remote == 0 {
            return side;
        }
        match (
            self.is_listening(event.pid, local),
            self.is_listening(event.pid, remote),
        ) {
            (true, false) => SocketSide::SIDE_ANSWERS,
            (false, true) => SocketSide::SIDE_ASKS,
            _ => SocketSide::SIDE_UNKNOWN,
        }
    }

    fn is_listening(&mut self, pid: u32, port: u16) -> bool {
        let is_known = match self.0.get(&pid) {
            Some((read, ports)) => ports.contains(&port) || read.elapsed() < FRESH,
            None => false,
        };
        if !is_known {
            if self.0.len() >= MAX_KEPT {
                self.0.clear();
            }
            self.0.insert(pid, (Instant::now(), ports(pid)));
        }
        self.0[&pid].1.contains(&port)
    }
}

/// Returns the ports of listening sockets in the network namespace of a process.
fn ports(pid: u32) -> HashSet<u16> {
    let folder = process::living_folder(pid);
    let lists = ["tcp", "tcp6"].map(|name| format!("{folder}/net/{name}"));
    let lists = lists.iter().filter_map(|path| File::open(path).ok());
    lists.flat_map(listening_ports).collect()
}

/// Parses the ports of the listening sockets at the beginning of a list.
fn listening_ports(list: impl Read) -> Vec<u16> {
    let lines = BufReader::new(list.take(MAX_READ)).lines();
    let ports = lines.skip(1).map_while(|line| {
        let line = line.ok()?;
        // Fields of proc_net_tcp.txt: number, local address, remote address, state.
        let mut fields = line.split_whitespace().skip(1);
        let (address, state) = (fields.next()?, fields.nth(1)?);
        let (_, port) = address.rsplit_once(':')?;
        (state == LISTENS).then_some(u16::from_str_radix(port, 16).ok()?)
    });
    ports.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_end_the_list() {
        let text = "  sl  local_address rem_address   st tx_queue\n\
            0: 0100007F:0050 00000000:0000 0A 0:0\n\
            1: 0100007F:FFFF 0100007F:0050 01 0:0\n\
            2: 0100007F:0051 00000000:0000 0A 0:0\n";
        assert_eq!(listening_ports(text.as_bytes()), [0x50]);
        assert!(listening_ports("x\nhostile 0A".as_bytes()).is_empty());
    }
}
