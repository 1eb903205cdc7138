//! Frames that an interpreter keeps: they are no code of a file, and whoever reads them
//! from the interpreter says what they are.

use std::sync::Arc;

use profile::marker::UNKNOWN;
use profile::{FrameKind, ModuleKind};

use crate::frame::{Frame, Module, Source};
use crate::{Location, Symbolizer};

/// A function that an interpreter runs, or what is to be said of those that are missing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interpreted {
    /// The language's kind of frame, or a marker.
    pub kind: FrameKind,
    /// The function, with what it belongs to; or the marker.
    pub name: Arc<str>,
    /// The path of its source file as the interpreter has it.
    pub file: Option<Arc<str>>,
    /// The line where it begins, from 1 on; 0 if that is not known.
    pub first_line: u32,
}

/// Text of functions that is kept, in bytes: a program can make any number of them.
const MOST_TEXT: usize = 256 << 20;

impl Symbolizer {
    /// Where a frame of an interpreter is: in this function, at this line. Unknown, if there
    /// is no room for another function.
    pub fn locate_interpreted(&mut self, function: Interpreted, line: Option<u32>) -> Location {
        if self.interpreted.get(&function).is_none() {
            let file = function.file.as_ref().map_or(0, |file| file.len());
            let size = size_of::<Interpreted>() + function.name.len() + file;
            if self.interpreted_text + size > MOST_TEXT {
                self.losses.interpreted += 1;
                return Location::Unknown;
            }
            self.interpreted_text += size;
        }
        Location::Interpreted {
            function: self.interpreted.id(function).index() as u32,
            line: line.unwrap_or(0),
        }
    }

    /// The frame of one that was located.
    pub(crate) fn interpreted_frame(&self, function: u32, line: u32) -> Frame {
        let Some(function) = self.interpreted.iter().nth(function as usize) else {
            return Frame::without_symbol(UNKNOWN.into(), FrameKind::User);
        };
        let Some(file) = &function.file else {
            return Frame::without_symbol(Arc::clone(&function.name), function.kind);
        };
        let module = Module {
            kind: ModuleKind::Source,
            ..Module::mapped(file.as_bytes())
        };
        Frame {
            name: format!("{}:{}", source_name(file), function.name).into(),
            has_symbol: true,
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

/// The last component of a path; all of what is no path, such as `<string>`.
fn source_name(file: &str) -> &str {
    match file.starts_with('<') {
        true => file,
        false => file.rsplit('/').next().unwrap_or(file),
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
        }
    }

    #[test]
    fn functions_are_kept_as_long_as_there_is_room() {
        let mut symbolizer = Symbolizer::new();
        let size = size_of::<Interpreted>() + "first".len() + "/srv/app.py".len();
        symbolizer.interpreted_text = MOST_TEXT - 2 * size;
        for name in ["first", "first", "other"] {
            let located = symbolizer.locate_interpreted(function(name), None);
            assert_ne!(located, Location::Unknown, "{name}");
        }
        assert_eq!(symbolizer.interpreted_text, MOST_TEXT);
        let located = ["", "first"].map(|name| symbolizer.locate_interpreted(function(name), None));
        assert_eq!(located[0], Location::Unknown);
        assert_ne!(located[1], Location::Unknown);
    }
}
