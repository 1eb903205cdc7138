//! Messages of pprof's `proto/profile.proto` (google/pprof), with the fields that this crate
//! writes. Texts are indexes into the string table, and index 0 is the empty text. IDs count from
//! 1, and 0 means none.

use prost::Message;

/// A profile. Concatenated messages with some of its fields each decode to the same profile.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(super) mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    /// Nanoseconds since 1970 in UTC.
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(super) period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub(super) period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub(super) comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub(super) default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) r#type: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    /// IDs of locations, leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    /// One value for each sample type.
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Label {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    #[prost(int64, tag = "2")]
    pub(super) str: i64,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(super) memory_limit: u64,
    #[prost(int64, tag = "5")]
    pub(super) filename: i64,
    #[prost(int64, tag = "6")]
    pub(super) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(super) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(super) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(super) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(super) has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(super) address: u64,
    /// Lines of the functions inlined at the address, innermost first.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(super) struct Function {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
    #[prost(int64, tag = "5")]
    pub(super) start_line: i64,
}
