//! The functions of the plugin itself.

use purlin_base::Error;
use purlin_pjrt_abi::{PluginAttributesArgs, PluginInitializeArgs};

use crate::answer::Answer;
use crate::platform;

impl Answer for PluginInitializeArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

impl Answer for PluginAttributesArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        (self.attributes, self.num_attributes) = platform::attributes().lend();
        Ok(())
    }
}
