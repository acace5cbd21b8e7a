//! Records: how bytes are framed, checked and cut so that what is read is what was written.
//!
//! A record is a head and frames. Its key is its position; every checksum covers the key, so that two records
//! that change places are noticed as well as a changed byte.
//!
//! ```text
//! record  := head frame*
//! head    := frames u32, length of all frames u32, crc32c(key, frames, length) u32
//! frame   := length u32, crc32c(key, index u32, length, bytes) u32, bytes
//! ```
//!
//! Numbers are big-endian. A record longer than [`PIECE`] is cut into pieces; the head's length tells how many.

/// The longest value that is stored. Longer ones would make sled write files of their own, which it never syncs.
pub(super) const PIECE: usize = 4096;

const HEAD: usize = 12;
const FRAME: usize = 8;

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flaw {
    /// The head's checksum is wrong, or there is no whole head.
    #[error("its head is damaged")]
    Head,
    /// One frame's checksum is wrong, or it is cut short.
    #[error("its checksum is wrong")]
    Frame {
        /// The frame's index.
        index: u32,
    },
    /// A piece is missing or has the wrong length.
    #[error("piece {piece} of it is missing or too short")]
    Piece {
        /// The piece's number, from 0.
        piece: u32,
    },
}

/// The record is longer than can be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Frames `parts` into one record for `key`.
pub(super) fn encode<B: AsRef<[u8]>>(key: &[u8], parts: &[B]) -> Result<Vec<u8>, TooLong> {
    let length: usize = parts.iter().map(|part| part.as_ref().len() + FRAME).sum();
    let frames = u32::try_from(parts.len()).map_err(|_| TooLong)?;
    let length32 = u32::try_from(length).map_err(|_| TooLong)?;
    let seed = crc32c::crc32c(key);

    let mut record = Vec::with_capacity(HEAD + length);
    record.extend_from_slice(&frames.to_be_bytes());
    record.extend_from_slice(&length32.to_be_bytes());
    let crc = crc32c::crc32c_append(seed, &record);
    record.extend_from_slice(&crc.to_be_bytes());
    for (index, part) in (0_u32..).zip(parts) {
        let part = part.as_ref();
        let size = u32::try_from(part.len()).map_err(|_| TooLong)?.to_be_bytes();
        record.extend_from_slice(&size);
        record.extend_from_slice(&frame_crc(seed, index, size, part).to_be_bytes());
        record.extend_from_slice(part);
    }
    Ok(record)
}

fn frame_crc(seed: u32, index: u32, size: [u8; 4], bytes: &[u8]) -> u32 {
    let mut prefix = [0; 8];
    prefix[..4].copy_from_slice(&index.to_be_bytes());
    prefix[4..].copy_from_slice(&size);
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &prefix), bytes)
}

/// A record's head, believed only when its checksum is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// How many frames follow.
    pub(super) frames: u32,
    length: u32,
    seed: u32,
}

impl Head {
    /// Reads the head of the record that starts with `piece`.
    pub(super) fn decode(key: &[u8], piece: &[u8]) -> Result<Head, Flaw> {
        let seed = crc32c::crc32c(key);
        let (head, _) = piece.split_first_chunk::<HEAD>().ok_or(Flaw::Head)?;
        let (frames, length, crc) = (word(head, 0), word(head, 4), word(head, 8));
        if crc32c::crc32c_append(seed, &head[..8]) != crc {
            return Err(Flaw::Head);
        }
        Ok(Head { frames, length, seed })
    }

    /// How many pieces the record has, at least one.
    pub(super) fn pieces(&self) -> u32 {
        let bytes = HEAD as u64 + u64::from(self.length);
        // At most 2^32 / 4096 + 1 pieces.
        u32::try_from(bytes.div_ceil(PIECE as u64)).unwrap_or(u32::MAX)
    }

    /// How long the piece numbered `piece` must be.
    pub(super) fn piece_len(&self, piece: u32) -> usize {
        let bytes = HEAD as u64 + u64::from(self.length);
        let rest = bytes.saturating_sub(u64::from(piece) * PIECE as u64);
        usize::try_from(rest).unwrap_or(PIECE).min(PIECE)
    }

