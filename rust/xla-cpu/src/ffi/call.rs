//! A custom call of a program: a handler, its attributes and the types of its operands, as a library call.

#![allow(unsafe_code, reason = "call frames are structs of C")]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use purlin_base::Error;
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};

use super::abi::{BUFFER, Buffer, Operands, Stage};
use super::attributes::{Dictionary, Lowered};
use super::context::{Context, States};
use super::handlers::{self, FfiFunction, Registered, empty_frame};
use super::state::StateSlot;

/// An argument or a result.
#[derive(Debug)]
pub(crate) struct BufferType {
    /// XLA's element type.
    pub(crate) dtype: c_int,
    pub(crate) dims: Vec<i64>,
    /// The number of its operand. A token has none.
    pub(crate) operand: Option<usize>,
}

/// A custom call. The state of its stage `instantiate` belongs to it, so it lives as long as the program.
#[derive(Debug)]
pub(crate) struct CustomCall {
    target: String,
    arguments: Vec<BufferType>,
    results: Vec<BufferType>,
    attributes: Lowered,
    /// Deleted before the owner of the code that deletes it.
    state: StateSlot,
    handler: Arc<Registered>,
}

impl CustomCall {
    pub(crate) fn new(
        target: &str,
        handler: &Arc<Registered>,
        attributes: &Dictionary,
        arguments: Vec<BufferType>,
        results: Vec<BufferType>,
    ) -> Self {
        Self {
            target: target.to_owned(),
            arguments,
            results,
            attributes: Lowered::new(attributes),
            state: StateSlot::default(),
            handler: Arc::clone(handler),
        }
    }

    /// The stage `instantiate`: to be called once, before the first run.
    ///
    /// # Errors
    /// That of the handler.
    pub(crate) fn instantiate(&self) -> Result<(), Error> {
        let Some(function) = self.handler.bundle.instantiate else { return Ok(()) };
        let none = [StateSlot::default(), StateSlot::default()];
        self.call(Stage::Instantiate, function, None, &none)
    }

    /// Calls the function of a stage. The stage `instantiate` has no operands and no run.
    fn call(
        &self,
        stage: Stage,
        function: FfiFunction,
        run: Option<(&[OperandBytes], &LibraryContext<'_>)>,
        [prepare, initialize]: &[StateSlot; 2],
    ) -> Result<(), Error> {
        let states = States { instantiate: &self.state, prepare, initialize };
        let context = Context::new(stage, run.map(|(_, context)| context), states);
        let mut frame = empty_frame(stage);
        frame.context = ptr::from_ref(&context).cast_mut().cast();
        frame.attributes = self.attributes.attributes();
        let operands = run.map(|(operands, _)| operands);
        let mut arguments = operands.map(|operands| Buffers::new(&self.arguments, operands)).unwrap_or_default();
        let mut results = operands.map(|operands| Buffers::new(&self.results, operands)).unwrap_or_default();
        frame.arguments = arguments.operands();
        frame.results = results.operands();
        // SAFETY: the caller of FfiHandlers::register() has promised what the handler does. The frame, the buffers, the
        // attributes and the context live until this returns, and so do the operands: the run calls this.
        unsafe { handlers::call(function, &mut frame) }.map_err(|error| match stage {
            Stage::Execute => error,
            _ => Error::new(error.code(), format!("in the stage '{}': {}", stage.name(), error.message())),
        })
    }
}

impl LibraryCall for CustomCall {
    fn name(&self) -> &str {
        &self.target
    }

    fn run(&self, operands: &[OperandBytes], context: &LibraryContext<'_>) -> Result<(), Error> {
        let states = [StateSlot::default(), StateSlot::default()];
        for (stage, function) in self.handler.bundle.stages().filter(|(stage, _)| *stage != Stage::Instantiate) {
            self.call(stage, function, Some((operands, context)), &states)?;
        }
        Ok(())
    }

    /// A handler may take any time, and wait for anything, so a run with one is a task of its own.
    fn cost_bytes(&self) -> Option<usize> {
        Some(usize::MAX)
    }
}

/// The arguments or the results of one call, as C has them.
#[derive(Default)]
struct Buffers {
    buffers: Vec<Buffer>,
    addresses: Vec<*mut Buffer>,
    kinds: Vec<c_int>,
}

impl Buffers {
    fn new(types: &[BufferType], operands: &[OperandBytes]) -> Self {
        let buffer = |ty: &BufferType| Buffer {
            struct_size: size_of::<Buffer>(),
            extension_start: ptr::null_mut(),
            dtype: ty.dtype,
            data: ty.operand.map_or(ptr::null_mut(), |number| operands[number].address.cast::<c_void>()),
            rank: ty.dims.len() as i64,
            dims: ty.dims.as_ptr().cast_mut(),
        };
        let buffers = types.iter().map(buffer).collect();
        Self { buffers, addresses: Vec::with_capacity(types.len()), kinds: vec![BUFFER; types.len()] }
    }

    /// The struct, which is valid until this is dropped.
    fn operands(&mut self) -> Operands {
        let begin = self.buffers.as_mut_ptr();
        self.addresses = (0..self.buffers.len()).map(|at| begin.wrapping_add(at)).collect();
        Operands {
            struct_size: size_of::<Operands>(),
            extension_start: ptr::null_mut(),
            count: self.buffers.len() as i64,
            kinds: self.kinds.as_mut_ptr(),
            buffers: self.addresses.as_mut_ptr(),
        }
    }
}
