//! On which ports connections are waited for: who has such a port was asked.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use bpf::types::{ObjectEvent, SocketSide};

/// TCP_LISTEN of `include/net/tcp_states.h`, as /proc/net/tcp has it.
const LISTENS: &str = "0A";
/// What is read of a list, in bytes. Sockets that listen come first.
const MOST_READ: u64 = 1 << 20;
/// A port that was not found is looked for again after so long.
const FRESH: Duration = Duration::from_secs(1);
/// Processes of which ports are kept.
const MOST_KEPT: usize = 1024;

/// The ports on which there are listening sockets, where a process is.
#[derive(Default)]
pub(super) struct Listeners(HashMap<u32, (Instant, HashSet<u16>)>);

impl Listeners {
    /// The side that a socket is on: the program knows if one of the two ports was given by
    /// the kernel, else the one on which somebody listens tells.
    pub(super) fn side(&mut self, event: &ObjectEvent) -> SocketSide {
        let side = SocketSide(event.side.into());
        let (local, remote) = (event.local_port, event.remote_port);
        if side != SocketSide::SIDE_UNKNOWN || local == 0 || remote == 0 {
            return side;
        }
        match (self.has(event.pid, local), self.has(event.pid, remote)) {
            (true, false) => SocketSide::SIDE_ANSWERS,
            (false, true) => SocketSide::SIDE_ASKS,
            _ => SocketSide::SIDE_UNKNOWN,
        }
    }

    fn has(&mut self, pid: u32, port: u16) -> bool {
        let is_known = match self.0.get(&pid) {
            Some((read, ports)) => ports.contains(&port) || read.elapsed() < FRESH,
            None => false,
        };
        if !is_known {
            if self.0.len() >= MOST_KEPT {
                self.0.clear();
            }
            self.0.insert(pid, (Instant::now(), ports(pid)));
        }
        self.0[&pid].1.contains(&port)
    }
}

/// The ports of listening sockets in the network namespace of a process.
fn ports(pid: u32) -> HashSet<u16> {
    let folder = process::living_folder(pid);
    let lists = ["tcp", "tcp6"].map(|name| format!("{folder}/net/{name}"));
    let lists = lists.iter().filter_map(|path| File::open(path).ok());
    lists.flat_map(listed).collect()
}

/// Those at the beginning of such a list.
fn listed(list: impl Read) -> Vec<u16> {
    let lines = BufReader::new(list.take(MOST_READ)).lines();
    let ports = lines.skip(1).map_while(|line| {
        let line = line.ok()?;
        // proc_net_tcp.txt: the number, the local address, the remote one, the state.
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
        assert_eq!(listed(text.as_bytes()), [0x50]);
        assert!(listed("x\nhostile 0A".as_bytes()).is_empty());
    }
}
