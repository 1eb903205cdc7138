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
