//! What a location reads as.

use std::sync::Arc;

use profile::{FrameKind, ModuleKind};

/// A location with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Function, or `[file]` or `[unknown]` where no symbol covers the address.
    pub name: Arc<str>,
    /// Whether a symbol covers the address.
    pub has_symbol: bool,
    /// The symbol as the linker knows it, where that differs: the mangled name.
    pub system_name: Option<Arc<str>>,
    /// How far the address is from where the symbol begins, in bytes.
    pub offset: Option<u64>,
    /// What holds the code, where that is known.
    pub module: Option<Arc<Module>>,
    /// The address as [`profile::Frame::address`] has it.
    pub address: Option<u64>,
    /// Where the code lives.
    pub kind: FrameKind,
    /// Where it is in the source, if that was asked for and is known.
    pub source: Option<Source>,
    /// The line where an interpreter's function begins; 0 if that is not known.
    pub first_line: u32,
    /// The functions that are inlined there, if that was asked for, the outermost first.
    pub inlined: Arc<[Inlined]>,
}

impl Frame {
    /// A frame of which nothing is known but this.
    pub(crate) fn without_symbol(name: Arc<str>, kind: FrameKind) -> Frame {
        Frame {
            name,
            has_symbol: false,
            system_name: None,
            offset: None,
            module: None,
            address: None,
            kind,
            source: None,
            first_line: 0,
            inlined: Arc::default(),
        }
    }
}

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's path, as the compiler was given it.
    pub file: Arc<str>,
    /// The line, from 1 on; 0 if it is not known.
    pub line: u32,
}

/// A function that the compiler put into another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// As a programmer knows it, if it has a name.
    pub name: Option<Arc<str>>,
    /// Mangled, where that differs.
    pub system_name: Option<Arc<str>>,
    /// Where it is.
    pub source: Option<Source>,
}

/// What holds code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// A file's path in the mount namespace of a process that maps it, or a name in
    /// brackets.
    pub path: Box<str>,
    /// The last component of the path, or what stands within its brackets.
    pub name: Arc<str>,
    /// Its build ID in lower-case hexadecimal digits, if it was read and has one.
    pub build_id: Option<Box<str>>,
    /// What it is.
    pub kind: ModuleKind,
}

impl Module {
    /// What is no file: `name` in brackets.
    pub(crate) fn bracketed(name: &str, kind: ModuleKind) -> Module {
        Module {
            path: format!("[{name}]").into(),
            name: name.into(),
            build_id: None,
            kind,
        }
    }

    /// The file or the memory that a mapping's path names.
    pub(crate) fn mapped(path: &[u8]) -> Module {
        Module {
            path: String::from_utf8_lossy(path).into(),
            name: file_name(path),
            build_id: None,
            kind: match path.starts_with(b"[") {
                true => ModuleKind::Vdso,
                false => ModuleKind::File,
            },
        }
    }

    /// The same with a build ID, unless that is longer than any linker makes one.
    pub(crate) fn with_build_id(&self, build_id: Option<Vec<u8>>) -> Module {
        const LONGEST: usize = 64;
        let build_id = build_id.filter(|bytes| bytes.len() <= LONGEST);
        let digits = |bytes: Vec<u8>| -> String {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            digits.collect()
        };
        Module {
            build_id: build_id.map(|bytes| digits(bytes).into()),
            ..self.clone()
        }
    }
}

/// The last component of a path, or what stands within its brackets.
fn file_name(path: &[u8]) -> Arc<str> {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let name = name.strip_prefix(b"[").unwrap_or(name);
    let name = name.strip_suffix(b"]").unwrap_or(name);
    String::from_utf8_lossy(name).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_digits_and_not_endless() {
        let module = Module::mapped(b"/usr/bin/a");
        let digits = |bytes: Vec<u8>| module.with_build_id(Some(bytes)).build_id;
        assert_eq!(digits(vec![0xab, 0x01]).as_deref(), Some("ab01"));
        assert!(digits(vec![0; 64]).is_some() && digits(vec![0; 65]).is_none());
        assert_eq!(
            (&*module.path, module.kind),
            ("/usr/bin/a", ModuleKind::File)
        );
    }
}
