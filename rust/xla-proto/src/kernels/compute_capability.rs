//! `stream_executor.CudaComputeCapabilityProto`.

use prost::Message as Prost;
use purlin_base::StatusOr;
use purlin_program::{ComputeCapability, FeatureExtension};

use crate::message::{decode, meaningless};
use crate::wire::{Message, Passed};

#[derive(Clone, Copy, PartialEq, Prost)]
pub(super) struct ComputeCapabilityProto {
    #[prost(int32, tag = "1")]
    pub(super) major: i32,
    #[prost(int32, tag = "2")]
    pub(super) minor: i32,
    #[prost(int32, tag = "3")]
    pub(super) feature_extension: i32,
}

pub(super) static COMPUTE_CAPABILITY: Message = Message {
    name: "CudaComputeCapabilityProto",
    size_bytes: size_of::<ComputeCapabilityProto>(),
    scalars: &[1, 2, 3],
    nested: &[],
    passed: Passed::These(&[]),
};

/// The bytes of XLA's message.
#[must_use]
pub fn compute_capability_to_proto(capability: ComputeCapability) -> Vec<u8> {
    let feature_extension = match capability.feature_extension {
        FeatureExtension::None => 1,
        FeatureExtension::Accelerated => 2,
        FeatureExtension::Family => 3,
    };
    let (major, minor) = (capability.major.into(), capability.minor.into());
    ComputeCapabilityProto { major, minor, feature_extension }.encode_to_vec()
}

/// Parses the bytes of XLA's message. Older messages do not say the feature extension: as in XLA, they mean `a` for the
/// major versions 9 and 10, and none for others.
///
/// ```
/// use purlin_xla_proto::kernels::{compute_capability_from_proto, compute_capability_to_proto};
///
/// let bytes = compute_capability_to_proto("9.0a".parse()?);
/// assert_eq!(bytes, [0x08, 9, 0x18, 2]);
/// assert_eq!(compute_capability_from_proto(&bytes)?.to_string(), "9.0a");
/// let error = compute_capability_from_proto(&[0x18, 7]).unwrap_err();
/// assert_eq!(error.message(), "CudaComputeCapabilityProto: feature_extension is 7, which is not known");
/// # Ok::<(), purlin::Error>(())
/// ```
///
/// # Errors
/// - `DataLoss`: the bytes are no message.
/// - `Unimplemented`: the message has an unknown field.
/// - `InvalidArgument`: a number is negative or greater than `u16::MAX`, or the feature extension is unknown.
pub fn compute_capability_from_proto(bytes: &[u8]) -> StatusOr<ComputeCapability> {
    let proto: ComputeCapabilityProto = decode(bytes, &COMPUTE_CAPABILITY)?;
    let number = |field: &str, value: i32| {
        let wrong =
            || meaningless(&COMPUTE_CAPABILITY, format!("{field} is {value}, not a number of 0 to {}", u16::MAX));
        u16::try_from(value).map_err(|_| wrong())
    };
    let feature_extension = match proto.feature_extension {
        0 if matches!(proto.major, 9 | 10) => FeatureExtension::Accelerated,
        0 | 1 => FeatureExtension::None,
        2 => FeatureExtension::Accelerated,
        3 => FeatureExtension::Family,
        other => {
            let why = format!("feature_extension is {other}, which is not known");
            return Err(meaningless(&COMPUTE_CAPABILITY, why));
        }
    };
    Ok(ComputeCapability {
        major: number("major", proto.major)?,
        minor: number("minor", proto.minor)?,
        feature_extension,
    })
}
