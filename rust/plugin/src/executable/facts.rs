//! What the compiler knows of a program: its own answers, with its own object in place of ours.

use purlin_base::Error;
use purlin_pjrt_abi::{
    ExecutableFingerprintArgs, ExecutableGetCompileOptionsArgs, ExecutableGetCompiledMemoryStatsArgs,
    ExecutableGetCostAnalysisArgs, ExecutableNameArgs, ExecutableNumOutputsArgs, ExecutableNumPartitionsArgs,
    ExecutableNumReplicasArgs, ExecutableOptimizedProgramArgs, ExecutableOutputDimensionsArgs,
    ExecutableOutputElementTypesArgs, ExecutableOutputMemoryKindsArgs, ExecutableParameterMemoryKindsArgs,
    ExecutableSerializeArgs, ExecutableSizeOfGeneratedCodeInBytesArgs, LoadedExecutableAddressableDeviceLogicalIdsArgs,
    LoadedExecutableFingerprintArgs, LoadedExecutableGetDeviceAssignmentArgs,
};

use crate::answer::Answer;
use crate::handle::lent;

macro_rules! passed_on {
    ($theirs:ident: $($args:ty),* $(,)?) => {
        $(impl Answer for $args {
            unsafe fn answer(&mut self) -> Result<(), Error> {
                let ours = self.executable;
                // SAFETY: the caller's promise; what the compiler lends lives as long as its object, which ours keeps.
                unsafe {
                    let compiled = lent::<Self, _>(ours)?;
                    self.executable = compiled.$theirs;
                    let answer = compiled.compiler.plugin.call(self);
                    self.executable = ours;
                    answer
                }
            }
        })*
    };
}

passed_on!(executable:
    ExecutableNameArgs, ExecutableNumReplicasArgs, ExecutableNumPartitionsArgs, ExecutableNumOutputsArgs,
    ExecutableSizeOfGeneratedCodeInBytesArgs, ExecutableGetCostAnalysisArgs, ExecutableOutputMemoryKindsArgs,
    ExecutableOptimizedProgramArgs, ExecutableOutputElementTypesArgs, ExecutableOutputDimensionsArgs,
    ExecutableFingerprintArgs, ExecutableGetCompiledMemoryStatsArgs, ExecutableGetCompileOptionsArgs,
    ExecutableParameterMemoryKindsArgs, ExecutableSerializeArgs);

passed_on!(loaded:
    LoadedExecutableFingerprintArgs, LoadedExecutableGetDeviceAssignmentArgs,
    LoadedExecutableAddressableDeviceLogicalIdsArgs);
