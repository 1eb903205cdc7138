//! Turns the bytes of untrusted captures into records.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use zstd::Decoder;

use super::budget::{Budget, Counted};
use super::rows::{More, Rows};
use super::{Error, LONGEST_RECORD, MAGIC, MAX_CAPTURES, MAX_FIELDS, VERSION, proto, times};
use profile::Profile;

/// Complete records of a capture, and the error that ended it.
#[derive(Debug)]
pub struct Partial {
    /// Profile of the complete records.
    pub profile: Profile,
    /// Error after these records; `None` if the capture is complete.
    pub error: Option<Error>,
}

/// Reads one capture to the end of the input.
///
/// # Errors
/// The input cannot be read, is no capture, has a later version, is incomplete or damaged, or has
/// bytes after the capture.
pub fn read(reader: impl BufRead) -> Result<Profile, Error> {
    let packed = Cell::new(0);
    let mut reader = Counted::new(reader, &packed);
    let profile = whole(read_one(&mut reader, &mut Budget::new(&packed))?)?;
    if has_more(&mut reader)? {
        Err(Error::Damaged("something comes after its end"))
    } else {
        Ok(profile)
    }
}

/// Reads one or more captures that follow one another, as `cat` or wallclock writes them.
///
/// # Errors
/// A capture cannot be read, is no capture, has a later version, or is incomplete or damaged.
pub fn read_all(reader: impl BufRead) -> Result<Vec<Profile>, Error> {
    let packed = Cell::new(0);
    let mut reader = Counted::new(reader, &packed);
    let mut budget = Budget::new(&packed);
    let mut profiles = Vec::new();
    while profiles.is_empty() || has_more(&mut reader)? {
        if profiles.len() == MAX_CAPTURES {
            return Err(Error::Damaged("it has too many parts"));
        }
        profiles.push(whole(read_one(&mut reader, &mut budget)?)?);
    }
    Ok(profiles)
}

/// Reads captures that follow one another, up to the first error.
///
/// # Errors
/// The head of the first capture cannot be read, has no magic, or has a later version.
pub fn read_what_is_whole(reader: impl BufRead) -> Result<Vec<Partial>, Error> {
    let packed = Cell::new(0);
    let mut reader = Counted::new(reader, &packed);
    let mut budget = Budget::new(&packed);
    let mut partials = vec![read_one(&mut reader, &mut budget)?];
    while partials.last().is_some_and(|last| last.error.is_none()) && has_more(&mut reader)? {
        let next = if partials.len() < MAX_CAPTURES {
            read_one(&mut reader, &mut budget)
        } else {
            Err(Error::Damaged("it has too many parts"))
        };
        match next {
            Ok(partial) => partials.push(partial),
            Err(error) => {
                if let Some(last) = partials.last_mut() {
                    last.error = Some(error);
                }
                break;
            }
        }
    }
    Ok(partials)
}

/// Reads the records of one capture, which another kind of file holds unpacked: the counterpart of
/// [`write_records`](crate::write_records). `packed` has the bytes of that file that were read so
/// far; the bounds on rows and bytes grow with them. The reader reports packed bytes that cannot be
/// unpacked as errors of the kind `Other`.
///
/// # Errors
/// The version is later than this reader's.
pub fn read_records(
    version: u8,
    mut records: impl BufRead,
    packed: &Cell<u64>,
) -> Result<Partial, Error> {
    check_version(version)?;
    let budget = &mut Budget::new(packed);
    Ok(read_rows(version, &mut records, budget))
}

fn whole(Partial { profile, error }: Partial) -> Result<Profile, Error> {
    match error {
        None => Ok(profile),
        Some(error) => Err(error),
    }
}

fn has_more(reader: &mut impl BufRead) -> Result<bool, Error> {
    loop {
        match reader.fill_buf() {
            Ok(bytes) => return Ok(!bytes.is_empty()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::Read(error)),
        }
    }
}

/// Reads one capture up to its first error, and leaves the reader at the start of the next.
fn read_one(reader: &mut impl BufRead, budget: &mut Budget<'_>) -> Result<Partial, Error> {
    let version = read_head(reader)?;
    let decoder = Decoder::with_buffer(reader).map_err(Error::Read)?;
    let mut records = BufReader::new(decoder.single_frame());
    Ok(read_rows(version, &mut records, budget))
}

