//! The floating-point mode while commands run: denormal numbers are treated as zero, as operands (DAZ) and as results
//! (FTZ). XLA's kernels were compiled for this mode. The rounding mode is unchanged; threads that help a run have that
//! of the run's thread.
//!
//! The mode belongs to the thread. It is restored when the code inside returns or panics.

#![cfg_attr(target_arch = "x86_64", allow(unsafe_code, reason = "a register of the processor is read and written"))]

/// Calls `f` in that mode.
pub(crate) fn with_flushed_denormals<R>(f: impl FnOnce() -> R) -> R {
    FloatMode::current().flushing().during(f)
}

/// The floating-point mode of a thread.
#[derive(Clone, Copy)]
pub(crate) struct FloatMode(arch::Mode);

impl FloatMode {
    /// The mode of the calling thread.
    pub(crate) fn current() -> Self {
        Self(arch::mode())
    }

    /// The same mode, in which denormal numbers are treated as zero.
    pub(crate) const fn flushing(self) -> Self {
        Self(arch::flushing(self.0))
    }

    /// Calls `f` in this mode.
    pub(crate) fn during<R>(self, f: impl FnOnce() -> R) -> R {
        let _restored = Restored(arch::mode());
        arch::set_mode(self.0);
        f()
    }
}

/// The mode from before; dropping this restores it.
struct Restored(arch::Mode);

impl Drop for Restored {
    fn drop(&mut self) {
        arch::set_mode(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::asm;

    /// The register MXCSR.
    pub(super) type Mode = u32;

    /// Its bits FTZ and DAZ.
    const FLUSHING: Mode = 0x8040;

    pub(super) const fn flushing(mode: Mode) -> Mode {
        mode | FLUSHING
    }

    pub(super) fn mode() -> Mode {
        let mut mode: Mode = 0;
        // SAFETY: the instruction writes four bytes, at the address of four bytes.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack, preserves_flags)) };
        mode
    }

    pub(super) fn set_mode(mode: Mode) {
        // SAFETY: the value is the register's own, with two bits that every x86-64 processor has. It unmasks no
        // exception. Rust's own arithmetic on denormals gives zeros in this mode, as intended.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, preserves_flags, readonly)) };
    }
}

/// On other architectures the mode is unchanged: XLA:CPU's executables, which are compiled for the mode, are loaded on
/// x86-64 alone.
#[cfg(not(target_arch = "x86_64"))]
mod arch {
    pub(super) type Mode = ();

    pub(super) const fn flushing((): Mode) -> Mode {}

    pub(super) fn mode() -> Mode {}

    pub(super) fn set_mode((): Mode) {}
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::hint::black_box;
    use std::panic::{AssertUnwindSafe, resume_unwind};

    use super::*;

    fn half(number: f32) -> f32 {
        black_box(number) * black_box(0.5)
    }

    #[test]
    fn denormals_are_zero_inside_and_numbers_outside() {
        let smallest = f32::MIN_POSITIVE;
        assert_eq!(with_flushed_denormals(|| half(smallest)), 0.0, "a result");
        assert_eq!(with_flushed_denormals(|| half(smallest / 4.0) * 1e30), 0.0, "an operand");
        assert_ne!(half(smallest), 0.0);
    }

    #[test]
    fn a_mode_is_that_of_the_thread_it_comes_from() {
        let towards_zero = FloatMode(arch::mode() | 0x6000);
        assert_eq!(towards_zero.during(FloatMode::current).0, towards_zero.0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let before = arch::mode();
                assert_eq!(towards_zero.flushing().during(FloatMode::current).0, towards_zero.0 | 0x8040);
                assert_eq!(arch::mode(), before);
            });
        });
    }

    #[test]
    fn the_mode_is_restored_after_a_panic() {
        let before = arch::mode();
        let panicked = purlin_base::panics::caught(AssertUnwindSafe(|| {
            with_flushed_denormals(|| resume_unwind(Box::new("a kernel's fault")));
        }));
        assert!(panicked.is_err());
        assert_eq!(arch::mode(), before);
    }
}
