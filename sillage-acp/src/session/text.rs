//! What an agent said: the final text of a turn, and what a replay tells of a message.

use sillage_core::ports::runtime::MessageFate;

/// Bytes of text kept of one turn; of more, the last.
const KEPT: usize = 4 << 20;

/// Bytes of a replay's questions that are kept.
const REPLAYED: usize = 16 << 20;

/// What a question costs besides its text.
const ENTRY: usize = 64;

/// The text of one turn, as it comes.
#[derive(Debug, Default)]
pub(super) struct FinalText {
    all: String,
    since_tool: String,
    last_message: String,
    message: Option<String>,
}

impl FinalText {
    pub(super) fn said(&mut self, text: &str, message: Option<&str>) {
        if message.is_some() && self.message.as_deref() != message {
            self.last_message.clear();
            self.message = message.map(str::to_owned);
        }
        // A piece without an identifier is no part of a message that has one: codex speaks so of its own settings.
        let elsewhere = message.is_none() && self.message.is_some();
        let last_message = (!elsewhere).then_some(&mut self.last_message);
        for kept in [&mut self.all, &mut self.since_tool]
            .into_iter()
            .chain(last_message)
        {
            kept.push_str(text);
            forget_start(kept);
        }
    }

    /// A tool call begins: what was said before it is not the last word.
    pub(super) fn tool(&mut self) {
        self.since_tool.clear();
        self.last_message.clear();
        self.message = None;
    }

    /// The identifier of the message that came last, where the agent gives any.
    pub(super) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Whether nothing was said at all.
    pub(super) fn is_blank(&self) -> bool {
        self.all.trim().is_empty()
    }

    /// The last message after the last tool call; all that was said after it, or at all, where that is blank.
    pub(super) fn finish(self) -> String {
        self.said_last().to_owned()
    }

    /// The same, while more may come.
    pub(super) fn said_last(&self) -> &str {
        [&self.last_message, &self.since_tool]
            .into_iter()
            .find(|text| !text.trim().is_empty())
            .unwrap_or(&self.all)
    }
}

fn forget_start(text: &mut String) {
    if text.len() > KEPT {
        let excess = text.len() - KEPT;
        let cut = (excess..text.len())
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(excess);
        text.drain(..cut);
    }
}

/// A conversation as `session/load` repeats it (ACP v1, "Session setup").
#[derive(Debug, Default)]
pub(super) struct Replay {
    asked: Vec<(Option<String>, String)>,
    /// Bytes of them.
    bytes: usize,
    /// There were more than can be kept, so that the earlier ones are not known.
    cut: bool,
    /// What came last was a piece of a message of the user.
    asking: bool,
    answer: FinalText,
}

impl Replay {
    pub(super) fn asked(&mut self, text: &str, message: Option<&str>) {
        self.bytes += text.len() + ENTRY;
        if self.bytes > REPLAYED {
            (self.cut, self.bytes) = (true, text.len() + ENTRY);
            let last = self.asked.pop();
            self.asked.clear();
            self.asked.extend(last.filter(|(_, words)| words.len() < KEPT));
        }
        match self.asked.last_mut() {
            Some((id, words)) if self.asking && id.as_deref() == message => words.push_str(text),
            _ => {
                self.asked.push((message.map(str::to_owned), text.to_owned()));
                self.answer = FinalText::default();
            }
        }
        self.asking = true;
    }

    pub(super) fn said(&mut self, text: &str, message: Option<&str>) {
        self.asking = false;
        self.answer.said(text, message);
    }

    pub(super) fn tool(&mut self) {
        self.asking = false;
        self.answer.tool();
    }

    /// What became of a message with this text. Agents may add to a message what they keep of it, so that it is
    /// looked for within those of the replay; a replay without any message of the user says nothing.
    pub(super) fn fate(self, text: &str) -> MessageFate {
        let holds = |(_, words): &(Option<String>, String)| words.contains(text.trim());
        match self.asked.split_last() {
            None => MessageFate::Unknown,
            Some((last, _)) if holds(last) => MessageFate::Replayed(self.answer.finish()),
            Some((_, earlier)) if self.cut || earlier.iter().any(holds) => MessageFate::Unknown,
            Some(_) => MessageFate::NotReceived,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_final_text_is_the_last_message_after_the_last_tool_call() {
        let mut text = FinalText::default();
        text.said("warning", Some("m1"));
        text.said("I will look", Some("m2"));
        text.tool();
        text.said("note", Some("m3"));
        text.said("the ", Some("m4"));
        text.said("end", Some("m4"));
        assert_eq!(text.finish(), "the end");

        let mut text = FinalText::default();
        text.said("before", None);
        text.tool();
        text.said("after ", None);
        text.said("it", None);
        assert_eq!(text.finish(), "after it");
    }

    #[test]
    fn a_piece_without_an_identifier_is_no_part_of_a_message_that_has_one() {
        let mut text = FinalText::default();
        text.said("a notice at the start", None);
        text.said("the ", Some("m1"));
        text.said("Config warning: there is no sandbox", None);
        text.said("end", Some("m1"));
        assert_eq!(text.finish(), "the end");
    }

    #[test]
    fn where_the_last_word_is_blank_what_was_said_before_counts() {
        let mut text = FinalText::default();
        text.said("all", None);
        text.tool();
        text.said(" \n", None);
        assert_eq!(text.finish(), "all \n");
        assert_eq!(FinalText::default().finish(), "");
    }

    #[test]
    fn memory_is_bounded_and_cut_between_characters() {
        let mut text = FinalText::default();
        for _ in 0..3 {
            text.said(&"é".repeat(KEPT / 2), None);
            text.said("x", None);
        }
        assert!(text.finish().len() <= KEPT);
    }

    #[test]
    fn r12_a_replay_tells_what_became_of_a_message() {
        let replay = |pieces: &[(bool, &str)]| {
            let mut replay = Replay::default();
            for (user, text) in pieces {
                if *user {
                    replay.asked(text, None)
                } else {
                    replay.said(text, None)
                }
            }
            replay
        };
        let user = true;
        let agent = false;
        let whole = [
            (user, "first"),
            (agent, "one"),
            (user, "do "),
            (user, "this"),
            (agent, "do"),
            (agent, "ne"),
        ];
        assert_eq!(
            replay(&whole).fate("do this"),
            MessageFate::Replayed("done".to_owned())
        );
        assert_eq!(replay(&whole).fate("first"), MessageFate::Unknown);
        assert_eq!(replay(&whole).fate("never"), MessageFate::NotReceived);
        assert_eq!(
            replay(&[(user, "do this")]).fate("do this"),
            MessageFate::Replayed(String::new())
        );
        assert_eq!(replay(&[(agent, "done")]).fate("do this"), MessageFate::Unknown);
    }
}
