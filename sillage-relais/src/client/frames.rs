//! Server-sent events, put together from pieces of bytes.

/// The most bytes of one frame.
const LARGEST: usize = 32 << 20;

/// A frame: the number and the data of an event. Comments and frames without data are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) number: u64,
    pub(super) data: String,
}

/// What cannot be a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadFrame {
    #[error("an event of the gateway is larger than {LARGEST} bytes")]
    TooLarge,
    #[error("an event of the gateway is not UTF-8, or has no number")]
    Unreadable,
}

/// What came so far of the next frame.
#[derive(Debug, Default)]
pub(super) struct Frames {
    line: Vec<u8>,
    number: Option<u64>,
    data: Option<String>,
}

impl Frames {
    /// Takes in bytes: the frames that are whole with them.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, BadFrame> {
        let mut whole = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let kept = self.data.as_ref().map_or(0, String::len);
            if self.line.len() + part.len() + kept > LARGEST {
                return Err(BadFrame::TooLarge);
            }
            self.line.extend_from_slice(part);
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                whole.extend(self.line(line)?);
            }
        }
        Ok(whole)
    }

    fn line(&mut self, line: Vec<u8>) -> Result<Option<Frame>, BadFrame> {
        let line = String::from_utf8(line).map_err(|_| BadFrame::Unreadable)?;
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            return match (self.data.take(), self.number.take()) {
                (None, _) => Ok(None),
                (Some(_), None) => Err(BadFrame::Unreadable),
                (Some(data), Some(number)) => Ok(Some(Frame { number, data })),
            };
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.number = Some(value.parse().map_err(|_| BadFrame::Unreadable)?),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<Vec<Frame>, BadFrame> {
        let mut frames = Frames::default();
        let mut whole = Vec::new();
        for piece in pieces {
            whole.extend(frames.take(piece)?);
        }
        Ok(whole)
    }

    #[test]
    fn comments_and_other_fields_are_passed_over() {
        let text = b"retry: 1000\n\n:\n\nid: 4\nevent: text\ndata: {\"a\":1}\r\ndata:b\n\n: x\nid: 5\n\n";
        let frame = Frame {
            number: 4,
            data: "{\"a\":1}\nb".to_owned(),
        };
        assert_eq!(read(&[text]), Ok(vec![frame]));
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for text in [
            &b"data: x\n\n"[..],
            b"id: -1\n",
            b"id: 99999999999999999999\n",
            b"data: \xff\n",
        ] {
            assert_eq!(read(&[text]), Err(BadFrame::Unreadable));
        }
        let mut frames = Frames::default();
        let piece = vec![b'x'; LARGEST / 2];
        assert_eq!(frames.take(&piece), Ok(Vec::new()));
        assert_eq!(frames.take(&piece), Ok(Vec::new()));
        assert_eq!(frames.take(b"x"), Err(BadFrame::TooLarge));
    }

    proptest! {
        /// L6: however the bytes are cut, the frames are the same.
        #[test]
        fn frames_do_not_depend_on_how_bytes_are_cut(
            texts in proptest::collection::vec("[^\r\n]{0,20}", 1..5), cut in 1_usize..9,
        ) {
            let told: String = texts.iter().zip(1..).map(|(text, n)| format!("id: {n}\ndata: {text}\n\n")).collect();
            let pieces: Vec<&[u8]> = told.as_bytes().chunks(cut).collect();
            let expected: Vec<Frame> =
                texts.iter().zip(1..).map(|(text, number)| Frame { number, data: text.clone() }).collect();
            prop_assert_eq!(read(&pieces), Ok(expected));
        }

        /// Whatever comes, nothing panics.
        #[test]
        fn anything_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Frames::default().take(&bytes);
        }
    }
}
