//! Messages of Perfetto's trace format (`protos/perfetto/trace` of google/perfetto), with the
//! fields that this crate writes. Perfetto reads repeated numbers unpacked, unless its schema says
//! otherwise. Numbers of interned rows count from 1, and 0 means none.

use prost::Message;
use prost::bytes::Bytes;

/// `TracePacket`. A trace is a sequence of packets, each as field 1 of the message `Trace`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub(super) ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "6")]
    pub(super) clock_snapshot: Option<ClockSnapshot>,
    /// Nanoseconds of the sequence's clock.
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    /// Sequence to whose interned rows the packet's numbers refer.
    #[prost(uint32, tag = "10")]
    pub(super) trusted_packet_sequence_id: u32,
    #[prost(message, optional, tag = "11")]
    pub(super) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(super) interned_data: Option<InternedData>,
    /// 1 where interned rows begin anew, 2 where the packet needs them.
    #[prost(uint32, tag = "13")]
    pub(super) sequence_flags: u32,
    #[prost(message, optional, tag = "45")]
    pub(super) system_info: Option<SystemInfo>,
    #[prost(message, optional, tag = "59")]
    pub(super) trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub(super) track_descriptor: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "135")]
    pub(super) stack_sample: Option<StackSample>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<Clock>,
    /// Clock of the trace's time.
    #[prost(uint32, tag = "2")]
    pub(super) primary_trace_clock: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Clock {
    #[prost(uint32, tag = "1")]
    pub(super) clock_id: u32,
    #[prost(uint64, optional, tag = "2")]
    pub(super) timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) utsname: Option<Utsname>,
    #[prost(uint32, optional, tag = "8")]
    pub(super) num_cpus: Option<u32>,
    #[prost(string, optional, tag = "17")]
    pub(super) machine_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Utsname {
    #[prost(string, tag = "1")]
    pub(super) sysname: String,
    #[prost(string, tag = "3")]
    pub(super) release: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacketDefaults {
    #[prost(uint32, tag = "58")]
    pub(super) timestamp_clock_id: u32,
    #[prost(message, optional, tag = "100")]
    pub(super) stack_sample_defaults: Option<StackSampleDefaults>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StackSampleDefaults {
    #[prost(string, tag = "1")]
    pub(super) source: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    pub(super) uuid: u64,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(string, repeated, tag = "2")]
    pub(super) cmdline: Vec<String>,
    #[prost(string, tag = "6")]
    pub(super) process_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub(super) tid: Option<i64>,
    #[prost(string, tag = "5")]
    pub(super) thread_name: String,
}

/// Values of [`TrackEvent::type`].
pub(super) const SLICE_BEGIN: u32 = 1;
pub(super) const SLICE_END: u32 = 2;
pub(super) const INSTANT: u32 = 3;

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub(super) category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<DebugAnnotation>,
    #[prost(uint32, tag = "9")]
    pub(super) r#type: u32,
    #[prost(uint64, tag = "10")]
    pub(super) name_iid: u64,
    #[prost(uint64, tag = "11")]
    pub(super) track_uuid: u64,
    /// Flows that begin here or pass.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(super) flow_ids: Vec<u64>,
    /// Flows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(super) terminating_flow_ids: Vec<u64>,
    #[prost(uint64, optional, tag = "56")]
    pub(super) callstack_iid: Option<u64>,
    /// Nanoseconds, for flame graphs of slices.
    #[prost(double, optional, tag = "57")]
    pub(super) callstack_weight: Option<f64>,
}

