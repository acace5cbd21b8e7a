//! Standard output: lines for a person or JSON for a program, complete when piped and quiet when the reader is gone.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use sillage::core::fault::Fault;

use crate::failure::{Failure, Kind, Trouble};
use crate::terminal::{Size, Terminal, visible};

/// Where a command writes its answer.
pub(crate) struct Output {
    sink: Box<dyn Write + Send>,
    /// Whether the answer is JSON.
    json: bool,
    terminal: Terminal,
    /// The reader went away. A command goes on without it: what is under way is not undone by a closed pipe.
    reader_gone: bool,
    /// It cannot be written to for another reason, which was given to whoever wrote. Nothing more is tried.
    unwritable: bool,
}

/// What a piece of a line is, for colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Good news.
    Good,
    /// Worth a look.
    Warning,
    /// Bad news.
    Bad,
    /// A heading, or the name of what a line is about.
    Strong,
    /// Less important than the rest.
    Faint,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Warning => AnsiColor::Yellow.on_default(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Strong => Style::new().bold(),
            Tone::Faint => Style::new().dimmed(),
        }
    }
}

impl Output {
    /// The program's standard output.
    pub(crate) fn stdout(json: bool, terminal: Terminal) -> Self {
        Output::new(Box::new(io::BufWriter::new(io::stdout())), json, terminal)
    }

    fn new(sink: Box<dyn Write + Send>, json: bool, terminal: Terminal) -> Self {
        Output {
            sink,
            json,
            terminal,
            reader_gone: false,
            unwritable: false,
        }
    }

    /// Whether standard output refused something, for another reason than that its reader is gone.
    pub(crate) fn is_unwritable(&self) -> bool {
        self.unwritable
    }

    /// A piece of a line in its colour, where there are colours. The text is made safe for a terminal.
    pub(crate) fn paint(&self, tone: Tone, text: impl Display) -> String {
        let text = text.to_string();
        let text = visible(&text);
        if self.terminal.color {
            let style = tone.style();
            format!("{style}{text}{style:#}")
        } else {
            text.into_owned()
        }
    }

    /// Whether a picture can be drawn again in place: for a person, on a terminal.
    pub(crate) fn draws(&self) -> bool {
        !self.json && self.terminal.cursor
    }

    /// What there is room for.
    pub(crate) fn size(&self) -> Size {
        Size::now()
    }

