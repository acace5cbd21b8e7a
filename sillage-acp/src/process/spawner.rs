//! Starts processes from one long-lived thread.

use std::sync::{OnceLock, mpsc};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A thread that starts processes and lives as long as this does.
///
/// A parent-death signal follows the *thread* that forked, not its process (`PR_SET_PDEATHSIG(2const)`), and tokio's own
/// threads come and go. A guardian does not need that any more; a launcher of one's own may ask for such a signal.
#[derive(Debug, Default)]
pub(crate) struct Spawner {
    thread: OnceLock<mpsc::Sender<Order>>,
}

struct Order {
    command: Command,
    runtime: Handle,
    started: oneshot::Sender<std::io::Result<Child>>,
}

impl Spawner {
    pub(crate) async fn spawn(&self, command: Command) -> std::io::Result<Child> {
        let (started, answer) = oneshot::channel();
        let gone = || std::io::Error::other("the thread that starts agents has ended");
        let order = Order {
            command,
            runtime: Handle::current(),
            started,
        };
        self.orders()?.send(order).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    fn orders(&self) -> std::io::Result<&mpsc::Sender<Order>> {
        if let Some(orders) = self.thread.get() {
            return Ok(orders);
        }
        let (orders, received) = mpsc::channel();
        std::thread::Builder::new()
            .name("sillage-agents".to_owned())
            .spawn(move || serve(&received))?;
        // Of two threads made at once, the one not kept ends for want of senders.
        Ok(self.thread.get_or_init(|| orders))
    }
}

fn serve(orders: &mpsc::Receiver<Order>) {
    for mut order in orders {
        let _entered = order.runtime.enter();
        // A caller that went away drops the child, which kills it.
        let _ = order.started.send(order.command.spawn());
    }
}
