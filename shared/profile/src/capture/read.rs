//! From the bytes of captures to records, whoever wrote them.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use prost::Message;
use zstd::Decoder;

use super::rows::{More, Rows};
use super::{Error, LONGEST_RECORD, MAGIC, MOST_BYTES, MOST_CAPTURES, VERSION, proto};
use crate::Profile;

/// What could be read of a capture, and why it is not all.
#[derive(Debug)]
pub struct Partial {
    /// The records that came whole.
    pub profile: Profile,
    /// What came after them, if that was not the end.
    pub error: Option<Error>,
}

/// Reads a capture, and that nothing comes after it.
///
/// # Errors
/// It cannot be read, is none, is of a later version, or is not whole.
pub fn read(mut reader: impl BufRead) -> Result<Profile, Error> {
    let profile = whole(read_one(&mut reader)?)?;
    match has_more(&mut reader)? {
        true => Err(Error::Damaged("something comes after its end")),
        false => Ok(profile),
    }
}

/// Reads captures that follow one another, as `cat` or wallclock puts them; one at least.
///
/// # Errors
/// One cannot be read, is none, is of a later version, or is not whole.
pub fn read_all(mut reader: impl BufRead) -> Result<Vec<Profile>, Error> {
    let mut profiles = Vec::new();
    while profiles.is_empty() || has_more(&mut reader)? {
        if profiles.len() == MOST_CAPTURES {
            return Err(Error::Damaged("it has too many parts"));
        }
        profiles.push(whole(read_one(&mut reader)?)?);
    }
    Ok(profiles)
}

/// Reads captures that follow one another, as far as they are whole.
///
/// # Errors
/// The first is none, or is of a later version.
pub fn read_what_is_whole(mut reader: impl BufRead) -> Result<Vec<Partial>, Error> {
    let mut partials = vec![read_one(&mut reader)?];
    while partials.last().is_some_and(|last| last.error.is_none())
        && partials.len() < MOST_CAPTURES
        && has_more(&mut reader)?
    {
        match read_one(&mut reader) {
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

/// Reads one capture as far as it is whole, and to where the next one would begin.
fn read_one(reader: &mut impl BufRead) -> Result<Partial, Error> {
    read_head(reader)?;
    let decoder = Decoder::with_buffer(reader).map_err(Error::Read)?;
    let mut records = BufReader::new(decoder.single_frame().take(MOST_BYTES));
    let mut rows = Rows::default();
    let error = loop {
        let taken = next_record(&mut records).and_then(|record| rows.take(record));
        match taken {
            Ok(More::Records) => {}
            Ok(More::None) => break None,
            Err(error) => break Some(error),
        }
    };
    // What a checksum says comes last.
    let error = error.or_else(|| end(&mut records).err());
    Ok(Partial {
        profile: rows.profile,
        error,
    })
}

fn read_head(reader: &mut impl Read) -> Result<(), Error> {
    let mut magic = Vec::new();
    let mut first = reader.by_ref().take(MAGIC.len() as u64);
    first.read_to_end(&mut magic).map_err(Error::Read)?;
    if !MAGIC.starts_with(&magic) {
        return Err(Error::NotACapture);
    }
    let mut version = [0];
    reader.read_exact(&mut version).map_err(told)?;
    match version[0] {
        0 => Err(Error::NotACapture),
        version if version > VERSION => Err(Error::LaterVersion(version)),
        _ => Ok(()),
    }
}

/// What it means when reading fails. zstd's own errors come as `Other`.
fn told(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => Error::CutOff,
        ErrorKind::Other => Error::Damaged("it cannot be unpacked"),
        _ => Error::Read(error),
    }
}

fn next_record(reader: &mut impl BufRead) -> Result<proto::Record, Error> {
    let length = record_length(reader)?;
    if length > LONGEST_RECORD as u64 {
        return Err(Error::Damaged("a record is too long"));
    }
    // Grows with what comes, not with what the length claims.
    let mut bytes = Vec::new();
    let read = reader.take(length).read_to_end(&mut bytes).map_err(told)?;
    if (read as u64) < length {
        return Err(Error::CutOff);
    }
    proto::Record::decode(&bytes[..]).map_err(|_| Error::Damaged("a record is no message"))
}

/// A varint of up to ten bytes.
fn record_length(reader: &mut impl Read) -> Result<u64, Error> {
    let mut length = 0_u64;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        reader.read_exact(&mut byte).map_err(told)?;
        length |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Ok(length);
        }
    }
    Err(Error::Damaged("a record has no length"))
}

/// Nothing comes after the last record.
fn end(reader: &mut impl BufRead) -> Result<(), Error> {
    match reader.bytes().next() {
        None => Ok(()),
        Some(Ok(_)) => Err(Error::Damaged("something comes after its end")),
        Some(Err(error)) => Err(told(error)),
    }
}
