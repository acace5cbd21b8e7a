//! Which gateway a session is placed on (L12).

/// A gateway as it stands, for one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Whether it offers the model; none: it is out of reach, and nobody knows.
    pub(super) offers: Option<bool>,
    /// Sessions that are at work there or about to be.
    pub(super) load: u64,
    /// The most that are to be.
    pub(super) capacity: u64,
}

/// What follows for a session that was never placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// It goes to the gateway at this position.
    On(usize),
    /// Whoever offers the model has as much at work as it may.
    Full,
    /// Nobody within reach offers the model, and somebody out of reach may.
    OutOfReach,
    /// Nobody offers the model.
    Refused,
}

/// The least loaded for its capacity of those that offer the model and have a place; of equals the first.
pub(super) fn choose(candidates: &[Candidate]) -> Choice {
    let offering = || {
        let all = candidates.iter().enumerate();
        all.filter(|(_, candidate)| candidate.offers == Some(true))
    };
    let free = offering().filter(|(_, candidate)| candidate.load < candidate.capacity);
    // Shares are compared without dividing.
    let least = free.min_by(|(_, a), (_, b)| {
        let of_a = u128::from(a.load) * u128::from(b.capacity);
        of_a.cmp(&(u128::from(b.load) * u128::from(a.capacity)))
    });
    match least {
        Some((position, _)) => Choice::On(position),
        None if offering().next().is_some() => Choice::Full,
        None if candidates.iter().any(|candidate| candidate.offers.is_none()) => Choice::OutOfReach,
        None => Choice::Refused,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidate(offers: Option<bool>, load: u64, capacity: u64) -> Candidate {
        Candidate {
            offers,
            load,
            capacity,
        }
    }

    #[test]
    fn l12_the_least_loaded_for_its_capacity_that_offers_the_model_is_chosen() {
        let (yes, no, unknown) = (Some(true), Some(false), None);
        let of = |all: &[(Option<bool>, u64, u64)]| {
            let all: Vec<Candidate> = all.iter().map(|(o, l, c)| candidate(*o, *l, *c)).collect();
            choose(&all)
        };
        assert_eq!(
            of(&[(yes, 0, 1), (yes, 0, 9)]),
            Choice::On(0),
            "of equals the first"
        );
        assert_eq!(of(&[(yes, 2, 4), (yes, 3, 8)]), Choice::On(1), "by share");
        assert_eq!(of(&[(no, 0, 4), (yes, 3, 4), (unknown, 0, 4)]), Choice::On(1));
        assert_eq!(of(&[(yes, 4, 4), (no, 0, 4), (unknown, 0, 4)]), Choice::Full);
        assert_eq!(of(&[(no, 0, 4), (unknown, 0, 4)]), Choice::OutOfReach);
        assert_eq!(of(&[(no, 0, 4)]), Choice::Refused);
        assert_eq!(of(&[]), Choice::Refused);
        assert_eq!(of(&[(yes, 0, 0)]), Choice::Full);
    }

    fn any_candidate() -> impl Strategy<Value = Candidate> {
        let offers = prop_oneof![Just(None), Just(Some(false)), Just(Some(true))];
        (offers, 0_u64..6, 0_u64..6).prop_map(|(offers, load, capacity)| candidate(offers, load, capacity))
    }

    proptest! {
        #[test]
        fn l12_nobody_is_chosen_who_may_not_be_and_nobody_is_passed_over(
            all in prop::collection::vec(any_candidate(), 0..6)
        ) {
            let can = |c: &Candidate| c.offers == Some(true) && c.load < c.capacity;
            match choose(&all) {
                Choice::On(position) => {
                    let chosen = all[position];
                    prop_assert!(can(&chosen));
                    for other in all.iter().filter(|other| can(other)) {
                        prop_assert!(chosen.load * other.capacity <= other.load * chosen.capacity);
                    }
                }
                Choice::Full => {
                    prop_assert!(!all.iter().any(can));
                    prop_assert!(all.iter().any(|c| c.offers == Some(true)));
                }
                Choice::OutOfReach => {
                    prop_assert!(all.iter().all(|c| c.offers != Some(true)));
                    prop_assert!(all.iter().any(|c| c.offers.is_none()));
                }
                Choice::Refused => prop_assert!(all.iter().all(|c| c.offers == Some(false))),
            }
        }

        /// Sessions placed one after the other never exceed a capacity, and fill all of them.
        #[test]
        fn l12_sessions_spread_until_all_are_full(capacities in prop::collection::vec(0_u64..5, 1..5)) {
            let mut all: Vec<Candidate> = capacities.iter().map(|most| candidate(Some(true), 0, *most)).collect();
            for _ in 0..capacities.iter().sum::<u64>() {
                let Choice::On(position) = choose(&all) else {
                    return Err(TestCaseError::fail("a place is free"));
                };
                all[position].load += 1;
            }
            prop_assert_eq!(choose(&all), Choice::Full);
            prop_assert!(all.iter().all(|c| c.load == c.capacity));
        }
    }
}
