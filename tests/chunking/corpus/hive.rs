//! A hive, as far as a program needs to know it.

use std::collections::HashMap;

/// What stands in the garden.
#[derive(Debug, Clone)]
pub struct Hive {
    pub frames: Vec<Frame>,
    pub weights: HashMap<Day, f64>,
}

impl Hive {
    /// An empty hive with room for `count` frames.
    pub fn new(count: usize) -> Self {
        Hive { frames: Vec::with_capacity(count), weights: HashMap::new() }
    }

    /// Whether it needs food before the winter.
    ///
    /// Twelve kilos are enough in a mild valley, and fifteen in the hills;
    /// who is not sure feeds.
    pub fn is_hungry(&self, day: Day) -> bool {
        match self.weights.get(&day) {
            Some(weight) => *weight < 12.0,
            None => true, // Nobody weighed it: better to feed than to be sorry.
        }
    }

    pub fn heaviest(&self) -> Option<(Day, f64)> {
        let mut best = None;
        for (day, weight) in &self.weights {
            match best {
                Some((_, most)) if most >= *weight => {}
                _ => best = Some((*day, *weight)),
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_hive_is_hungry() {
        assert!(Hive::new(10).is_hungry(Day(1)));
    }
}
