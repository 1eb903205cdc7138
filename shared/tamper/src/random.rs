//! Numbers that look random and are the same every time.

/// xorshift64* (Marsaglia 2003, Vigna 2016).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence that `seed`, which is not 0, stands for.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// The next number, below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next_u64()) * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_papers() {
        let mut random = Random::new(1);
        // By hand, of the three shifts and the factor.
        let expected = [
            0x47e4_ce4b_896c_dd1d,
            0xabcf_a6a8_e079_651d,
            0xb9d1_0d8f_eb73_1f57,
        ];
        assert_eq!(expected.map(|_| random.next_u64()), expected);
    }

    #[test]
    fn numbers_below_a_limit_are_as_likely_one_as_the_other() {
        let mut random = Random::new(1);
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            counts[random.below(10)] += 1;
        }
        assert!(
            counts.iter().all(|count| (900..1100).contains(count)),
            "{counts:?}"
        );
    }
}
