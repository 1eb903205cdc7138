//! A change to the BPF programs, and what is expected of it.

use std::fs;
use std::path::{Path, PathBuf};

/// The source tree of this build.
pub(crate) fn tree() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the source tree").to_owned()
}

/// One rule, broken in one place.
pub(crate) struct Mutant {
    /// What a comment or docs/architecture.md says, in a few words.
    pub rule: &'static str,
    /// Below bpf/.
    pub file: &'static str,
    /// A text that is in the file once, and what to put in its place.
    pub change: (&'static str, &'static str),
    pub expected: Expected,
}

pub(crate) enum Expected {
    /// One of these tests fails, `program::module::name`, the quickest first; of tests
    /// that have the programs in them, `package/module::name`.
    Caught(&'static [&'static str]),
    /// No test can tell, for this reason.
    SameHere(&'static str),
}

impl Mutant {
    /// Where its file is in a source tree.
    pub(crate) fn path(&self, tree: &Path) -> PathBuf {
        tree.join("bpf").join(self.file)
    }

    /// The text of its file, changed.
    pub(crate) fn applied_to(&self, text: &str) -> String {
        text.replacen(self.change.0, self.change.1, 1)
    }

    /// # Panics
    ///
    /// When the text to be changed is not in its file exactly once.
    pub(crate) fn assert_applies(&self) {
        let path = self.path(&tree());
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let found = text.matches(self.change.0).count();
        assert_eq!(found, 1, "{} in {}", self.change.0, self.file);
    }

    /// The change as a cell of a table.
    pub(crate) fn change(&self) -> String {
        let code = |text: &str| match text.trim() {
            "" => "nothing".to_owned(),
            text => format!(
                "`{}`",
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            ),
        };
        let (from, to) = self.change;
        format!("{}: {} → {}", self.file, code(from), code(to))
    }
}
