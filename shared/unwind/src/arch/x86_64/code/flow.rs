//! Propagates states from instruction to instruction.

use std::collections::HashSet;
use std::ops::Range;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind,
};

use super::state::State;

/// Instruction that a state reaches, with that state.
pub(super) struct Node {
    pub(super) state: State,
    pub(super) length: u8,
    offset: usize,
    /// Offset of the call just before, if the state comes only from there. The call may not return.
    call: Option<usize>,
}

/// States of all instructions in a piece of code. Places in the code are offsets in bytes.
pub(super) struct Flow<'a> {
    code: &'a [u8],
    address: u64,
    functions: &'a [Range<usize>],
    /// Index into `nodes` plus 1, by offset; 0 if there is no node.
    index: Vec<u32>,
    nodes: Vec<Node>,
    /// Offsets of instructions that remain to be visited.
    work: Vec<usize>,
    /// Offsets of the targets of calls.
    called: HashSet<usize>,
    /// Entries of pieces of functions, which are no functions. Either a jump leads there with a
    /// frame, or the caller of the analysis listed them.
    parts: HashSet<usize>,
    /// Offsets of calls that do not return. Other ways to the instructions after them show this.
    dead_calls: HashSet<usize>,
    /// Functions that return from states that allow no return. The analysis does not understand
    /// what they do.
    odd: HashSet<usize>,
    /// Functions with indirect jumps to unknown targets, and the offsets of these jumps.
    indirect_jumps: Vec<(usize, usize)>,
    /// Outcome of the current trial; `None` outside of trials.
    trial: Option<Trial>,
    /// Number of nodes before the current trial.
    certain: usize,
    factory: InstructionInfoFactory,
}

/// Outcome of a trial, which follows code from a state that the code may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trial {
    /// Nothing confirms or contradicts the state yet.
    Open,
    /// The state leads to a known node, or to a return.
    Fit,
    /// The state leads to a contradiction.
    Misfit,
}

/// Way from one instruction to another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Jump,
    Next,
    /// The second instruction follows a call, which may not return.
    Return,
}

/// Maximum number of rounds. Each round finds calls that do not return, which changes the states
/// after these calls.
const ROUNDS: usize = 4;

/// Maximum number of different states that are tried at the indirect jumps of a function.
const MAX_STATES: usize = 4;

/// Code of the system call `rt_sigreturn`: `mov $15, %rax` or `mov $15, %eax`, and `syscall`.
const SIGNAL_RETURNS: [&[u8]; 2] = [
    &[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05],
    &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05],
];

