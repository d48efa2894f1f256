//! What a call of `cuLaunchKernel` asks for, checked against the device and the function, with its arguments copied.

use std::ffi::c_void;
use std::sync::Arc;

use super::launch::Launch;
use super::module::Function;
use crate::attribute::{MOST_BLOCK, MOST_GRID, MOST_THREADS};
use crate::boundary::{Answer, Call, In};
use crate::code::Code;
use crate::detector::report::Kind as Report;
use crate::operation::{Request, Work};
use crate::state::Refusal;
use crate::thread;

/// How a call gives arguments: by a pointer to each, or in one buffer, by a list of keys and values.
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    pub(crate) each: In<*const u8>,
    pub(crate) extra: In<*mut c_void>,
}

/// CU_LAUNCH_PARAM_END, _BUFFER_POINTER and _BUFFER_SIZE.
const END: usize = 0;
const BUFFER: usize = 1;
const SIZE: usize = 2;

impl Arguments {
    /// The bytes of all, as the kernel has them; INVALID_VALUE if there are too few, or given in both ways.
    fn copied(self, function: &Function) -> Answer<Vec<u8>> {
        let kernel = function.kernel()?;
        let mut bytes = vec![0; kernel.parameter_bytes()];
        if !self.extra.is_null() {
            if !self.each.is_null() {
                return Err(Code::INVALID_VALUE);
            }
            let (mut buffer, mut size) = (In::new(std::ptr::null()), 0_usize);
            for at in (0..).step_by(2) {
                let value = |at| self.extra.get_at(at);
                match value(at)?.addr() {
                    END => break,
                    BUFFER => buffer = In::new(value(at + 1)?.cast_const().cast::<u8>()),
                    SIZE => size = In::new(value(at + 1)?.cast_const().cast::<usize>()).get()?,
                    _ => return Err(Code::INVALID_VALUE),
                }
            }
            if size < bytes.len() {
                return Err(Code::INVALID_VALUE);
            }
            bytes = buffer.get_all(bytes.len())?;
            return Ok(bytes);
        }
        for (at, parameter) in kernel.parameters().iter().enumerate() {
            let argument = In::new(self.each.get_at(at)?).get_all(parameter.size)?;
            bytes[parameter.offset..parameter.offset + parameter.size].copy_from_slice(&argument);
        }
        Ok(bytes)
    }
}

/// The launch that a call asks for; INVALID_VALUE for what the device has not, and for more threads than the function
/// allows: so driver 580 answers, whose manual says LAUNCH_OUT_OF_RESOURCES.
pub(crate) fn prepare(
    call: &Call,
    function: &Function,
    shape: purlin_ptx::Launch,
    arguments: Arguments,
) -> Answer<Launch> {
    let purlin_ptx::Launch { grid, block, dynamic_shared_bytes } = shape;
    let is_within = |dimensions: [u32; 3], most: [u32; 3]| {
        dimensions.iter().zip(most).all(|(dimension, most)| (1..=most).contains(dimension))
    };
    let threads = block.iter().fold(1_u32, |product, dimension| product.saturating_mul(*dimension));
    if !is_within(grid, MOST_GRID) || !is_within(block, MOST_BLOCK) || threads > MOST_THREADS {
        return Err(Code::INVALID_VALUE);
    }
    if dynamic_shared_bytes > function.most_dynamic_bytes()? {
        return Err(Code::INVALID_VALUE);
    }
    if threads > function.most_threads()? {
        return Err(Code::INVALID_VALUE);
    }
    let arguments = arguments.copied(function)?;
    Ok(Launch { driver: call.driver, function: function.clone(), shape, arguments })
}

/// `cuLaunchKernel`. The stream must be of the current context, and so must the function.
pub(crate) fn launch(
    call: &Call,
    function: usize,
    shape: purlin_ptx::Launch,
    arguments: Arguments,
    stream: usize,
) -> Answer {
    let mut state = call.driver.state.lock();
    let function = state.function(call, function)?.clone();
    let (stream, device) = state.working_stream(call.driver, stream)?;
    let current = thread::current().ok_or(Code::INVALID_CONTEXT)?;
    if device != current || function.device != current {
        let (name, of) = (&function.name, function.device);
        let why = &format!("{name} of device {of} on a stream of device {device}, while device {current} is current");
        let (kind, beside) = (Report::StrangersContext, Some((function.made, None)));
        state.report(call.entry, Refusal { kind, stream: Some(stream), span: None, beside, why });
        return Err(Code::INVALID_HANDLE);
    }
    let launch = prepare(call, &function, shape, arguments)?;
    state.submit(call, stream, Request::new(Work::Launch(Arc::new(launch)))).map(|_| ())
}

/// A kernel node of an executable graph has that function, shape and arguments from its next launch on.
pub(crate) fn set_node(
    call: &Call,
    (exec, node): (usize, usize),
    function: usize,
    shape: purlin_ptx::Launch,
    arguments: Arguments,
) -> Answer {
    let mut state = call.driver.state.lock();
    let function = state.function(call, function)?.clone();
    let launch = prepare(call, &function, shape, arguments)?;
    let exec = state.execs.get_mut(&exec).ok_or(Code::INVALID_VALUE)?;
    let is_it = |found: &&mut crate::graph::Node| found.handle == node && matches!(found.work, Work::Launch(_));
    let node = exec.nodes.iter_mut().find(is_it).ok_or(Code::INVALID_VALUE)?;
    node.work = Work::Launch(Arc::new(launch));
    Ok(())
}
