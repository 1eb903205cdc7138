//! The script and the style of a page, from the files in `web/`.
//!
//! A page that is opened as a file cannot import other files, so the modules are joined to one
//! script. This needs rules for the modules, which a test checks: exports have names, imports and
//! exports rename nothing, and the names at the top of all modules differ.

use std::sync::LazyLock;

/// The modules: each after the modules that it imports. `main.js` comes last.
const MODULES: &[(&str, &str)] = &[
    ("dom.js", include_str!("../web/dom.js")),
    ("format.js", include_str!("../web/format.js")),
    ("proto.js", include_str!("../web/proto.js")),
    ("tree.js", include_str!("../web/tree.js")),
    ("data.js", include_str!("../web/data.js")),
    ("selection.js", include_str!("../web/selection.js")),
    ("search.js", include_str!("../web/search.js")),
    ("state.js", include_str!("../web/state.js")),
    ("chips.js", include_str!("../web/chips.js")),
    ("menu.js", include_str!("../web/menu.js")),
    ("kinds.js", include_str!("../web/kinds.js")),
    ("flame.js", include_str!("../web/flame.js")),
    ("table.js", include_str!("../web/table.js")),
    ("wakers.js", include_str!("../web/wakers.js")),
    ("lanes.js", include_str!("../web/lanes.js")),
    ("compare.js", include_str!("../web/compare.js")),
    ("summary.js", include_str!("../web/summary.js")),
    ("main.js", include_str!("../web/main.js")),
];

/// The styles, in their order.
const STYLES: &[(&str, &str)] = &[
    ("page.css", include_str!("../web/page.css")),
    ("summary.css", include_str!("../web/summary.css")),
    ("views.css", include_str!("../web/views.css")),
];

/// The script of a page: all modules, as [`join`] shortens them.
pub(crate) static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let mut script = String::new();
    for (name, module) in MODULES {
        script.push_str(&format!("// {name}\n"));
        join(module, &mut script);
    }
    script
});

/// The style of a page.
pub(crate) static STYLE: LazyLock<String> = LazyLock::new(|| {
    let styles = STYLES.iter().map(|(_, style)| *style);
    styles.collect()
});

/// Appends the code of a module without its imports, the word `export` and indentation.
fn join(module: &str, script: &mut String) {
    let mut is_import = false;
    for line in code(module) {
        is_import |= line.starts_with("import ");
        if is_import {
            // An import can have several lines; its last one ends in a semicolon.
            is_import = !line.trim_end().ends_with(';');
            continue;
        }
        let text = line.trim();
        script.push_str(text.strip_prefix("export ").unwrap_or(text));
        script.push('\n');
    }
}

/// Returns the lines of a module without empty lines and comments that have lines of their own.
/// These and indentation are a third of the text.
fn code(module: &str) -> impl Iterator<Item = &str> {
    let mut is_comment = false;
    module.lines().filter(move |line| {
        let text = line.trim();
        // Code can follow a comment, as in a cast.
        is_comment |= text.starts_with("/*") && (text.ends_with("*/") || !text.contains("*/"));
        let is_code = !is_comment && !text.is_empty() && !text.starts_with("//");
        is_comment &= !text.ends_with("*/");
        is_code
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Returns the name that a line at the top of a module declares.
    fn declared(line: &str) -> Option<&str> {
        let line = line.strip_prefix("export ").unwrap_or(line);
        let line = line.strip_prefix("async ").unwrap_or(line);
        let words = ["function* ", "function ", "const ", "let ", "class "];
        let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
        let end = rest.find(|character: char| {
            !character.is_alphanumeric() && character != '_' && character != '$'
        });
        Some(&rest[..end.unwrap_or(rest.len())])
    }

    #[test]
    fn nothing_in_the_sources_ends_the_elements() {
        for (name, text) in MODULES.iter().chain(STYLES) {
            let lower = text.to_ascii_lowercase();
            for sequence in [
                "</script", "<script", "</style", "<!--", "-->", "\r", "\u{0}", "\u{feff}",
            ] {
                assert!(!lower.contains(sequence), "{name} has {sequence:?}");
            }
        }
    }

    #[test]
    fn modules_can_be_joined() {
        let mut names: HashMap<&str, &str> = HashMap::new();
        for (at, (name, module)) in MODULES.iter().enumerate() {
            for line in code(module) {
                // A text of several lines could have lines that read as comments.
                assert!(line.matches('`').count() % 2 == 0, "{name}: {line}");
                for refused in [
                    "import(",
                    "import.meta",
                    "export default",
                    "export *",
                    "export {",
                ] {
                    assert!(!line.contains(refused), "{name}: {line}");
                }
                let is_import = line.starts_with("import ");
                assert!(!is_import || !line.contains(" as "), "{name}: {line}");
                if let Some(from) = line
                    .strip_prefix("import ")
                    .and_then(|it| it.split('"').nth(1))
                {
                    let mut earlier = MODULES[..at].iter();
                    let is_earlier = earlier.any(|(other, _)| from == format!("./{other}"));
                    assert!(is_earlier, "{name} imports {from}, which comes later");
                }
                if let Some(declared) = declared(line) {
                    let other = names.insert(declared, name);
                    assert_eq!(
                        other, None,
                        "{declared} of {name} is also in another module"
                    );
                }
            }
        }
    }

    #[test]
    fn a_page_without_data_is_small() {
        let bytes = SCRIPT.len() + STYLE.len();
        assert!(bytes < 290_000, "{bytes} bytes");
    }

    #[test]
    fn imports_exports_and_comments_are_left_out() {
        let mut script = String::new();
        let module = "\
// A module.
import { a } from \"./a.js\";
import {
  b,
} from \"./b.js\";

/** One line. */
export const c = a; // stays
/**
 * Several lines.
 */
export function d() {
  // Why.
  /** @type {B} */ (b).c = c;
  return b;
}
";
        join(module, &mut script);
        assert_eq!(
            script,
            "const c = a; // stays\nfunction d() {\n/** @type {B} */ (b).c = c;\nreturn b;\n}\n"
        );
    }
}
