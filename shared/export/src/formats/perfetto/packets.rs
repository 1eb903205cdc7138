//! The stream of packets.

use std::io::{self, BufWriter, Write};

use prost::Message;
use prost::encoding::encode_varint;

use super::messages::TracePacket;

/// Tag of `Trace.packet`: field 1 with a length.
const PACKET: u8 = 0x0a;
/// Sequence of all packets whose numbers refer to interned rows.
const SEQUENCE: u32 = 1;
/// Flags of a packet: interned rows begin anew, or the packet needs them.
const BEGINS: u32 = 1;
const NEEDS_ROWS: u32 = 2;

/// A writer of packets, which keeps none of them.
pub(super) struct Packets<'a> {
    writer: BufWriter<&'a mut dyn Write>,
    packet: Vec<u8>,
    length: Vec<u8>,
    has_begun: bool,
}

impl<'a> Packets<'a> {
    pub(super) fn new(writer: &'a mut dyn Write) -> Packets<'a> {
        Packets {
            writer: BufWriter::with_capacity(1 << 16, writer),
            packet: Vec::new(),
            length: Vec::new(),
            has_begun: false,
        }
    }

    /// Writes a packet that refers to no interned rows.
    pub(super) fn put_alone(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.packet.clear();
        self.length.clear();
        packet.encode(&mut self.packet)?;
        encode_varint(self.packet.len() as u64, &mut self.length);
        self.writer.write_all(&[PACKET])?;
        self.writer.write_all(&self.length)?;
        self.writer.write_all(&self.packet)
    }

    /// Writes a packet of the sequence with interned rows.
    pub(super) fn put(&mut self, mut packet: TracePacket) -> io::Result<()> {
        packet.trusted_packet_sequence_id = SEQUENCE;
        packet.sequence_flags = if self.has_begun {
            NEEDS_ROWS
        } else {
            BEGINS | NEEDS_ROWS
        };
        self.has_begun = true;
        self.put_alone(&packet)
    }

    /// Writes what is left in the buffer.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Returns a time as Perfetto keeps it: as a signed number.
pub(super) fn time(ns: u64) -> u64 {
    ns.min(i64::MAX as u64)
}
