//! Changes streams of Protocol Buffers messages, and keeps most of them valid.
//!
//! Random changes of bytes rarely get past a parser. This module replaces numbers by other encoded
//! numbers, and adapts the lengths around them.

use crate::Random;

/// Numbers that often break readers, in addition to small ones.
const EDGES: [u64; 12] = [
    0,
    1,
    4,
    7,
    127,
    128,
    1 << 16,
    i32::MAX as u64,
    u32::MAX as u64,
    1 << 53,
    i64::MAX as u64,
    u64::MAX,
];

/// Maximum depth of nested messages.
const DEEPEST: usize = 4;

/// Changes a stream of messages, each with its length before it, in one to three places. Each
/// change affects a number, a field or a message, or copies a message from the stream `donor`.
#[must_use]
pub fn mutate_messages(stream: &[u8], donor: &[u8], random: &mut Random) -> Vec<u8> {
    let mut messages = split(stream);
    let donors = split(donor);
    for _ in 0..=random.below(3) {
        if messages.is_empty() {
            break;
        }
        let at = random.below(messages.len());
        match random.below(20) {
            0 if !donors.is_empty() => {
                let taken = donors[random.below(donors.len())].clone();
                messages.insert(at, taken);
            }
            1 => messages.insert(at, messages[at].clone()),
            2 => {
                let other = random.below(messages.len());
                messages.swap(at, other);
            }
            3 => drop(messages.remove(at)),
            _ => mutate_message(&mut messages[at], DEEPEST, random),
        }
    }
    let mut bytes = Vec::new();
    for message in messages {
        put_varint(&mut bytes, message.len() as u64);
        bytes.extend(message);
    }
    bytes
}

/// Returns the messages of a stream, up to the first incomplete message.
fn split(mut stream: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some((message, rest)) = take_bytes(stream) {
        messages.push(message.to_vec());
        stream = rest;
    }
    messages
}

/// Field of a message.
#[derive(Clone)]
struct Field {
    number: u64,
    value: Value,
}

#[derive(Clone)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

fn mutate_message(bytes: &mut Vec<u8>, deepest: usize, random: &mut Random) {
    let fields = fields(bytes).filter(|fields| !fields.is_empty());
    let Some(mut fields) = fields.filter(|_| deepest > 0) else {
        return mutate_column(bytes, random);
    };
    // Texts and packed columns can look like messages.
    if deepest < DEEPEST && random.below(3) == 0 {
        return mutate_column(bytes, random);
    }
    let at = random.below(fields.len());
    match random.below(12) {
        0 => fields.insert(at, fields[random.below(fields.len())].clone()),
        1 => drop(fields.remove(at)),
        2 => fields[at].number = 1 + random.below(15) as u64,
        _ => match &mut fields[at].value {
            Value::Number(number) => *number = any_number(random),
            Value::Bytes(bytes) => mutate_message(bytes, deepest - 1, random),
        },
    }
    *bytes = Vec::new();
    for Field { number, value } in fields {
        match value {
            Value::Number(value) => {
                put_varint(bytes, number << 3);
                put_varint(bytes, value);
            }
            Value::Bytes(value) => {
                put_varint(bytes, number << 3 | 2);
                put_varint(bytes, value.len() as u64);
                bytes.extend(value);
            }
        }
    }
}

/// Changes some numbers of a packed column, or some bytes of a text.
fn mutate_column(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut numbers = Vec::new();
    let mut rest = &bytes[..];
    while let Some((number, after)) = take_varint(rest) {
        numbers.push(number);
        rest = after;
    }
    if numbers.is_empty() || !rest.is_empty() || random.below(8) == 0 {
        return crate::mutate::mutate(bytes, random);
    }
    // If several numbers are large, their sum overflows.
    let number = any_number(random);
    match random.below(6) {
        0 => numbers.fill(number),
        1 => {
            let from = random.below(numbers.len());
            numbers[from..].fill(number);
        }
        _ => {
            for _ in 0..=random.below(3) {
                let at = random.below(numbers.len());
                numbers[at] = any_number(random);
            }
        }
    }
    match random.below(20) {
        0 => numbers.truncate(1 + random.below(numbers.len())),
        1 => numbers.extend_from_within(..numbers.len().min(9)),
        _ => {}
    }
    bytes.clear();
    numbers
        .into_iter()
        .for_each(|number| put_varint(bytes, number));
}

fn any_number(random: &mut Random) -> u64 {
    match random.below(2) {
        0 => EDGES[random.below(EDGES.len())],
        _ => random.below(40) as u64,
    }
}

/// Returns the fields of a message; `None` if a field is neither a varint nor has a length.
fn fields(mut bytes: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let (key, rest) = take_varint(bytes)?;
        let (value, rest) = match key & 7 {
            0 => take_varint(rest).map(|(number, rest)| (Value::Number(number), rest))?,
            2 => take_bytes(rest).map(|(bytes, rest)| (Value::Bytes(bytes.to_vec()), rest))?,
            _ => return None,
        };
        let number = key >> 3;
        fields.push(Field { number, value });
        bytes = rest;
    }
    Some(fields)
}

fn take_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = take_varint(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

fn take_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[at + 1..]));
        }
    }
    None
}

fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Length of a message, and the message with a number, a text and a packed column.
    const STREAM: [u8; 15] = [
        14, 0x08, 0x96, 0x01, 0x12, 3, b'a', b'b', b'c', 0x1a, 4, 1, 2, 0xac, 0x02,
    ];

    #[test]
    fn a_changed_stream_is_one_of_messages_still() {
        let mut random = Random::new(7);
        let mut changed = 0;
        for _ in 0..1000 {
            let stream = STREAM.repeat(3);
            let other = mutate_messages(&stream, &STREAM, &mut random);
            let messages = split(&other);
            let whole: usize = messages.iter().map(|message| 1 + message.len()).sum();
            assert_eq!(whole, other.len());
            let sound = messages.iter().filter(|it| fields(it).is_some());
            assert!(sound.count() + 3 >= messages.len());
            changed += usize::from(other != stream);
        }
        assert!(changed > 800, "{changed}");
    }
}
