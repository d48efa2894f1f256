//! A run records a span with program, launch id and device, and inside it one for each command. A stall report shows
//! the runs that are executing commands.

mod fixture;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fixture::*;
use purlin_async::{Event, EventPromise};
use purlin_base::Error;
use purlin_device::Buffer;
use purlin_program::{Command, ExecuteOptions, LibraryCall, LibraryContext, OperandBytes, ProgramBuilder};
use tracing::field::{Field, Visit};
use tracing::{Metadata, Subscriber, span};

/// A subscriber that records spans as `name field=value ...`.
#[derive(Clone)]
struct Spans {
    /// The names of the spans to record.
    names: &'static [&'static str],
    seen: Arc<Mutex<Vec<String>>>,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "purlin" && self.names.contains(&metadata.name())
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields(span.metadata().name().to_owned());
        span.record(&mut fields);
        self.seen.lock().unwrap().push(fields.0);
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}
    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}
    fn event(&self, _event: &tracing::Event<'_>) {}
    fn enter(&self, _span: &span::Id) {}
    fn exit(&self, _span: &span::Id) {}
}

fn spans(names: &'static [&'static str]) -> Spans {
    Spans { names, seen: Arc::default() }
}

#[test]
fn a_run_is_a_span() {
    let (client, spans) = (host(), spans(&["launch"]));
    let loaded = load(&client, add_one(8));
    let argument = buffer(&client, &[1; 8]);
    tracing::subscriber::with_default(spans.clone(), || {
        let options = ExecuteOptions { launch_id: 7, ..Default::default() };
        assert!(loaded.execute(&[argument], &options).unwrap().done.is_ready(), "it runs on this thread");
    });
    assert_eq!(*spans.seen.lock().unwrap(), [r#"launch program="add_one" launch_id=7 device=0"#]);
}

#[test]
fn a_command_is_a_span() {
    let (client, spans) = (host(), spans(&["command"]));
    let mut builder = ProgramBuilder::new("nested");
    let (x, y) = (builder.parameter(bytes(8)), builder.result(bytes(8)));
    let body = vec![Command::Fill { pattern: vec![0], to: y }, add_to(x, y, 1)];
    builder.push(Command::Repeat { trip_count: 2, body: body.into() });
    let loaded = load(&client, builder.build().unwrap());
    let argument = buffer(&client, &[1; 8]);
    tracing::subscriber::with_default(spans.clone(), || {
        assert!(loaded.execute(&[argument], &ExecuteOptions::default()).unwrap().done.is_ready());
    });
    let [outer, fill, add] = [
        r#"command command=repeat path="0 (repeat)""#,
        r#"command command=fill path="0.body.0 (fill)""#,
        r#"command command=kernel 'add 1' path="0.body.1 (kernel 'add 1')""#,
    ];
    assert_eq!(*spans.seen.lock().unwrap(), [outer, fill, add, fill, add]);
}

/// A call that waits for a gate.
#[derive(Debug)]
struct Waits(Event);

impl LibraryCall for Waits {
    fn name(&self) -> &str {
        "waits"
    }

    fn run(&self, _operands: &[OperandBytes], _context: &LibraryContext<'_>) -> Result<(), Error> {
        self.0.wait()
    }
}

#[test]
fn a_stall_report_shows_where_runs_are() {
    let (client, gate) = (host(), EventPromise::new(c"gate"));
    let mut builder = ProgramBuilder::new("waiting");
    let x = builder.temporary(8);
    builder.push(Command::Fill { pattern: vec![0], to: x });
    let call = Command::Library { call: Arc::new(Waits(gate.event())), operands: vec![] };
    builder.push(Command::Call(vec![Command::Fill { pattern: vec![0], to: x }, call].into()));
    let loaded = load(&client, builder.build().unwrap());
    let is_shown = |launch_id: i32| {
        let report = purlin_async::dump_stalls(Duration::ZERO);
        let line = report.lines().find(|line| line.starts_with(&format!("program 'waiting', launch {launch_id} ")));
        line.map(ToOwned::to_owned)
    };
    thread::scope(|scope| {
        let runs: Vec<_> = [7, 8]
            .map(|launch_id| {
                let loaded = &loaded;
                scope.spawn(move || {
                    let options = ExecuteOptions { launch_id, caller_waits: true, ..Default::default() };
                    loaded.execute::<Buffer>(&[], &options).unwrap().done.wait()
                })
            })
            .into();
        for launch_id in [7, 8] {
            let line = loop {
                match is_shown(launch_id) {
                    Some(line) if line.ends_with("at command 1.call.1 (library 'waits')") => break line,
                    _ => thread::yield_now(),
                }
            };
            assert!(line.contains("on device 0, runs for "), "{line}");
        }
        gate.set_ready();
        runs.into_iter().for_each(|run| run.join().unwrap().unwrap());
    });
    assert_eq!((is_shown(7), is_shown(8)), (None, None));
}
