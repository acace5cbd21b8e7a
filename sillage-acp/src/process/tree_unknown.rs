//! A process and, on Unix, its group, where there is no `/proc`: what left the group is not found, and a killed
//! leader's number may be given to another process before its group is killed. On Windows only the leader ends.

use std::time::Duration;

use tokio::process::Child;

/// Tells when a process ends.
pub(super) struct ExitWatch;

impl ExitWatch {
    pub(super) fn new(_pid: u32) -> std::io::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn wait(&mut self, child: &mut Child) {
        // Its status is kept by the child and given again.
        let _ = child.wait().await;
    }
}

/// The leader of an agent's process group.
#[derive(Debug)]
pub(crate) struct Leader {
    pid: u32,
}

impl Leader {
    pub(super) fn new(pid: u32, _guards: bool, _mark: String) -> Self {
        Self { pid }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn note_strays(&self) -> bool {
        false
    }

    pub(super) fn terminate(&self) {
        #[cfg(unix)]
        let _ = self.signal(rustix::process::Signal::TERM);
    }

    pub(crate) fn kill(&self) -> std::io::Result<()> {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL)?;
        Ok(())
    }

    pub(crate) fn kill_all(&self) {
        let _ = self.kill();
    }

    pub(super) fn forget(&self) {}

    pub(super) async fn survivor_after(&self, _bound: Duration) -> Option<(u32, String)> {
        None
    }

    pub(super) fn agent(&self) -> Option<u32> {
        Some(self.pid)
    }

    pub(super) fn why(&self, _pid: u32) -> String {
        "it outlived SIGKILL".to_owned()
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) -> std::io::Result<()> {
        let pid = i32::try_from(self.pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let pid = pid.ok_or_else(|| std::io::Error::other("a process number out of range"))?;
        match rustix::process::kill_process_group(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
