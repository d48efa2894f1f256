//! From a text to a program: tokens (`text`), what stands at the top (`directives`), what stands in a function (`body`,
//! `variables`, `operands`, `calls`). What an instruction is, says `decode`.

mod body;
mod calls;
mod directives;
mod layout;
mod opcode;
mod operands;
mod text;
mod variables;

pub(crate) use body::Body;
pub(crate) use directives::parse;
pub(crate) use opcode::Opcode;
pub(crate) use text::{Text, Token};
