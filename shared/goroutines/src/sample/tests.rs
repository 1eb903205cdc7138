#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;

const LAYOUT: Layout = Layout {
    stack_low: 0,
    stack_high: 8,
    sp: 56,
    pc: 64,
    itself: 72,
    bp: 104,
    status: 144,
    id: 152,
    reason: 176,
    creator: 184,
};
const COUNT: u64 = 0x10_000;
const LIST: u64 = 0x10_008;
const POINTERS: u64 = 0x11_000;
const GOROUTINE: u64 = 0x20_000;
const STACK: u64 = 0x30_000;
const CODE: Range<u64> = 0x40_000..0x50_000;
const EXIT: u64 = 0x4f_000;

/// Made-up memory by words.
#[derive(Default)]
struct Words(RefCell<BTreeMap<u64, u64>>);

impl Memory for Words {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        let words = self.0.borrow();
        let byte = |address: u64| {
            let word = words.get(&(address & !7)).copied().unwrap_or(0);
            word.to_le_bytes()[(address & 7) as usize]
        };
        (0..most as u64)
            .map(|at| byte(start.wrapping_add(at)))
            .collect()
    }
}

fn places() -> Places {
    Places {
        layout: LAYOUT,
        count: COUNT,
        list: LIST,
        exit: EXIT..EXIT + 8,
        code: vec![CODE],
        reasons: 20,
    }
}

/// A goroutine that waits for reason 9, in two functions below the entry.
fn waiting() -> Words {
    let memory = Words::default();
    let sp = STACK + 0x700;
    let words = [
        (COUNT, 1),
        (LIST, POINTERS),
        (POINTERS, GOROUTINE),
        (GOROUTINE, STACK),
        (GOROUTINE + 8, STACK + 0x800),
        (GOROUTINE + 56, sp),
        (GOROUTINE + 64, 0x40_100),
        (GOROUTINE + 72, GOROUTINE),
        (GOROUTINE + 104, sp + 0x10),
        (GOROUTINE + 144, 4),
        (GOROUTINE + 152, 17),
        (GOROUTINE + 176, 9),
        (GOROUTINE + 184, 0x40_900),
        (sp + 0x10, sp + 0x40),
        (sp + 0x18, 0x40_200),
        (sp + 0x40, 0),
        (sp + 0x48, EXIT + 1),
    ];
    memory.0.borrow_mut().extend(words);
    memory
}

#[test]
fn a_waiting_goroutine_has_reason_stack_and_creator() {
    let look = places().look(&waiting()).unwrap();
    let chain = Chain {
        addresses: vec![0x40_100, 0x40_200],
        is_new: false,
        is_whole: true,
    };
    let expected = Stopped {
        condition: Condition::Waiting(9),
        chain,
        creator: 0x40_900,
    };
    assert_eq!(look.stopped, [expected]);
    assert_eq!((look.invalid, look.beyond, look.on_threads), (0, 0, 0));
}

#[test]
fn no_corrupt_word_panics_or_gives_an_address_outside_of_code() {
    let addresses: Vec<u64> = waiting().0.borrow().keys().copied().collect();
    for address in addresses {
        for value in [
            0,
            1,
            7,
            STACK + 0x708,
            1 << 47,
            i64::MAX as u64,
            u64::MAX - 7,
            u64::MAX,
        ] {
            let memory = waiting();
            memory.0.borrow_mut().insert(address, value);
            if address == COUNT && value > 1 {
                // The made-up list has no end.
                continue;
            }
            for stopped in places()
                .look(&memory)
                .into_iter()
                .flat_map(|look| look.stopped)
            {
                let chain = stopped.chain.addresses;
                assert!(
                    chain.iter().all(|it| CODE.contains(it)),
                    "{address:#x}={value:#x}"
                );
            }
        }
    }
}

#[test]
fn a_goroutine_that_is_not_where_it_says_is_counted() {
    let memory = waiting();
    memory.0.borrow_mut().insert(GOROUTINE + 72, GOROUTINE + 8);
    let look = places().look(&memory).unwrap();
    assert_eq!((look.stopped.len(), look.invalid), (0, 1));
}

