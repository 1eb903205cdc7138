#![allow(clippy::unwrap_used, clippy::panic)]

use capture::{Error, Partial};
use profile::Profile;
use profile::diff::diff;

use crate::extract::{Extracted, extract, is_page};
use crate::fixture::{blocked, woken, written};
use crate::timeline_fixture::timeline;
use crate::{write, write_comparison};

/// Returns the records of a profile, which have everything that a capture has.
fn records(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    capture::write_records(profile, &mut bytes).unwrap();
    bytes
}

fn page(profile: &Profile) -> String {
    written(|writer| write(profile, writer))
}

fn read(page: &str) -> Result<Profile, Error> {
    assert!(is_page(page.as_bytes()));
    let Partial { profile, error } = extract(page.as_bytes())?.capture;
    match error {
        Some(error) => Err(error),
        None => Ok(profile),
    }
}

/// Returns the range of the text of the block with this ID.
fn block(page: &str, id: &str) -> std::ops::Range<usize> {
    let tag = page.find(&format!("id=\"{id}\"")).unwrap();
    let start = tag + page[tag..].find('>').unwrap() + 1;
    start..start + page[start..].find('<').unwrap()
}

#[test]
fn a_page_gives_its_capture_back() {
    for profile in [blocked(), woken(), timeline()] {
        let page = page(&profile);
        let mut file = Vec::new();
        capture::write(&profile, &mut file).unwrap();
        let profile = capture::read(&file[..]).unwrap();
        assert_eq!(records(&read(&page).unwrap()), records(&profile));
        // Programs that save or send pages may break lines, and put a mark before the text.
        let block = block(&page, "capture");
        let (first, second) = page.split_at(block.start + block.len() / 2);
        let broken = format!("\u{feff}{first}\r\n {second}");
        assert_eq!(records(&read(&broken).unwrap()), records(&profile));
    }
}

#[test]
fn a_comparison_gives_the_later_capture_back() {
    let mut before = timeline();
    let mut after = timeline();
    before.meta.host = "before".into();
    after.meta.host = "after".into();
    let changes = diff(&before, &after).unwrap();
    let page = written(|writer| write_comparison(&before, &after, &changes, writer));
    let Extracted {
        capture,
        is_comparison,
    } = extract(page.as_bytes()).unwrap();
    assert!(is_comparison && capture.error.is_none());
    assert_eq!(capture.profile.meta.host, "after");
}

#[test]
fn a_page_that_was_cut_or_edited_says_so() {
    let page = page(&timeline());
    let block = block(&page, "capture");
    for at in [
        block.start,
        block.start + 3,
        block.start + block.len() / 2,
        block.end - 1,
    ] {
        let error = read(&page[..at]).unwrap_err();
        assert!(matches!(error, Error::CutOff), "{at}: {error}");
    }
    assert!(read(&page[..=block.end]).is_ok());
    assert!(matches!(
        read(&page[..block.start - 1]),
        Err(Error::NotACapture)
    ));
    assert!(matches!(read("<p>Hello</p>"), Err(Error::NotACapture)));

    let edited = |from: std::ops::Range<usize>, to: &str| {
        let mut page = page.clone();
        page.replace_range(from, to);
        read(&page)
    };
    let middle = block.start + block.len() / 2;
    let other = if &page[middle..=middle] == "A" {
        "B"
    } else {
        "A"
    };
    for (from, to) in [
        (middle..middle + 1, other),
        (middle..middle + 1, "*"),
        (middle..middle + 4, ""),
        (block.clone(), ""),
        (block.clone(), "AAAA"),
        (block.start..block.start, "AAAA"),
        (block.end..block.end, "AAAA"),
        (block.end..block.end, "="),
        // Something else than the text of the block.
        (middle..middle, "<b>"),
    ] {
        let error = edited(from.clone(), to).unwrap_err();
        assert!(
            matches!(error, Error::Damaged(_) | Error::CutOff),
            "{from:?} {to}: {error}"
        );
    }
    let version = page.find("data-version=\"2\"").unwrap() + 14;
    let digit = version..version + 1;
    assert!(matches!(
        edited(digit.clone(), "9"),
        Err(Error::LaterVersion(9))
    ));
    assert!(matches!(
        edited(digit.clone(), "0"),
        Err(Error::NotACapture)
    ));
    assert!(matches!(edited(digit, "x"), Err(Error::NotACapture)));
}

/// Returns a length as a varint.
fn varint(mut length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while length > 0x7f {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes
}

#[test]
fn a_small_page_cannot_unpack_to_a_large_capture() {
    use std::io::Write;
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    // A field that no reader knows: its number and length, and a mebibyte of zeros.
    let mut record = varint(1 << 20);
    record.splice(0..0, [0xc2, 0x3e]);
    record.resize(record.len() + (1 << 20), 0);
    let mut record_length = varint(record.len());
    record_length.append(&mut record);
    for _ in 0..64 {
        packed.write_all(&record_length).unwrap();
    }
    let packed = packed.finish().unwrap();
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(packed);
    let page = format!("<script id=\"capture\" data-version=\"2\">{text}</script>");
    let error = read(&page).unwrap_err();
    assert!(error.to_string().contains("unpacks to far more"), "{error}");
}

#[test]
fn a_writer_that_fails_fails_the_page() {
    let whole = page(&timeline()).len();
    for length in (0..whole).step_by(whole / 100) {
        let mut room = vec![0; length];
        assert!(write(&timeline(), &mut &mut room[..]).is_err(), "{length}");
    }
}

#[test]
fn no_edit_makes_the_reader_panic() {
    let page = page(&timeline()).into_bytes();
    let mut random = tamper::Random::new(0x9a9e);
    let mut taken = 0;
    for _ in 0..3_000 {
        let mut page = page.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(page.len());
            match random.below(3) {
                0 => page[at] = b"<>\"=/+Az09 \n"[random.below(12)],
                1 => page.truncate(at),
                _ => drop(page.splice(at..at, [b'<', b'A'])),
            }
        }
        let capture = extract(&page[..]).map(|it| it.capture);
        taken += u64::from(capture.is_ok_and(|it| it.error.is_none()));
    }
    assert!((100..2_900).contains(&taken), "{taken}");
}
