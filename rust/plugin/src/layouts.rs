//! The extension Layouts: layouts as objects, and as texts in XLA's form.

use std::ptr;

use purlin_array::Layout;
use purlin_base::sync::OnceLock;
use purlin_base::{Error, StatusOr};
use purlin_ffi::panic::contain;
use purlin_pjrt::abi::{arguments, read as field};
use purlin_pjrt_abi::{
    ExtensionBase, LayoutsBufferMemoryLayoutArgs, LayoutsClientGetDefaultLayoutArgs,
    LayoutsExecutableGetOutputLayoutsArgs, LayoutsExecutableGetParameterLayoutsArgs, LayoutsExtension,
    LayoutsMemoryLayout, LayoutsMemoryLayoutDestroyArgs, LayoutsMemoryLayoutSerializeArgs, LayoutsSerializedLayout,
    LayoutsTopologyGetDefaultLayoutArgs, extension_type,
};

use crate::answer::{Answer, answered};
use crate::compiler::Compiler;
use crate::executable::Compiled;
use crate::handle::{self, Handle, lent, take};
use crate::read;
use crate::text::lend;

/// The extension, and the next one in the chain.
pub(crate) fn extension(next: *mut ExtensionBase) -> LayoutsExtension {
    LayoutsExtension {
        base: ExtensionBase { struct_size: size_of::<LayoutsExtension>(), r#type: extension_type::LAYOUTS, next },
        memory_layout_destroy: Some(answered),
        memory_layout_serialize: Some(answered),
        client_get_default_layout: Some(answered),
        buffer_memory_layout: Some(answered),
        topology_get_default_layout: Some(answered),
        executable_get_output_layouts: Some(answered),
        executable_get_parameter_layouts: Some(answered),
    }
}

impl Handle for LayoutsMemoryLayout {
    /// The text.
    type Object = String;
    const NAME: &'static str = "PJRT_Layouts_MemoryLayout";
}

impl Handle for LayoutsSerializedLayout {
    type Object = String;
    const NAME: &'static str = "PJRT_Layouts_SerializedLayout";
}

impl Answer for LayoutsMemoryLayoutDestroyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { take::<Self, _>(self.layout) }.map(drop)
    }
}

impl Answer for LayoutsMemoryLayoutSerializeArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let text = unsafe { lent::<Self, _>(self.layout) }?.clone();
        (self.serialized_bytes, self.serialized_bytes_size) = lend(&text);
        // Moved, the text stays where it is.
        self.serialized_layout = handle::give(text);
        self.serialized_layout_deleter = Some(end_serialized);
        Ok(())
    }
}

unsafe extern "C" fn end_serialized(layout: *mut LayoutsSerializedLayout) {
    contain("PJRT serialized_layout_deleter", (), || {
        // SAFETY: the caller gives it up.
        drop(unsafe { take::<LayoutsMemoryLayoutSerializeArgs, _>(layout) });
    });
}

/// The layout of an array that asks for none.
///
/// # Errors
/// `InvalidArgument`: there is no such array.
///
/// # Safety
/// `dims` is null or points to `rank` numbers.
unsafe fn default_layout(r#type: i32, dims: *const i64, rank: usize) -> StatusOr<*mut LayoutsMemoryLayout> {
    // SAFETY: the caller's promise.
    let shape = unsafe { read::shape(r#type, dims, rank) }?;
    Ok(handle::give(written(&Layout::row_major(shape.rank()), shape.dtype().bits())))
}

/// A layout in XLA's form: elements narrower than a byte are said to be packed.
fn written(layout: &Layout, bits: usize) -> String {
    let text = layout.to_string();
    match bits {
        1..8 => format!("{}:E({bits})}}", &text[..text.len() - 1]),
        _ => text,
    }
}

impl Answer for LayoutsClientGetDefaultLayoutArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            lent::<Self, _>(self.client)?;
            self.layout = default_layout(self.r#type, self.dims, self.num_dims)?;
        }
        Ok(())
    }
}

