//! Layouts in the form that programs read: the structs of the headers in `bpf/include/languages`.

use bpf::types::headers;
use plain::Plain;

use crate::language::{Language, Layout};

/// Struct of a language's header.
///
/// # Safety
///
/// The type consists of integers without padding, as `repr(C)` lays them out.
pub(crate) unsafe trait InPrograms: Default {}

// SAFETY: the header has no padding.
unsafe impl InPrograms for headers::hotspot_layout {}
// SAFETY: as above.
unsafe impl InPrograms for headers::php_layout {}
// SAFETY: as above.
unsafe impl InPrograms for headers::python_layout {}
// SAFETY: as above.
unsafe impl InPrograms for headers::ruby_layout {}
// SAFETY: as above.
unsafe impl InPrograms for headers::v8_layout {}

#[repr(transparent)]
struct Bytes<T>(T);

// SAFETY: InPrograms requires what Plain does.
unsafe impl<T: InPrograms> Plain for Bytes<T> {}

impl Layout {
    /// Makes a layout of a struct that programs read.
    pub(crate) fn new<T: InPrograms>(
        language: &'static dyn Language,
        version: u32,
        value: &T,
    ) -> Layout {
        // SAFETY: the value consists of integers without padding.
        let bytes = unsafe { plain::as_bytes(value) };
        Layout {
            language,
            version,
            bytes: bytes.to_vec(),
            details: None,
        }
    }

    /// Returns the struct that programs read; `None` if the layout is of another language.
    pub(crate) fn in_programs<T: InPrograms>(&self) -> Option<T> {
        let mut value = Bytes(T::default());
        plain::copy_from_bytes(&mut value, &self.bytes).ok()?;
        Some(value.0)
    }
}
