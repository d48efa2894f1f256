//! A launch: a kernel with its arguments, captured at the call, and what came of running it.

use std::sync::Arc;

use purlin_ptx::Trap;

use super::memory::{Refused, Seen};
use super::module::Function;
use super::touched::Touched;
use crate::code::Code;
use crate::detector::Access;
use crate::detector::report::Side;
use crate::detector::shadow::Span;
use crate::detector::stamp::Stamp;
use crate::driver::{self, Driver};
use crate::state::State;

/// `trap`, and what else ends a kernel without a code of its own.
const FAILED: u32 = Code::LAUNCH_FAILED.0;
/// MISALIGNED_ADDRESS.
const MISALIGNED: u32 = 716;

/// See the module.
pub(crate) struct Launch {
    pub(crate) driver: &'static Driver,
    pub(crate) function: Function,
    pub(crate) shape: purlin_ptx::Launch,
    pub(crate) arguments: Vec<u8>,
}

/// What an operation came to.
#[derive(Default)]
pub(crate) struct Outcome {
    /// What the device breaks with.
    pub(crate) code: Option<u32>,
    touched: Touched,
    refused: Option<Refused>,
}

impl Launch {
    /// Runs the kernel, in this thread.
    pub(crate) fn run(&self, stamp: &Arc<Stamp>) -> Outcome {
        let (driver, device) = (self.driver, self.function.device);
        let mut state = driver.state.lock();
        let is_me = |name: &String| **name == *self.function.name;
        while state.controls.endless.iter().any(is_me) && driver.works(device).is_ok() {
            state = driver.changed.wait(state);
        }
        let trap = state.controls.traps.iter().find(|(name, _)| is_me(name)).map(|(_, code)| *code);
        drop(state);
        if trap.is_some() || driver.works(device).is_err() {
            return Outcome { code: trap, ..Outcome::default() };
        }
        let Ok(kernel) = self.function.kernel() else { return Outcome { code: Some(FAILED), ..Outcome::default() } };
        let memory = Seen::new(driver, device, stamp);
        let global = |name: &str| self.function.globals.get(name).map(|(address, _)| *address);
        let ran = kernel.run(&self.shape, &self.arguments, &global, &memory, driver.stop(device));
        let (touched, refused) = memory.end();
        Outcome { code: ran.err().and_then(|trap| code_of(&trap)), touched, refused }
    }
}

/// What a trap breaks the device with; it is said on stderr.
fn code_of(trap: &Trap) -> Option<u32> {
    let code = match trap {
        // The device broke before.
        Trap::Stopped => return None,
        Trap::Memory { .. } => Code::ILLEGAL_ADDRESS.0,
        Trap::Misaligned { .. } => MISALIGNED,
        _ => FAILED,
    };
    driver::complain(&trap.to_string());
    Some(code)
}

impl Outcome {
    /// The device breaks.
    pub(crate) fn broken(code: u32) -> Self {
        Self { code: Some(code), ..Self::default() }
    }

    /// Shows the detector what the kernel did.
    pub(crate) fn tell(&self, state: &mut State, stamp: &Arc<Stamp>) {
        if !state.detector.is_on {
            return;
        }
        if let Some(Refused { kind, span, beside, why }) = &self.refused {
            let beside = beside.as_ref().map(|(stamp, span)| Side::new(stamp, *span));
            state.detector.reports.add(*kind, Some(*span), Side::new(stamp, *span), beside, why);
        }
        let access = |span: Span, writes| Access { span, writes, must_be_written: !writes };
        let reads = self.touched.reads().map(|span| access(span, false));
        for access in reads.chain(self.touched.writes().map(|span| access(span, true))) {
            let Some(life) = state.life(access) else { continue };
            if access.must_be_written {
                state.detector.must_be_written(access.span, stamp, &life);
            }
            state.detector.access(access, stamp, &life);
        }
    }
}
