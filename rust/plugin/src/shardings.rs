//! The extension Shardings: what the compiler says of how a program's arrays are divided.

use purlin_base::Error;
use purlin_pjrt::abi::read as field;
use purlin_pjrt_abi::{
    ExtensionBase, ShardingsExecutableOutputShardingsArgs, ShardingsExecutableParameterShardingsArgs,
    ShardingsExtension, extension_type,
};

use crate::answer::{Answer, answered};
use crate::handle::lent;

/// The extension, and the next one in the chain.
pub(crate) fn extension(next: *mut ExtensionBase) -> ShardingsExtension {
    ShardingsExtension {
        base: ExtensionBase { struct_size: size_of::<ShardingsExtension>(), r#type: extension_type::SHARDINGS, next },
        executable_parameter_shardings: Some(answered),
        executable_output_shardings: Some(answered),
    }
}

macro_rules! passed_on {
    ($args:ty, $function:ident) => {
        impl Answer for $args {
            unsafe fn answer(&mut self) -> Result<(), Error> {
                let ours = self.executable;
                // SAFETY: the caller's promise; the extension says what it has; what the compiler lends lives as long
                // as its object, which ours keeps.
                unsafe {
                    let compiled = lent::<Self, _>(ours)?;
                    let plugin = &compiled.compiler.plugin;
                    let extension = plugin.extension(extension_type::SHARDINGS).map(<*const ExtensionBase>::cast);
                    let offset = std::mem::offset_of!(ShardingsExtension, $function);
                    let read = |table: &ShardingsExtension| table.$function;
                    let function = extension.and_then(|extension| field(extension, offset, read)).flatten();
                    let function = function
                        .ok_or_else(|| Error::unimplemented("the plugin that compiles has no extension Shardings"))?;
                    self.executable = compiled.executable;
                    let answer = plugin.taken(function(self)).map_or(Ok(()), Err);
                    self.executable = ours;
                    answer
                }
            }
        }
    };
}

passed_on!(ShardingsExecutableParameterShardingsArgs, executable_parameter_shardings);
passed_on!(ShardingsExecutableOutputShardingsArgs, executable_output_shardings);
