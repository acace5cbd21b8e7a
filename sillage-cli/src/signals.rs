//! Interrupts, requests to end, and terminals that are closed.

use crate::failure::{Failure, Kind};

/// What a signal tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Somebody wants the program to end.
    ToEnd,
    /// The terminal was closed. That comes more than once: from the kernel and from the shell.
    ThatNobodySees,
}

/// The signals that a program at work listens to.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// None where it is to be ignored, as `nohup` has it.
    #[cfg(unix)]
    hang_up: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn listen() -> Result<Signals, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(Kind::Io, format_args!("cannot listen to signals: {error}")))
        };
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: match may_be_heard(HANG_UP) {
                true => Some(listen(SignalKind::hangup())?),
                false => None,
            },
        })
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> Result<Signals, Failure> {
        Ok(Signals {})
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> Told {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Told::ToEnd,
            _ = self.terminate.recv() => Told::ToEnd,
            _ = hang_up => Told::ThatNobodySees,
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> Told {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Told::ToEnd
    }
}

/// The number of SIGHUP everywhere.
#[cfg(unix)]
const HANG_UP: u32 = 1;

/// Whether a signal is not one that whoever started us had ignored: to listen would undo that. Where it cannot be known
/// it is left as it is; a run whose program is ended by it can be resumed all the same.
#[cfg(unix)]
fn may_be_heard(number: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (number - 1)) == 0)
}
