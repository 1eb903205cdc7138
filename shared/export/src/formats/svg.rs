//! An interactive flame graph (search, zoom) of threads' time.
//!
//! Equal names get equal colours, so two graphs of the same data are identical files.

use std::borrow::Cow;
use std::io::{self, Write};

use inferno::flamegraph::color::{
    BackgroundColor, BasicPalette, Color, MultiPalette, Palette, PaletteMap,
};
use inferno::flamegraph::{self, TextTruncateDirection};
use profile::{FrameKind, LanguageName, Profile, Reason, Sample, State, Unit, Wait};

use crate::format::{Format, Needs};
use crate::measure::Measure;
use crate::text::frames::frame_name;
use crate::text::lines::{Leaves, Lines};
use crate::text::options::{Options, Written};

/// Caption above the graph.
#[derive(Clone, Debug, Default)]
pub struct Caption {
    /// Title, which names the threads whose time the graph shows.
    pub title: String,
    /// Meaning of the widths and colours.
    pub subtitle: String,
}

/// Colours of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Colours of leaves by their state: red on a CPU, blue blocked, amber waiting for a CPU.
    /// Callers are warm greys.
    States,
    /// The customary blues and greens of sleepers and their wakers.
    Wakeups,
    /// The customary reds and yellows of time on CPUs.
    OnCpu,
    /// The customary blues of time off the CPU.
    OffCpu,
}

/// Meaning of the colours of [`Colours::States`], for captions.
pub const STATE_COLOURS: &str = "red: on a CPU, blue: blocked, amber: waiting for a CPU";

/// The SVG format: a flame graph of the whole profile, with a caption of its own.
pub struct Svg;

impl Format for Svg {
    fn name(&self) -> &'static str {
        "svg"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".svg"]
    }

    fn readers(&self) -> &'static str {
        "a browser: a flame graph to search and zoom"
    }

    fn needs(&self) -> Needs {
        Needs::NAMES
    }

    fn write(
        &self,
        profile: &Profile,
        options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        let measure = Measure::new(profile);
        let samples = measure.values(profile);
        let colours = Colours::for_profile(profile);
        let caption = Caption::for_profile(profile, colours, &measure);
        draw(
            profile, samples, &measure, options, colours, &caption, writer,
        )?;
        Ok(Written::default())
    }
}

impl Colours {
    /// Returns the colours that suit a profile.
    fn for_profile(profile: &Profile) -> Colours {
        let any = |has: fn(&Sample) -> bool| profile.samples.keys().any(has);
        if any(|sample| sample.wakers.is_some()) {
            Colours::Wakeups
        } else if any(|sample| sample.state.is_some()) {
            Colours::States
        } else if profile.unit == Unit::Samples {
            Colours::OnCpu
        } else {
            Colours::OffCpu
        }
    }
}

impl Caption {
    /// Builds the caption of a profile.
    fn for_profile(profile: &Profile, colours: Colours, measure: &Measure) -> Caption {
        let whose = match &*profile.meta.targets {
            "" => "all threads",
            targets => targets,
        };
        let title = match colours {
            Colours::States => format!("Where the time of {whose} goes"),
            Colours::Wakeups => format!("Who ended the waits of {whose}"),
            Colours::OnCpu => format!("Time of {whose} on the CPU"),
            Colours::OffCpu => format!("Time of {whose} off the CPU"),
        };
        let subtitle = match (colours, measure) {
            (Colours::States, _) => format!("widths: µs; {STATE_COLOURS}"),
            (Colours::Wakeups, _) => "below the --: where it waited; above: who woke it, from the leaf up; widths are blocked time".to_owned(),
            (_, Measure::Time(1)) => "widths: µs".to_owned(),
            (_, Measure::Time(time)) => {
                format!("widths: µs, by samples that stand for {} µs each", time / 1_000)
            }
            (_, Measure::Events(name, _)) => format!("widths: {name}"),
        };
        Caption { title, subtitle }
    }
}

/// Writes a flame graph of nanoseconds, shown in µs. It merges threads of one name.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(
    profile: &Profile,
    samples: impl IntoIterator<Item = (Sample, u64)>,
    options: &Options,
    colours: Colours,
    caption: &Caption,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let measure = Measure::Time(1);
    draw(
        profile, samples, &measure, options, colours, caption, writer,
    )
}

