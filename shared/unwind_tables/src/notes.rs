//! Notes on failures, which `-v` prints.

/// Maximum number of notes. It does not grow with the run, and suffices to find the cause.
const MOST: usize = 256;

/// First failures, without duplicates. A file that comes back may fail again.
#[derive(Default)]
pub(crate) struct Notes(Vec<String>);

impl Notes {
    pub(crate) fn add(&mut self, note: String) {
        if self.0.len() < MOST && !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    pub(crate) fn as_slice(&self) -> &[String] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_few_and_each_is_there_once() {
        let mut notes = Notes::default();
        for round in 0..2 * MOST {
            notes.add("the same".into());
            notes.add(format!("round {round}"));
        }
        assert_eq!(notes.as_slice().len(), MOST);
        assert_eq!(notes.as_slice()[..2], ["the same", "round 0"]);
    }
}
