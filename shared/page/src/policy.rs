//! The content security policy of a page.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Returns the policy of a page with this style and this script. The browser loads nothing, runs
/// and applies nothing else, and lets no script make HTML of text.
///
/// The hashes are made when the page is written, so they fit the text that the page has.
pub(crate) fn policy(style: &str, script: &str) -> String {
    let [style, script] = [style, script].map(|text| STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; \
         img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_text() {
        // From `printf 'a{}' | openssl dgst -sha256 -binary | base64`.
        let policy = policy("a{}", "");
        assert!(
            policy.contains("style-src 'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='"),
            "{policy}"
        );
        assert!(
            policy.contains("script-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"),
            "{policy}"
        );
    }
}