/// Memory that answers each request with other bytes.
struct Changing(std::cell::Cell<u64>);

impl Memory for Changing {
    fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
        if start == COUNT {
            return vec![20, 0, 0, 0, 0, 0, 0, 0];
        }
        let mut seed = self.0.get();
        let next = |_| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            // Small numbers are lengths and states, and the rest are addresses.
            let word = match seed % 4 {
                0 => seed >> 60,
                1 => CODE.start + (seed >> 49),
                2 => GOROUTINE + (seed >> 52),
                _ => seed,
            };
            word.to_le_bytes()
        };
        let mut bytes: Vec<u8> = (0..most.div_ceil(8)).flat_map(next).collect();
        bytes.truncate(most);
        self.0.set(seed);
        bytes
    }
}

#[test]
fn memory_that_changes_at_each_read_gives_no_address_outside_of_code() {
    for seed in 1..2000 {
        let look = places().look(&Changing(std::cell::Cell::new(seed)));
        for stopped in look.into_iter().flat_map(|look| look.stopped) {
            let chain = stopped.chain.addresses;
            assert!(chain.iter().all(|address| CODE.contains(address)));
        }
    }
}

#[test]
fn a_goroutine_that_runs_between_two_reads_has_no_stack() {
    /// Memory whose goroutine has another instruction after the first read of it.
    struct Runs(Words, std::cell::Cell<u32>);
    impl Memory for Runs {
        fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
            let bytes = self.0.bytes(start, most);
            if start == GOROUTINE && self.1.replace(self.1.get() + 1) == 0 {
                self.0.0.borrow_mut().insert(GOROUTINE + 64, 0x40_110);
            }
            bytes
        }
    }
    let look = places().look(&Runs(waiting(), std::cell::Cell::new(0)));
    let look = look.unwrap();
    assert_eq!(look.stopped.len(), 1);
    assert_eq!(look.stopped[0].chain, Chain::default());
}

#[test]
fn an_element_that_comes_again_and_again_is_one_goroutine() {
    let memory = waiting();
    {
        let mut words = memory.0.borrow_mut();
        words.insert(COUNT, 100);
        words.extend((0..100).map(|index| (POINTERS + index * 8, GOROUTINE)));
    }
    let look = places().look(&memory).unwrap();
    assert_eq!((look.stopped.len(), look.invalid), (1, 0));
}

#[test]
fn two_goroutines_with_one_identity_are_one_and_a_fault() {
    let memory = waiting();
    {
        let mut words = memory.0.borrow_mut();
        let other = GOROUTINE + 0x1000;
        let copy: Vec<_> = { words.range(GOROUTINE..GOROUTINE + 0x200) }
            .map(|(address, word)| (address + 0x1000, *word))
            .collect();
        words.extend(copy);
        words.extend([(COUNT, 2), (POINTERS + 8, other), (other + 72, other)]);
    }
    let look = places().look(&memory).unwrap();
    assert_eq!((look.stopped.len(), look.invalid), (1, 1));
}

#[test]
fn a_stack_that_leads_back_to_itself_ends() {
    let memory = waiting();
    let frame = STACK + 0x710;
    memory.0.borrow_mut().insert(frame, frame);
    let look = places().look(&memory).unwrap();
    let chain = &look.stopped[0].chain;
    assert_eq!((chain.addresses.len(), chain.is_whole), (2, false));
}

#[test]
fn a_list_of_any_length_takes_bounded_memory() {
    /// Memory that has zeros at all addresses, and a length that no list has.
    struct Endless(std::cell::Cell<usize>);
    impl Memory for Endless {
        fn bytes(&self, start: u64, most: usize) -> Vec<u8> {
            self.0.set(self.0.get().max(most));
            if start == COUNT {
                vec![0xff; most]
            } else {
                vec![0; most]
            }
        }
    }
    let memory = Endless(std::cell::Cell::new(0));
    let look = places().look(&memory).unwrap();
    assert_eq!(look.beyond, u64::MAX - MAX_GOROUTINES);
    assert!(memory.0.get() as u64 <= MAX_GOROUTINES * 8);
}
