//! The leaf that turns the bridge and all below it into one static archive. It holds no code of its own.

/// Keeps the bridge's symbols in the archive.
pub use purlin_bridge as bridge;
