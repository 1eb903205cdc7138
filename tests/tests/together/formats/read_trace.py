"""Reads a trace by the schema of PyPI's perfetto, and prints as JSON what Perfetto derives from it.

States and wakers follow src/trace_processor/importers/common/thread_state_tracker.cc and
importers/ftrace/ftrace_sched_event_tracker.cc of google/perfetto, flows follow flow_tracker.cc.
"""

import collections
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

STATES = {0: "R", 1: "S", 2: "D", 0x10: "X", 0x200: None}


def check_known(message):
    """Fails if the schema does not know a field."""
    unknown = [field.field_number for field in UnknownFieldSet(message)]
    assert not unknown, (message.DESCRIPTOR.full_name, unknown)
    for field, value in message.ListFields():
        if field.message_type:
            for one in value if hasattr(value, "append") else [value]:
                check_known(one)


class States:
    """Perfetto's tables sched and thread_state."""

    def __init__(self):
        self.rows = collections.defaultdict(list)
        self.running = {}
        self.contradictions = 0

    def close(self, tid, ts):
        if self.rows[tid]:
            self.rows[tid][-1]["end"] = ts

    def open(self, tid, ts, state, waker=None):
        row = {"tid": tid, "state": state, "start": ts, "end": None}
        if waker is not None:
            last = self.rows[waker][-1:]
            runs = bool(last) and last[0]["state"] == "Running"
            row |= {"waker": waker, "waker_runs": runs}
        if tid:
            self.rows[tid].append(row)

    def switch(self, cpu, ts, event):
        self.contradictions += self.running.get(cpu, event.prev_pid) != event.prev_pid
        self.running[cpu] = event.next_pid
        self.close(event.prev_pid, ts)
        self.open(event.prev_pid, ts, STATES[event.prev_state])
        self.close(event.next_pid, ts)
        self.open(event.next_pid, ts, "Running")

    def waking(self, ts, waker, tid):
        last = self.rows[tid][-1:]
        if last and last[0]["state"] in ("R", "Running"):
            return
        self.close(tid, ts)
        self.open(tid, ts, "R", waker)


def main():
    trace = schema.Trace()
    with open(sys.argv[1], "rb") as file:
        trace.ParseFromString(file.read())
    names = collections.defaultdict(dict)
    tracks = {}
    switches = []
    events = []
    samples = []
    told = {}
    for packet in trace.packet:
        check_known(packet)
        if packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED:
            names.clear()
        for field, rows in packet.interned_data.ListFields():
            for row in rows:
                assert row.iid not in names[field.name], (field.name, row.iid)
                names[field.name][row.iid] = row
        kind = packet.WhichOneof("data")
        if kind == "clock_snapshot":
            told["clocks"] = {it.clock_id: it.timestamp for it in packet.clock_snapshot.clocks}
            told["primary"] = packet.clock_snapshot.primary_trace_clock
        elif kind == "system_info":
            told["release"] = packet.system_info.utsname.release
        elif kind == "track_descriptor":
            track = packet.track_descriptor
            assert track.uuid not in tracks
            tracks[track.uuid] = track.thread.tid
        elif kind == "ftrace_events":
            bundle = packet.ftrace_events
            for event in bundle.event:
                assert event.HasField("pid")
                switches.append((event.timestamp, bundle.cpu, len(switches), event))
        elif kind == "track_event":
            events.append((packet.timestamp, len(events), packet.track_event))
        elif kind == "stack_sample":
            samples.append((packet.timestamp, packet.stack_sample))

    def stack(iid):
        frames = names["callstacks"][iid].frame_ids if iid else []
        frames = [names["frames"][frame] for frame in frames]
        for frame in frames:
            assert not frame.mapping_id or frame.mapping_id in names["mappings"]
        return [names["function_names"][frame.function_name_id].str.decode() for frame in frames]

    states = States()
    for ts, cpu, _, event in sorted(switches, key=lambda it: it[:3]):
        if event.HasField("sched_switch"):
            states.switch(cpu, ts, event.sched_switch)
        else:
            states.waking(ts, event.pid, event.sched_waking.pid)

    slices = []
    flows = []
    begun = collections.defaultdict(list)
    active = {}
    for ts, _, event in sorted(events, key=lambda it: it[:2]):
        tid = tracks[event.track_uuid]
        if event.type == event.TYPE_SLICE_END:
            begun[event.track_uuid].pop()["end"] = ts
            continue
        notes = {
            names["debug_annotation_names"][note.name_iid].name: (
                names["debug_annotation_string_values"][note.string_value_iid].str.decode()
                if note.HasField("string_value_iid")
                else note.uint_value
            )
            for note in event.debug_annotations
        }
        slice = {
            "tid": tid,
            "name": names["event_names"][event.name_iid].name,
            "categories": [names["event_categories"][iid].name for iid in event.category_iids],
            "start": ts,
            "end": ts,
            "stack": stack(event.callstack_iid),
            "notes": notes,
        }
        slices.append(slice)
        if event.type == event.TYPE_SLICE_BEGIN:
            begun[event.track_uuid].append(slice)
        for flow in event.flow_ids:
            assert flow not in active
            active[flow] = tid
        for flow in event.terminating_flow_ids:
            flows.append({"from": active.pop(flow), "to": tid, "at": ts})
    assert not active and not any(begun.values())

    told |= {
        "contradictions": states.contradictions,
        "states": [row for rows in states.rows.values() for row in rows],
        "slices": slices,
        "flows": flows,
        "samples": [
            {
                "tid": names["stack_sample_task_contexts"][it.task_context_iid].tid,
                "at": ts,
                "stack": stack(it.callstack_iid),
                "weight": it.primary_weight,
            }
            for ts, it in samples
        ],
    }
    json.dump(told, sys.stdout)


main()
