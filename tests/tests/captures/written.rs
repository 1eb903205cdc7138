//! Writer of captures, record by record. It shares no code with the reader.

/// Magic number and version at the start of a file.
const HEAD: &[u8] = b"\x89scope\n\x01";
/// Rows in a record, as the tools write them.
const ROWS: usize = 4096;

pub(crate) fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

pub(crate) fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

pub(crate) fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    let length = varint(value.len() as u64);
    [varint(field << 3 | 2), length, value.to_vec()].concat()
}

/// Returns a packed column of numbers.
fn column(field: u64, values: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let values: Vec<u8> = values.into_iter().flat_map(varint).collect();
    bytes(field, &values)
}

/// Returns a record, preceded by its length.
pub(crate) fn record(kind: u64, body: &[u8]) -> Vec<u8> {
    let record = bytes(kind, body);
    [varint(record.len() as u64), record].concat()
}

/// Returns `count` copies of a row, in records of the length that the tools write.
pub(crate) fn same_rows(kind: u64, row: &[u8], count: usize) -> Vec<u8> {
    record(kind, &row.repeat(ROWS)).repeat(count / ROWS)
}

/// Returns metadata of off-CPU times in a window of 1 s.
pub(crate) fn meta() -> Vec<u8> {
    let window = [(1, 1_000), (2, 1_000), (3, 1_000_000_000)];
    let window = window.map(|(field, value)| number(field, value)).concat();
    let lengths = [number(1, 1_000), number(2, u64::MAX)].concat();
    let meta = [
        bytes(1, b"offcputime"),
        number(3, 2),
        bytes(8, &window),
        bytes(11, &lengths),
    ];
    record(1, &meta.concat())
}

/// Returns `count` names of one character each, and a user frame for each name.
pub(crate) fn frames(count: usize) -> Vec<u8> {
    let names = (0..count).map(|at| bytes(1, &[b'a' + at as u8]));
    let frames = (0..count as u64).map(|at| bytes(1, &[number(1, at), number(2, 1)].concat()));
    let [names, frames] = [names.collect::<Vec<_>>(), frames.collect()];
    [record(2, &names.concat()), record(4, &frames.concat())].concat()
}

/// Returns a stack of `depth` frames with eight different names, and the stacks of all its callers.
pub(crate) fn stacks(depth: u64) -> Vec<u8> {
    let callers: Vec<u64> = (0..depth).collect();
    let records = callers.chunks(ROWS).map(|callers| {
        let leaves = callers.iter().map(|caller| caller % 8);
        let columns = [column(1, callers.iter().copied()), column(2, leaves)];
        record(5, &columns.concat())
    });
    records.collect::<Vec<_>>().concat()
}

/// Returns a chain of one waker for each of these stacks.
pub(crate) fn chains(stacks: &[u64]) -> Vec<u8> {
    let chains = stacks.iter().map(|stack| {
        let waker = [number(2, 1), number(3, 1), number(4, 1), number(5, *stack)];
        bytes(1, &bytes(1, &waker.concat()))
    });
    record(6, &chains.collect::<Vec<_>>().concat())
}

/// Returns samples of 0.5 ms of one blocked thread. A row contains the numbers of the user stack,
/// of the kernel stack and of the chain.
pub(crate) fn samples(rows: &[[u64; 3]]) -> Vec<u8> {
    weighted_samples(rows, 7, 500_000, 1)
}

/// Returns such samples with this state, value and number of events.
pub(crate) fn weighted_samples(rows: &[[u64; 3]], state: u64, value: u64, events: u64) -> Vec<u8> {
    let same = |value| rows.iter().map(move |_| value);
    let each = |at: usize| rows.iter().map(move |row| row[at]);
    let columns = [
        column(1, same(0)),
        column(2, same(1)),
        column(3, same(1)),
        column(4, each(0)),
        column(5, each(1)),
        column(6, same(state)),
        column(7, each(2)),
        column(8, same(value)),
        column(9, same(events)),
        column(10, same(value)),
        column(12, same(value)),
        column(13, same(events)),
    ];
    record(7, &columns.concat())
}

/// Returns intervals of the samples' thread. Each starts at 0 and lasts `length` ns. `samples`
/// contains the numbers of their samples, counted from 1; 0 means none.
pub(crate) fn intervals(samples: &[u64], length: u64) -> Vec<u8> {
    let same = |value| samples.iter().map(move |_| value);
    let columns = [
        column(1, same(1)),
        column(2, same(1)),
        column(3, same(0)),
        column(4, same(length)),
        column(5, same(3)),
        column(6, samples.iter().copied()),
    ];
    record(12, &columns.concat())
}

/// Returns parts of lanes of the samples' thread, without a key. Each has a stretch, a blocked and a
/// runnable interval of 1 ns.
pub(crate) fn lanes(count: usize) -> Vec<u8> {
    let same = |value| (0..count).map(move |_| value);
    let columns: Vec<Vec<u8>> = [1, 1, 0, 1, 0, 0, 1, 1, 0]
        .into_iter()
        .zip(1..)
        .map(|(value, field)| column(field, same(value)))
        .collect();
    record(19, &columns.concat())
}

/// Returns timed samples at time 0. `samples` contains the numbers of their samples.
pub(crate) fn timed_samples(samples: &[u64]) -> Vec<u8> {
    let same = |value| samples.iter().map(move |_| value);
    let columns = [
        column(1, same(1)),
        column(2, same(1)),
        column(3, same(0)),
        column(4, same(0)),
        column(5, samples.iter().copied()),
    ];
    record(13, &columns.concat())
}

/// Returns request spans that start at 0 and last `length` ns each. `parents` contains the numbers
/// of their parents, counted from 1; 0 means none.
pub(crate) fn request_spans(parents: &[u64], length: u64) -> Vec<u8> {
    let same = |value| parents.iter().map(move |_| value);
    let columns = [
        column(1, same(0)),
        column(2, same(1)),
        column(3, same(1)),
        column(4, same(0)),
        column(5, same(length)),
        column(6, parents.iter().copied()),
    ];
    record(14, &columns.concat())
}

/// Returns the account of the samples' thread.
pub(crate) fn thread() -> Vec<u8> {
    thread_of(0, 1 << 40)
}

/// Returns an account of the samples' thread, with `blocked` ns blocked and `other` ns in each
/// other state.
pub(crate) fn thread_of(other: u64, blocked: u64) -> Vec<u8> {
    let own = [
        (1, 1),
        (2, 1),
        (5, blocked),
        (6, other),
        (7, other),
        (8, blocked),
    ];
    let switches = [(9, other), (10, other)];
    let fields = [&own[..], &switches].concat();
    let fields = fields.iter().map(|&(field, value)| number(field, value));
    record(8, &bytes(1, &fields.collect::<Vec<_>>().concat()))
}

/// Returns a capture of these records and a last record.
pub(crate) fn capture(records: &[Vec<u8>]) -> Vec<u8> {
    pack(&[records.concat(), record(15, b"")].concat())
}

/// Returns a capture with these bytes in place of its records.
pub(crate) fn pack(records: &[u8]) -> Vec<u8> {
    [HEAD, &zstd::encode_all(records, 1).unwrap()].concat()
}

/// Unpacks the first capture of a file.
pub(crate) fn unpack(file: &[u8]) -> Vec<u8> {
    let mut reader = zstd::Decoder::new(&file[HEAD.len()..])
        .unwrap()
        .single_frame();
    let mut records = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut records).unwrap();
    records
}