/// Writes a flame graph of nanoseconds or of events.
fn draw(
    profile: &Profile,
    samples: impl IntoIterator<Item = (Sample, u64)>,
    measure: &Measure,
    options: &Options,
    colours: Colours,
    caption: &Caption,
    writer: &mut dyn Write,
) -> io::Result<()> {
    let (divisor, count_name) = measure.display_unit();
    let mut lines = Vec::new();
    let folded = Lines::new(profile, samples, options);
    folded.for_each(|line, value| {
        if value >= divisor {
            lines.push(format!("{} {}", not_a_comment(line), value / divisor));
        }
        Ok::<_, io::Error>(())
    })?;
    if lines.is_empty() {
        return write_empty(caption, writer);
    }
    // Frames without a colour of their own get one of the customary palette.
    let mut palette = interpreted_palette(profile, options);
    if colours == Colours::States {
        add_states(&mut palette, &lines, folded.leaves());
    }
    let mut options = common_options(caption, count_name);
    options.palette_map = Some(&mut palette);
    match colours {
        Colours::States => {}
        Colours::Wakeups => options.colors = Palette::Multi(MultiPalette::Wakeup),
        Colours::OnCpu => options.colors = Palette::Basic(BasicPalette::Hot),
        Colours::OffCpu => options.colors = Palette::Basic(BasicPalette::Io),
    }
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), writer)
}

/// Returns the options that all flame graphs share.
pub(crate) fn common_options(caption: &Caption, count_name: &str) -> flamegraph::Options<'static> {
    let mut options = flamegraph::Options::default();
    options.title = shortened(&caption.title);
    options.subtitle = Some(caption.subtitle.clone());
    options.count_name = count_name.to_owned();
    options.bgcolors = Some(BackgroundColor::Flat(PAPER));
    options.deterministic = true;
    options.text_truncate_direction = TextTruncateDirection::Right;
    options
}

/// Cuts the title to the width of the graph, because command lines can be long.
fn shortened(title: &str) -> String {
    match title.char_indices().nth(LONGEST_TITLE) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_owned(),
    }
}

/// Replaces the blank after a leading `#`: inferno skips lines that start with `# `, and a thread's
/// name can start with them.
pub(crate) fn not_a_comment(line: &str) -> Cow<'_, str> {
    match line.trim_start().strip_prefix("# ") {
        Some(rest) => format!("#\u{a0}{rest}").into(),
        None => line.into(),
    }
}

/// Maximum characters of a title, which fit into a graph of 1,200 pixels.
const LONGEST_TITLE: usize = 100;

const PAPER: Color = Color::new(255, 253, 250);
const RED: Color = Color::new(226, 88, 70);
/// The colour of waits without work.
const PALE: Color = Color::new(202, 216, 230);
const BLUE: Color = Color::new(92, 148, 222);
const AMBER: Color = Color::new(244, 178, 56);
const GREY: Color = Color::new(222, 214, 204);
/// The colours of functions that runtimes of languages run.
const GREEN: Color = Color::new(146, 196, 125);
const VIOLET: Color = Color::new(168, 152, 216);
const ROSE: Color = Color::new(224, 142, 152);
const OLIVE: Color = Color::new(199, 203, 104);
const TEAL: Color = Color::new(112, 190, 186);

/// Adds a colour for each frame's text that has none: leaves by state and wait, all other frames
/// and the root in grey.
fn add_states(palette: &mut PaletteMap, lines: &[String], leaves: &Leaves) {
    palette.insert("", GREY);
    for (name, &(state, wait)) in leaves {
        palette.insert(name.trim(), shaded(colour(state, wait), name));
    }
    for line in lines {
        let path = line
            .rsplit_once(' ')
            .map_or(line.as_str(), |(path, _)| path);
        // inferno cuts white space off both ends of a line.
        for name in path.trim_start().split(';') {
            if palette.get(name).is_none() {
                palette.insert(name, shaded(GREY, name));
            }
        }
    }
}

/// Returns a palette with a colour for each function that a language's runtime runs.
fn interpreted_palette(profile: &Profile, options: &Options) -> PaletteMap {
    let mut palette = PaletteMap::default();
    for frame in profile.frames.iter() {
        let FrameKind::Interpreted(language) = frame.kind else {
            continue;
        };
        let name = frame_name(profile, frame, options);
        let colour = shaded(colour_of_language(language), &name);
        palette.insert(name, colour);
    }
    palette
}

fn colour_of_language(language: LanguageName) -> Color {
    const PHP: Option<LanguageName> = LanguageName::new("php");
    const RUBY: Option<LanguageName> = LanguageName::new("ruby");
    const NODE: Option<LanguageName> = LanguageName::new("node");
    const JAVA: Option<LanguageName> = LanguageName::new("java");
    match Some(language) {
        PHP => VIOLET,
        RUBY => ROSE,
        NODE => OLIVE,
        JAVA => TEAL,
        _ => GREEN,
    }
}

fn colour(state: State, wait: Option<Wait>) -> Color {
    match (state, wait) {
        (State::Running, _) => RED,
        (State::Runnable, _) => AMBER,
        (State::Blocked, Some(wait)) => blue_of_wait(wait),
        (State::Blocked, None) => BLUE,
    }
}

/// Varies a colour by the name, so borders between neighbours are visible.
fn shaded(base: Color, name: &str) -> Color {
    let shade = (hash(name) % 25) as u8;
    Color::new(
        base.r.saturating_add(shade),
        base.g.saturating_add(shade / 4 * 3),
        base.b.saturating_add(shade / 2),
    )
}

