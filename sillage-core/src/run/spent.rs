//! What was spent, as it is told to people and programs.

use std::fmt;

use serde::Serialize;

use crate::plain;
use crate::ports::runtime::Usage;

/// Tokens and costs. What is not known is none, never zero (A7, V4).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Tokens read by models.
    pub input_tokens: Option<u64>,
    /// Tokens written by models.
    pub output_tokens: Option<u64>,
    /// Tokens read from providers' caches.
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to providers' caches.
    pub cache_write_tokens: Option<u64>,
    /// Costs, one a currency; empty: none is known.
    pub costs: Vec<Cost>,
    /// Whether there are tokens whose price is not known.
    pub price_unknown: bool,
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Millionths of the currency.
    pub micros: u64,
    /// ISO 4217 code; none: not told.
    pub currency: Option<String>,
}

impl From<Usage> for Spent {
    fn from(usage: Usage) -> Self {
        let mut spent = Spent {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            costs: Vec::new(),
            price_unknown: false,
        };
        match usage.cost_micros {
            Some(micros) => {
                let currency = usage
                    .currency
                    .map(|code| plain::line(&String::from_utf8_lossy(&code)));
                spent.costs.push(Cost { micros, currency });
            }
            None => spent.price_unknown = spent.has_tokens(),
        }
        spent
    }
}

impl Spent {
    /// Whether any number of tokens is known.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        self.counts().iter().any(|(count, _)| count.is_some())
    }

    /// Whether nothing at all is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        !self.has_tokens() && self.costs.is_empty()
    }

    /// Adds what another spent; sums are of what is known.
    pub fn add(&mut self, other: &Spent) {
        let tokens = [
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.cache_read_tokens, other.cache_read_tokens),
            (&mut self.cache_write_tokens, other.cache_write_tokens),
        ];
        for (sum, more) in tokens {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        }
        for cost in &other.costs {
            match self.costs.iter_mut().find(|sum| sum.currency == cost.currency) {
                Some(sum) => sum.micros = sum.micros.saturating_add(cost.micros),
                None => self.costs.push(cost.clone()),
            }
        }
        self.price_unknown |= other.price_unknown;
    }

    /// The tokens in words, e.g. `12,000 in, 300 out`; `unknown`.
    #[must_use]
    pub fn tokens(&self) -> String {
        let known: Vec<String> = self
            .counts()
            .into_iter()
            .filter_map(|(count, what)| Some(format!("{} {what}", grouped(count?))))
            .collect();
        if known.is_empty() {
            "unknown".to_owned()
        } else {
            known.join(", ")
        }
    }

    /// The cost in words, e.g. `0.12 USD`, `0.12 USD + price unknown`; `unknown` where there are no tokens either.
    #[must_use]
    pub fn cost(&self) -> String {
        let mut parts: Vec<String> = self.costs.iter().map(ToString::to_string).collect();
        if self.price_unknown {
            parts.push("price unknown".to_owned());
        }
        if parts.is_empty() {
            "unknown".to_owned()
        } else {
            parts.join(" + ")
        }
    }

    /// What is known in words, and of how many agents nothing is, e.g. `tokens: 300 out; 0.12 USD; usage of 1 agent
    /// unknown`.
    #[must_use]
    pub fn and_unknown(&self, agents: u32) -> String {
        match agents {
            0 => self.to_string(),
            _ if self.is_unknown() => self.to_string(),
            1 => format!("{self}; usage of 1 agent unknown"),
            agents => format!("{self}; usage of {agents} agents unknown"),
        }
    }

    fn counts(&self) -> [(Option<u64>, &'static str); 4] {
        [
            (self.input_tokens, "in"),
            (self.output_tokens, "out"),
            (self.cache_read_tokens, "read from cache"),
            (self.cache_write_tokens, "written to cache"),
        ]
    }
}

/// Both in words, e.g. `tokens: 12,000 in, 300 out; price unknown`.
impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unknown() {
            return f.write_str("usage unknown");
        }
        write!(f, "tokens: {}; {}", self.tokens(), self.cost())
    }
}

/// With two to four decimals, and the currency where it is known.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = self.micros.saturating_add(50) / 100;
        match (self.micros, rounded) {
            (1.., 0) => f.write_str("<0.0001")?,
            (_, rounded) if rounded % 100 == 0 => {
                write!(f, "{}.{:02}", rounded / 10_000, rounded / 100 % 100)?
            }
            (_, rounded) => write!(f, "{}.{:04}", rounded / 10_000, rounded % 10_000)?,
        }
        match &self.currency {
            Some(currency) => write!(f, " {currency}"),
            None => f.write_str(" of an unknown currency"),
        }
    }
}

/// A number with its thousands apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: Option<u64>, cost: Option<u64>, currency: Option<[u8; 3]>) -> Spent {
        Spent::from(Usage {
            input_tokens: input,
            cost_micros: cost,
            currency,
            ..Usage::default()
        })
    }

    #[test]
    fn v4_a_price_that_is_not_known_is_said_to_be_so_and_is_not_zero() {
        assert_eq!(
            usage(Some(1_234_567), None, None).to_string(),
            "tokens: 1,234,567 in; price unknown"
        );
        assert_eq!(
            usage(Some(0), Some(0), Some(*b"USD")).to_string(),
            "tokens: 0 in; 0.00 USD"
        );
        assert_eq!(usage(None, None, None).to_string(), "usage unknown");
        assert_eq!(
            usage(None, Some(120_000), None).to_string(),
            "tokens: unknown; 0.12 of an unknown currency"
        );
        let json = serde_json::to_value(usage(Some(5), None, None)).unwrap();
        assert_eq!(json["output_tokens"], serde_json::Value::Null);
        assert_eq!(
            (&json["price_unknown"], &json["costs"]),
            (&true.into(), &serde_json::json!([]))
        );
    }

    #[test]
    fn a7_sums_are_of_what_is_known_and_currencies_stay_apart() {
        let mut sum = Spent::default();
        for part in [
            usage(Some(1), Some(10_000), Some(*b"USD")),
            usage(None, None, None),
            usage(Some(2), None, None),
            usage(None, Some(20_000), Some(*b"EUR")),
            usage(None, Some(30_050), Some(*b"USD")),
        ] {
            sum.add(&part);
        }
        assert_eq!((sum.input_tokens, sum.output_tokens), (Some(3), None));
        assert_eq!(sum.cost(), "0.0401 USD + 0.02 EUR + price unknown");
    }

    #[test]
    fn costs_show_two_to_four_decimals() {
        for (micros, words) in [
            (0, "0.00"),
            (1, "<0.0001"),
            (50, "0.0001"),
            (123_400, "0.1234"),
            (999_990, "1.00"),
            (12_300_000, "12.30"),
        ] {
            let cost = Cost {
                micros,
                currency: Some("USD".to_owned()),
            };
            assert_eq!(cost.to_string(), format!("{words} USD"), "{micros}");
        }
    }
}