impl<'a> Flow<'a> {
    pub(super) fn new(
        code: &'a [u8],
        address: u64,
        functions: &'a [Range<usize>],
        parts: HashSet<usize>,
    ) -> Flow<'a> {
        let mut flow = Flow {
            code,
            address,
            functions,
            index: vec![0; code.len()],
            nodes: Vec::new(),
            work: Vec::new(),
            called: HashSet::new(),
            parts,
            dead_calls: HashSet::new(),
            odd: HashSet::new(),
            indirect_jumps: Vec::new(),
            trial: None,
            certain: 0,
            factory: InstructionInfoFactory::new(),
        };
        for _ in 0..ROUNDS {
            let known = (flow.dead_calls.len(), flow.parts.len());
            flow.run();
            if known == (flow.dead_calls.len(), flow.parts.len()) {
                break;
            }
        }
        flow.fill();
        flow.find_signal_returns();
        flow
    }

    /// Returns the node of the instruction at `offset`, if a state reaches the instruction.
    pub(super) fn node(&self, offset: usize) -> Option<&Node> {
        let index = *self.index.get(offset)? as usize;
        self.nodes.get(index.checked_sub(1)?)
    }

    pub(super) fn state(&self, offset: usize) -> State {
        let odd = self
            .function(offset)
            .is_some_and(|function| self.odd.contains(&function));
        match self.node(offset) {
            Some(node) if !odd || node.state == State::SIGNAL_RETURN => node.state,
            _ => State::UNKNOWN,
        }
    }

    /// Returns the index of the function that contains `offset`.
    pub(super) fn function(&self, offset: usize) -> Option<usize> {
        let after = self
            .functions
            .partition_point(|function| function.start <= offset);
        let index = after.checked_sub(1)?;
        (offset < self.functions.get(index)?.end).then_some(index)
    }

    pub(super) fn decode(&self, offset: usize) -> Option<Instruction> {
        let code = self.code.get(offset..)?;
        let address = self.address.wrapping_add(offset as u64);
        let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    /// Propagates states from the entries of all functions.
    fn run(&mut self) {
        self.index.fill(0);
        self.nodes.clear();
        self.odd.clear();
        self.indirect_jumps.clear();
        for function in self.functions {
            if !self.parts.contains(&function.start) {
                self.add(function.start, State::ENTRY, None);
            }
        }
        self.follow();
        self.parts.retain(|part| !self.called.contains(part));
    }

    /// Visits instructions until none remains.
    fn follow(&mut self) {
        while let Some(offset) = self.work.pop() {
            self.visit(offset);
        }
    }

    /// Adds a node for the instruction at `offset`, which a state reaches for the first time.
    fn add(&mut self, offset: usize, state: State, call: Option<usize>) {
        if let Some(index) = self.index.get_mut(offset) {
            self.nodes.push(Node {
                state,
                length: 1,
                offset,
                call,
            });
            *index = self.nodes.len() as u32;
            self.work.push(offset);
        }
    }

    fn node_mut(&mut self, offset: usize) -> Option<&mut Node> {
        let index = *self.index.get(offset)? as usize;
        self.nodes.get_mut(index.checked_sub(1)?)
    }

    /// Propagates the state of the instruction at `offset` to the instructions after it.
    fn visit(&mut self, offset: usize) {
        let instruction = self.decode(offset);
        let Some(node) = self.node_mut(offset) else {
            return;
        };
        let Some(instruction) = instruction else {
            node.state = State::UNKNOWN;
            return self.misfit(offset);
        };
        node.length = instruction.len() as u8;
        if instruction.mnemonic() == Mnemonic::Call {
            node.state = node.state.calling();
        }
        let state = node.state;
        let next = offset + instruction.len();
        let target = self.target(&instruction);
        match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall if target == Some(next) => {
                self.reach(offset, next, state.pushed(), Edge::Next);
            }
            // iced counts system calls as calls. Some system calls do not return.
            FlowControl::Call | FlowControl::IndirectCall => {
                self.called.extend(target);
                let after = match instruction.mnemonic() {
                    Mnemonic::Call => state,
                    _ => state.after(&instruction, &mut self.factory),
                };
                self.reach(offset, next, after, Edge::Return);
            }
            FlowControl::UnconditionalBranch
            | FlowControl::ConditionalBranch
            | FlowControl::XbeginXabortXend => {
                if let Some(target) = target {
                    self.reach(offset, target, state, Edge::Jump);
                }
                if instruction.flow_control() != FlowControl::UnconditionalBranch {
                    self.reach(offset, next, state, Edge::Next);
                }
            }
            FlowControl::IndirectBranch => {
                let function = self.function(offset);
                self.indirect_jumps
                    .extend(function.map(|function| (function, offset)));
            }
            FlowControl::Return if !state.may_return() => self.misfit(offset),
            FlowControl::Return if state.must_return() => self.confirm(),
            FlowControl::Return | FlowControl::Interrupt | FlowControl::Exception => {}
            FlowControl::Next if instruction.mnemonic() == Mnemonic::Hlt => {}
            FlowControl::Next => {
                let after = state.after(&instruction, &mut self.factory);
                self.reach(offset, next, after, Edge::Next);
            }
        }
    }

    /// Returns the offset of the target of a direct jump or call. The target may be outside of this
    /// code.
    fn target(&self, instruction: &Instruction) -> Option<usize> {
        if instruction.op0_kind() != OpKind::NearBranch64 {
            return None;
        }
        let offset = instruction.near_branch64().wrapping_sub(self.address);
        usize::try_from(offset).ok()
    }

    /// Records that the state at `offset` is impossible.
    fn misfit(&mut self, offset: usize) {
        match &mut self.trial {
            Some(trial) => *trial = Trial::Misfit,
            None => self.odd.extend(self.function(offset)),
        }
    }

    /// Records that a second way leads to the state at `offset`.
    fn fits(&mut self, offset: usize) {
        if self.index[offset] as usize <= self.certain {
            self.confirm();
        }
    }

    /// Records that the state of the trial is confirmed.
    fn confirm(&mut self) {
        if let Some(trial @ Trial::Open) = &mut self.trial {
            *trial = Trial::Fit;
        }
    }

    /// Propagates `state` from the instruction at `from` to the instruction at `to`.
    fn reach(&mut self, from: usize, to: usize, state: State, edge: Edge) {
        if self.is_entry(to) {
            // This is a tail call, or a jump to a part that is no function.
            if edge == Edge::Jump && !state.may_return() {
                match self.trial {
                    Some(_) => self.misfit(from),
                    None => _ = self.parts.insert(to),
                }
            }
            return;
        }
        if edge != Edge::Jump && self.function(from) != self.function(to)
            || edge == Edge::Return && self.dead_calls.contains(&from)
        {
            return;
        }
        let call = (edge == Edge::Return).then_some(from);
        let trial = self.trial.is_some();
        let Some(node) = self.node_mut(to) else {
            return self.add(to, state, call);
        };
        if node.state == state {
            node.call = node.call.and(call);
            return self.fits(to);
        }
        match (node.call, call) {
            (None, Some(_)) if trial => return,
            _ if trial => match node.state.with_frame_pointer(&state) {
                Some(either) if either == node.state => return self.fits(to),
                Some(either) => node.state = either,
                None => return self.misfit(from),
            },
            // Of the two ways to this instruction, only one is real.
            (None, Some(dead)) => {
                self.dead_calls.insert(dead);
                return;
            }
            (Some(dead), None) => {
                node.call = None;
                node.state = state;
                self.dead_calls.insert(dead);
            }
            _ => {
                let either = node.state.or(&state);
                if node.state == either {
                    return;
                }
                node.state = either;
            }
        }
        self.work.push(to);
    }

    fn is_entry(&self, offset: usize) -> bool {
        self.functions
            .binary_search_by_key(&offset, |function| function.start)
            .is_ok()
            && !self.parts.contains(&offset)
    }

    /// Follows code that only jumps through tables reach. Such code is inside a function with such
    /// jumps and has no state yet. It gets the state of one of these jumps, if that state fits.
    fn fill(&mut self) {
        let mut jumps = std::mem::take(&mut self.indirect_jumps);
        jumps.sort_unstable();
        for jumps in jumps.chunk_by(|one, other| one.0 == other.0) {
            let mut states = Vec::new();
            for &(function, jump) in jumps {
                if let Some(node) = self.node(jump)
                    && !self.odd.contains(&function)
                    && !states.contains(&node.state)
                    && states.len() < MAX_STATES
                {
                    states.push(node.state);
                }
            }
            if let Some(range) = jumps.first().and_then(|jump| self.functions.get(jump.0)) {
                self.fill_function(range.clone(), &states);
            }
        }
    }

    /// Follows all code in `range` that no state has reached.
    fn fill_function(&mut self, range: Range<usize>, states: &[State]) {
        let mut offset = range.start;
        while offset < range.end {
            offset += match (self.node(offset), self.decode(offset)) {
                (Some(node), _) => usize::from(node.length),
                (None, Some(padding)) if padding.mnemonic() == Mnemonic::Nop => padding.len(),
                _ => {
                    self.fill_from(offset, states);
                    self.node(offset).map_or(1, |node| node.length.into())
                }
            };
        }
    }

    /// Follows the code from `offset` with the first of `states` that fits. If no state fits, the
    /// code remains without a state.
    fn fill_from(&mut self, offset: usize, states: &[State]) {
        // An indirect jump with nothing on the stack may be a tail call.
        let sure = states.len() == 1 && states != [State::ENTRY];
        self.certain = self.nodes.len();
        for (tried, &state) in states.iter().enumerate() {
            self.trial = Some(Trial::Open);
            self.add(offset, state, None);
            self.follow();
            match self.trial.take() {
                Some(Trial::Fit) => return,
                Some(Trial::Open) if sure => return,
                _ if tried + 1 < states.len() => self.forget(),
                _ => {
                    for node in self.nodes.iter_mut().skip(self.certain) {
                        node.state = State::UNKNOWN;
                    }
                }
            }
        }
    }

    /// Removes the nodes of the current trial.
    fn forget(&mut self) {
        for node in self.nodes.drain(self.certain..) {
            self.index[node.offset] = 0;
        }
    }

    /// Finds the stubs to which signal handlers return. A stub's frame begins one byte before the
    /// stub, because the unwind looks up return addresses minus 1.
    fn find_signal_returns(&mut self) {
        for stub in SIGNAL_RETURNS {
            for start in 0..self.code.len() {
                if !self.code[start..].starts_with(stub) {
                    continue;
                }
                let first = start.saturating_sub(1);
                let end = start + stub.len();
                self.index[first..end].fill(0);
                let length = (end - first) as u8;
                self.nodes.push(Node {
                    state: State::SIGNAL_RETURN,
                    length,
                    offset: first,
                    call: None,
                });
                self.index[first] = self.nodes.len() as u32;
            }
        }
    }
}
