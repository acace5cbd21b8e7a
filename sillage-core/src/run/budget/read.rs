//! Ceilings as people write them.

use std::num::NonZeroU64;
use std::time::Duration;

use super::{Currency, Money};
use crate::time::parse_duration;

/// Why a text is no ceiling.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadCeiling {
    /// Not a number of tokens.
    #[error("a ceiling of tokens is a number, or one with k or M, as in `500k` or `2M`")]
    Tokens,
    /// Not an amount of money.
    #[error(
        "a ceiling of cost is an amount, of six decimals at most, and the code of its currency, as in `5USD` or `2.50 EUR`"
    )]
    Cost,
    /// Not a span of time.
    #[error("a ceiling of time is a duration, as in `2h` or `1h30m`")]
    Time,
    /// Nothing at all could be done under it.
    #[error("a ceiling must be more than zero")]
    Zero,
    /// It cannot be counted.
    #[error("this ceiling is too high to be counted")]
    TooHigh,
}

/// Reads a number of tokens: `250000`, `1_500_000`, `500k`, `2M`, `1.5M`.
///
/// # Errors
/// [`BadCeiling`] for anything else, zero included.
pub fn parse_tokens(text: &str) -> Result<NonZeroU64, BadCeiling> {
    let text = text.trim();
    let (number, decimals) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 3),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 6),
        Some(_) | None => (text, 0),
    };
    scaled(number.trim_end(), decimals, BadCeiling::Tokens)
}

/// Reads an amount of money: `5USD`, `5 USD`, `2.50EUR`.
///
/// # Errors
/// [`BadCeiling`] for anything else, zero included, and for more than six decimals.
pub fn parse_cost(text: &str) -> Result<Money, BadCeiling> {
    let text = text.trim();
    let code = text.len().checked_sub(3).ok_or(BadCeiling::Cost)?;
    let (number, code) = text.split_at_checked(code).ok_or(BadCeiling::Cost)?;
    let currency = Currency::try_from(code.to_owned()).map_err(|_| BadCeiling::Cost)?;
    let micros = scaled(number.trim_end(), 6, BadCeiling::Cost)?;
    Ok(Money { micros, currency })
}

/// Reads a span of time as [`parse_duration`] does.
///
/// # Errors
/// [`BadCeiling`] for anything else, zero included.
pub fn parse_time(text: &str) -> Result<Duration, BadCeiling> {
    use crate::time::BadDuration;
    parse_duration(text.trim()).map_err(|bad| match bad {
        BadDuration::Form => BadCeiling::Time,
        BadDuration::Zero => BadCeiling::Zero,
        BadDuration::TooLong => BadCeiling::TooHigh,
    })
}

/// A decimal number times a power of ten, which must come to a whole number. Nothing is rounded.
fn scaled(number: &str, decimals: usize, bad: BadCeiling) -> Result<NonZeroU64, BadCeiling> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| {
        !text.is_empty() && text.starts_with(|c: char| c.is_ascii_digit()) && {
            text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
        }
    };
    if !digits(whole) || part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad);
    }
    let part = part.trim_end_matches('0');
    if part.len() > decimals {
        return Err(bad);
    }
    let mut written: String = whole.chars().filter(|c| *c != '_').collect();
    written.push_str(part);
    written.extend(std::iter::repeat_n('0', decimals - part.len()));
    let value: u64 = written.parse().map_err(|_| BadCeiling::TooHigh)?;
    NonZeroU64::new(value).ok_or(BadCeiling::Zero)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_are_read_as_they_are_written() {
        for (text, expected) in [
            ("250000", Ok(250_000)),
            ("1_500_000", Ok(1_500_000)),
            ("500k", Ok(500_000)),
            (" 2M ", Ok(2_000_000)),
            ("2 M", Ok(2_000_000)),
            ("1.5M", Ok(1_500_000)),
            ("0.001k", Ok(1)),
            ("1.50", Err(BadCeiling::Tokens)),
            ("1.0", Ok(1)),
            ("0", Err(BadCeiling::Zero)),
            ("0.0M", Err(BadCeiling::Zero)),
            ("", Err(BadCeiling::Tokens)),
            ("M", Err(BadCeiling::Tokens)),
            ("_1", Err(BadCeiling::Tokens)),
            ("-5", Err(BadCeiling::Tokens)),
            ("1.2345k", Err(BadCeiling::Tokens)),
            ("2G", Err(BadCeiling::Tokens)),
            ("1.M", Err(BadCeiling::Tokens)),
            ("many", Err(BadCeiling::Tokens)),
            ("99999999999999999999", Err(BadCeiling::TooHigh)),
            ("99999999999999M", Err(BadCeiling::TooHigh)),
        ] {
            assert_eq!(parse_tokens(text).map(NonZeroU64::get), expected, "{text}");
        }
    }

    #[test]
    fn costs_are_read_with_their_currency_and_nothing_is_rounded() {
        for (text, expected) in [
            ("5USD", Ok((5_000_000, "USD"))),
            ("5 USD", Ok((5_000_000, "USD"))),
            ("2.50EUR", Ok((2_500_000, "EUR"))),
            ("0.000001USD", Ok((1, "USD"))),
            ("0.0000001USD", Err(BadCeiling::Cost)),
            ("5", Err(BadCeiling::Cost)),
            ("5usd", Err(BadCeiling::Cost)),
            ("$5", Err(BadCeiling::Cost)),
            ("USD", Err(BadCeiling::Cost)),
            ("USD5", Err(BadCeiling::Cost)),
            ("5€", Err(BadCeiling::Cost)),
            ("é", Err(BadCeiling::Cost)),
            ("-1USD", Err(BadCeiling::Cost)),
            ("1e3USD", Err(BadCeiling::Cost)),
            ("0USD", Err(BadCeiling::Zero)),
            ("99999999999999USD", Err(BadCeiling::TooHigh)),
        ] {
            let read = parse_cost(text).map(|money| (money.micros.get(), money.currency.to_string()));
            let expected = expected.map(|(micros, code): (u64, &str)| (micros, code.to_owned()));
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn times_are_durations() {
        assert_eq!(parse_time(" 1h30m "), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_time("0s"), Err(BadCeiling::Zero));
        assert_eq!(parse_time("2"), Err(BadCeiling::Time));
        assert_eq!(parse_time("99999999999999999999h"), Err(BadCeiling::TooHigh));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_be_refused(text in "\\PC{0,12}") {
            let _ = (parse_tokens(&text), parse_cost(&text), parse_time(&text));
        }

        #[test]
        fn what_is_said_of_money_is_read_back(cents in 1u64..1_000_000_000) {
            let money = Money {
                micros: NonZeroU64::new(cents * 10_000).unwrap(),
                currency: Currency::new(*b"CHF").unwrap(),
            };
            prop_assert_eq!(parse_cost(&money.to_string()), Ok(money));
        }
    }
}
