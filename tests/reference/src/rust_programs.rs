//! The model's programs, by the library's Rust API.

use purlin_array::{DType, Shape};
use purlin_base::{Error, StatusCode};
use purlin_device::{Buffer, Device};
use purlin_program::{
    ArraySpec, Command, Executable, Kernel, KernelArgsPackingSpec, KernelCall, KernelLoaderSpec, KernelPayload,
    LoadedExecutable, Operand, ProgramBuilder, Slice,
};

use crate::model::FAMILIES;

/// `plus_one(from, to, count)`, a thread for each byte. C++ includes it as a literal.
const PLUS_ONE: &str = include_str!("../plus_one.inc");
/// The threads of a block.
const PER_BLOCK: u32 = 64;

/// A program of that family, for arrays like `like`, or of eight bytes. The host's are in memory that it reaches.
pub(crate) fn load(family: u8, like: Option<&Buffer>, device: &Device) -> Result<LoadedExecutable, Error> {
    let has_own_kernels = !device.kernels_are_host_functions();
    let is_of_host = has_own_kernels && !FAMILIES[usize::from(family)].is_of_device;
    let spec = spec(like)?.in_memory(if is_of_host { "pinned_host" } else { "device" });
    let executable = Executable::new(program(family, &spec, has_own_kernels)?.build()?);
    LoadedExecutable::new(&executable, std::slice::from_ref(device), 1)
}

fn spec(like: Option<&Buffer>) -> Result<ArraySpec, Error> {
    match like.filter(|buffer| *buffer.shape() != Shape::token()) {
        Some(buffer) => ArraySpec::new(buffer.shape().clone()).with_layout(buffer.layout()),
        None => Ok(ArraySpec::new(Shape::new(DType::U8, &[8])?)),
    }
}

fn program(family: u8, spec: &ArraySpec, has_own_kernels: bool) -> Result<ProgramBuilder, Error> {
    let mut builder = ProgramBuilder::new("reference");
    let spec = || spec.clone();
    match family {
        0 => {
            let (x, y) = (builder.parameter(spec()), builder.result(spec()));
            builder.push(kernel(plus(1), [Operand::read(x), Operand::write(y)]));
        }
        1 => {
            let x = builder.donated_parameter(spec());
            builder.push(in_place(x, 1));
        }
        2 => {
            let (a, b) = (builder.parameter(spec()), builder.parameter(spec()));
            let (sum, copy) = (builder.result(spec()), builder.result(spec()));
            let temporary = builder.temporary(spec().size_bytes());
            builder.push(Command::Copy { from: a, to: temporary });
            builder.push(kernel(add(), [Operand::read(temporary), Operand::read(b), Operand::write(sum)]));
            builder.push(Command::Copy { from: temporary, to: copy });
        }
        3 => {
            let (a, b) = (builder.donated_parameter(spec()), builder.parameter(spec()));
            builder.push(kernel(add(), [Operand::read_write(a), Operand::read(b)]));
        }
        4 => {
            let (a, b) = (builder.donated_parameter(spec()), builder.donated_parameter(spec()));
            builder.push(in_place(a, 1)).push(in_place(b, 2));
        }
        5 => {
            let x = builder.donated_parameter(spec());
            builder.push(kernel(Kernel::from_fn("fails", fail), [Operand::read_write(x)]));
        }
        7 => {
            let (x, y) = (builder.parameter(spec()), builder.result(spec()));
            builder.push(plus_one([Operand::read(x), Operand::write(y)], y, has_own_kernels)?);
            for _ in 1..5 {
                builder.push(plus_one([Operand::read_write(y)], y, has_own_kernels)?);
            }
        }
        8 => {
            let x = builder.donated_parameter(spec());
            for _ in 0..5 {
                builder.push(plus_one([Operand::read_write(x)], x, has_own_kernels)?);
            }
        }
        _ => {
            let (x, y) = (builder.parameter(spec()), builder.result(spec()));
            let panics = Kernel::from_fn("panics", |_| std::panic::resume_unwind(Box::new("as a test wants it")));
            builder.push(kernel(panics, [Operand::read(x), Operand::write(y)]));
        }
    }
    Ok(builder)
}

fn kernel<const N: usize>(kernel: Kernel, operands: [Operand; N]) -> Command {
    Command::Kernel { kernel, workgroups: [1, 1, 1], operands: operands.to_vec() }
}

fn in_place(x: Slice, by: u8) -> Command {
    kernel(plus(by), [Operand::read_write(x)])
}

/// Of the operand that is read, or in place.
fn plus(by: u8) -> Kernel {
    Kernel::from_fn("plus", move |call| {
        if let [from] = call.reads {
            call.writes[0].copy_from_slice(from);
        }
        call.writes[0].iter_mut().for_each(|byte| *byte = byte.wrapping_add(by));
        Ok(())
    })
}

/// One more, by a kernel of the device's own where it has such.
fn plus_one<const N: usize>(operands: [Operand; N], of: Slice, has_own: bool) -> Result<Command, Error> {
    if !has_own {
        return Ok(kernel(plus(1), operands));
    }
    let mut packing = KernelArgsPackingSpec::default();
    packing.push_address(0)?;
    packing.push_address(N as u32 - 1)?;
    packing.push_constant(&(of.size_bytes as u32).to_le_bytes());
    let ptx = PLUS_ONE.trim().trim_start_matches("R\"ptx(").trim_end_matches(")ptx\"");
    let spec = KernelLoaderSpec::new(KernelPayload::Ptx(ptx.into()), "plus_one", 3)?.with_packing(packing);
    let workgroups = [(of.size_bytes as u64).div_ceil(u64::from(PER_BLOCK)).max(1), 1, 1];
    let kernel = Kernel::of_device(spec, [PER_BLOCK, 1, 1], 0);
    Ok(Command::Kernel { kernel, workgroups, operands: operands.to_vec() })
}

/// Of two operands that are read, or of one onto the other.
fn add() -> Kernel {
    Kernel::from_fn("add", |call| {
        if let [first, _] = call.reads {
            call.writes[0].copy_from_slice(first);
        }
        let last = call.reads[call.reads.len() - 1];
        call.writes[0].iter_mut().zip(last).for_each(|(to, from)| *to = to.wrapping_add(*from));
        Ok(())
    })
}

/// After it has written.
fn fail(call: KernelCall<'_, '_>) -> Result<(), Error> {
    call.writes[0].fill(0xEE);
    Err(Error::new(StatusCode::NotFound, "user error #7#"))
}
