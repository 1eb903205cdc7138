//! CPU samples as V8 writes its profiles: a tree of nodes, and the node of each sample.

use std::collections::HashMap;
use std::io;

use profile::{Frame, Id, Profile, Stack, StackId, StackTree, ThreadId, TimedSample};

use super::writer::{Event, Writer, push, push_text};
use crate::lanes::Origin;

/// Category of V8's profiles.
const CATEGORY: &str = "disabled-by-default-v8.cpu_profiler";
/// Samples in one event.
const MAX_SAMPLES: usize = 100;

/// The samples of all threads.
pub(super) struct Samples<'a> {
    profile: &'a Profile,
    origin: Origin,
    /// Nodes of all threads. Firefox Profiler numbers the nodes of a whole file from 1 on, so a
    /// node has one number in all threads.
    nodes: StackTree<Id<Frame>>,
    /// Nodes by stack.
    known: HashMap<Stack, StackId>,
    /// Number of the last thread that wrote each node, by index.
    written: Vec<u32>,
    /// Number of threads with samples so far.
    threads: u32,
}

/// Samples that are not written yet, as JSON.
#[derive(Default)]
struct Chunk {
    nodes: Vec<u8>,
    samples: Vec<u8>,
    deltas: Vec<u8>,
    length: usize,
}

impl<'a> Samples<'a> {
    pub(super) fn new(profile: &'a Profile, origin: Origin) -> Samples<'a> {
        Samples {
            profile,
            origin,
            nodes: StackTree::default(),
            known: HashMap::new(),
            written: Vec::new(),
            threads: 0,
        }
    }

    /// Writes the samples of a thread, which are in the order of time.
    pub(super) fn write<'b>(
        &mut self,
        thread: ThreadId,
        samples: impl Iterator<Item = &'b TimedSample>,
        writer: &mut Writer<'_>,
    ) -> io::Result<()> {
        let mut chunk = Chunk::default();
        let mut last_us = None;
        for timed in samples {
            let Some((sample, _)) = self.profile.samples.row(timed.sample) else {
                continue;
            };
            let now_ns = self.origin.since(timed.time_ns);
            // Readers take whole µs. The differences of rounded times add up without an error.
            let now_us = now_ns / 1_000;
            let before_us = match last_us {
                Some(before_us) => before_us,
                None => {
                    self.threads += 1;
                    let data = format!("{{\"startTime\":{now_us}}}");
                    let event = self.event("Profile", thread, now_ns);
                    writer.event(&event, |it| it.json("data", data.as_bytes()))?;
                    now_us
                }
            };
            last_us = Some(now_us);
            let node = self.node(sample.stack);
            self.add_nodes(node, &mut chunk.nodes);
            let comma = if chunk.length == 0 { "" } else { "," };
            push(&mut chunk.samples, format_args!("{comma}{}", number(node)));
            push(
                &mut chunk.deltas,
                format_args!("{comma}{}", now_us - before_us),
            );
            chunk.length += 1;
            if chunk.length == MAX_SAMPLES {
                self.write_chunk(&mut chunk, thread, now_ns, writer)?;
            }
        }
        if chunk.length > 0 {
            let now_ns = last_us.unwrap_or(0) * 1_000;
            self.write_chunk(&mut chunk, thread, now_ns, writer)?;
        }
        Ok(())
    }

    fn event(&self, name: &'static str, thread: ThreadId, at_ns: u64) -> Event<'static> {
        Event {
            category: Some(CATEGORY),
            at_ns: Some(at_ns),
            id: Some(self.threads.into()),
            ..Event::new("P", name, thread)
        }
    }

    fn write_chunk(
        &self,
        chunk: &mut Chunk,
        thread: ThreadId,
        at_ns: u64,
        writer: &mut Writer<'_>,
    ) -> io::Result<()> {
        let parts: [&[u8]; 7] = [
            b"{\"cpuProfile\":{\"nodes\":[",
            &chunk.nodes,
            b"],\"samples\":[",
            &chunk.samples,
            b"]},\"timeDeltas\":[",
            &chunk.deltas,
            b"]}",
        ];
        let event = self.event("ProfileChunk", thread, at_ns);
        writer.event(&event, |arguments| arguments.json("data", &parts.concat()))?;
        *chunk = Chunk::default();
        Ok(())
    }

    /// Returns the node of a stack: kernel frames are called by user frames.
    fn node(&mut self, stack: Stack) -> StackId {
        let (stacks, nodes) = (&self.profile.stacks, &mut self.nodes);
        *self.known.entry(stack).or_insert_with(|| {
            let user = nodes.add(stacks.root_first(stack.user));
            nodes.extend(user, stacks.root_first(stack.kernel))
        })
    }

    /// Adds a node and its callers that the thread has not written yet, callers first.
    fn add_nodes(&mut self, node: StackId, json: &mut Vec<u8>) {
        self.written.resize(self.nodes.len(), 0);
        let mut new = Vec::new();
        let mut rest = node;
        while self.written[rest.index()] != self.threads {
            self.written[rest.index()] = self.threads;
            new.push(rest);
            let Some((callers, _)) = self.nodes.node(rest) else {
                break;
            };
            rest = callers;
        }
        for node in new.into_iter().rev() {
            let comma = if json.is_empty() { "" } else { "," };
            push(json, format_args!("{comma}{{\"id\":{}", number(node)));
            let function = self.nodes.node(node).map_or("(root)", |(callers, leaf)| {
                push(json, format_args!(",\"parent\":{}", number(callers)));
                self.profile.name(&self.profile.frames[leaf])
            });
            json.extend_from_slice(b",\"callFrame\":{\"functionName\":");
            push_text(json, function);
            json.extend_from_slice(
                b",\"scriptId\":0,\"url\":\"\",\"lineNumber\":-1,\"columnNumber\":-1}}",
            );
        }
    }
}

/// Returns the number of a node in the file. The root without a frame has number 1.
fn number(node: StackId) -> usize {
    node.index() + 1
}
