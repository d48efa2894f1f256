//! The CUDA backend on the fake driver: what it calls, what it makes of errors, and what it leaves.
//!
//! Each test has a process of its own, because a driver is found once and a device that broke stays so.

mod arrays;
mod beside;
mod broken;
mod calls;
mod children;
mod codes;
mod compile;
mod compile_cache;
mod contexts;
mod devices;
mod dlpack;
mod entries;
mod facts;
mod flows;
mod foreign;
mod graphs;
mod heap;
mod imports;
mod joins;
mod known_codes;
mod launches;
mod memory;
mod opening;
mod order;
mod pieces;
mod poller;
mod programs;
mod reuse;
mod scenario;
mod stalls;
mod stranger;
mod strided;
mod support;
mod tally;
mod traces;
mod upstream;
mod walk;
