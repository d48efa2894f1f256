//! Rules of the model that can be turned around, one at a time: then the library must be found to differ, or the fuzz
//! would not notice a library that breaks that rule.

/// A rule turned around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say what goes wrong")]
pub enum Wrong {
    UsageAllowsDonation,
    ExternalAllowsDonation,
    DonationAllowsUsage,
    ConfirmedDonationLeavesTheBuffer,
    DonationGivenBackIsLost,
    DeleteUnderADonationIsForgotten,
    DeletedMemoryGoesAtOnceThoughHeld,
    DeletedMemoryIsKept,
    FreeEventForgetsUses,
    DonateAfterForgetsTheEvent,
    DroppedPromiseIsReady,
    SecondSetWins,
    LastErrorCounts,
    ZeroCopyIsToldAtOnce,
    BitcastLeavesItsSource,
    CopyIntoLeavesItsDestination,
    FulfilForgetsUses,
    LayoutIsIgnored,
    RangeIsNotChecked,
    ReleaseLeavesTheBuffer,
}

/// All of them.
pub const ALL: [Wrong; 20] = [
    Wrong::UsageAllowsDonation,
    Wrong::ExternalAllowsDonation,
    Wrong::DonationAllowsUsage,
    Wrong::ConfirmedDonationLeavesTheBuffer,
    Wrong::DonationGivenBackIsLost,
    Wrong::DeleteUnderADonationIsForgotten,
    Wrong::DeletedMemoryGoesAtOnceThoughHeld,
    Wrong::DeletedMemoryIsKept,
    Wrong::FreeEventForgetsUses,
    Wrong::DonateAfterForgetsTheEvent,
    Wrong::DroppedPromiseIsReady,
    Wrong::SecondSetWins,
    Wrong::LastErrorCounts,
    Wrong::ZeroCopyIsToldAtOnce,
    Wrong::BitcastLeavesItsSource,
    Wrong::CopyIntoLeavesItsDestination,
    Wrong::FulfilForgetsUses,
    Wrong::LayoutIsIgnored,
    Wrong::RangeIsNotChecked,
    Wrong::ReleaseLeavesTheBuffer,
];
