//! Functions that runtimes of languages run. User space reads the functions while they exist, and
//! inserts them between the native frames.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bpf::types::InterpretedFunction;
use languages::interleave::activations::interleave_activations;
use languages::interleave::{Mixed, interleave, interleave_each};
use languages::{End, Frame, Function, Language, Layout, MemoryPieces, Pieces, Reader, Shared};
use process::Process;
use process::ProcessMemory;
use profile::marker::LanguageMark;
use profile::{FrameKind, LanguageName};
use symbolize::{CodeSource, Interpreted, Location, Symbolizer};

use unwind_tables::{InterpretedFrames, MappedRuntime};

/// Maximum size of the kept functions, in bytes. A target can make any number of functions.
const MAX_BYTES: usize = 128 << 20;

/// Position of the native frames in the stack's memory.
pub(crate) struct Extent<'a> {
    /// Stack pointer at the leaf.
    pub(crate) stack_pointer: u64,
    /// Canonical frame addresses, with or without the address of the last frame.
    pub(crate) cfas: &'a [u64],
    /// True if the unwind reached the thread's first function.
    pub(crate) reached_root: bool,
}

/// Process, code, checksum and address in machine code of a function.
type Key = (Process, u64, u32, u64);

/// Functions of runtimes that user space knows.
#[derive(Default)]
pub(crate) struct Functions {
    known: HashMap<Key, Arc<dyn Function>>,
    shared: Shared,
    /// Functions that run in frames of compiled code, innermost first.
    inlined: HashMap<(Process, Frame), Arc<[Frame]>>,
    /// Size of the known functions, in bytes.
    bytes: usize,
    /// Offsets of the code that runs frames one by one, as ranges, by file.
    runs_one: HashMap<u32, Vec<(u64, u64)>>,
    /// True if the profile shows the native frame that runs a runtime's frames.
    pub(crate) shows_runtime: bool,
    /// Languages that a note mentions if no runtime of them was found.
    pub(crate) expected: &'static [&'static dyn Language],
    by_language: BTreeMap<LanguageName, LanguageStats>,
}

/// Runtimes and stacks of one language, for notes.
struct LanguageStats {
    language: &'static dyn Language,
    /// Versions of runtimes whose frames cannot be read.
    unknown: BTreeSet<String>,
    counts: Counts,
}

/// Number of stacks with frames of a runtime, by the end of the chain of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    whole: u64,
    read_failed: u64,
    too_deep: u64,
    broken: u64,
    unanchored: u64,
    /// Frames of functions that no longer existed when user space read them.
    gone: u64,
    /// Stacks that were captured before their runtime was found.
    not_read: u64,
}

/// Copy of a function that a program sent.
struct Sent<'a>(&'a InterpretedFunction);

impl Pieces for Sent<'_> {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        let InterpretedFunction { pieces, bytes, .. } = self.0;
        let read = pieces.iter().find_map(|piece| {
            let sent = bytes.get(piece.start as usize..)?;
            let sent = &sent[..sent.len().min(piece.length as usize)];
            let offset = usize::try_from(start.checked_sub(piece.address)?).ok()?;
            let rest = sent.get(offset..)?;
            (!rest.is_empty()).then(|| &rest[..rest.len().min(most)])
        });
        read.unwrap_or_default().to_vec()
    }
}

impl Functions {
    /// Adds a function that a program sent, if all of its bytes arrived. User space reads other
    /// functions later.
    pub(crate) fn add(&mut self, event: &InterpretedFunction, layout: &Layout) {
        let frame = Frame {
            code: event.code,
            instruction: 0,
            checksum: event.checksum,
            machine_code: 0,
        };
        let process = Process {
            pid: event.pid,
            instance: event.instance,
        };
        let read = (layout.language).copied_function(layout, frame, &Sent(event));
        if let Some(read) = read {
            self.keep((process, frame.code, frame.checksum, 0), &read);
        }
    }

    fn keep(&mut self, key: Key, function: &Arc<dyn Function>) {
        if self.bytes + function.size() <= MAX_BYTES {
            self.bytes += function.size();
            let before = self.known.insert(key, Arc::clone(function));
            self.bytes -= before.map_or(0, |before| before.size());
        }
    }

