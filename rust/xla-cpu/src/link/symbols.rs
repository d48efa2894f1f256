//! The functions that XLA's code may call: a closed list.
//!
//! XLA:CPU's own loader has the same list: the C library's mathematics for f32 and f64, memory functions, and the
//! runtime functions of compilers for conversions and powers. No name is looked up in the process, so an untrusted file
//! can refer to these functions alone. The C library's functions are those of this process, as in XLA, so that results
//! have the same bits.

#![allow(unsafe_code, reason = "functions of C are declared; this module does not call them")]

use std::ffi::{c_int, c_void};

use half::{bf16, f16};

/// Declares functions of C, and a function that returns their addresses by name.
macro_rules! functions {
    ($($arguments:tt -> $result:ty { $($name:ident)* })*) => {
        unsafe extern "C" { $($(safe fn $name $arguments -> $result;)*)* }

        /// The address of C's function of that name.
        fn declared(name: &str) -> Option<*const ()> {
            match name {
                $($(stringify!($name) => Some($name as *const ()),)*)*
                _ => None,
            }
        }
    };
}

functions! {
    (_: f32) -> f32 {
        acosf acoshf asinf asinhf atanf atanhf cbrtf ceilf cosf coshf erff erfcf exp2f expf expm1f fabsf floorf lgammaf
        log10f log1pf log2f logf nearbyintf rintf roundf sinf sinhf sqrtf tanf tanhf tgammaf truncf
    }
    (_: f64) -> f64 {
        acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma log log10 log1p log2
        nearbyint rint round sin sinh sqrt tan tanh tgamma trunc
    }
    (_: f32, _: f32) -> f32 { atan2f copysignf fdimf fmaxf fminf fmodf hypotf nextafterf powf remainderf }
    (_: f64, _: f64) -> f64 { atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder }
    (_: f32, _: f32, _: f32) -> f32 { fmaf }
    (_: f64, _: f64, _: f64) -> f64 { fma }
    (_: f32, _: c_int) -> f32 { ldexpf }
    (_: f64, _: c_int) -> f64 { ldexp }
    (_: f32, _: *mut f32, _: *mut f32) -> () { sincosf }
    (_: f64, _: *mut f64, _: *mut f64) -> () { sincos }
    (_: *mut c_void, _: *const c_void, _: usize) -> *mut c_void { memcpy memmove }
    (_: *mut c_void, _: c_int, _: usize) -> *mut c_void { memset }
    (_: usize) -> *mut c_void { malloc }
    (_: *mut c_void) -> () { free }
}

/// The address of the function of that name, if code may call it.
pub(crate) fn address_of(name: &str) -> Option<usize> {
    let ours = match name {
        "__extendbfsf2" => extend_bf16 as *const (),
        "__extendhfsf2" => extend_f16 as *const (),
        "__powidf2" => power_f64 as *const (),
        "__powisf2" => power_f32 as *const (),
        "__truncdfbf2" => truncate_f64_to_bf16 as *const (),
        "__truncdfhf2" => truncate_f64_to_f16 as *const (),
        "__truncsfbf2" => truncate_f32_to_bf16 as *const (),
        "__truncsfhf2" => truncate_f32_to_f16 as *const (),
        _ => declared(name)?,
    };
    Some(ours.expose_provenance())
}

// psABI 1.0 passes 16-bit numbers in the low bits of a vector register, where C passes an f32. So these functions take
// and return f32.

fn of_register(register: f32) -> u16 {
    register.to_bits() as u16
}

fn in_register(bits: u16) -> f32 {
    f32::from_bits(bits.into())
}

extern "C" fn extend_f16(x: f32) -> f32 {
    f16::from_bits(of_register(x)).to_f32()
}

extern "C" fn extend_bf16(x: f32) -> f32 {
    bf16::from_bits(of_register(x)).to_f32()
}

extern "C" fn truncate_f32_to_f16(x: f32) -> f32 {
    in_register(f16::from_f32(x).to_bits())
}

extern "C" fn truncate_f32_to_bf16(x: f32) -> f32 {
    in_register(bf16::from_f32(x).to_bits())
}

extern "C" fn truncate_f64_to_f16(x: f64) -> f32 {
    in_register(f16::from_f64(x).to_bits())
}

extern "C" fn truncate_f64_to_bf16(x: f64) -> f32 {
    in_register(bf16::from_f64(x).to_bits())
}

/// A power by squaring, the lowest bit of the exponent first. This is the order of compiler-rt's `__powidf2`, so that
/// results have the same bits.
extern "C" fn power_f64(mut x: f64, exponent: c_int) -> f64 {
    let (mut left, mut power) = (exponent.unsigned_abs(), 1.0);
    while left != 0 {
        if left & 1 != 0 {
            power *= x;
        }
        left >>= 1;
        x *= x;
    }
    if exponent < 0 { 1.0 / power } else { power }
}

/// As [`power_f64`].
extern "C" fn power_f32(mut x: f32, exponent: c_int) -> f32 {
    let (mut left, mut power) = (exponent.unsigned_abs(), 1.0);
    while left != 0 {
        if left & 1 != 0 {
            power *= x;
        }
        left >>= 1;
        x *= x;
    }
    if exponent < 0 { 1.0 / power } else { power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_closed() {
        for name in ["sinf", "cosf", "sincosf", "powf", "exp2f", "logf", "tanf", "fmodf", "atan2f", "memcpy", "memset"]
        {
            assert!(address_of(name).is_some(), "{name}, which XLA's programs call");
        }
        for name in ["system", "execve", "dlopen", "", "sinf ", "mmap"] {
            assert_eq!(address_of(name), None, "{name}");
        }
        assert_eq!(address_of("sinf"), Some((sinf as *const ()).addr()), "that of this process");
    }

    #[test]
    fn what_compilers_call_answers_as_they_expect() {
        assert_eq!(extend_f16(in_register(0x3c00)), 1.0);
        assert_eq!(extend_bf16(in_register(0x3f80)), 1.0);
        assert_eq!(of_register(truncate_f32_to_f16(-2.0)), 0xc000);
        assert_eq!(of_register(truncate_f64_to_f16(0.5)), 0x3800);
        assert_eq!(of_register(truncate_f32_to_bf16(1.0)), 0x3f80);
        assert_eq!(of_register(truncate_f64_to_bf16(2.0)), 0x4000);
        assert_eq!((power_f64(3.0, 5), power_f32(2.0, -2), power_f64(7.0, 0)), (243.0, 0.25, 1.0));
    }
}