impl Answer for LayoutsTopologyGetDefaultLayoutArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            lent::<Self, _>(self.topology_description)?;
            self.layout = default_layout(self.r#type, self.dims, self.num_dims)?;
        }
        Ok(())
    }
}

impl Answer for LayoutsBufferMemoryLayoutArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let array = &unsafe { lent::<Self, _>(self.buffer) }?.array;
        self.layout = handle::give(written(&array.layout(), array.dtype().bits()));
        Ok(())
    }
}

/// Layouts of a program's arrays, which it lends.
pub(crate) struct Layouts(Vec<*mut LayoutsMemoryLayout>);

// SAFETY: the objects never change.
unsafe impl Send for Layouts {}
// SAFETY: as above.
unsafe impl Sync for Layouts {}

impl Drop for Layouts {
    fn drop(&mut self) {
        for &layout in &self.0 {
            // SAFETY: from give(), and lent only for the life of this.
            drop(unsafe { take::<LayoutsMemoryLayoutDestroyArgs, _>(layout) });
        }
    }
}

/// A function of the compiler's extension.
macro_rules! theirs {
    ($compiler:expr, $field:ident) => {{
        let extension = extension_of($compiler)?;
        // SAFETY: the extension says what it has.
        unsafe { field(extension, std::mem::offset_of!(LayoutsExtension, $field), |table| table.$field) }
            .flatten()
            .ok_or_else(|| Error::unimplemented(concat!("the plugin that compiles has no ", stringify!($field))))?
    }};
}

fn extension_of(compiler: &Compiler) -> StatusOr<*const LayoutsExtension> {
    let found = compiler.plugin.extension(extension_type::LAYOUTS).map(<*const ExtensionBase>::cast);
    found.ok_or_else(|| Error::unimplemented("the plugin that compiles has no extension Layouts"))
}

/// Objects of ours for `count` layouts of the compiler's.
///
/// # Safety
/// `layouts` points to as many, which are alive.
unsafe fn copied(compiler: &Compiler, layouts: *mut *mut LayoutsMemoryLayout, count: usize) -> StatusOr<Layouts> {
    let serialize = theirs!(compiler, memory_layout_serialize);
    let mut ours = Layouts(Vec::new());
    // SAFETY: the caller's promise; the text is lent until its deleter is called.
    unsafe {
        for &layout in read::list("layouts", layouts.cast_const(), count)? {
            let mut args = LayoutsMemoryLayoutSerializeArgs { layout, ..arguments() };
            if let Some(error) = compiler.plugin.taken(serialize(&raw mut args)) {
                return Err(error);
            }
            let text = read::text("a layout", args.serialized_bytes, args.serialized_bytes_size).map(str::to_owned);
            if let Some(deleter) = args.serialized_layout_deleter {
                deleter(args.serialized_layout);
            }
            ours.0.push(handle::give(text?));
        }
    }
    Ok(ours)
}

/// What `cell` has, or what `make` makes; the compiler's code runs outside of the cell.
fn once(cell: &OnceLock<StatusOr<Layouts>>, make: impl FnOnce() -> StatusOr<Layouts>) -> StatusOr<&Layouts> {
    let known = match cell.get() {
        Some(known) => known,
        None => {
            let made = make();
            cell.get_or_init(|| made)
        }
    };
    known.as_ref().map_err(Clone::clone)
}

fn lend_list(layouts: &Layouts) -> (*mut *mut LayoutsMemoryLayout, usize) {
    (if layouts.0.is_empty() { ptr::dangling_mut() } else { layouts.0.as_ptr().cast_mut() }, layouts.0.len())
}

/// Layouts of a program's results or parameters: those of `$cell`, or what the compiler says.
macro_rules! of_program {
    ($compiled:expr, $cell:ident, $function:ident, $args:ident, $count:ident) => {
        once(&$compiled.$cell, || {
            let function = theirs!(&$compiled.compiler, $function);
            let mut args = $args { executable: $compiled.executable, ..arguments() };
            // SAFETY: the executable is alive, and lends its layouts.
            unsafe {
                match $compiled.compiler.plugin.taken(function(&raw mut args)) {
                    Some(error) => Err(error),
                    None => copied(&$compiled.compiler, args.layouts, args.$count),
                }
            }
        })
    };
}

