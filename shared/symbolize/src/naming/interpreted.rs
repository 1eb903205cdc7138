//! Frames of functions that an interpreter runs. These functions are no code of a file. The reader
//! of the interpreter's memory provides their names.

use std::sync::Arc;

use profile::marker::UNKNOWN;
use profile::{FrameKind, ModuleKind, Table};

use crate::frame::{Frame, Module, Source};
use crate::location::Location;

/// Function that an interpreter runs, or a marker for missing functions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interpreted {
    /// Kind of the language's frames, or of a marker.
    pub kind: FrameKind,
    /// Qualified name of the function, or text of the marker.
    pub name: Arc<str>,
    /// Path of the source file, as the interpreter has recorded it.
    pub file: Option<Arc<str>>,
    /// First line of the function, starting at 1; 0 if it is unknown.
    pub first_line: u32,
    /// True if the function is shown with the name of its file.
    pub names_file: bool,
}

/// Maximum size of all functions, in bytes. A program can make any number of functions.
const MAX_TEXT: usize = 256 << 20;

/// Functions that interpreters run.
#[derive(Default)]
pub(crate) struct InterpretedFunctions {
    table: Table<Interpreted>,
    /// Size of all functions, in bytes.
    text: usize,
}

impl InterpretedFunctions {
    /// Returns the location of a frame in this function at this line; `None` if the function
    /// exceeds the capacity.
    pub(crate) fn locate(&mut self, function: Interpreted, line: Option<u32>) -> Option<Location> {
        if self.table.get(&function).is_none() {
            let file = function.file.as_ref().map_or(0, |file| file.len());
            let size = size_of::<Interpreted>() + function.name.len() + file;
            if self.text + size > MAX_TEXT {
                return None;
            }
            self.text += size;
        }
        Some(Location::Interpreted {
            function: self.table.id(function).index() as u32,
            line: line.unwrap_or(0),
        })
    }

    /// Returns the frame for the function with this index, at this line.
    pub(crate) fn frame(&self, function: u32, line: u32) -> Frame {
        let Some(function) = self.table.iter().nth(function as usize) else {
            return Frame::without_symbol(UNKNOWN.into(), FrameKind::User);
        };
        let has_symbol = function.kind != FrameKind::Marker;
        let Some(file) = &function.file else {
            return Frame {
                has_symbol,
                ..Frame::without_symbol(Arc::clone(&function.name), function.kind)
            };
        };
        let module = Module {
            kind: ModuleKind::Source,
            ..Module::mapped(file.as_bytes())
        };
        let name = if function.names_file {
            format!("{}:{}", source_name(file), function.name).into()
        } else {
            Arc::clone(&function.name)
        };
        Frame {
            name,
            has_symbol,
            system_name: Some(Arc::clone(&function.name)),
            module: Some(module.into()),
            source: Some(Source {
                file: Arc::clone(file),
                line,
            }),
            first_line: function.first_line,
            ..Frame::without_symbol("".into(), function.kind)
        }
    }
}

/// Returns the last component of a path, or a name that is no path, such as `<string>`.
fn source_name(file: &str) -> &str {
    if file.starts_with('<') {
        file
    } else {
        file.rsplit('/').next().unwrap_or(file)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use profile::LanguageName;

    use super::*;

    fn function(name: &str) -> Interpreted {
        Interpreted {
            kind: FrameKind::Interpreted(LanguageName::new("snake").unwrap()),
            name: name.into(),
            file: Some("/srv/app.py".into()),
            first_line: 7,
            names_file: true,
        }
    }

    #[test]
    fn functions_are_kept_as_long_as_there_is_room() {
        let mut functions = InterpretedFunctions::default();
        let size = size_of::<Interpreted>() + "first".len() + "/srv/app.py".len();
        functions.text = MAX_TEXT - 2 * size;
        for name in ["first", "first", "other"] {
            let located = functions.locate(function(name), None);
            assert!(located.is_some(), "{name}");
        }
        assert_eq!(functions.text, MAX_TEXT);
        assert_eq!(functions.locate(function(""), None), None);
        assert!(functions.locate(function("first"), None).is_some());
    }
}
