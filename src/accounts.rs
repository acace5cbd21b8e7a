//! Asking the runtime about provider accounts that a run waits for (R8).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sillage_core::ports::AgentRuntime;
use sillage_core::ports::runtime::AccountState;
use sillage_core::run::{Input, Run};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::driver::Message;

/// How often the runtime is asked about an account.
const ASK_EVERY: Duration = Duration::from_secs(30);

/// Asks about each account that the run waits for, until it waits no more.
#[derive(Default)]
pub(crate) struct Accounts {
    asking: HashMap<String, JoinHandle<()>>,
}

impl Accounts {
    /// Begins and ends asking as the run's gates say.
    pub(crate) fn follow(
        &mut self,
        run: &Run,
        runtime: &Arc<dyn AgentRuntime>,
        sender: &mpsc::UnboundedSender<Message>,
    ) {
        let over = run.end().is_some();
        let is_closed = |account: &str| !over && run.closed_gates().any(|(closed, _)| closed == account);
        self.asking.retain(|account, asking| {
            let wanted = is_closed(account);
            if !wanted {
                asking.abort();
            }
            wanted
        });
        for (account, _) in run.closed_gates().filter(|_| !over) {
            if !self.asking.contains_key(account) {
                let (runtime, sender) = (Arc::clone(runtime), sender.clone());
                let asking = tokio::spawn(ask(account.to_owned(), runtime, sender));
                self.asking.insert(account.to_owned(), asking);
            }
        }
    }

    /// Asks about nothing more.
    pub(crate) fn stop(&mut self) {
        self.asking.drain().for_each(|(_, asking)| asking.abort());
    }
}

/// Tells each time that the account is available: whether that is believed yet is for the run to say.
async fn ask(account: String, runtime: Arc<dyn AgentRuntime>, sender: mpsc::UnboundedSender<Message>) {
    loop {
        tokio::time::sleep(ASK_EVERY).await;
        match runtime.account(&account).await {
            Ok(AccountState::Available) => {
                let account = account.clone();
                if sender
                    .send(Message::Input(Input::AccountAvailable { account }))
                    .is_err()
                {
                    return; // the driver is gone
                }
            }
            Ok(AccountState::Unknown | AccountState::Unavailable) => {}
            Err(error) => {
                tracing::debug!(%account, %error, "the runtime could not be asked about an account")
            }
        }
    }
}
