//! The token that every route asks for: 256 random bits, in a file that its owner alone can read.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Random bytes of a token.
const BYTES: usize = 32;

/// The most bytes of a token file that are read.
const MOST_READ: u64 = 4096;

/// What a token is compared by. The token itself is not kept, so that no log can show it.
#[derive(Clone)]
pub struct Token {
    digest: [u8; 32],
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read or made.
    #[error("cannot use the token file {}: make its folder writable for this user, or name another", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// Others can read the file.
    #[error("the token file {} can be read by others: `chmod 600` it, or remove it for a new one", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// The file holds no token.
    #[error("the token file {} holds no token of at least 32 printable characters: remove it for a new one", path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
    },
    /// The system has no random bits.
    #[error("the system gives no random bits: {0}")]
    Random(String),
}

impl Token {
    /// The token with this text.
    #[must_use]
    pub fn new(text: &str) -> Token {
        Token {
            digest: Sha256::digest(text).into(),
        }
    }

    /// The token of a file; where there is none, a new one is written to it, for its owner alone.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn of_file(path: &Path) -> Result<Token, TokenError> {
        let failed = |source| TokenError::File {
            path: path.to_path_buf(),
            source,
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(path) {
            Ok(mut file) => {
                let text = random()?;
                writeln!(file, "{text}")
                    .and_then(|()| file.sync_all())
                    .map_err(failed)?;
                Ok(Token::new(&text))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path),
            Err(error) => Err(failed(error)),
        }
    }

    /// Whether this is the token. Takes the same time whatever is wrong with it: what is compared are digests.
    #[must_use]
    pub fn is(&self, text: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(text).into();
        self.digest.ct_eq(&digest).into()
    }
}

fn read(path: &Path) -> Result<Token, TokenError> {
    let failed = |source| TokenError::File {
        path: path.to_path_buf(),
        source,
    };
    let file = OpenOptions::new().read(true).open(path).map_err(failed)?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().map_err(failed)?.permissions());
        if mode & 0o077 != 0 {
            return Err(TokenError::Open {
                path: path.to_path_buf(),
            });
        }
    }
    let mut text = String::new();
    file.take(MOST_READ).read_to_string(&mut text).map_err(failed)?;
    let text = text.trim();
    if text.len() < BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenError::NoToken {
            path: path.to_path_buf(),
        });
    }
    Ok(Token::new(text))
}

fn random() -> Result<String, TokenError> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| TokenError::Random(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D8: a token is new, random, and its owner's alone; the same file gives the same one.
    #[test]
    fn d8_a_token_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::of_file(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.trim().len(), 64);
        assert!(
            token.is(text.trim().as_bytes()) && Token::of_file(&path).unwrap().is(text.trim().as_bytes())
        );
        let other = folder.path().join("other");
        assert!(!Token::of_file(&other).unwrap().is(text.trim().as_bytes()));
        assert!(!format!("{token:?}").contains(text.trim()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(
                std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600
            );
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
            assert!(matches!(Token::of_file(&path), Err(TokenError::Open { .. })));
        }
    }

    #[test]
    fn what_is_no_token_is_not_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("empty", ""),
            ("short", "0123456789"),
            ("spaced", "0123456789 0123456789 0123456789 01"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            #[cfg(unix)]
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            assert!(
                matches!(Token::of_file(&path), Err(TokenError::NoToken { .. })),
                "{name}"
            );
        }
        assert!(matches!(
            Token::of_file(&folder.path().join("no/such/folder")),
            Err(TokenError::File { .. })
        ));
    }
}
