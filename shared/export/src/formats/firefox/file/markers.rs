//! Markers, with the fields that each kind has.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, MarkerTypeHandle,
    Profile, RuntimeSchemaMarkerField, RuntimeSchemaMarkerSchema, StackHandle, StringHandle,
};

use super::Category;

/// Kind of a marker. The number of each is its place in [`SCHEMAS`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A blocked interval: wait, resource, waker, waker's stack.
    Blocked,
    /// A runnable interval: waker, waker's stack.
    Runnable,
    /// Several short stays: ns of running, runnable and blocked time.
    Short,
    /// An event in a thread's life: a name.
    Change,
    /// A request span: the name of its parent.
    Request,
    /// A remark on the whole file: a text.
    Remark,
}

/// A type of markers, as viewers show it.
pub(super) struct Schema {
    name: &'static str,
    label: &'static str,
    /// True if each marker is drawn in the track of its thread.
    is_in_track: bool,
    fields: &'static [(&'static str, &'static str, MarkerFieldFormat)],
}

impl Schema {
    pub(super) fn to_runtime(&self) -> RuntimeSchemaMarkerSchema {
        let fields = self.fields.iter();
        let fields = fields.map(|(key, label, format)| RuntimeSchemaMarkerField {
            key: (*key).to_owned(),
            label: (*label).to_owned(),
            format: format.clone(),
            flags: MarkerFieldFlags::SEARCHABLE,
        });
        let mut locations = MarkerLocations::MARKER_CHART | MarkerLocations::MARKER_TABLE;
        locations.set(MarkerLocations::TIMELINE_OVERVIEW, self.is_in_track);
        RuntimeSchemaMarkerSchema {
            type_name: self.name.to_owned(),
            description: None,
            locations,
            chart_label: Some(self.label.to_owned()),
            tooltip_label: Some(self.label.to_owned()),
            table_label: Some(self.label.to_owned()),
            fields: fields.collect(),
            graphs: Vec::new(),
        }
    }
}

const TEXT: MarkerFieldFormat = MarkerFieldFormat::String;
const TIME: MarkerFieldFormat = MarkerFieldFormat::Nanoseconds;
pub(super) const SCHEMAS: &[Schema] = &[
    Schema {
        name: "Blocked",
        label: "{marker.data.wait}",
        is_in_track: true,
        fields: &[
            ("wait", "Wait", TEXT),
            ("resource", "Resource", TEXT),
            ("waker", "Waker", TEXT),
            ("wakerStack", "Waker's stack", TEXT),
        ],
    },
    Schema {
        name: "Runnable",
        label: "{marker.data.waker}",
        is_in_track: true,
        fields: &[
            ("waker", "Waker", TEXT),
            ("wakerStack", "Waker's stack", TEXT),
        ],
    },
    Schema {
        name: "ShortIntervals",
        label: "{marker.name}",
        is_in_track: false,
        fields: &[
            ("running", "Running", TIME),
            ("runnable", "Runnable", TIME),
            ("blocked", "Blocked", TIME),
        ],
    },
    Schema {
        name: "ThreadChange",
        label: "{marker.name} {marker.data.name}",
        is_in_track: true,
        fields: &[("name", "Name of the thread", TEXT)],
    },
    Schema {
        name: "RequestSpan",
        label: "{marker.name}",
        is_in_track: false,
        fields: &[("parent", "Part of", TEXT)],
    },
    Schema {
        name: "Remark",
        label: "{marker.data.text}",
        is_in_track: true,
        fields: &[("text", "Remark", TEXT)],
    },
];

/// Value of a marker's field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Text(StringHandle),
    Number(u64),
}

/// A marker with the values of its kind's fields.
pub(crate) struct Marker<'a> {
    pub(crate) kind: Kind,
    pub(crate) name: &'a str,
    pub(crate) category: Category,
    pub(crate) start_ns: u64,
    /// End; `None` for an instant.
    pub(crate) end_ns: Option<u64>,
    pub(crate) values: &'a [Value],
    pub(crate) stack: Option<StackHandle>,
}

/// A marker as the crate takes it.
pub(super) struct Row<'a> {
    pub(super) schema: MarkerTypeHandle,
    pub(super) name: StringHandle,
    pub(super) category: CategoryHandle,
    pub(super) values: &'a [Value],
}

impl fxprof_processed_profile::Marker for Row<'_> {
    fn marker_type(&self, _: &mut Profile) -> MarkerTypeHandle {
        self.schema
    }

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, field: u32) -> StringHandle {
        match self.values.get(field as usize) {
            Some(Value::Text(text)) => *text,
            // The name stands for a value that the marker does not have.
            Some(Value::Number(_)) | None => self.name,
        }
    }

    fn number_field_value(&self, field: u32) -> f64 {
        match self.values.get(field as usize) {
            Some(Value::Number(number)) => *number as f64,
            Some(Value::Text(_)) | None => 0.0,
        }
    }
}
