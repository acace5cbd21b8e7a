//! Texts that stand for maps.

/// Lets a type be written as a single text where its other fields have their defaults.
macro_rules! text_or_map {
    ($type:ty, $from_text:expr) => {
        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Either;
                impl<'de> ::serde::de::Visitor<'de> for Either {
                    type Value = $type;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str("a text or a map")
                    }
                    fn visit_str<E: ::serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        let from_text: fn(String) -> $type = $from_text;
                        Ok(from_text(text.to_owned()))
                    }
                    fn visit_map<A: ::serde::de::MapAccess<'de>>(self, map: A) -> Result<$type, A::Error> {
                        // The inherent function that `#[serde(remote = "Self")]` derives.
                        <$type>::deserialize(::serde::de::value::MapAccessDeserializer::new(map))
                    }
                }
                deserializer.deserialize_any(Either)
            }
        }
    };
}
pub(super) use text_or_map;