fn output_layouts(compiled: &Compiled) -> StatusOr<&Layouts> {
    of_program!(
        compiled,
        output_layouts,
        executable_get_output_layouts,
        LayoutsExecutableGetOutputLayoutsArgs,
        num_outputs
    )
}

fn parameter_layouts(compiled: &Compiled) -> StatusOr<&Layouts> {
    of_program!(
        compiled,
        parameter_layouts,
        executable_get_parameter_layouts,
        LayoutsExecutableGetParameterLayoutsArgs,
        num_parameters
    )
}

/// The layout of a program's result; `None` where it is row-major.
///
/// # Errors
/// What the compiler says. `Unimplemented`: it is none of dense arrays.
pub(crate) fn of_output(compiled: &Compiled, index: usize) -> StatusOr<Option<&Layout>> {
    let of_all = || (0..compiled.output_count()).map(|index| read_output(compiled, index)).collect();
    let layouts = compiled.result_layouts.get_or_init(of_all).as_ref().map_err(Clone::clone)?;
    Ok(layouts.get(index).and_then(Option::as_ref))
}

/// As [`of_output`].
fn read_output(compiled: &Compiled, index: usize) -> StatusOr<Option<Layout>> {
    let layouts = output_layouts(compiled)?;
    let refused = |text: &str| Error::unimplemented(format!("the layout '{text}' of result {index}"));
    let layout = layouts.0.get(index).copied().ok_or_else(|| refused("of a result that is not there"))?;
    // SAFETY: lent by the list, which is alive.
    let text = unsafe { lent::<LayoutsMemoryLayoutSerializeArgs, _>(layout) }?;
    let order = text.strip_prefix('{').and_then(|text| text.split([':', '}']).next()).ok_or_else(|| refused(text))?;
    let order: Result<Vec<i64>, _> = order.split(',').filter(|number| !number.is_empty()).map(str::parse).collect();
    let layout = Layout::new(&order.map_err(|_| refused(text))?)?;
    Ok((!layout.is_row_major()).then_some(layout))
}

impl Answer for LayoutsExecutableGetOutputLayoutsArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let compiled: &Compiled = unsafe { lent::<Self, _>(self.executable) }?;
        (self.layouts, self.num_outputs) = lend_list(output_layouts(compiled)?);
        Ok(())
    }
}

impl Answer for LayoutsExecutableGetParameterLayoutsArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let compiled: &Compiled = unsafe { lent::<Self, _>(self.executable) }?;
        (self.layouts, self.num_parameters) = lend_list(parameter_layouts(compiled)?);
        Ok(())
    }
}

/// The order of a row-major array's dimensions, the fastest first, which is lent for ever. `None`: too many dimensions.
pub(crate) fn row_major(rank: usize) -> Option<&'static [i64]> {
    const LARGEST: usize = 64;
    static ORDER: [i64; LARGEST] = {
        let (mut order, mut at) = ([0; LARGEST], 0);
        while at < LARGEST {
            order[at] = (LARGEST - 1 - at) as i64;
            at += 1;
        }
        order
    };
    (rank <= LARGEST).then(|| &ORDER[LARGEST - rank..])
}

/// The order of a layout's dimensions as C is lent it.
pub(crate) fn order_of(layout: Option<&Layout>, rank: usize) -> Result<(*const i64, usize), Error> {
    let order = match layout {
        Some(layout) => layout.minor_to_major(),
        None => {
            row_major(rank).ok_or_else(|| Error::unimplemented(format!("the layout of an array of rank {rank}")))?
        }
    };
    Ok((if order.is_empty() { ptr::dangling() } else { order.as_ptr() }, order.len()))
}
