//! Updates that are kept for later, within bounds: those that came before a session had an identifier, and those that
//! come while its agent is being stopped.

use serde_json::Value;

/// How many are kept.
const KEPT: usize = 1000;

/// How many bytes of them.
const BYTES: usize = 4 << 20;

/// Parameters of `session/update`, in order.
#[derive(Debug, Default)]
pub(super) struct Unheard {
    kept: Vec<Value>,
    bytes: usize,
}

impl Unheard {
    /// Keeps it while there is room.
    pub(super) fn keep(&mut self, params: Value) {
        if self.kept.len() < KEPT && self.bytes < BYTES {
            let bytes = params.to_string().len();
            if self.bytes + bytes <= BYTES {
                self.kept.push(params);
            }
            self.bytes += bytes;
        }
    }

    pub(super) fn take(&mut self) -> Vec<Value> {
        std::mem::take(self).kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_what_is_kept_for_later_has_bounds() {
        let mut many = Unheard::default();
        (0..2 * KEPT).for_each(|n| many.keep(n.into()));
        assert_eq!(many.take().len(), KEPT);
        let mut large = Unheard::default();
        (0..10).for_each(|_| large.keep("x".repeat(1 << 20).into()));
        assert_eq!(large.take().len(), 3);
        assert!(large.take().is_empty());
    }
}
