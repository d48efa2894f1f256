//! The register machine: evaluates an expression for a block of its iteration space.
//!
//! A register is a block of elements. A value that lies in memory as it is needed has no register: its address is used.
//! The last instruction can write to the result's memory directly.

#![allow(unsafe_code, reason = "operands are memory by address, registers are blocks of uninitialised memory")]

use std::mem::MaybeUninit;

use half::{bf16, f16};
use purlin_array::DType;

use super::expression::{Code, Expression, Instruction, Leaf, MOST_REGISTERS, MOST_VALUES};
use super::lanes::{self, Class, Lane};
use super::place::Memory;

/// The elements of a block. A few registers of it fit the first-level cache.
pub(super) const BLOCK: usize = 512;
/// The elements of a block of an expression that computes nothing.
const MEMORY_BLOCK: usize = 8192;

const REGISTER_BYTES: usize = BLOCK * 8;

/// The memory of the registers.
#[repr(C, align(64))]
pub(super) struct Registers([MaybeUninit<u8>; MOST_REGISTERS * REGISTER_BYTES]);

impl Registers {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; MOST_REGISTERS * REGISTER_BYTES])
    }
}

/// An expression with the memory of one run.
pub(super) struct Machine<'a> {
    expression: &'a Expression,
    memory: &'a Memory<'a>,
    registers: *mut u8,
    /// The address of each value for the current block.
    values: [*mut u8; MOST_VALUES],
}

impl<'a> Machine<'a> {
    /// Prepares registers for scalars.
    ///
    /// # Safety
    /// `memory` has the operands for which the expression was planned, which are valid for reads while this lives.
    /// `registers` live as long as this, and nothing else uses them.
    pub(super) unsafe fn new(expression: &'a Expression, memory: &'a Memory<'a>, registers: &mut Registers) -> Self {
        let registers = registers.0.as_mut_ptr().cast::<u8>();
        // SAFETY: the expression has at most as many registers as there are.
        unsafe { registers.write_bytes(0, expression.registers * REGISTER_BYTES) };
        let mut machine = Self { expression, memory, registers, values: [std::ptr::null_mut(); MOST_VALUES] };
        for (number, instruction) in expression.code.iter().enumerate() {
            if let (Code::Load(leaf), Some(_)) = (instruction.code, instruction.register) {
                let leaf = &expression.leaves[leaf];
                if leaf.is_scalar() {
                    machine.values[number] = machine.register(instruction);
                    // SAFETY: the register has BLOCK elements of 8 bytes, and the leaf lies in its operand.
                    unsafe { machine.load(leaf, instruction.class, machine.values[number], 0, BLOCK) };
                }
            }
        }
        machine
    }

    /// The number of elements that one call of [`evaluate`](Self::evaluate) may ask for.
    pub(super) fn block(&self) -> usize {
        if self.expression.is_memory() { MEMORY_BLOCK } else { BLOCK }
    }

    fn register(&self, instruction: &Instruction) -> *mut u8 {
        let register = instruction.register.expect("the value has a register");
        self.registers.wrapping_add(usize::from(register) * REGISTER_BYTES)
    }

    /// Evaluates elements `begin..begin + count` of the iteration space. Returns their address, as elements of the
    /// expression's class, valid until the next call. If `out` is not null, they are written there.
    ///
    /// # Safety
    /// The elements lie in the iteration space, and are at most as many as a block. `out` is null, or valid for writes
    /// of them, and part of no operand that the expression reads.
    #[inline]
    pub(super) unsafe fn evaluate(&mut self, begin: usize, count: usize, out: *mut u8) -> *const u8 {
        let expression = self.expression;
        let root = expression.code.len() - 1;
        for (number, instruction) in expression.code.iter().enumerate() {
            let class = instruction.class;
            let is_written = number == root && !out.is_null();
            if let Code::Load(leaf) = instruction.code {
                let leaf = &expression.leaves[leaf];
                if instruction.register.is_some() && leaf.is_scalar() && !is_written {
                    continue;
                }
                if instruction.register.is_none() && !is_written {
                    let base = self.memory.address(leaf.place);
                    self.values[number] = base.wrapping_add((leaf.first + begin) * width(leaf.dtype));
                    continue;
                }
                let to = if is_written { out } else { self.register(instruction) };
                self.values[number] = to;
                // SAFETY: `to` is a register, or `out`; the leaf was checked to lie in its array.
                unsafe { self.load(leaf, class, to, begin, count) };
                continue;
            }
            let to = if is_written { out } else { self.register(instruction) };
            self.values[number] = to;
            // SAFETY: values of operands were made by earlier instructions, for as many elements. A value has no
            // register of an operand, and `out` is part of no operand.
            unsafe {
                match class {
                    Class::F32 => self.compute::<f32>(instruction.code, to, count),
                    Class::F64 => self.compute::<f64>(instruction.code, to, count),
                    Class::I32 => self.compute::<i32>(instruction.code, to, count),
                }
            }
        }
        self.values[root]
    }

