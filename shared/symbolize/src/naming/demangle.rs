//! Demangles names of Rust and C++ functions into the names in the source.
//!
//! blazesym can demangle too, but without a bound. A mangled C++ name of 300 bytes can refer back
//! to itself and stand for gigabytes of text.

use std::borrow::Cow;
use std::fmt::{Error, Result, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// Maximum size of a demangled name, in bytes. A name that would become longer stays mangled.
pub(crate) const LONGEST: usize = 16 << 10;

/// Text that does not grow beyond [`LONGEST`].
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Returns the demangled name, or the name itself if it is not mangled.
pub(crate) fn demangle(name: &str) -> Cow<'_, str> {
    rust(name)
        .or_else(|| cpp(name))
        .map_or(Cow::Borrowed(name), Cow::Owned)
}

fn rust(name: &str) -> Option<String> {
    let mut text = Bounded::default();
    // `{:#}` omits the hash.
    write!(text, "{:#}", rustc_demangle::try_demangle(name).ok()?).ok()?;
    Some(text.0)
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let mut text = Bounded::default();
    Symbol::new(name)
        .ok()?
        .structured_demangle(&mut text, &DemangleOptions::new())
        .ok()?;
    Some(text.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_are_told_apart() {
        assert_eq!(
            demangle("_ZN3foo3bar17h05af221e174051e9E"),
            "foo::bar" // Rust, legacy
        );
        assert_eq!(demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo"); // Rust, v0
        assert_eq!(
            demangle("_ZN9wikipedia7article6formatEv"),
            "wikipedia::article::format()"
        );
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_Z"), "_Z");
    }

    #[test]
    fn a_name_that_doubles_with_every_step_stays_as_it_is() {
        let mut name = String::from("_Z1f1AIS_S_E");
        for digit in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ".chars() {
            name += &format!("S_IS{digit}_S{digit}_E");
        }
        assert_eq!(demangle(&name), name);
    }
}