/// Reads records up to the last one, or to the first error.
fn read_rows(version: u8, records: &mut impl BufRead, budget: &mut Budget<'_>) -> Partial {
    let mut rows = Rows::new(version);
    let error = loop {
        let record = next_record(records, budget);
        let taken = record.and_then(|record| rows.take(record, budget));
        match taken {
            Ok(More::Records) => {}
            Ok(More::None) => break None,
            Err(error) => break Some(error),
        }
    };
    // A wrong checksum is reported only at the end of the stream.
    let error = error.or_else(|| end(records).err());
    if error.is_some() {
        times::add_accounts(&mut rows.profile);
    }
    Partial {
        profile: rows.profile,
        error,
    }
}

/// Reads the magic and returns the version.
fn read_head(reader: &mut impl Read) -> Result<u8, Error> {
    let mut magic = Vec::new();
    let mut first = reader.by_ref().take(MAGIC.len() as u64);
    first.read_to_end(&mut magic).map_err(Error::Read)?;
    if !MAGIC.starts_with(&magic) {
        return Err(Error::NotACapture);
    }
    let mut version = [0];
    reader.read_exact(&mut version).map_err(read_error)?;
    check_version(version[0])?;
    Ok(version[0])
}

fn check_version(version: u8) -> Result<(), Error> {
    match version {
        0 => Err(Error::NotACapture),
        version if version > VERSION => Err(Error::LaterVersion(version)),
        _ => Ok(()),
    }
}

/// Converts an error of a read through zstd, which reports its own errors as `Other`.
fn read_error(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => Error::CutOff,
        ErrorKind::Other => Error::Damaged("it cannot be unpacked"),
        _ => Error::Read(error),
    }
}

fn next_record(reader: &mut impl BufRead, budget: &mut Budget<'_>) -> Result<proto::Record, Error> {
    let length = record_length(reader)?;
    if length > LONGEST_RECORD as u64 {
        return Err(Error::Damaged("a record is too long"));
    }
    // Empty records count as well: the length takes a byte.
    budget.take_unpacked(length.saturating_add(1))?;
    // The buffer grows with the bytes that arrive, not with the length that the record claims.
    let mut bytes = Vec::new();
    let read = reader
        .take(length)
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    if (read as u64) < length {
        return Err(Error::CutOff);
    }
    // A field of two bytes can take a hundred bytes in memory.
    if count_fields(&bytes) > MAX_FIELDS {
        return Err(Error::Damaged("a record has too many rows"));
    }
    proto::Record::decode(&bytes[..]).map_err(|_| Error::Damaged("a record is no message"))
}

/// Counts the fields of the messages in a record, which are rows or columns. The count stops at
/// bytes that are not a field.
fn count_fields(mut record: &[u8]) -> usize {
    let mut fields = 0;
    while let Some((mut message, rest)) = next_field(record) {
        record = rest;
        while fields <= MAX_FIELDS
            && let Some((_, rest)) = next_field(message)
        {
            message = rest;
            fields += 1;
        }
    }
    fields
}

/// Returns the content of the first field, empty for a varint, and the bytes after the field.
fn next_field(mut bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, kind) = decode_key(&mut bytes).ok()?;
    let length = match kind {
        WireType::LengthDelimited => decode_varint(&mut bytes).ok()?,
        WireType::Varint => {
            decode_varint(&mut bytes).ok()?;
            0
        }
        WireType::ThirtyTwoBit => 4,
        WireType::SixtyFourBit => 8,
        // The fields inside the group follow.
        WireType::StartGroup | WireType::EndGroup => 0,
    };
    bytes.split_at_checked(usize::try_from(length).ok()?)
}

/// Reads a varint of up to ten bytes.
fn record_length(reader: &mut impl Read) -> Result<u64, Error> {
    let mut length = 0_u64;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        reader.read_exact(&mut byte).map_err(read_error)?;
        length |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Ok(length);
        }
    }
    Err(Error::Damaged("a record has no length"))
}

/// Checks that no bytes follow the last record.
fn end(reader: &mut impl BufRead) -> Result<(), Error> {
    match reader.bytes().next() {
        None => Ok(()),
        Some(Ok(_)) => Err(Error::Damaged("something comes after its end")),
        Some(Err(error)) => Err(read_error(error)),
    }
}
