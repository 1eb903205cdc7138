//! Headless browsers, which load pages as users do.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::programs::peers::installed;
use crate::programs::workload::scratch;

/// Flags for a machine without a screen and without a network, on which root runs Chromium.
const FLAGS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--allow-file-access-from-files",
    // Virtual time of the page, in ms. It passes as fast as the page completes its work.
    "--virtual-time-budget=20000",
];
/// Names of Chromium.
const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Page of speedscope, which `make test` installs from `tests/viewers/package.json`.
const SPEEDSCOPE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/viewers/node_modules/speedscope/dist/release/index.html"
);

/// Script that opens a page and says what it finds.
const PAGE_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/viewers/page.mjs");

/// Script that measures how fast a page is.
const SPEED_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/viewers/page_speed.mjs");

/// A browser that opens pages of the format `html`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Browser {
    /// Chromium or Chrome.
    Chromium,
    /// Firefox, also with extended support.
    Firefox,
}

impl Browser {
    /// Returns the name for `page.mjs`, and the names of the program.
    fn names(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Browser::Chromium => ("chromium", &CHROMIUM),
            Browser::Firefox => ("firefox", &["firefox", "firefox-esr"]),
        }
    }

    /// Opens a page, and returns the answer of `tests/viewers/page.mjs` to questions.
    ///
    /// # Panics
    ///
    /// Panics if the browser is missing, or if the script fails or finds a fault of the page.
    #[must_use]
    pub fn open_page(self, page: &Path, questions: &Value) -> Value {
        let (name, programs) = self.names();
        let program = programs.iter().find_map(|program| installed(program));
        let program = program.unwrap_or_else(|| panic!("{name}, which `make test` installs"));
        // The script removes the browser's files, but not if it is killed.
        let folder = scratch();
        let output = Command::new("timeout")
            .args(["600", "node", PAGE_SCRIPT, name])
            .args([&*program, page])
            .arg(questions.to_string())
            .env("TMPDIR", folder.path())
            .output()
            .expect("timeout of coreutils");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} {questions}: {told}");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
        let faults = answer["faults"].as_array().expect("faults");
        assert!(faults.is_empty(), "{name} {questions}: {faults:#?}");
        answer
    }
}

/// Opens a page in Chromium, and returns the times that `tests/viewers/page_speed.mjs` measures, in
/// ms.
///
/// # Panics
///
/// Panics if Chromium is missing, or if the page or the script fails.
#[must_use]
pub fn time_page(page: &Path) -> Value {
    let folder = scratch();
    let program = CHROMIUM.into_iter().find_map(installed);
    let program = program.expect("Chromium, which `make bench` installs");
    let output = Command::new("timeout")
        .args(["600", "node", SPEED_SCRIPT])
        .args([&*program, page])
        .env("TMPDIR", folder.path())
        .output()
        .expect("timeout of coreutils");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    serde_json::from_slice(&output.stdout).expect("an answer")
}

/// Loads a page in Chromium, runs its scripts, and returns the resulting document.
///
/// # Panics
///
/// Panics if Chromium is missing or fails.
#[must_use]
pub fn document(page: &str) -> String {
    let profile = scratch();
    let program = CHROMIUM.into_iter().find_map(installed);
    let program = program.expect("Chromium, which `make test` installs");
    let output = Command::new("timeout")
        .arg("120")
        .arg(program)
        .args(FLAGS)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", page])
        .output()
        .expect("timeout of coreutils");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "chromium {page}: {told}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Loads `file` into a frame, runs `script`, and returns the script's result. The script finds the
/// frame's window in `shown`.
///
/// # Panics
///
/// Panics if [`document`] panics, if the file does not exist, or if the script does not end.
#[must_use]
pub fn ask(file: &Path, script: &str) -> String {
    assert!(file.exists(), "no {}", file.display());
    let folder = scratch();
    let page = folder.path().join("page.html");
    let text = format!(
        "<!DOCTYPE html><iframe width=1300 height=900></iframe><script>
const frame = document.querySelector('iframe');
frame.onload = () => {{
	let said;
	try {{ said = (shown => {{ {script} }})(frame.contentWindow); }} catch (error) {{ said = error; }}
	document.body.innerHTML = `<pre>${{said}}</pre>`;
}};
frame.src = 'file://{}';
</script>",
        file.display()
    );
    fs::write(&page, text).expect("a page");
    let document = document(&format!("file://{}", page.display()));
    let said = document
        .split_once("<pre>")
        .and_then(|(_, rest)| rest.split_once("</pre>"));
    let (said, _) = said.unwrap_or_else(|| panic!("the page has no result: {document}"));
    said.to_owned()
}

/// Returns the profiles that speedscope finds in a file, with the weights that it shows, in seconds
/// to three digits.
///
/// # Panics
///
/// Panics if [`document`] panics, if speedscope is not installed, or if it does not show the file.
#[must_use]
pub fn speedscope(file: &Path) -> Vec<(String, f64)> {
    let folder = scratch();
    let base64 = Command::new("base64").arg("-w0").arg(file).output();
    let base64 = String::from_utf8(base64.expect("base64").stdout).expect("ASCII");
    let name = file.file_name().expect("a file").display();
    let script = folder.path().join("file.js");
    // speedscope's own command line hands files over in this way (`bin/cli.mjs`).
    let call = format!("speedscope.loadFileFromBase64('{name}', '{base64}')");
    fs::write(&script, call).expect("a script");
    assert!(
        Path::new(SPEEDSCOPE).exists(),
        "no {SPEEDSCOPE}: `make test` installs it"
    );
    let page = format!("file://{SPEEDSCOPE}#localProfilePath={}", script.display());
    let document = document(&page);
    let rows = document.split("<tr title=\"").skip(1).map(|row| {
        let (name, row) = row.split_once('"').expect("a name");
        let (row, _) = row.split_once("</tr>").expect("a row's end");
        let (_, weight) = row.rsplit_once("\">").expect("a weight");
        let (weight, _) = weight.split_once("</td>").expect("a cell's end");
        (name.to_owned(), seconds(weight))
    });
    rows.collect()
}

/// Parses a time that speedscope shows (`src/lib/value-formatters.ts`), and returns seconds.
fn seconds(text: &str) -> f64 {
    let digits = text.trim_end_matches(|last: char| !last.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "s" => 1.0,
        "ms" => 1e-3,
        "µs" => 1e-6,
        "ns" => 1e-9,
        _ => panic!("{text} is no time"),
    };
    digits.parse::<f64>().expect("a number") * unit
}