    /// A line for a person; nothing where the answer is JSON.
    ///
    /// # Errors
    /// When standard output cannot be written to for another reason than that its reader is gone.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        if self.json {
            Ok(())
        } else {
            self.write(format_args!("{text}\n"))
        }
    }

    /// An answer for a program: one JSON value on one line; nothing where the answer is for a person.
    ///
    /// # Errors
    /// As for [`Output::line`].
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let text = serde_json::to_string(value).map_err(io::Error::other)?;
        self.write(format_args!("{text}\n"))
    }

    /// Asks a person; without a terminal, or where the answer is JSON, nobody is asked and the answer is yes.
    ///
    /// # Errors
    /// As for [`Output::line`], or when the answer cannot be read.
    pub(crate) fn confirm(&mut self, question: &str) -> io::Result<bool> {
        if self.json || !self.terminal.interactive || !io::stdin().is_terminal() {
            return Ok(true);
        }
        self.write(format_args!("{question} [Y/n] "))?;
        self.flush()?;
        let mut answer = String::new();
        // The end of input is no answer, and no answer launches nothing.
        let answered = io::stdin().read_line(&mut answer)? > 0;
        Ok(answered
            && matches!(
                answer.trim().to_ascii_lowercase().as_str(),
                "" | "y" | "yes" | "o" | "oui"
            ))
    }

    /// A text that is the answer itself, whatever the format: a schema, a completion script.
    ///
    /// # Errors
    /// As for [`Output::line`].
    pub(crate) fn verbatim(&mut self, text: &str) -> io::Result<()> {
        self.write(format_args!("{text}"))
    }

    /// A failure, as it was asked for: JSON, or lines. Faults of a file are a check's answer and go to standard output;
    /// other trouble goes to standard error, and so does all of it where standard output cannot be written to.
    ///
    /// # Errors
    /// As for [`Output::line`].
    pub(crate) fn failure(&mut self, failure: &Failure) -> io::Result<()> {
        match failure {
            Failure::Faulty { file, .. } if self.unwritable => self.trouble(&Trouble {
                kind: Kind::Io,
                message: format!("{file} is faulty, and standard output cannot be written to"),
                hint: None,
            }),
            Failure::Faulty { file, faults } => self.faults(file, faults),
            Failure::Error(trouble) => self.trouble(trouble),
        }
    }

    fn trouble(&mut self, trouble: &Trouble) -> io::Result<()> {
        #[derive(Serialize)]
        struct Answer<'a> {
            ok: bool,
            error: &'a Trouble,
        }
        if self.json && !self.unwritable {
            return self.json(&Answer {
                ok: false,
                error: trouble,
            });
        }
        // What is told here matters more than what went before it.
        let _ = self.flush();
        let mut told = format!("error: {}\n", visible(&trouble.message));
        if let Some(hint) = &trouble.hint {
            told.push_str(&format!("hint: {}\n", visible(hint)));
        }
        // Where standard error is closed there is nobody left to tell.
        let _ = io::stderr().write_all(told.as_bytes());
        Ok(())
    }

    fn faults(&mut self, file: &str, faults: &[Fault]) -> io::Result<()> {
        #[derive(Serialize)]
        struct Answer<'a> {
            ok: bool,
            file: &'a str,
            faults: &'a [Fault],
        }
        self.json(&Answer {
            ok: false,
            file,
            faults,
        })?;
        for fault in faults {
            self.fault(Tone::Bad, "error", file, fault)?;
        }
        let count = if faults.len() == 1 {
            "1 fault".to_owned()
        } else {
            format!("{} faults", faults.len())
        };
        self.line(self.paint(Tone::Strong, count))
    }

    /// A fault on a line, as compilers write them: `file:line:column: error: …`.
    ///
    /// # Errors
    /// As for [`Output::line`].
    pub(crate) fn fault(&mut self, tone: Tone, word: &str, file: &str, fault: &Fault) -> io::Result<()> {
        let word = self.paint(tone, word);
        self.line(format_args!(
            "{}:{}{word}: {}",
            visible(file),
            place(fault),
            told(fault)
        ))
    }

    /// Writes what is still held back.
    ///
    /// # Errors
    /// As for [`Output::line`].
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.reader_gone || self.unwritable {
            return Ok(());
        }
        let flushed = self.sink.flush();
        self.unless_reader_gone(flushed)
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        if self.reader_gone || self.unwritable {
            return Ok(());
        }
        let written = self.sink.write_fmt(text);
        self.unless_reader_gone(written)
    }

    fn unless_reader_gone(&mut self, written: io::Result<()>) -> io::Result<()> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.reader_gone = true;
                Ok(())
            }
            Err(error) => {
                self.unwritable = true;
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }
}

/// `line:column: `, as far as known.
fn place(fault: &Fault) -> String {
    match (fault.line, fault.column) {
        (Some(line), Some(column)) => format!("{line}:{column}: "),
        (Some(line), None) => format!("{line}: "),
        (None, _) => " ".to_owned(),
    }
}

/// The fault in words, with its path where the place alone does not tell what is meant.
fn told(fault: &Fault) -> String {
    let near = fault
        .suggestion
        .as_ref()
        .map(|near| format!(" (did you mean `{near}`?)"))
        .unwrap_or_default();
    let path = if fault.line.is_none() && !fault.path.is_empty() {
        format!("{}: ", fault.path)
    } else {
        String::new()
    };
    visible(&format!("{path}{}{near}", fault.message)).into_owned()
}

#[cfg(test)]
mod tests;