    /// Inserts frames of a runtime between native frames. All are from leaf to root.
    pub(crate) fn mix(
        &mut self,
        native: &[Location],
        extent: &Extent<'_>,
        frames: &InterpretedFrames,
        symbolizer: &mut Symbolizer,
    ) -> Vec<Location> {
        let language = frames.layout.language;
        let mut chain = frames.chain.clone();
        let reader = &mut Reader {
            process: frames.process,
            memory: ProcessMemory::new(frames.process.pid),
            pieces: MemoryPieces::default(),
            shared: &mut std::mem::take(&mut self.shared),
        };
        if let Some(interrupted) = &mut chain.interrupted {
            interrupted.is_in_file = matches!(native.first(), Some(Location::File { .. }));
        }
        language.complete(&frames.layout, &mut chain, reader);
        let name = language.name();
        let mark = |mark: LanguageMark, symbolizer: &mut Symbolizer| {
            let marker = Interpreted {
                kind: FrameKind::Marker,
                name: mark.frame_name(name).into(),
                file: None,
                first_line: 0,
                names_file: false,
            };
            symbolizer.locate_interpreted(marker, None)
        };
        let (links, shows_native) = (&chain.links, self.shows_runtime);
        let has_no_anchors = !language.has_anchors(&frames.layout);
        let are_whole = extent.reached_root && chain.end == End::Whole;
        let one_by_one = has_no_anchors.then(|| {
            let runs_one = |index: usize| native.get(index).is_some_and(|at| self.runs_one(*at));
            let natives = native.len();
            if language.counts_activations() {
                let (to_root, is_whole) = (extent.reached_root, chain.end == End::Whole);
                let mixed = interleave_activations(
                    natives,
                    runs_one,
                    to_root,
                    is_whole,
                    links,
                    shows_native,
                );
                return Some(mixed);
            }
            interleave_each(natives, runs_one, are_whole, links, shows_native)
        });
        let mixed = one_by_one.flatten().unwrap_or_else(|| {
            let (stack_pointer, cfas) = (extent.stack_pointer, extent.cfas);
            let natives = native.len();
            let to_root = extent.reached_root;
            interleave(stack_pointer, cfas, natives, to_root, links, shows_native)
        });
        let mut locations = Vec::with_capacity(mixed.len() + 1);
        let is_in_callee = chain.interrupted.is_some_and(|at| at.is_in_callee);
        if is_in_callee && mixed.first() != Some(&Mixed::Native(0)) {
            locations.extend(native.first());
        }
        let mut mark_at = None;
        let mut is_unanchored = false;
        let mut ran_function = false;
        let mut gone = 0;
        for frame in mixed {
            let is_caller = std::mem::replace(&mut ran_function, matches!(frame, Mixed::Frame(_)));
            match frame {
                // An interpreter may call itself through a stub for each function. A perf map gives
                // this stub the name of the function. The stack already has the function.
                Mixed::Native(index)
                    if is_caller && matches!(native.get(index), Some(Location::Jit { .. })) => {}
                Mixed::Native(index) => locations.extend(native.get(index)),
                Mixed::Unanchored => {
                    is_unanchored = true;
                    locations.push(mark(LanguageMark::NotPlaced, symbolizer));
                }
                Mixed::Frame(frame) => {
                    for frame in self.inlined(frames, &reader.memory, frame).iter() {
                        match self.function(frames, reader, *frame) {
                            Some(function) => {
                                let inlined = function.inlined().iter();
                                locations.extend(inlined.map(|inlined| {
                                    locate(&*inlined.function, inlined.line, language, symbolizer)
                                }));
                                let line = function.line(frame.instruction);
                                locations.extend(
                                    function
                                        .is_shown(frame.instruction)
                                        .then(|| locate(&*function, line, language, symbolizer)),
                                );
                            }
                            None => {
                                gone += 1;
                                locations.push(mark(LanguageMark::FunctionIsGone, symbolizer));
                            }
                        }
                    }
                    mark_at = Some(locations.len());
                }
            }
        }
        let cut = match chain.end {
            End::Whole | End::NoThread => None,
            End::ReadFailed => Some(LanguageMark::ReadFailed),
            End::TooDeep => Some(LanguageMark::TooDeep),
            End::Broken => Some(LanguageMark::NotUnderstood),
            End::NotRead => Some(LanguageMark::NotRead),
        };
        if let Some(cut) = cut {
            // The callers that belong here are missing.
            let at = mark_at.unwrap_or(locations.len());
            locations.insert(at, mark(cut, symbolizer));
        }
        let counts = &mut self.language_stats(language).counts;
        counts.add(chain.end, is_unanchored);
        counts.gone += gone;
        self.shared = std::mem::take(reader.shared);
        locations
    }

    /// Records the facts about a runtime that was found in a process.
    pub(crate) fn add_runtime(&mut self, runtime: MappedRuntime) {
        let language_stats = self.language_stats(runtime.language);
        if runtime.attached.layout.is_none() {
            language_stats.unknown.insert(runtime.attached.version);
        }
        if let CodeSource::File(file) = runtime.source
            && !runtime.runs_one.is_empty()
        {
            self.runs_one.insert(file, runtime.runs_one);
        }
    }

    fn language_stats(&mut self, language: &'static dyn Language) -> &mut LanguageStats {
        let entry = self.by_language.entry(language.name());
        entry.or_insert_with(|| LanguageStats {
            language,
            unknown: BTreeSet::new(),
            counts: Counts::default(),
        })
    }