    /// # Safety
    /// As [`evaluate`](Self::evaluate); `to` is valid for writes of `count` elements, and no operand of the step.
    unsafe fn compute<T: Lane>(&self, code: Code, to: *mut u8, count: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let out = std::slice::from_raw_parts_mut(to.cast::<T>(), count);
            match code {
                Code::Load(_) => unreachable!("loads are no computations"),
                Code::Unary(op, a) => T::unary(op, out, self.elements(a, count)),
                Code::Binary(op, a, b) => T::binary(op, out, self.elements(a, count), self.elements(b, count)),
                Code::Cast(a) => cast(self.expression.code[a].class, T::CLASS, self.values[a], to, count),
                Code::Round(dtype, a) => round(dtype, self.values[a], to, count),
            }
        }
    }

    /// # Safety
    /// The value is of type `T`, and has `count` elements.
    unsafe fn elements<T: Lane>(&self, value: usize, count: usize) -> &[T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.values[value].cast::<T>(), count) }
    }

    /// Loads elements of a leaf.
    ///
    /// # Safety
    /// The elements lie in the iteration space. `to` is valid for writes of them, as elements of the class.
    unsafe fn load(&self, leaf: &Leaf, class: Class, to: *mut u8, begin: usize, count: usize) {
        let from = self.memory.address(leaf.place);
        // SAFETY: the caller's promise; plan.rs has checked that the leaf lies in its operand.
        unsafe {
            match (class, leaf.dtype) {
                (Class::F32, DType::F32) => gather(leaf, from.cast::<f32>(), to.cast::<f32>(), begin, count, convert),
                (Class::F64, DType::F64) => gather(leaf, from.cast::<f64>(), to.cast::<f64>(), begin, count, convert),
                (Class::I32, DType::S32) => gather(leaf, from.cast::<i32>(), to.cast::<i32>(), begin, count, convert),
                (Class::I32, DType::S8) => {
                    gather(leaf, from.cast::<i8>(), to.cast::<i32>(), begin, count, |to, from| {
                        lanes::cast(to, from, i32::from)
                    });
                }
                (Class::I32, DType::U8) => {
                    gather(leaf, from.cast::<u8>(), to.cast::<i32>(), begin, count, |to, from| {
                        lanes::cast(to, from, i32::from)
                    });
                }
                (Class::F32, DType::BF16) => {
                    gather(leaf, from.cast::<bf16>(), to.cast::<f32>(), begin, count, lanes::bf16_to_f32);
                }
                (Class::F32, DType::F16) => {
                    gather(leaf, from.cast::<f16>(), to.cast::<f32>(), begin, count, lanes::f16_to_f32);
                }
                (_, other) => unreachable!("elements of {}", other.name()),
            }
        }
    }
}

fn convert<T: Copy>(to: &mut [T], from: &[T]) {
    to.copy_from_slice(from);
}

/// Visits elements `begin..begin + count` of the leaf, in stretches.
///
/// # Safety
/// As [`Machine::load`]: `from` is the leaf's array.
#[inline(always)]
unsafe fn gather<A: Copy, B: Copy + Default>(
    leaf: &Leaf,
    from: *const A,
    to: *mut B,
    begin: usize,
    count: usize,
    convert: impl Fn(&mut [B], &[A]),
) {
    // SAFETY: the caller's promise, for all accesses below: an index of the iteration space leads to an element of the
    // array, and `to` has `count` elements.
    unsafe {
        let from = from.add(leaf.first);
        let to = std::slice::from_raw_parts_mut(to, count);
        let Some((&(size, stride), outer)) = leaf.dims.split_last().filter(|_| !leaf.is_scalar()) else {
            let mut one = [B::default()];
            convert(&mut one, std::slice::from_raw_parts(from, 1));
            to.fill(one[0]);
            return;
        };
        let (mut row, mut at, mut done) = (begin / size, begin % size, 0);
        while done < count {
            let mut place = row;
            let mut offset = 0;
            for &(size, stride) in outer.iter().rev() {
                offset += place % size * stride;
                place /= size;
            }
            let length = (size - at).min(count - done);
            let stretch = &mut to[done..done + length];
            let first = from.add(offset + at * stride);
            match stride {
                1 => convert(stretch, std::slice::from_raw_parts(first, length)),
                0 => {
                    let mut one = [B::default()];
                    convert(&mut one, std::slice::from_raw_parts(first, 1));
                    stretch.fill(one[0]);
                }
                _ => {
                    // Sixteen at a time, so that the conversion is one loop.
                    let mut near = [*first; 16];
                    for (piece, to) in stretch.chunks_mut(16).enumerate() {
                        for (number, near) in near[..to.len()].iter_mut().enumerate() {
                            *near = *first.add((piece * 16 + number) * stride);
                        }
                        convert(to, &near[..to.len()]);
                    }
                }
            }
            (row, at, done) = (row + 1, 0, done + length);
        }
    }
}

