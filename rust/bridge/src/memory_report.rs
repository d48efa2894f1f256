//! `purlin/memory_report.h`.

use std::pin::Pin;

use cxx::CxxString;
use purlin_device::{MemoryHolder, MemoryReport};
use purlin_ffi::panic::contain;

use crate::device::MemorySpaceRep;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// `purlin::MemoryHolder`.
    struct MemoryHolder {
        size_bytes: u64,
        label: String,
        place: String,
        age_ms: u32,
        is_going: bool,
    }

    /// `purlin::MemoryReport`.
    #[derive(Default)]
    struct MemoryReport {
        memory_space: String,
        /// Counts if `has_requested_bytes`.
        requested_bytes: u64,
        has_requested_bytes: bool,
        reason: String,
        bytes_in_use: u64,
        /// Counts if `has_bytes_limit`.
        bytes_limit: u64,
        has_bytes_limit: bool,
        pool_bytes: u64,
        free_bytes: u64,
        largest_free_block_bytes: u64,
        fragmentation_percent: u8,
        pending_free_bytes: u64,
        holder_count: usize,
        waiting_count: usize,
        holders: Vec<MemoryHolder>,
    }

    unsafe extern "C++" {
        include!("purlin-bridge/src/device.rs.h");

        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
    }

    extern "Rust" {
        fn memory_report_of(space: &MemorySpaceRep) -> MemoryReport;
        /// Appends a few lines.
        fn memory_report_to_string(report: MemoryReport, text: Pin<&mut CxxString>);
        /// Appends a JSON object.
        fn memory_report_to_json(report: MemoryReport, text: Pin<&mut CxxString>);
    }
}

fn memory_report_of(space: &MemorySpaceRep) -> ffi::MemoryReport {
    contain("memory_report_of", ffi::MemoryReport::default(), || space.0.report().into())
}

fn memory_report_to_string(report: ffi::MemoryReport, text: Pin<&mut CxxString>) {
    contain("memory_report_to_string", (), || {
        text.push_str(&MemoryReport::from(report).to_string());
    })
}

fn memory_report_to_json(report: ffi::MemoryReport, text: Pin<&mut CxxString>) {
    contain("memory_report_to_json", (), || {
        text.push_str(&MemoryReport::from(report).to_json());
    })
}

impl From<MemoryReport> for ffi::MemoryReport {
    fn from(report: MemoryReport) -> Self {
        Self {
            memory_space: report.memory_space,
            requested_bytes: report.requested_bytes.unwrap_or(0),
            has_requested_bytes: report.requested_bytes.is_some(),
            reason: report.reason,
            bytes_in_use: report.bytes_in_use,
            bytes_limit: report.bytes_limit.unwrap_or(0),
            has_bytes_limit: report.bytes_limit.is_some(),
            pool_bytes: report.pool_bytes,
            free_bytes: report.free_bytes,
            largest_free_block_bytes: report.largest_free_block_bytes,
            fragmentation_percent: report.fragmentation_percent,
            pending_free_bytes: report.pending_free_bytes,
            holder_count: report.holder_count,
            waiting_count: report.waiting_count,
            holders: report.holders.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<ffi::MemoryReport> for MemoryReport {
    fn from(report: ffi::MemoryReport) -> Self {
        let mut made = Self::default();
        made.memory_space = report.memory_space;
        made.requested_bytes = report.has_requested_bytes.then_some(report.requested_bytes);
        made.reason = report.reason;
        made.bytes_in_use = report.bytes_in_use;
        made.bytes_limit = report.has_bytes_limit.then_some(report.bytes_limit);
        made.pool_bytes = report.pool_bytes;
        made.free_bytes = report.free_bytes;
        made.largest_free_block_bytes = report.largest_free_block_bytes;
        made.fragmentation_percent = report.fragmentation_percent;
        made.pending_free_bytes = report.pending_free_bytes;
        made.holder_count = report.holder_count;
        made.waiting_count = report.waiting_count;
        made.holders = report.holders.into_iter().map(Into::into).collect();
        made
    }
}

impl From<MemoryHolder> for ffi::MemoryHolder {
    fn from(MemoryHolder { size_bytes, label, place, age_ms, is_going, .. }: MemoryHolder) -> Self {
        Self { size_bytes, label, place, age_ms, is_going }
    }
}

impl From<ffi::MemoryHolder> for MemoryHolder {
    fn from(ffi::MemoryHolder { size_bytes, label, place, age_ms, is_going }: ffi::MemoryHolder) -> Self {
        let mut made = Self::default();
        made.size_bytes = size_bytes;
        made.label = label;
        made.place = place;
        made.age_ms = age_ms;
        made.is_going = is_going;
        made
    }
}
