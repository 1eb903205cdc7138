//! Symbolized stack frames, and the modules and source lines they refer to.

use std::sync::Arc;

use profile::{FrameKind, ModuleKind};

/// Stack frame with the name of its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Name of the function, or `[file]` or `[unknown]` if no symbol covers the address.
    pub name: Arc<str>,
    /// `true` if a symbol covers the address.
    pub has_symbol: bool,
    /// Name before demangling, if it differs. For an interpreter's function: the name without the
    /// source file.
    pub system_name: Option<Arc<str>>,
    /// Distance of the address from the start of the symbol, in bytes.
    pub offset: Option<u64>,
    /// File or region that contains the code, if it is known.
    pub module: Option<Arc<Module>>,
    /// Address, as in [`profile::Frame::address`].
    pub address: Option<u64>,
    /// Kind of the code.
    pub kind: FrameKind,
    /// Source line of the address, if it was requested and is known.
    pub source: Option<Source>,
    /// First line of an interpreter's function; 0 if it is not known.
    pub first_line: u32,
    /// Functions that the compiler inlined at the address, outermost first. Empty unless the caller
    /// requested them.
    pub inlined: Arc<[Inlined]>,
}

impl Frame {
    /// Returns a frame with a name and a kind only.
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

/// Line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path of the file, as the compiler or the interpreter recorded it.
    pub file: Arc<str>,
    /// Line number, starting at 1; 0 if it is not known.
    pub line: u32,
}

/// Function that the compiler inlined into another function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inlined {
    /// Demangled name, if the function has one.
    pub name: Option<Arc<str>>,
    /// Name before demangling, if it differs.
    pub system_name: Option<Arc<str>>,
    /// Source line of the address in this function, if it is known.
    pub source: Option<Source>,
}

/// File or other region that contains code, such as the vDSO or the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Path of the file in the mount namespace of a process that maps it, or a name in brackets.
    pub path: Box<str>,
    /// Last component of the path, or the text within its brackets.
    pub name: Arc<str>,
    /// Build ID in lower-case hexadecimal digits, if it was read and the file has one.
    pub build_id: Option<Box<str>>,
    /// Kind of the module.
    pub kind: ModuleKind,
}

impl Module {
    /// Returns a module that is no file. Its path is `name` in brackets.
    pub(crate) fn bracketed(name: &str, kind: ModuleKind) -> Module {
        Module {
            path: format!("[{name}]").into(),
            name: name.into(),
            build_id: None,
            kind,
        }
    }

    /// Returns the module for a mapping's path: a file, or a name in brackets such as `[vdso]`.
    pub(crate) fn mapped(path: &[u8]) -> Module {
        Module {
            path: String::from_utf8_lossy(path).into(),
            name: file_name(path),
            build_id: None,
            kind: if path.starts_with(b"[") {
                ModuleKind::Vdso
            } else {
                ModuleKind::File
            },
        }
    }

    /// Returns a copy with this build ID. Leaves out a build ID of more than 64 bytes, which no
    /// linker writes.
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

/// Returns the last component of a path, or the text within its brackets.
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
