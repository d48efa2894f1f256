//! The library by its C++ API: a program (`cpp/subject.cc`) that is asked through a pipe, a line a question.

use std::fmt;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::op::{Op, Verb};
use crate::subject::{Backend, Subject};

/// See the module. A program that ends too early answers "the program has ended" to everything.
pub struct CppSubject {
    program: std::path::PathBuf,
    child: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
    dead: bool,
}

impl fmt::Debug for CppSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CppSubject").finish_non_exhaustive()
    }
}

impl CppSubject {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn new(program: &Path) -> io::Result<Self> {
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let missing = || io::Error::other("no pipe");
        let to = BufWriter::new(child.stdin.take().ok_or_else(missing)?);
        let from = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(Self { program: program.to_owned(), child, to, from, dead: false })
    }

    fn say(&mut self, line: &str) {
        self.dead |= writeln!(self.to, "{line}").is_err();
    }

    fn hear(&mut self) -> String {
        self.dead |= self.to.flush().is_err();
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(count) if count > 0 && !self.dead => line.trim_end().to_owned(),
            _ => {
                self.dead = true;
                "the program has ended".into()
            }
        }
    }

    fn ask_to_settle(&mut self, end: bool, wanted: &[String], patience: Duration) {
        self.say(&format!("settle {} {} {}", u8::from(end), patience.as_millis(), wanted.len()));
        for line in wanted {
            self.say(line);
        }
    }

    fn settled(&mut self) -> Result<usize, String> {
        let answer = self.hear();
        answer.parse().map_err(|_| answer)
    }
}

impl Drop for CppSubject {
    fn drop(&mut self) {
        let _ = writeln!(self.to, "quit");
        let _ = self.to.flush();
        let _ = self.child.wait();
    }
}

impl Subject for CppSubject {
    fn begin(&mut self, backend: Backend) {
        if self.dead {
            // It has crashed; what is made small next needs another one.
            let _ = self.child.kill();
            let _ = self.child.wait();
            if let Ok(new) = Self::new(&self.program) {
                *self = new;
            }
        }
        self.say(&format!("begin {backend}"));
        let _ = self.hear();
    }

    fn apply(&mut self, op: Op) -> String {
        self.say(&op.to_string());
        self.hear()
    }

    fn settle(&mut self, end: bool, wanted: &[String], patience: Duration) -> Result<usize, String> {
        self.ask_to_settle(end, wanted, patience);
        self.settled()
    }

    fn side_by_side(&mut self, ops: [&[Op]; 2]) -> [Vec<String>; 2] {
        self.say(&format!("pair {} {}", ops[0].len(), ops[1].len()));
        for op in ops.concat() {
            self.say(&op.to_string());
        }
        ops.map(|ops| ops.iter().map(|_| self.hear()).collect())
    }

    /// All questions before the first answer, so that the pipe is crossed once.
    fn script(&mut self, script: &[(Op, String)], patience: Duration) -> Option<(usize, String)> {
        for (op, wanted) in script {
            match op.verb {
                Verb::Look | Verb::End => {
                    self.ask_to_settle(op.verb == Verb::End, std::slice::from_ref(wanted), patience);
                }
                _ => self.say(&op.to_string()),
            }
        }
        let mut difference = None;
        for (index, (op, wanted)) in script.iter().enumerate() {
            let answer = match op.verb {
                Verb::Look | Verb::End => self.settled().err(),
                _ => Some(self.hear()).filter(|answer| answer != wanted),
            };
            if difference.is_none() {
                difference = answer.map(|answer| (index, answer));
            }
        }
        difference
    }
}
