//! Every fail point of Purlin (`rust/base/src/fault`), failing at every reach, in scenarios over the whole API.
//!
//! A scenario (`scenarios`) is a program of a few lines on a fresh client that reports to its `Run` every error and
//! event that it meets. `walk` runs it once untroubled, and then, for each site, with the 1st, 2nd, 3rd ... reach
//! failing, until a run reaches the site no more; and the same with all later reaches failing too. After each run:
//! - every event is terminal (a wait that takes longer than any machine needs fails, and names what is stuck);
//! - what went wrong names the injected place, or nothing went wrong, where that place is known to be made good for;
//! - every callback was called at most once and destroyed exactly once;
//! - the leak ledger is empty: promises, clients, pools, threads, descriptors;
//! - the same client works, if one fault was all, and a fresh one does.
//!
//! Only under `--cfg purlin_faults` (`scripts/faults`): otherwise no fail point fails, and there is nothing here.

#![cfg(purlin_faults)]

pub mod parts;
pub mod run;
pub mod scenarios;
pub mod walk;