    /// The record's frames from the one numbered `skip` on. Those before are passed over unchecked.
    pub(super) fn frames<'a>(&self, record: &'a [u8], skip: u32) -> Frames<'a> {
        let mut frames = Frames {
            rest: record.get(HEAD..).unwrap_or_default(),
            index: 0,
            head: *self,
        };
        while frames.index < skip.min(self.frames) {
            if frames.cut().is_err() {
                break;
            }
            frames.index += 1;
        }
        frames
    }
}

/// A record's frames, each checked as it is given.
pub(super) struct Frames<'a> {
    rest: &'a [u8],
    index: u32,
    head: Head,
}

impl<'a> Frames<'a> {
    fn cut(&mut self) -> Result<([u8; 4], u32, &'a [u8]), Flaw> {
        let flaw = Flaw::Frame { index: self.index };
        let (prefix, rest) = self.rest.split_first_chunk::<FRAME>().ok_or(flaw.clone())?;
        let size = word(prefix, 0);
        let (bytes, rest) = rest.split_at_checked(size as usize).ok_or(flaw)?;
        self.rest = rest;
        Ok((size.to_be_bytes(), word(prefix, 4), bytes))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<&'a [u8], Flaw>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.head.frames {
            return None;
        }
        let index = self.index;
        self.index += 1;
        Some(match self.cut() {
            Ok((size, crc, bytes)) if frame_crc(self.head.seed, index, size, bytes) == crc => Ok(bytes),
            Ok(_) | Err(_) => {
                self.index = self.head.frames;
                Err(Flaw::Frame { index })
            }
        })
    }
}

fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(key: &[u8], record: &[u8]) -> Result<Vec<Vec<u8>>, Flaw> {
        let head = Head::decode(key, record)?;
        let whole: usize = (0..head.pieces()).map(|piece| head.piece_len(piece)).sum();
        if whole != record.len() {
            return Err(Flaw::Piece { piece: head.pieces() });
        }
        head.frames(record, 0)
            .map(|frame| frame.map(<[u8]>::to_vec))
            .collect()
    }

    #[test]
    fn every_flipped_bit_is_reported() {
        let record = encode(
            b"key",
            &[b"first".to_vec(), Vec::new(), b"third, a little longer".to_vec()],
        )
        .unwrap();
        for at in 0..record.len() {
            for bit in 0..8 {
                let mut flipped = record.clone();
                flipped[at] ^= 1 << bit;
                assert!(decode(b"key", &flipped).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn a_record_read_at_another_place_is_reported() {
        let record = encode(b"run/1", &[b"one".to_vec()]).unwrap();
        assert_eq!(decode(b"run/2", &record), Err(Flaw::Head));
    }

    #[test]
    fn frames_that_change_places_are_reported() {
        let record = encode(b"k", &[b"aaaa".to_vec(), b"bbbb".to_vec()]).unwrap();
        let (one, two) = record[HEAD..].split_at(FRAME + 4);
        let swapped = [&record[..HEAD], two, one].concat();
        assert_eq!(decode(b"k", &swapped), Err(Flaw::Frame { index: 0 }));
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6000), 0..6),
            skip in 0_u32..8,
        ) {
            let record = encode(b"place", &parts).unwrap();
            prop_assert_eq!(&decode(b"place", &record).unwrap(), &parts);
            let head = Head::decode(b"place", &record).unwrap();
            prop_assert_eq!(head.pieces() as usize, record.chunks(PIECE).len());
            for (piece, chunk) in record.chunks(PIECE).enumerate() {
                prop_assert_eq!(head.piece_len(u32::try_from(piece).unwrap()), chunk.len());
            }
            let rest: Vec<Vec<u8>> = head.frames(&record, skip).map(|f| f.unwrap().to_vec()).collect();
            prop_assert_eq!(&rest[..], parts.get(skip as usize..).unwrap_or_default());
        }

        #[test]
        fn a_record_cut_short_is_reported(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let record = encode(b"place", &parts).unwrap();
            prop_assert!(decode(b"place", &record[..cut.index(record.len())]).is_err());
        }
    }
}
