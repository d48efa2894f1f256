//! The way of all messages from and to bytes.

use prost::Message as Prost;
use purlin_base::{Error, StatusCode, StatusOr};

use crate::damage::Damage;
use crate::wire::{self, Message};

/// Decodes the bytes of one message.
///
/// # Errors
/// - `DataLoss`: the bytes are no message; the error names the offset.
/// - `Unimplemented`: the message has fields that are not known; the error names all of them.
pub(crate) fn decode<M: Prost + Default>(bytes: &[u8], table: &'static Message) -> StatusOr<M> {
    let damage =
        |Damage { offset, what }| Error::new(StatusCode::DataLoss, format!("{}, byte {offset}: {what}", table.name));
    let unknown = wire::check(bytes, table).map_err(damage)?;
    if !unknown.is_empty() {
        let listed = unknown.into_iter().collect::<Vec<_>>().join("; ");
        return Err(Error::unimplemented(format!("{}: {listed}", table.name)));
    }
    M::decode(bytes).map_err(|error| damage(Damage::new(0, error)))
}

/// `InvalidArgument`: a sound message whose content has no meaning.
pub(crate) fn meaningless(table: &'static Message, what: impl std::fmt::Display) -> Error {
    Error::invalid_argument(format!("{}: {what}", table.name))
}
