//! The most of everything: what a text or a launch asks for beyond these is refused.

/// Bytes of a text.
pub(crate) const TEXT_BYTES: usize = 16 << 20;
/// Bytes of a variable of a module.
pub(crate) const VARIABLE_BYTES: u64 = 1 << 32;
/// Bytes of shared memory of a block, static and dynamic.
pub(crate) const SHARED_BYTES: u64 = 1 << 20;
/// Bytes of a function's local variables, and of a thread's.
pub(crate) const LOCAL_BYTES: u64 = 512 << 10;
/// Bytes of a kernel's or function's parameters, as PTX has it since 8.1.
pub(crate) const PARAMETER_BYTES: u64 = 32_764;
/// Bytes of what a function keeps in parameter memory: its own, and those of the calls that it makes.
pub(crate) const PARAMETER_AREA_BYTES: u64 = 256 << 10;
/// Registers that a function uses.
pub(crate) const REGISTERS: usize = 1 << 16;
/// Registers of the functions of a thread that call each other.
pub(crate) const THREAD_REGISTERS: usize = 1 << 18;
/// Functions of a thread that call each other.
pub(crate) const CALLS: usize = 4096;
/// Bytes of registers, local and parameter memory of all threads of a block together.
pub(crate) const BLOCK_BYTES: usize = 512 << 20;
/// Blocks in brackets within each other.
pub(crate) const NESTING: usize = 64;
/// Alignment.
pub(crate) const ALIGNMENT: u64 = 4096;
/// Alignment of a function's part of local and of parameter memory.
pub(crate) const FRAME_ALIGNMENT: u64 = 128;
/// Threads of a block, in all and along x, y and z.
pub(crate) const THREADS: u32 = 1024;
/// See [`THREADS`].
pub(crate) const THREADS_ALONG: [u32; 3] = [1024, 1024, 64];
/// Blocks of a grid along x, y and z.
pub(crate) const BLOCKS_ALONG: [u32; 3] = [0x7fff_ffff, 0xffff, 0xffff];
