//! Kinds of frames in captures.

use super::{Error, proto};
use profile::{FrameKind, LanguageName};

/// Python, which has a frame kind of its own. Captures had Python frames before frames of other
/// languages.
const PYTHON: Option<LanguageName> = LanguageName::new("python");

/// Converts a frame's kind to the kind and the language in a capture.
pub(super) fn to_capture(kind: FrameKind) -> (proto::FrameKind, String) {
    let kind = match kind {
        FrameKind::User => proto::FrameKind::FrameUser,
        FrameKind::Kernel => proto::FrameKind::FrameKernel,
        FrameKind::Marker => proto::FrameKind::FrameMarker,
        FrameKind::Interpreted(language) if Some(language) == PYTHON => {
            proto::FrameKind::FramePython
        }
        FrameKind::Interpreted(language) => {
            return (proto::FrameKind::FrameInterpreted, language.to_string());
        }
    };
    (kind, String::new())
}

/// Converts the kind of a frame in a capture.
///
/// # Errors
/// The kind is unknown, or the name of the language is invalid.
pub(super) fn from_capture(frame: &proto::Frame) -> Result<FrameKind, Error> {
    let language = match frame.kind() {
        proto::FrameKind::FrameUser => return Ok(FrameKind::User),
        proto::FrameKind::FrameKernel => return Ok(FrameKind::Kernel),
        proto::FrameKind::FrameMarker => return Ok(FrameKind::Marker),
        proto::FrameKind::FramePython => PYTHON,
        proto::FrameKind::FrameInterpreted => LanguageName::new(&frame.language),
        proto::FrameKind::FrameUnknown => {
            return Err(Error::Damaged("a frame is of no kind"));
        }
    };
    language
        .map(FrameKind::Interpreted)
        .ok_or(Error::Damaged("a frame is of no language"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_read_by_name() {
        let language = |name| FrameKind::Interpreted(LanguageName::new(name).unwrap());
        for (kind, number, name) in [
            (FrameKind::Marker, 3, ""),
            // Captures had this kind before other languages.
            (language("python"), 4, ""),
            (language("ruby"), 5, "ruby"),
        ] {
            let (written, language) = to_capture(kind);
            assert_eq!((written as i32, &*language), (number, name));
            let frame = proto::Frame {
                kind: written.into(),
                language,
                ..proto::Frame::default()
            };
            assert_eq!(from_capture(&frame).unwrap(), kind);
        }
        for (kind, language) in [(0, ""), (5, ""), (5, "Ruby"), (6, "ruby")] {
            let frame = proto::Frame {
                kind,
                language: language.to_owned(),
                ..proto::Frame::default()
            };
            from_capture(&frame).unwrap_err();
        }
    }
}