/// Returns the shade of a leaf by its wait: from dark for locks, the first reason, to light for the
/// last. Idle waits are pale for every reason.
fn blue_of_wait(wait: Wait) -> Color {
    if wait.idleness.is_idle() {
        return PALE;
    }
    let steps = Reason::ALL.len() - 1;
    let at = Reason::ALL
        .iter()
        .position(|known| *known == wait.kind.reason);
    let at = at.unwrap_or(steps);
    let between = |dark: usize, pale: usize| {
        u8::try_from(dark + (pale - dark) * at / steps).unwrap_or(u8::MAX)
    };
    Color::new(between(38, 160), between(78, 196), between(160, 240))
}

/// Returns the FNV-1a hash, which is the same on every machine and in every run.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Writes a picture with the text that no time was measured.
pub(crate) fn write_empty(caption: &Caption, writer: &mut dyn Write) -> io::Result<()> {
    let title = escape(&caption.title);
    writeln!(
        writer,
        r#"<?xml version="1.0" standalone="no"?>
<svg version="1.1" width="1200" height="80" xmlns="http://www.w3.org/2000/svg">
<text x="600" y="30" text-anchor="middle" font-family="monospace" font-size="17">{title}</text>
<text x="600" y="60" text-anchor="middle" font-family="monospace" font-size="12">no time was measured</text>
</svg>"#
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{sample, weight, written};

    fn caption() -> Caption {
        Caption {
            title: "<worker> & co".into(),
            subtitle: "widths are µs".into(),
        }
    }

    /// A thread's name, user frames, kernel frames, state and nanoseconds.
    type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str], State, u64);

    fn graph(rows: &[Row<'_>]) -> String {
        let mut profile = Profile::new(Unit::Nanoseconds);
        for &(comm, user, kernel, state, time) in rows {
            let sample = sample(&mut profile, comm, user, kernel, Some(state));
            profile.add(sample, weight(time));
        }
        let samples = profile.values();
        let options = Options::default();
        written(|writer| {
            write(
                &profile,
                samples,
                &options,
                Colours::States,
                &caption(),
                writer,
            )
        })
    }

    const STATES: [Row<'_>; 3] = [
        ("t", &["main", "burn"], &[], State::Running, 3_000_000),
        ("t", &["main"], &["sleep"], State::Blocked, 6_000_000),
        ("t", &["main", "burn"], &[], State::Runnable, 1_000_000),
    ];

    /// Returns the fill of the frame whose tooltip starts with `name`.
    fn fill(svg: &str, name: &str) -> Option<[u8; 3]> {
        let (_, rest) = svg.split_once(&format!("<title>{name} ("))?;
        let (_, rest) = rest.split_once("rgb(")?;
        let (numbers, _) = rest.split_once(')')?;
        let mut numbers = numbers.split(',').map(|number| number.parse().ok());
        Some([numbers.next()??, numbers.next()??, numbers.next()??])
    }

    #[test]
    fn widths_and_captions_are_told() {
        let svg = graph(&STATES);
        assert!(svg.contains("<title>main (10,000 µs, 100.00%)</title>"));
        assert!(svg.contains("<title>sleep_[o] (6,000 µs, 60.00%)</title>"));
        assert!(svg.contains("&lt;worker&gt; &amp; co") && svg.contains("widths are µs"));
        // The controls of the interactive graph.
        assert!(svg.contains("id=\"search\"") && svg.contains("function zoom("));
    }

    #[test]
    fn long_titles_are_cut_between_characters() {
        assert_eq!(shortened(&"é".repeat(100)), "é".repeat(100));
        assert_eq!(shortened(&"é".repeat(101)), format!("{}…", "é".repeat(100)));
    }

    #[test]
    fn the_same_data_gives_the_same_file() {
        let mut reversed = STATES;
        reversed.reverse();
        assert_eq!(graph(&STATES), graph(&reversed));
    }

    #[test]
    fn awkward_names_keep_their_time() {
        let svg = graph(&[
            ("# x", &["f"], &[], State::Running, 2_000),
            (" pool 3", &["a 7"], &[], State::Blocked, 1_000),
        ]);
        assert!(svg.contains("<title>all (3 µs, 100%)</title>"));
        assert!(svg.contains("<title>f_[c] (2 µs, 66.67%)</title>"));
        assert!(matches!(fill(&svg, "a 7_[o]"), Some([r, _, b]) if b > r + 80));
    }

    #[test]
    fn no_time_is_a_picture_too() {
        for rows in [&[][..], &[("t", &["f"][..], &[][..], State::Running, 999)]] {
            let svg = graph(rows);
            assert!(svg.contains("no time was measured") && svg.contains("&lt;worker&gt;"));
        }
    }
}
