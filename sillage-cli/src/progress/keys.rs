//! Keys that a person presses while a run is shown, one by one and unseen.

#[cfg(unix)]
pub(super) use unix::Keys;

/// Where keys cannot be read one by one.
#[cfg(not(unix))]
pub(super) struct Keys(());

#[cfg(not(unix))]
impl Keys {
    /// None: answers are given by commands.
    pub(super) fn listen() -> Option<Keys> {
        None
    }

    /// Never.
    pub(super) async fn next(&mut self) -> char {
        std::future::pending().await
    }
}

#[cfg(unix)]
mod unix {
    use std::io::IsTerminal as _;
    use std::os::fd::AsFd as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::JoinHandle;
    use std::time::Duration;

    use rustix::process::getpgrp;
    use rustix::termios::{
        LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
    };
    use tokio::sync::mpsc;

    /// Rest after nothing was read: a terminal that hung up does not wait.
    const REST: Duration = Duration::from_millis(50);

    /// Standard input with keys given at once and not shown. Dropping it puts the terminal back as it was.
    pub(in super::super) struct Keys {
        receiver: mpsc::UnboundedReceiver<char>,
        over: Arc<AtomicBool>,
        reading: Option<JoinHandle<()>>,
        before: Termios,
    }

    impl Keys {
        /// Begins to listen; none where standard input is no terminal.
        pub(in super::super) fn listen() -> Option<Keys> {
            let stdin = std::io::stdin();
            if !stdin.is_terminal() {
                return None;
            }
            let before = tcgetattr(stdin.as_fd()).ok()?;
            let (sender, receiver) = mpsc::unbounded_channel();
            let over = Arc::new(AtomicBool::new(false));
            let (saved, ended) = (before.clone(), Arc::clone(&over));
            // A thread of its own that nobody waits for at the program's end.
            let reading = std::thread::Builder::new()
                .name("keys".to_owned())
                .spawn(move || read(&saved, &sender, &ended))
                .ok()?;
            Some(Keys {
                receiver,
                over,
                reading: Some(reading),
                before,
            })
        }

        /// The next key; never, once the terminal is gone.
        pub(in super::super) async fn next(&mut self) -> char {
            match self.receiver.recv().await {
                Some(key) => key,
                None => std::future::pending().await,
            }
        }
    }

    impl Drop for Keys {
        fn drop(&mut self) {
            self.over.store(true, Ordering::Relaxed);
            if let Some(reading) = self.reading.take() {
                // It reads no longer than the terminal waits, a fifth of a second.
                let _ = reading.join();
            }
            if is_in_front() {
                let _ = tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &self.before);
            }
        }
    }

    /// Whether this process may use the terminal: one in the background would be stopped for it.
    fn is_in_front() -> bool {
        tcgetpgrp(std::io::stdin().as_fd()).is_ok_and(|front| front == getpgrp())
    }

    fn read(before: &Termios, sender: &mpsc::UnboundedSender<char>, over: &AtomicBool) {
        let mut quiet = before.clone();
        // Signals stay: an interrupt is one.
        quiet.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        quiet.special_codes[SpecialCodeIndex::VMIN] = 0;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 2;
        while !over.load(Ordering::Relaxed) && !sender.is_closed() {
            if !is_in_front() {
                std::thread::sleep(REST);
                continue;
            }
            let stdin = std::io::stdin();
            // A shell puts its own modes back while it is in front.
            let is_quiet =
                tcgetattr(stdin.as_fd()).is_ok_and(|now| !now.local_modes.contains(LocalModes::ICANON));
            if !is_quiet && tcsetattr(stdin.as_fd(), OptionalActions::Now, &quiet).is_err() {
                return;
            }
            let mut bytes = [0; 64];
            match rustix::io::read(stdin.as_fd(), &mut bytes) {
                Ok(0) => std::thread::sleep(REST),
                Ok(read) => {
                    for byte in &bytes[..read] {
                        // Nobody listens any more.
                        let _ = sender.send(char::from(*byte));
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}
