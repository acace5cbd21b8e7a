//! The nearest of a few names to one that is not among them: did you mean … ?

/// Names longer than this are not compared: nobody means another name by one so long.
const LONGEST: usize = 64;

/// The candidate that `name` was most likely meant to be, if one is near: the same but for case, at most a third
/// of the letters wrong (a swap of neighbours is one), or one name the beginning of the other.
/// The first of several equally near ones.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length == 0 || length > LONGEST {
        return None;
    }
    let lower = name.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let Some(distance) = distance(&lower, length, candidate) else {
            continue;
        };
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// How far `candidate` is from a name in lower case; none when it is not near.
fn distance(lower: &str, length: usize, candidate: &str) -> Option<usize> {
    let candidate_length = candidate.chars().count();
    let longer = length.max(candidate_length);
    if longer > LONGEST {
        return None;
    }
    let candidate = candidate.to_lowercase();
    let bound = (longer / 3).max(1);
    let distance = if length.abs_diff(candidate_length) > bound {
        usize::MAX
    } else {
        strsim::osa_distance(lower, &candidate)
    };
    // A name of one letter is no nearer to another of one letter than to any other.
    if distance <= bound && distance < longer {
        return Some(distance);
    }
    let shorter = length.min(candidate_length);
    let begins = candidate.starts_with(lower) || lower.starts_with(candidate.as_str());
    (shorter >= 3 && begins).then_some(LONGEST + longer - shorter)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn w11_slips_of_the_hand_are_seen_through() {
        let names = ["mission", "model", "max_duration", "kind"];
        for (slip, meant) in [
            ("modle", "model"),
            ("misson", "mission"),
            ("Model", "model"),
            ("maxduration", "max_duration"),
            ("max", "max_duration"),
            ("kinds", "kind"),
        ] {
            assert_eq!(nearest(slip, names), Some(meant), "{slip}");
        }
        for other in ["", "zed", "x", "timeout", &"m".repeat(100)] {
            assert_eq!(nearest(other, names), None, "{other}");
        }
    }

    #[test]
    fn one_letter_is_no_hint_but_its_case_is() {
        assert_eq!(nearest("c", ["a", "b"]), None);
        assert_eq!(nearest("B", ["a", "b"]), Some("b"));
        assert_eq!(nearest("bb", ["a", "b"]), Some("b"));
    }

    #[test]
    fn the_nearest_wins_and_the_first_of_equals() {
        assert_eq!(nearest("sonet", ["sonnets", "sonnet", "sonnett"]), Some("sonnet"));
        assert_eq!(nearest("ab1", ["ab2", "ab3"]), Some("ab2"));
    }
}