/// One key with one of the values.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(uint64, tag = "1")]
    pub(super) name_iid: u64,
    #[prost(uint64, optional, tag = "3")]
    pub(super) uint_value: Option<u64>,
    #[prost(uint64, optional, tag = "17")]
    pub(super) string_value_iid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StackSample {
    #[prost(uint64, optional, tag = "2")]
    pub(super) task_context_iid: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(super) execution_context_iid: Option<u64>,
    #[prost(uint64, optional, tag = "6")]
    pub(super) callstack_iid: Option<u64>,
    #[prost(uint64, optional, tag = "10")]
    pub(super) primary_descriptor_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(super) primary_weight: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "1")]
    pub(super) event_categories: Vec<InternedName>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub(super) debug_annotation_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "6")]
    pub(super) frames: Vec<Frame>,
    #[prost(message, repeated, tag = "7")]
    pub(super) callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "16")]
    pub(super) build_ids: Vec<InternedBytes>,
    #[prost(message, repeated, tag = "17")]
    pub(super) mapping_paths: Vec<InternedName>,
    #[prost(message, repeated, tag = "18")]
    pub(super) source_paths: Vec<InternedName>,
    #[prost(message, repeated, tag = "19")]
    pub(super) mappings: Vec<Mapping>,
    #[prost(message, repeated, tag = "29")]
    pub(super) debug_annotation_string_values: Vec<InternedName>,
    #[prost(message, repeated, tag = "48")]
    pub(super) stack_sample_task_contexts: Vec<TaskContext>,
    #[prost(message, repeated, tag = "49")]
    pub(super) stack_sample_execution_contexts: Vec<ExecutionContext>,
    #[prost(message, repeated, tag = "50")]
    pub(super) stack_sample_counter_descriptors: Vec<CounterDescriptor>,
}

/// `EventCategory`, `EventName`, `DebugAnnotationName` and `InternedString`, which have the same
/// fields. In the last the text is of the type `bytes`, which is encoded alike.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedName {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
}

/// `InternedString`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedBytes {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) bytes: Vec<u8>,
}

/// Values of [`Frame::kind`].
pub(super) const NATIVE: u32 = 1;
pub(super) const KERNEL: u32 = 2;
pub(super) const INTERPRETED: u32 = 3;
pub(super) const JIT: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Frame {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(uint64, tag = "2")]
    pub(super) function_name_id: u64,
    /// Mapping; a frame that has one has an address too.
    #[prost(uint64, tag = "3")]
    pub(super) mapping_id: u64,
    #[prost(uint64, optional, tag = "4")]
    pub(super) rel_pc: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) source_path_iid: Option<u64>,
    #[prost(uint32, optional, tag = "6")]
    pub(super) line_number: Option<u32>,
    #[prost(uint32, optional, tag = "7")]
    pub(super) kind: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Callstack {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    /// Frames, root first.
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub(super) frame_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(uint64, tag = "2")]
    pub(super) build_id: u64,
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    pub(super) path_string_ids: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct TaskContext {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub(super) tid: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct ExecutionContext {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(uint32, optional, tag = "2")]
    pub(super) cpu: Option<u32>,
}

/// Value of [`CounterDescriptor::unit`].
pub(super) const NANOSECONDS: u32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterDescriptor {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(uint32, optional, tag = "3")]
    pub(super) unit: Option<u32>,
    /// Unit that has no number.
    #[prost(string, optional, tag = "4")]
    pub(super) unit_str: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event: Vec<FtraceEvent>,
}

/// An event of one of the kinds.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(super) timestamp: Option<u64>,
    /// Thread that ran: it is switched out, or it wakes.
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    #[prost(message, optional, tag = "4")]
    pub(super) sched_switch: Option<SchedSwitch>,
    #[prost(message, optional, tag = "20")]
    pub(super) sched_waking: Option<SchedWaking>,
}

/// Names are of the type `string`, which is encoded as `bytes` is.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedSwitch {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) prev_comm: Bytes,
    #[prost(int32, optional, tag = "2")]
    pub(super) prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub(super) prev_state: Option<i64>,
    #[prost(bytes = "bytes", tag = "5")]
    pub(super) next_comm: Bytes,
    #[prost(int32, optional, tag = "6")]
    pub(super) next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub(super) next_prio: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedWaking {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) comm: Bytes,
    /// Thread that is woken.
    #[prost(int32, optional, tag = "2")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(super) prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(super) success: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(super) target_cpu: Option<i32>,
}