/// Converts between classes, as XLA does: to integers with saturation.
///
/// # Safety
/// `from` has `count` elements of one class, and `to` is valid for writes of as many of the other.
unsafe fn cast(of: Class, class: Class, from: *const u8, to: *mut u8, count: usize) {
    macro_rules! cast {
        ($from:ty, $to:ty) => {
            // SAFETY: the caller's promise.
            unsafe {
                let out = std::slice::from_raw_parts_mut(to.cast::<$to>(), count);
                lanes::cast(out, std::slice::from_raw_parts(from.cast::<$from>(), count), |x: $from| x as $to);
            }
        };
    }
    match (of, class) {
        (Class::F32, Class::F64) => cast!(f32, f64),
        (Class::F32, Class::I32) => cast!(f32, i32),
        (Class::F64, Class::F32) => cast!(f64, f32),
        (Class::F64, Class::I32) => cast!(f64, i32),
        (Class::I32, Class::F32) => cast!(i32, f32),
        (Class::I32, Class::F64) => cast!(i32, f64),
        (Class::F32, Class::F32) | (Class::F64, Class::F64) | (Class::I32, Class::I32) => {
            unreachable!("no cast to the same class")
        }
    }
}

/// Rounds elements to a type that is narrower than its class.
///
/// # Safety
/// `from` has `count` elements of the type's class, and `to` is valid for writes of as many.
unsafe fn round(dtype: DType, from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let (floats, integers) = (from.cast::<f32>(), from.cast::<i32>());
        match dtype {
            DType::BF16 => {
                let mut near = [bf16::ZERO; BLOCK];
                lanes::f32_to_bf16(&mut near[..count], std::slice::from_raw_parts(floats, count));
                lanes::bf16_to_f32(std::slice::from_raw_parts_mut(to.cast(), count), &near[..count]);
            }
            DType::F16 => {
                let mut near = [f16::ZERO; BLOCK];
                lanes::f32_to_f16(&mut near[..count], std::slice::from_raw_parts(floats, count));
                lanes::f16_to_f32(std::slice::from_raw_parts_mut(to.cast(), count), &near[..count]);
            }
            DType::S8 => {
                let out = std::slice::from_raw_parts_mut(to.cast::<i32>(), count);
                lanes::cast(out, std::slice::from_raw_parts(integers, count), |x: i32| i32::from(x as i8));
            }
            DType::U8 => {
                let out = std::slice::from_raw_parts_mut(to.cast::<i32>(), count);
                lanes::cast(out, std::slice::from_raw_parts(integers, count), |x: i32| i32::from(x as u8));
            }
            other => unreachable!("no rounding to {}", other.name()),
        }
    }
}

/// Writes computed elements to memory, as elements of that type.
///
/// # Safety
/// `from` has `count` elements of the type's class, and `to` is valid for writes of as many of the type.
pub(super) unsafe fn store(dtype: DType, from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let integers = || std::slice::from_raw_parts(from.cast::<i32>(), count);
        let floats = || std::slice::from_raw_parts(from.cast::<f32>(), count);
        match dtype {
            DType::F32 | DType::S32 => std::ptr::copy_nonoverlapping(from, to, count * 4),
            DType::F64 => std::ptr::copy_nonoverlapping(from, to, count * 8),
            DType::BF16 => lanes::f32_to_bf16(std::slice::from_raw_parts_mut(to.cast(), count), floats()),
            DType::F16 => lanes::f32_to_f16(std::slice::from_raw_parts_mut(to.cast(), count), floats()),
            DType::S8 => {
                lanes::cast(std::slice::from_raw_parts_mut(to.cast::<i8>(), count), integers(), |x: i32| x as i8)
            }
            DType::U8 => lanes::cast(std::slice::from_raw_parts_mut(to, count), integers(), |x: i32| x as u8),
            other => unreachable!("no elements of {}", other.name()),
        }
    }
}

pub(super) fn width(dtype: DType) -> usize {
    dtype.byte_width()
}
