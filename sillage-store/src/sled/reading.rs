//! Reading logs, summaries, documents and transcripts.

use std::sync::Arc;

use sillage_core::id::{ClientSessionId, RunId, Seq};
use sillage_core::ports::store::{RunSummary, StoreError, Which};

use super::in_flight::InFlight;
use super::keys;
use super::record::Flaw;
use super::view::{Found, View};

/// A page of a log being filled.
struct Page {
    events: Vec<(Seq, Vec<u8>)>,
    bytes: usize,
    room: usize,
}

impl Page {
    /// Takes an event while there is room for it.
    fn take(&mut self, at: u64, event: &[u8]) -> bool {
        if !self.events.is_empty() && self.bytes + event.len() > self.room {
            return false;
        }
        self.bytes += event.len();
        self.events.push((Seq(at), event.to_vec()));
        true
    }
}

impl View<'_> {
    /// A run's events from `from` on, as [`Store::read`](sillage_core::ports::Store::read) gives them.
    pub(super) fn events(
        &self,
        run: &RunId,
        from: Seq,
        max_bytes: usize,
        in_flight: &InFlight,
    ) -> Result<Vec<(Seq, Vec<u8>)>, StoreError> {
        let from = from.0.max(1);
        let last = self.summary(run)?.map_or(0, |summary| summary.last.0);
        let prefix = keys::log(run);
        let start = self
            .last(&prefix, from)?
            .and_then(|(key, _)| keys::number(&key))
            .unwrap_or(1);
        let mut page = Page {
            events: Vec::new(),
            bytes: 0,
            room: max_bytes,
        };
        let mut next = start;
        let mut full = false;
        for item in self.numbered(&prefix, start..=u64::MAX) {
            let (key, first) = item?;
            if keys::number(&key) != Some(next) {
                return Err(self.missing(run, next));
            }
            let record = self.assemble(&key, first, &|| format!("event {next} of run {run}"))?;
            full = !self.fill(&mut page, run, next, from, &record)?;
            next += u64::from(record.len());
            if full {
                break;
            }
        }
        if !full && next <= last {
            return Err(self.missing(run, next));
        }
        if let Some(hidden) = in_flight.first_hidden(run) {
            page.events.retain(|(at, _)| *at < hidden);
        }
        Ok(page.events)
    }

    /// Puts a record's events on the page, from `from` on. Tells whether there was room for all.
    fn fill(
        &self,
        page: &mut Page,
        run: &RunId,
        first: u64,
        from: u64,
        record: &Found,
    ) -> Result<bool, StoreError> {
        let skip = u32::try_from(from.saturating_sub(first)).unwrap_or(u32::MAX);
        for (at, frame) in (first + u64::from(skip)..).zip(record.frames(skip)) {
            let event = frame.map_err(|flaw| {
                let at = if let Flaw::Frame { index } = flaw {
                    first + u64::from(index)
                } else {
                    at
                };
                self.flawed(&format!("event {at} of run {run}"), &flaw)
            })?;
            if !page.take(at, event) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn missing(&self, run: &RunId, at: u64) -> StoreError {
        self.folder.damaged(format!(
            "event {at} of run {run} is missing; the rest of the store is not affected, restore the folder from a \
             copy to have this back"
        ))
    }

    /// The position of a run's next event.
    pub(super) fn next_of_log(&self, run: &RunId) -> Result<Seq, StoreError> {
        let Some((key, first)) = self.last(&keys::log(run), u64::MAX)? else {
            return Ok(Seq::FIRST);
        };
        let at = keys::number(&key).unwrap_or(0);
        let record = self.assemble(&key, first, &|| format!("event {at} of run {run}"))?;
        Ok(Seq(at + u64::from(record.len())))
    }

    /// A run's summary, which must be that of its last event.
    pub(super) fn known(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        let summary = self.summary(run)?;
        let next = self.next_of_log(run)?;
        let last = summary.as_ref().map_or(0, |summary| summary.last.0);
        if last + 1 == next.0 {
            Ok(summary)
        } else {
            Err(self.missing(run, next.0.min(last + 1)))
        }
    }

    /// A run's summary as it was last written.
    pub(super) fn summary(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        let name = || format!("the summary of run {run}");
        let Some(found) = self.record(&keys::summary(run), &name)? else {
            return Ok(None);
        };
        let json = found.single().map_err(|flaw| self.flawed(&name(), &flaw))?;
        let summary = serde_json::from_slice(json).map_err(|_| self.flawed(&name(), &Flaw::Head))?;
        Ok(Some(summary))
    }

    /// Summaries from one of the two lists, newest launch first.
    pub(super) fn summaries(
        &self,
        which: Which,
        limit: usize,
        in_flight: &InFlight,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let list = match which {
            Which::All => keys::ALL,
            Which::Unfinished => keys::UNFINISHED,
        };
        let mut summaries = Vec::new();
        for key in self.keys(&[list], vec![list]) {
            if summaries.len() == limit {
                break;
            }
            let run = keys::run_listed(&key?).ok_or_else(|| {
                self.folder
                    .damaged("its list of runs holds a name that is none".to_owned())
            })?;
            let found = self.summary(&run)?;
            if found.is_none() {
                return Err(self
                    .folder
                    .damaged(format!("the summary of run {run} is missing")));
            }
            summaries.extend(in_flight.summary(&run, found));
        }
        Ok(summaries)
    }

    /// The number of a document's newest version; 0 where there is none.
    pub(super) fn newest(&self, kind: &str, name: &str, upto: u64) -> Result<u64, StoreError> {
        let found = self.last(&keys::document(kind, name), upto)?;
        Ok(found.and_then(|(key, _)| keys::number(&key)).unwrap_or(0))
    }

    /// A document's newest version that may be shown.
    pub(super) fn newest_shown(
        &self,
        kind: &str,
        name: &str,
        in_flight: &InFlight,
    ) -> Result<u64, StoreError> {
        let newest = self.newest(kind, name, u64::MAX)?;
        let hidden = in_flight.first_hidden_version(kind, name);
        Ok(hidden.map_or(newest, |hidden| newest.min(hidden - 1)))
    }

    /// A document at one version.
    pub(super) fn document(
        &self,
        kind: &str,
        name: &str,
        version: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let what = || format!("version {version} of {kind} {name}");
        let Some(found) = self.record(&keys::version(kind, name, version), &what)? else {
            return Ok(None);
        };
        found
            .single()
            .map(|body| Some(body.to_vec()))
            .map_err(|flaw| self.flawed(&what(), &flaw))
    }

    /// The names of a kind's documents. Costs a seek a name, however many versions there are.
    pub(super) fn names(&self, kind: &str, in_flight: &InFlight) -> Result<Vec<String>, StoreError> {
        let prefix = keys::kind(kind);
        let mut names = Vec::new();
        let mut from = prefix.clone();
        while let Some(key) = self.keys(&prefix, from).next().transpose()? {
            let name = keys::name_behind(&prefix, &key).ok_or_else(|| {
                self.folder
                    .damaged(format!("its list of {kind} holds a name that is none"))
            })?;
            from = keys::behind(&keys::document(kind, &name));
            if in_flight.first_hidden_version(kind, &name) != Some(1) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// A session's transcript.
    pub(super) fn transcript(
        &self,
        run: &RunId,
        session: ClientSessionId,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let name: Arc<str> = format!("the transcript of session {session} of run {run}").into();
        let mut chunks = Vec::new();
        for item in self.numbered(&keys::transcript(run, session), 0..=u64::MAX) {
            let (key, first) = item?;
            let found = self.assemble(&key, first, &|| name.to_string())?;
            chunks.push(found.single().map_err(|flaw| self.flawed(&name, &flaw))?.to_vec());
        }
        Ok(chunks)
    }

    /// The number of a transcript's next chunk.
    pub(super) fn next_chunk(&self, run: &RunId, session: ClientSessionId) -> Result<u64, StoreError> {
        let found = self.last(&keys::transcript(run, session), u64::MAX)?;
        Ok(found
            .and_then(|(key, _)| keys::number(&key))
            .map_or(0, |last| last + 1))
    }
}
