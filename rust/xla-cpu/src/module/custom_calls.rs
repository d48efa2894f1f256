//! Custom calls: a handler, its attributes and its operands.
//!
//! Only calls of XLA's typed FFI can run. Older kinds of custom calls pass neither types nor errors; such a call is a
//! reason, as is one without a handler or with attributes that cannot be read.

use std::sync::Arc;

use purlin_program::{Command, Operand};

use super::steps::{Steps, library};
use crate::fault::Contradiction;
use crate::ffi::{BufferType, CustomCall, TOKEN, parse_attributes};
use crate::proto::{CustomCallProto, ShapeSliceProto};

/// XLA's number for calls of its typed FFI.
const TYPED: i32 = 4;

impl Steps<'_> {
    /// The command of a custom call. `None`: it cannot run here, and the cause is added to `reasons`.
    pub(super) fn custom_call(&mut self, call: &CustomCallProto) -> Result<Option<Command>, Contradiction> {
        let target = &call.target;
        if call.api_version != TYPED {
            let kind = match call.api_version {
                1 => "the original kind",
                2 | 3 => "the kind that returns a status",
                _ => "an unknown kind",
            };
            let version = call.api_version;
            self.reasons
                .add(format!("custom call target '{target}' is of {kind} (API version {version}), not typed FFI"));
            return Ok(None);
        }
        let handler = self.handlers.get(target);
        if handler.is_none() {
            self.reasons.add(format!("custom call target '{target}' is not registered"));
        }
        let attributes = parse_attributes(&call.attributes);
        let attributes = attributes.map_err(|why| format!("custom call target '{target}': attributes, {why}"));
        let attributes = self.reasons.take(attributes);
        let mut operands = Vec::new();
        let (mut arguments, mut results) = (Some(Vec::new()), Some(Vec::new()));
        if let Some(buffers) = &call.buffers {
            arguments = self.buffers(&buffers.arguments, Operand::read, &mut operands)?;
            results = self.buffers(&buffers.results, Operand::write, &mut operands)?;
        }
        let (Some(handler), Some(attributes), Some(arguments), Some(results)) =
            (handler, attributes, arguments, results)
        else {
            return Ok(None);
        };
        let call = Arc::new(CustomCall::new(target, handler, &attributes, arguments, results));
        self.custom_calls.push(Arc::clone(&call));
        Ok(Some(library(call, operands)))
    }

    /// The types of arguments or of results. Their operands are added to `operands`. `None`: a shape is not supported.
    fn buffers(
        &mut self,
        protos: &[ShapeSliceProto],
        operand: impl Fn(purlin_program::Slice) -> Operand,
        operands: &mut Vec<Operand>,
    ) -> Result<Option<Vec<BufferType>>, Contradiction> {
        let mut types = Vec::with_capacity(protos.len());
        let mut is_complete = true;
        for proto in protos {
            let dtype = proto.shape.as_ref().map_or(0, |shape| shape.element_type);
            if dtype == TOKEN {
                types.push(BufferType { dtype, dims: Vec::new(), operand: None });
                continue;
            }
            let Some((array, slice)) = self.array(Some(proto))? else {
                is_complete = false;
                continue;
            };
            types.push(BufferType { dtype, dims: array.shape.dims().to_vec(), operand: Some(operands.len()) });
            operands.push(operand(slice));
        }
        Ok(is_complete.then_some(types))
    }
}
