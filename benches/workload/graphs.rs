//! Graphs to run, the same on every machine.

/// Parents of each node: `layers` of `width`, each node with `parents` different ones of the layer above, drawn from
/// a fixed seed. One layer is one row of independent nodes; width 1 is a chain.
pub(crate) fn layered(layers: u32, width: u32, parents: u32) -> Vec<Vec<u32>> {
    let mut random = Random(42);
    (0..layers * width)
        .map(|node| {
            let layer = node / width;
            if layer == 0 {
                return vec![];
            }
            let mut chosen: Vec<u32> = Vec::new();
            while chosen.len() < parents.min(width) as usize {
                let parent = (layer - 1) * width + random.below(width);
                if !chosen.contains(&parent) {
                    chosen.push(parent);
                }
            }
            chosen
        })
        .collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        // xorshift64*: the same graph on every machine.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as u32 % bound
    }
}
