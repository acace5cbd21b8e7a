//! Sizes in bytes as people write them: `4GiB`, `512 MiB`, or bytes.

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSize {
    /// It is not a whole number with a unit.
    #[error("a size is a whole number of KiB, MiB, GiB or TiB, as in `4GiB`, or of bytes")]
    Form,
    /// It is nothing.
    #[error("a size must be more than zero")]
    Zero,
    /// It is more bytes than can be counted.
    #[error("this size is too large to be counted")]
    TooLarge,
}

/// Reads a size, in bytes. A space may stand before the unit; the unit's case does not matter.
///
/// # Errors
/// When the text is no size, or one of zero.
pub fn parse_size(text: &str) -> Result<u64, BadSize> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(BadSize::Form);
    }
    let shift = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "kib" => 10,
        "mib" => 20,
        "gib" => 30,
        "tib" => 40,
        _ => return Err(BadSize::Form),
    };
    let number: u64 = number.parse().map_err(|_| BadSize::TooLarge)?;
    match number.checked_mul(1 << shift) {
        Some(0) => Err(BadSize::Zero),
        Some(bytes) => Ok(bytes),
        None => Err(BadSize::TooLarge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c10_sizes_are_read_as_they_are_written() {
        for (text, expected) in [
            ("4GiB", Ok(4 << 30)),
            (" 512 MiB ", Ok(512 << 20)),
            ("1kib", Ok(1024)),
            ("2TIB", Ok(2 << 40)),
            ("17", Ok(17)),
            ("17B", Ok(17)),
            ("0", Err(BadSize::Zero)),
            ("0GiB", Err(BadSize::Zero)),
            ("", Err(BadSize::Form)),
            ("GiB", Err(BadSize::Form)),
            ("4GB", Err(BadSize::Form)),
            ("1.5GiB", Err(BadSize::Form)),
            ("-1", Err(BadSize::Form)),
            ("4é", Err(BadSize::Form)),
            ("99999999999999999999", Err(BadSize::TooLarge)),
            ("99999999TiB", Err(BadSize::TooLarge)),
        ] {
            assert_eq!(parse_size(text), expected, "{text}");
        }
    }
}
