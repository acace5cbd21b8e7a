//! Reading which provider accounts runs wait for, and having one used again (R8).

use sillage_core::id::RunId;
use sillage_core::run::AccountView;

use super::{ReadError, Reader, Source};

impl Reader {
    /// Uses a provider account again that a run which is driven waits for (R8); that is durable when this returns.
    ///
    /// # Errors
    /// [`ReadError::Refused`] when the run does not wait for the account; [`ReadError::NoSuchRun`]; [`ReadError::Over`];
    /// [`ReadError::NotDriven`], as always while this process holds the store by this reader.
    pub async fn try_account(&self, run: &RunId, account: &str) -> Result<(), ReadError> {
        match &self.source {
            Source::Control(client) => client.try_account(run, account).await,
            Source::Store(_) => Err(self.not_driven(run).await?),
        }
    }

    /// The provider accounts that runs which are driven wait for, each with its run, in the order of their launch (R8).
    ///
    /// # Errors
    /// [`ReadError::Engine`] when the log of such a run cannot be read.
    pub async fn accounts(&self) -> Result<Vec<(RunId, AccountView)>, ReadError> {
        let mut accounts = Vec::new();
        for run in self.driven().await? {
            let waited_for = AccountView::all(&self.load(&run).await?);
            accounts.extend(waited_for.into_iter().map(|account| (run.clone(), account)));
        }
        Ok(accounts)
    }
}