    fn runs_one(&self, location: Location) -> bool {
        let Location::File { file, offset } = location else {
            return false;
        };
        let code = self.runs_one.get(&file).into_iter().flatten();
        code.into_iter()
            .any(|(start, end)| (*start..*end).contains(&offset))
    }

    /// Returns the frames of the functions that run in a frame, innermost first.
    fn inlined(
        &mut self,
        frames: &InterpretedFrames,
        memory: &ProcessMemory,
        frame: Frame,
    ) -> Arc<[Frame]> {
        let key = (frames.process, frame);
        if let Some(known) = self.inlined.get(&key) {
            return Arc::clone(known);
        }
        let layout = &frames.layout;
        let Some(functions) = layout.language.functions(layout, frame, memory) else {
            // The code is gone, and the frame itself has no function.
            return Arc::new([frame]);
        };
        let functions: Arc<[Frame]> = functions.into();
        let size = size_of_inlined(&functions);
        if *functions != [frame] && self.bytes + size <= MAX_BYTES {
            self.bytes += size;
            self.inlined.insert(key, Arc::clone(&functions));
        }
        functions
    }

    /// Returns the function that a frame runs, if it is known or can still be read.
    fn function(
        &mut self,
        frames: &InterpretedFrames,
        reader: &mut Reader<'_>,
        frame: Frame,
    ) -> Option<Arc<dyn Function>> {
        let key = (
            frames.process,
            frame.code,
            frame.checksum,
            frame.machine_code,
        );
        let known = self.known.get(&key).map(Arc::clone);
        if let Some(known) = &known
            && known.has_lines()
        {
            return Some(Arc::clone(known));
        }
        // A program sends only as much of a function as fits into a message, so the lines may be
        // missing.
        let layout = &frames.layout;
        let Some(read) = layout.language.function(layout, frame, reader) else {
            return known;
        };
        self.keep(key, &read);
        Some(read)
    }

    /// Removes the functions of programs that have ended.
    pub(crate) fn forget(&mut self, has_ended: impl Fn(Process) -> bool) {
        self.known.retain(|(process, ..), _| !has_ended(*process));
        self.inlined.retain(|(process, _), _| !has_ended(*process));
        self.shared.forget(has_ended);
        let inlined = self
            .inlined
            .values()
            .map(|functions| size_of_inlined(functions));
        let known = self.known.values().map(|function| function.size());
        self.bytes = known.chain(inlined).sum();
    }

    /// Returns lines on the frames of runtimes, for the user; none if there were no such frames.
    pub(crate) fn notes(&self) -> Vec<String> {
        let seen = self.by_language.values();
        let is_missed =
            |language: &&&dyn Language| !self.by_language.contains_key(&language.name());
        let missed = self.expected.iter().filter(is_missed).map(|language| {
            format!(
                "--language {}: no process that was measured has a {} interpreter; \
                 its stacks are native",
                language.name(),
                language.title()
            )
        });
        seen.flat_map(LanguageStats::notes).chain(missed).collect()
    }
}

/// Returns the size of an entry with the functions of a frame, in bytes.
fn size_of_inlined(functions: &[Frame]) -> usize {
    size_of::<(Process, Frame)>() + size_of_val(functions)
}

impl LanguageStats {
    fn notes(&self) -> Vec<String> {
        let Counts {
            whole,
            read_failed,
            too_deep,
            broken,
            unanchored,
            gone,
            not_read,
        } = self.counts;
        let all = whole + read_failed + too_deep + broken + not_read;
        let title = self.language.title();
        let unknown = self.unknown.iter().map(|version| {
            format!(
                "{title} {version}: only the interpreter's own functions are shown; \
                 {} can be read",
                self.language.readable_versions()
            )
        });
        let counted = (all > 0).then(|| {
            format!(
                "stacks with {title} functions: {whole} of {all} whole; \
                 cut short: {read_failed} read failed, {too_deep} too deep, \
                 {broken} not understood, {not_read} not read; {unanchored} not placed; \
                 {gone} functions were gone before they could be named"
            )
        });
        unknown.chain(counted).collect()
    }
}

impl Counts {
    fn add(&mut self, end: End, is_unanchored: bool) {
        match end {
            End::Whole => self.whole += 1,
            End::ReadFailed => self.read_failed += 1,
            End::TooDeep => self.too_deep += 1,
            End::Broken => self.broken += 1,
            End::NotRead => self.not_read += 1,
            End::NoThread => {}
        }
        self.unanchored += u64::from(is_unanchored);
    }
}

/// Returns the location of a frame at a line of its function.
fn locate(
    function: &dyn Function,
    line: Option<u32>,
    language: &dyn Language,
    symbolizer: &mut Symbolizer,
) -> Location {
    let file = function.file();
    let interpreted = Interpreted {
        kind: FrameKind::Interpreted(language.name()),
        name: function.name().into(),
        file: (!file.is_empty()).then(|| file.into()),
        first_line: function.first_line(),
        names_file: language.names_files(),
    };
    symbolizer.locate_interpreted(interpreted, line)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
