//! Reads the Python frames of a blocked thread, like `bpf/include/languages/python.h`.

use unwind::Memory;

use super::{Anchoring, Layout, checksum};
use crate::chain::{Chain, End, Frame};
use crate::interleave::Link;
use crate::pthread_values::pthread_value;

/// Owner of a frame that runs nothing: `FRAME_OWNED_BY_CSTACK` of 3.12 and 3.13, `..._INTERPRETER`
/// of later versions. `LAST_OWNER` is the largest owner.
const OWNED_BY_INTERPRETER: u8 = 3;
const LAST_OWNER: u8 = 4;

/// Maximum length of code, in bytes.
const INSTRUCTION_LIMIT: i64 = 1 << 28;

/// Reads the frames of a thread, but at most `most` links. `runtime` is the address of the
/// interpreter's `_PyRuntime`. `thread_pointer` is the thread's `fsbase`, which is
/// `pthread_self()`.
pub fn walk(
    memory: &mut (impl Memory + ?Sized),
    layout: &Layout,
    runtime: u64,
    thread_pointer: u64,
    most: usize,
) -> Chain {
    let mut walker = Walker {
        memory,
        layout,
        frame: 0,
        cframe: 0,
        most,
        links: Vec::new(),
    };
    let end = match walker.start(runtime, thread_pointer) {
        Err(end) => end,
        Ok(()) => loop {
            if let Err(end) = walker.step() {
                break end;
            }
        },
    };
    Chain {
        links: walker.links,
        end,
        interrupted: None,
    }
}

struct Walker<'a, M: ?Sized> {
    memory: &'a mut M,
    layout: &'a Layout,
    frame: u64,
    cframe: u64,
    most: usize,
    links: Vec<Link<Frame>>,
}

impl<M: Memory + ?Sized> Walker<'_, M> {
    /// Returns the word that contains the byte at `offset` from `base`, shifted so that it begins
    /// with this byte. Words are aligned, so each word is in one page.
    fn word(&mut self, base: u64, offset: u16) -> Result<u64, End> {
        let address = base.wrapping_add(u64::from(offset));
        let word = self.memory.word(address & !7).ok_or(End::ReadFailed)?;
        Ok(word >> (address % 8 * 8))
    }

    /// Moves to the innermost frame of a thread.
    fn start(&mut self, runtime: u64, thread_pointer: u64) -> Result<(), End> {
        let thread = self.thread(runtime, thread_pointer)?;
        if self.word(thread, self.layout.thread_id)? != thread_pointer {
            return Err(End::NoThread);
        }
        if self.layout.thread_cframe != 0 {
            self.cframe = self.word(thread, self.layout.thread_cframe)?;
        }
        self.frame = match self.layout.thread_frame {
            0 => self.word(self.cframe, self.layout.cframe_current_frame)?,
            offset => self.word(thread, offset)?,
        };
        Ok(())
    }

    /// Returns the address of a thread's state, which is found like in `pthread_getspecific`.
    fn thread(&mut self, runtime: u64, thread_pointer: u64) -> Result<u64, End> {
        // A Py_tss_t says whether there is a key, and has the key.
        let key = self.word(runtime, self.layout.runtime_tss_key)?;
        let (is_there, key) = (key as u32 != 0, key >> 32);
        let value = is_there.then(|| pthread_value(self.memory, thread_pointer, key));
        match value.flatten() {
            None | Some(0) => Err(End::NoThread),
            Some(thread) => Ok(thread),
        }
    }

    /// Adds the frame and moves to its caller. Returns an error at the end of the chain.
    fn step(&mut self) -> Result<(), End> {
        if self.frame == 0 {
            return Err(End::Whole);
        }
        if !self.frame.is_multiple_of(8) {
            return Err(End::Broken);
        }
        let previous = self.word(self.frame, self.layout.frame_previous)?;
        let has_cframe = match self.layout.anchoring {
            Anchoring::Nothing => false,
            Anchoring::EveryFrame => true,
            Anchoring::EntryFrames => self.word(self.frame, self.layout.frame_is_entry)? as u8 != 0,
            Anchoring::BoundaryFrames => {
                let owner = self.word(self.frame, self.layout.frame_owner)? as u8;
                if owner > LAST_OWNER {
                    return Err(End::Broken);
                }
                if owner >= OWNED_BY_INTERPRETER {
                    self.push(Link::Anchor(self.frame))?;
                    self.frame = previous;
                    return Ok(());
                }
                false
            }
        };
        let frame = self.frame()?;
        self.push(Link::Frame(frame))?;
        if has_cframe {
            self.push(Link::Anchor(self.cframe))?;
            self.cframe = self.word(self.cframe, self.layout.cframe_previous)?;
        }
        self.frame = previous;
        Ok(())
    }

    fn frame(&mut self) -> Result<Frame, End> {
        let layout = self.layout;
        let code = self.word(self.frame, layout.frame_code)? & !u64::from(layout.frame_code_tag);
        let instruction = self.word(self.frame, layout.frame_instruction)?;
        let instruction = match layout.instruction_unit {
            0 => instruction
                .wrapping_sub(code)
                .wrapping_sub(u64::from(layout.code_instructions)) as i64,
            unit => i64::from(instruction as i32) * i64::from(unit),
        };
        let plausible = 1 - INSTRUCTION_LIMIT..INSTRUCTION_LIMIT;
        let Some(instruction) = i32::try_from(instruction)
            .ok()
            .filter(|_| code != 0 && code.is_multiple_of(8) && plausible.contains(&instruction))
        else {
            return Err(End::Broken);
        };
        Ok(Frame {
            code,
            instruction,
            checksum: checksum(
                self.word(code, layout.code_filename)?,
                self.word(code, layout.code_qualname)?,
                self.word(code, layout.code_first_line)? as u32,
            ),
            machine_code: 0,
        })
    }

    /// Adds a link. A forged chain may be a ring, so only the maximum length bounds it.
    fn push(&mut self, link: Link<Frame>) -> Result<(), End> {
        if self.links.len() >= self.most {
            return Err(End::TooDeep);
        }
        self.links.push(link);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
