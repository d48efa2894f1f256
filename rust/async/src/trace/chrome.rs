//! A recording as JSON, in Chrome's trace event format.
//!
//! An object with `traceEvents`: spans as complete events (`"ph":"X"`, `ts` and `dur` in microseconds since the start,
//! with nanoseconds as fraction), events as instants (`"i"`), names of process and threads as metadata (`"M"`).
//! `otherData` has how many records were dropped for want of memory. Strings may hold anything.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::time::Duration;

use super::fields::{Fields, Value};
use super::lane::{Record, Recorded};
use super::session::Recording;
use purlin_base::quoted::Quoted;

/// Whole numbers beyond it are written as strings: readers keep numbers as doubles.
const LARGEST_EXACT: u64 = 1 << 53;

pub(super) fn write(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let pid = process::id();
    let mut line = Json::default();
    line.raw(r#"{"displayTimeUnit":"ns","otherData":{"recorder":"purlin "#);
    line.raw(env!("CARGO_PKG_VERSION"));
    line.display(format_args!("\",\"dropped_records\":{}}},\n\"traceEvents\":[\n", recording.dropped_records));
    // First, so that every other line can begin with its comma.
    let program = std::env::args_os().next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
    line.name_of("process_name", pid, u64::from(pid), &program);
    line.flush(out)?;
    for track in &recording.tracks {
        line.raw(",\n");
        line.name_of("thread_name", pid, track.thread_id, &track.thread_name);
        for record in &track.records {
            line.raw(",\n");
            line.record(record, pid, track.thread_id);
            line.flush(out)?;
        }
        line.flush(out)?;
    }
    out.write_all(b"\n]}\n")
}

/// A piece of JSON that grows.
#[derive(Default)]
struct Json(String);

impl Json {
    fn flush(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.0.as_bytes())?;
        self.0.clear();
        Ok(())
    }

    fn raw(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn display(&mut self, text: std::fmt::Arguments<'_>) {
        // Cannot fail: only values of our own are formatted, into a String.
        let _ = self.0.write_fmt(text);
    }

    fn string(&mut self, text: &str) {
        self.display(format_args!("{}", Quoted(text)));
    }

    fn name_of(&mut self, what: &str, pid: u32, tid: u64, name: &str) {
        self.display(format_args!(r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"{what}","args":{{"name":"#));
        self.string(name);
        self.raw("}}");
    }

    fn record(&mut self, record: &Record, pid: u32, tid: u64) {
        let phase = if matches!(record.what, Recorded::Event(..)) { "i" } else { "X" };
        self.display(format_args!(r#"{{"ph":"{phase}","pid":{pid},"tid":{tid},"ts":"#));
        self.microseconds(record.start);
        if phase == "X" {
            self.raw(",\"dur\":");
            self.microseconds(record.length);
        } else {
            // The scope of an instant: its thread.
            self.raw(r#","s":"t""#);
        }
        match &record.what {
            Recorded::Span(span) => {
                self.description(span.metadata.name(), span.metadata.target(), &span.fields.lock());
            }
            // The name that `tracing` gives an event is the place of its macro; its message says more.
            Recorded::Event(metadata, fields) => {
                self.description(fields.text("message").unwrap_or(metadata.name()), metadata.target(), fields);
            }
            Recorded::Told(told) => self.description(&told.name, "purlin", &told.fields),
            Recorded::Named(name) => {
                self.raw(",\"name\":");
                self.string(&name.to_string_lossy());
            }
        }
        self.raw("}");
    }

    fn microseconds(&mut self, time: Duration) {
        self.display(format_args!("{}.{:03}", time.as_micros(), time.subsec_nanos() % 1000));
    }

    fn description(&mut self, name: &str, category: &str, fields: &Fields) {
        self.raw(",\"name\":");
        self.string(name);
        self.raw(",\"cat\":");
        self.string(category);
        let mut separator = ",\"args\":{";
        for (name, value) in fields.iter() {
            self.raw(separator);
            self.string(name);
            self.raw(":");
            self.value(value);
            separator = ",";
        }
        if separator == "," {
            self.raw("}");
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Signed(number) if number.unsigned_abs() <= LARGEST_EXACT => self.display(format_args!("{number}")),
            Value::Signed(number) => self.display(format_args!("\"{number}\"")),
            Value::Unsigned(number) if *number <= LARGEST_EXACT => self.display(format_args!("{number}")),
            Value::Unsigned(number) => self.display(format_args!("\"{number}\"")),
            // Debug writes 1e300 where Display would write three hundred digits; JSON has no infinity.
            Value::Float(number) if number.is_finite() => self.display(format_args!("{number:?}")),
            Value::Float(number) => self.display(format_args!("\"{number}\"")),
            Value::Flag(flag) => self.display(format_args!("{flag}")),
            Value::Text(text) => self.string(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lane::Track;

    #[test]
    fn a_recording_becomes_this_text() {
        let record = |name, start, length| Record {
            what: Recorded::Named(name),
            start: Duration::from_nanos(start),
            length: Duration::from_nanos(length),
        };
        let track = |thread_id, records| Track { thread_id, thread_name: format!("t{thread_id}"), records };
        let recording = Recording {
            tracks: vec![
                track(7, vec![record(c"a", 0, 1_234_567_890), record(c"b\t", 1_002, 30)]),
                track(8, vec![]),
                track(9, vec![record(c"c", 999, 1_000)]),
            ],
            dropped_records: 3,
        };
        let mut out = Vec::new();
        write(&recording, &mut out).expect("a vector takes everything");
        let text = String::from_utf8(out).expect("the text is UTF-8");
        let (head, events) = text.split_once("\"traceEvents\":[\n").expect("there is a list");
        assert!(head.contains("\"dropped_records\":3}"), "{head}");
        let pid = process::id();
        let mut lines = events.lines();
        assert!(lines.next().is_some_and(|line| line.contains("\"name\":\"process_name\"")), "{text}");
        let expected = [
            format!(r#"{{"ph":"M","pid":{pid},"tid":7,"name":"thread_name","args":{{"name":"t7"}}}},"#),
            format!(r#"{{"ph":"X","pid":{pid},"tid":7,"ts":0.000,"dur":1234567.890,"name":"a"}},"#),
            format!(r#"{{"ph":"X","pid":{pid},"tid":7,"ts":1.002,"dur":0.030,"name":"b\t"}},"#),
            format!(r#"{{"ph":"M","pid":{pid},"tid":8,"name":"thread_name","args":{{"name":"t8"}}}},"#),
            format!(r#"{{"ph":"M","pid":{pid},"tid":9,"name":"thread_name","args":{{"name":"t9"}}}},"#),
            format!(r#"{{"ph":"X","pid":{pid},"tid":9,"ts":0.999,"dur":1.000,"name":"c"}}"#),
            "]}".to_owned(),
        ];
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_error_of_writing_is_passed_on() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let recording = Recording { tracks: Vec::new(), dropped_records: 0 };
        assert_eq!(write(&recording, &mut Full).expect_err("it is full").kind(), io::ErrorKind::StorageFull);
    }
}
