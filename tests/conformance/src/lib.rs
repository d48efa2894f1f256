//! What every backend of Purlin must do: suites of cases, run on each backend by [`suite!`].
//!
//! A case sees a backend only through the crate `purlin`, on a client with three devices and two workers, and ends with
//! a look at the accounting: no memory may be in use; and, where each test has a process of its own (nextest), nothing
//! else may be left either ([`ledger`]). Pending states are made with promises that the case itself holds; no case
//! sleeps.
//!
//! A backend that cannot pass a case lists it with the reason. Such a case is run all the same: when it passes, the
//! test fails and says that the list is out of date; so a gap cannot outlive its reason.

mod allocation;
mod buffer;
mod buffer_delete;
mod chains;
mod channel;
mod commands;
mod copy;
mod copy_order;
mod copy_range;
mod dma;
mod donation;
mod failure;
mod fixture;
mod foreign;
mod from_host;
mod holds;
mod host_copy;
mod imported;
mod kernel;
pub mod ledger;
mod lent;
mod lifetime;
mod memory;
mod poison;
mod programs;
mod shards;
mod shutdown;
mod staging;
mod streams;
mod strides;
mod to_host;
mod transfer;
mod upstream;

use std::sync::Arc;

pub use kernel::{Momentum, momentum_of_host};
pub use lent::{Lend, Lent, lend_host_memory};
pub use purlin_device::backend::Backend;

use fixture::Fixture;
use purlin_base::panics::kept;

/// What a backend has of its own for cases.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// Memory that others have allocated.
    pub lend: Lend,
    /// The code of the kernel.
    pub momentum: Momentum,
}

impl Default for Given {
    /// Memory and functions of the host.
    fn default() -> Self {
        Self { lend: lend_host_memory, momentum: momentum_of_host }
    }
}

/// Calls `$then!` with `$args` and all cases, suite by suite. The one list: a case that is missing here is never used,
/// and the compiler says so.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_case {
    ($then:ident $args:tt) => {
        $crate::$then! {
            $args
            memory {
                an_allocation_has_the_size_that_was_asked_for
                addresses_are_aligned_to_64_bytes
                addresses_of_live_allocations_do_not_overlap
                zero_bytes_can_be_allocated
                absurd_sizes_are_resource_exhausted
                a_failed_allocation_changes_no_count
                the_accounting_follows_allocations
                each_space_has_its_own_accounting
                slices_keep_the_memory
                slices_nest
                slices_of_nothing_may_stand_at_the_end
                a_slice_past_the_end_is_out_of_range
                the_accounting_survives_many_threads
                kinds_are_interned
                no_two_spaces_share_an_address
            }
            allocation {
                a_space_with_a_limit_lends_that_much
                alignment_is_what_was_asked_for
                the_error_says_who_holds_the_memory
                a_report_tells_what_pending_work_holds
                memory_after_an_event_comes_with_it
                memory_after_an_event_that_waits_for_it_fails
                memory_after_a_failed_event_never_comes
                memory_after_an_event_may_still_be_short
                an_allocation_waits_for_what_is_freed
                the_first_to_wait_is_served_first
                who_gives_up_waiting_lets_others_pass
                waiting_for_what_can_never_come_fails_at_once
                many_threads_wait_for_one_another
                the_hook_is_asked_to_free_something
                a_hook_that_always_says_yes_is_asked_a_thousand_times
                the_hook_is_not_asked_for_what_can_never_fit
                trimming_gives_memory_back
            }
            chains {
                channels_each_fulfilled_with_the_last
                pending_channels_each_fulfilled_with_the_last
                channels_fulfilled_from_the_end_on
                channels_make_no_circle
                releases_that_let_go_of_the_next_import
                host_buffers_that_keep_the_next
                memory_that_is_kept_until_the_next_event
                cancel_callbacks_that_cancel_the_next
                buffers_each_made_of_the_last
                parts_each_of_the_last
                allocations_that_wait_for_the_last
            }
            channel {
                a_channel_has_a_size_and_no_memory
                a_fulfilled_channel_is_the_other_buffer
                an_allocated_channel_has_memory_of_its_own
                memory_that_does_not_fit_is_refused_and_the_promise_stays
                a_failed_channel_fails_what_waits_for_it
                a_dropped_promise_fails_its_channel
                channels_of_channels_follow
                a_copy_to_a_channel_does_not_write_read_only_memory
                a_channel_of_memory_that_comes_after_it_fails
                a_channel_without_memory_is_exhausted
                a_channel_may_be_fulfilled_after_its_reader_has_gone
            }
            foreign {
                imported_memory_is_used_in_place
                imported_memory_is_not_counted
                the_last_use_releases_imported_memory_once
                read_only_memory_is_not_written
                what_cannot_be_imported_is_named_and_not_released
                bytes_past_the_end_of_the_address_space_cannot_be_imported
                a_release_that_panics_harms_nobody
                a_release_may_use_the_space
            }
            imported {
                memory_of_a_device_is_used_in_place
                every_device_takes_its_own_memory
                bytes_pass_through_imported_memory_by_events_alone
                imported_memory_is_crossed_again_and_again
                memory_imported_twice_is_the_same_memory
                its_owner_is_told_once_and_after_the_last_copy
                its_owner_is_told_after_a_read_of_all_its_bytes
                owners_are_told_whoever_is_last
                a_failed_copy_tells_its_owner
                a_shutdown_waits_for_copies_of_imported_memory
                a_shutdown_that_cancels_tells_every_owner
                imported_memory_outlives_its_client
                an_array_of_imported_memory_is_copied_and_deleted
                a_donated_array_keeps_imported_memory
                a_donee_writes_imported_memory
                read_only_memory_of_a_device_is_not_written
                host_memory_that_a_space_does_not_take_is_copied
            }
            copy {
                bytes_come_back
                parts_go_where_they_should
                sizes_around_a_page_and_the_inline_limit_come_back
                slices_are_copied_by_their_own_offsets
                every_pair_of_spaces_copies
                a_copy_to_a_larger_buffer_leaves_the_rest
                overlapping_ranges_move_forward
                overlapping_ranges_move_backward
                a_buffer_copied_to_itself_stays
                nothing_is_copied_with_a_null_pointer
                nothing_is_copied_between_devices
                many_threads_copy_at_once
                writers_of_disjoint_parts_need_no_order
            }
            copy_order {
                happened_dependencies_are_fine
                a_copy_waits_for_its_dependency
                a_copy_that_its_dependency_waits_for_fails
                a_copy_finds_what_is_there_when_it_begins
                a_copy_waits_for_all_dependencies_in_any_order
                a_copy_of_nothing_waits_too
                one_event_releases_many_copies
                copies_chain_by_their_events
                a_copy_may_be_asked_for_by_a_waiter
                a_copy_may_be_asked_for_by_a_task
                a_waiter_sees_the_bytes
            }
            copy_range {
                parts_are_copied_to_parts
                parts_of_one_buffer_may_overlap
                a_part_past_either_end_is_out_of_range
                a_part_waits_for_its_dependencies
                slices_come_together_or_not_at_all
                memory_is_kept_until_the_event
            }
            failure {
                copies_past_the_end_are_out_of_range
                a_null_pointer_is_invalid
                a_destination_that_is_too_small_is_invalid
                another_clients_buffer_is_invalid
                a_failed_dependency_is_the_copys_error
                a_dependency_that_fails_later_is_the_copys_error
                a_copy_behind_a_failed_dependency_copies_nothing
                the_error_of_the_first_failed_dependency_counts
                a_dropped_promise_is_a_failed_dependency
                a_copy_of_nothing_fails_with_its_dependency
                a_copy_released_after_shutdown_is_cancelled
                a_copy_that_needs_the_runner_after_shutdown_is_cancelled
                a_failed_dependency_is_told_even_after_shutdown
            }
            shutdown {
                a_shutdown_drains_what_is_in_flight
                what_waits_for_ever_fails_by_the_deadline_and_is_named
                what_waits_is_cancelled_at_once_if_asked
                nothing_begins_after_a_shutdown
                the_last_handle_ends_the_client_if_told_to
            }
            lifetime {
                a_copy_in_flight_keeps_both_ends
                what_a_copy_in_flight_keeps_is_intact
                memory_is_free_when_the_event_says_so
                a_failed_copy_frees_its_ends
                a_cancelled_copy_frees_its_ends
                a_copy_in_flight_outlives_its_client
                memory_outlives_the_client_handle
            }
            buffer {
                an_array_comes_back
                an_array_knows_its_shape_and_place
                a_scalar_is_one_element
                empty_arrays_have_no_bytes
                every_dtype_has_its_width
                shapes_that_make_no_sense_are_named
                sizes_that_do_not_fit_are_named
                null_data_is_invalid
                an_array_is_read_as_its_own_type_only
                the_source_is_free_after_the_call
                the_source_is_read_until_the_event
                a_blocked_runner_does_not_block_the_call
                copies_to_every_space_come_back
                a_copy_is_another_array
                a_pending_array_can_be_copied_on
                a_failed_array_fails_what_is_made_of_it
                another_clients_device_is_invalid
                the_raw_alias_is_the_same_memory
            }
            buffer_delete {
                deleting_frees_the_memory
                deleting_twice_is_the_same
                deleting_one_reference_deletes_all
                every_use_after_delete_says_so
                what_an_array_was_is_known_after_delete
                a_pending_read_survives_delete
                a_raw_alias_survives_delete
                readers_race_with_delete
                a_pending_read_to_the_host_survives_delete
            }
            holds {
                a_buffer_forgets_uses_that_are_over
                holds_are_counted
                usage_keeps_donation_out
                donation_keeps_usage_out
                donation_waits_for_usage
                usage_waits_for_donation
                the_second_donation_is_told_of_the_first
                of_racing_donations_one_wins
                donations_given_back_let_the_next_try
                an_external_reference_forbids_donation
                an_external_reference_outlives_its_buffer
                usage_outlives_delete
                delete_under_a_donation_waits_for_its_end
                the_donee_is_told_what_still_uses_the_memory
                releasing_gives_the_memory_away
                a_buffer_without_memory_answers_with_its_error
                raw_memory_becomes_an_array_of_its_size
                a_part_of_raw_memory_becomes_an_array
                tokens_have_no_bytes
                read_only_memory_cannot_be_copied_into
            }
            donation {
                a_donated_array_is_another_one_after_the_event
                a_failed_event_poisons_the_donated_array
                uses_travel_with_donated_memory
                bitcasts_share_the_bytes
                a_bitcast_may_change_the_layout
                a_bitcast_that_does_not_fit_changes_nothing
                a_copy_goes_into_given_memory
                a_copy_that_does_not_fit_consumes_nothing
                a_copy_waits_for_the_readers_of_what_it_overwrites
                copies_into_one_anothers_sources_end
                an_array_may_be_provided_later
                what_does_not_fit_is_refused_and_the_promise_stays
                a_failed_array_may_be_provided
                a_promise_that_is_dropped_fails_its_array
                readers_race_with_donation
            }
            strides {
                narrow_elements_go_any_way
                strides_backwards_are_read_during_the_call
            }
            to_host {
                raw_reads_wait_for_their_address
                dimensions_are_waited_for_without_a_hold
            }
            poison {
                every_error_travels_whole
                transfers_and_staging_hand_errors_on_whole
                the_error_of_a_release_keeps_its_code
                arrays_without_bytes_fail_too
                what_comes_later_is_well
                of_siblings_that_wait_for_an_event_all_are_told
                a_maker_of_several_that_stops_at_an_error_leaves_nobody_waiting
            }
            programs {
                arguments_are_read_and_results_written
                a_run_waits_for_its_arguments
                donated_memory_goes_from_run_to_run
                given_memory_gets_the_results
                a_donation_that_is_forbidden_is_a_copy
                readers_of_donated_memory_are_waited_for
                a_run_waits_for_runs_that_write_its_arguments
                a_failed_argument_fails_every_output
                a_run_that_is_refused_leaves_its_arguments_as_they_were
                a_kernel_that_fails_fails_the_run
                every_device_runs_on_its_own_arguments
                an_executable_may_go_before_its_runs
                loops_go_on_while_bytes_of_the_device_say_so
                branches_are_those_that_bytes_of_the_device_choose
                fills_and_moves_are_done_where_the_arrays_are
            }
            dma {
                mapped_memory_is_unmapped_when_nobody_uses_it
                a_mapping_that_is_dropped_ends_with_its_last_use
                mappings_do_not_overlap
                ranges_that_make_no_sense_are_named
            }
            shards {
                every_shard_comes_to_its_device
                nothing_is_made_if_one_shard_is_wrong
                nothing_stays_if_memory_runs_out
                a_copy_that_fails_is_told_of
            }
            transfer {
                a_manager_knows_its_buffers
                a_buffer_is_retrieved_once_and_used_at_once
                pieces_come_in_any_order
                everybody_was_told_before_the_buffer_is_ready
                who_is_told_may_drop_the_manager
                illegal_steps_are_errors_and_change_nothing
                a_buffer_fails_once
                a_piece_that_cannot_be_copied_fails_its_buffer_at_once
                what_was_not_finished_fails_with_its_manager
                whole_arrays_are_packed_and_ordered
                memory_may_come_after_the_pieces
                a_manager_without_memory_leaves_nothing
                pieces_come_from_many_threads
            }
            upstream {
                a_manager_survives_three_pieces_out_of_range
                a_manager_has_no_buffer_a_million
                an_error_set_twice_and_a_piece_after_it
                a_reference_survives_delete_twice_and_the_last_handle
                an_error_buffer_keeps_its_code_in_what_is_made_of_it
            }
            staging {
                leases_are_lent_and_come_back
                leases_of_odd_sizes_are_aligned_and_do_not_touch
                a_pool_of_nothing_is_refused
                pieces_come_in_order_and_whole
                reads_are_told_in_the_order_in_which_they_were_asked_for
                no_more_is_under_way_than_there_are_leases
                a_read_of_nothing_takes_its_turn
                a_failed_dependency_ends_its_read_alone
                a_read_that_what_it_waits_for_waits_for_fails
                who_is_told_may_panic
                a_read_that_ended_early_leaves_its_source_alone
                a_copier_that_goes_tells_everybody
                a_buffer_is_not_donated_while_it_is_read
                who_is_told_may_read_again
                a_read_is_told_in_the_context_in_which_it_was_asked_for
                pieces_make_a_whole_in_any_order
                a_byte_has_one_piece
                a_poisoned_sink_writes_no_more
                a_sink_that_goes_fails
                a_sink_for_memory_that_comes_after_it_fails
                bytes_pass_through_both_from_many_threads
            }
            streams {
                a_chain_ends_with_the_first_bytes
                a_chain_goes_through_every_space
                a_chain_goes_round_the_devices
                chains_side_by_side_do_not_mix
                two_blocks_are_swapped_by_way_of_a_third
                blocks_of_three_devices_rotate
                overlapping_ranges_move_step_by_step
                a_chain_goes_up_and_down_through_the_same_blocks
                rounds_of_a_chain_each_have_their_own_bytes
                two_chains_cross_again_and_again
                a_chain_goes_on_behind_what_is_over
                order_passes_through_copies_that_only_read
                copies_that_waited_for_much_of_one_kind_wait_for_little_of_another
                reads_follow_their_writes
                writes_follow_the_reads_of_what_was_there
                the_last_of_many_writes_stays
                every_version_is_read_between_two_writes
                a_writer_waits_for_all_readers
                a_writer_waits_for_readers_on_other_devices
                one_write_reaches_many
                many_writes_are_read_as_one
                memory_that_is_dropped_under_a_copy_is_not_reused_too_early
                memory_is_used_again_right_after_its_last_use
                a_block_is_written_after_it_was_copied_away_by_each_way
                a_block_is_read_only_after_each_way_of_writing_it
                a_write_within_waits_for_reads_to_the_host
                memory_freed_under_its_last_use_is_written_by_others
                rounds_of_allocation_fit_into_little_memory
                both_ways_of_a_diamond_arrive
                diamonds_follow_each_other
                a_diamond_over_three_devices_arrives
                a_diamond_through_host_memory_arrives
                the_side_of_a_diamond_that_is_read_is_written_after_its_join
                arrays_each_copied_from_the_last
                arrays_deleted_under_their_copies
                a_donee_writes_after_the_reads_of_the_old_array
                memory_is_donated_from_step_to_step
                a_donated_array_is_read_and_deleted
                arrays_come_to_host_memory_in_columns
                donated_memory_is_written_from_another_device
                steps_that_delete_what_they_have_read_and_donate_the_rest
                a_donated_array_fails_after_a_failed_event_and_its_memory_is_well
                host_memory_is_written_and_sent_on
                pinned_memory_carries_bytes_between_devices
                unpinned_memory_carries_bytes_between_devices
                host_memory_of_both_kinds_is_crossed_in_turn
                pinned_memory_is_written_after_it_was_sent
                pinned_memory_is_passed_on_within_the_host
                every_pair_of_devices_passes_bytes_there_and_back
                every_pair_of_spaces_is_crossed_by_events
                a_peer_writes_after_the_readers_of_what_was_there
                a_peers_bytes_come_after_what_was_written_there_before
                what_a_peer_wrote_is_read_on_the_device_at_once
                devices_exchange_their_blocks_and_wait_for_both
                a_large_copy_goes_beside_small_ones
                every_piece_of_a_large_copy_is_there_for_small_ones
                a_large_array_is_written_after_its_large_read
                parts_are_written_after_the_large_read_of_all
                many_large_copies_share_what_they_go_through
                a_large_copy_visits_every_device
                a_large_array_is_deleted_under_its_read
                bytes_go_from_client_to_client_through_the_host
                clients_do_not_mix_their_chains
                a_client_waits_for_anothers_events
                events_of_others_stand_between_two_copies
                a_failed_link_keeps_the_rest_from_happening
                a_promise_in_the_middle_holds_the_rest_of_a_chain_back
                a_new_promise_is_not_taken_for_an_old_copy
                each_link_waits_for_a_promise_and_for_the_last_link
                a_promise_that_fails_in_the_middle_leaves_what_was_before
                a_failure_goes_down_every_way_of_a_diamond
                a_program_goes_on_in_the_memory_of_one_that_failed
                a_kernel_computes_between_copies
                steps_on_one_stream_follow_each_other
                steps_on_streams_in_turn_follow_each_other
                a_kernel_waits_for_each_way_in
                what_a_kernel_has_read_is_written_after_it
                what_is_read_of_a_kernels_result_is_read_before_the_next
                both_ways_of_a_diamond_are_kernels
                devices_pass_what_their_kernels_have_computed
                memory_that_is_dropped_under_a_kernel_is_not_reused_too_early
                a_kernel_behind_a_failure_computes_nothing
                a_list_that_is_launched_again_comes_between_copies
            }
            from_host {
                every_semantics_brings_the_bytes
                aliased_memory_is_the_hosts_until_the_last_use
                what_cannot_be_aliased_is_copied
                who_is_told_is_told_before_the_array_is_ready
                every_failure_is_told_once
                a_transfer_after_shutdown_is_told_too
                a_panic_of_who_is_told_harms_nobody
                a_token_from_the_host_is_told_of
                any_strides_and_layouts_come_back_row_major
                narrow_elements_are_packed_and_come_back
                large_strided_arrays_do_not_block_the_call
                reads_go_to_any_strides
                raw_reads_are_ranges_of_what_is_there
                a_dynamic_array_says_its_dimensions
                frozen_memory_that_is_written_is_found_out
                memory_lent_for_writing_is_shared
            }
        }
    };
}

/// Makes one `#[test]` per case for a backend, named `suite::case`:
///
/// ```text
/// purlin_conformance::suite!(|| Arc::new(NullBackend::new()), unsupported = [
///     ("copy::bytes_come_back", "the null backend holds no bytes"),
/// ]);
/// ```
///
/// Where a device has memory that is not the host's, `device_memory = lend` in front of `unsupported` allocates such
/// memory for cases that import it: a [`Lend`]. Where its kernels are no functions of the host, `momentum = code` after
/// that is the code of the kernel that cases launch: a [`Momentum`].
///
/// Once per test file, at its root.
#[macro_export]
macro_rules! suite {
    (@given $default:path) => {
        $default
    };
    (@given $default:path, $given:path) => {
        $given
    };
    (
        $make:expr
        $(, device_memory = $lend:path)?
        $(, momentum = $momentum:path)?
        $(, unsupported = [$(($case:literal, $reason:literal)),* $(,)?])?
        $(,)?
    ) => {
        fn conformance_backend() -> ::std::sync::Arc<dyn $crate::Backend> {
            $make()
        }

        const CONFORMANCE_GIVEN: $crate::Given = $crate::Given {
            lend: $crate::suite!(@given $crate::lend_host_memory $(, $lend)?),
            momentum: $crate::suite!(@given $crate::momentum_of_host $(, $momentum)?),
        };

        const CONFORMANCE_GAPS: &[(&str, &str)] = &[$($(($case, $reason)),*)?];

        #[test]
        fn every_listed_gap_is_a_case() {
            for (name, _) in CONFORMANCE_GAPS {
                assert!($crate::is_case(name), "there is no case {name}");
            }
        }

        $crate::for_each_case!(suite_tests ());
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! suite_tests {
    (() $($suite:ident { $($case:ident)* })*) => {
        $(mod $suite {
            $(#[test]
            fn $case() {
                let name = concat!(stringify!($suite), "::", stringify!($case));
                $crate::run(name, super::conformance_backend, super::CONFORMANCE_GIVEN, super::CONFORMANCE_GAPS);
            })*
        })*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! case_table {
    (() $($suite:ident { $($case:ident)* })*) => {
        /// All cases by name.
        const CASES: &[(&str, fn(&Fixture))] =
            &[$($((concat!(stringify!($suite), "::", stringify!($case)), $suite::$case),)*)*];
    };
}

for_each_case!(case_table());

/// True if a case of that name exists.
#[must_use]
pub fn is_case(name: &str) -> bool {
    CASES.iter().any(|(known, _)| *known == name)
}

/// Runs the case `name` on the backend that `make` makes, with what is `given` for it.
///
/// # Panics
/// If the case fails and is not in `gaps` (case, reason), or passes and is.
pub fn run(name: &str, make: fn() -> Arc<dyn Backend>, given: Given, gaps: &[(&str, &str)]) {
    let (_, case) = CASES.iter().find(|(known, _)| *known == name).expect("for_each_case! lists every case");
    judge(name, gaps, || {
        let before = ledger::Ledger::of_one_test();
        let fixture = Fixture::new(make, given);
        case(&fixture);
        fixture.finish();
        if let Some(left) = before.and_then(|before| before.settles().err()) {
            panic!("the case left something behind:\n{left}");
        }
    });
}

/// The cases of a suite, by name.
pub fn cases_of(suite: &str) -> impl Iterator<Item = &'static str> {
    CASES.iter().filter(move |(name, _)| name.split("::").next() == Some(suite)).map(|(name, _)| *name)
}

/// Whether the case `name` passes on the backend that `make` makes, with what is `given` for it: for proofs that cases
/// notice what is planted.
///
/// # Panics
/// There is no such case.
#[must_use]
pub fn passes(name: &str, make: fn() -> Arc<dyn Backend>, given: Given) -> bool {
    let (_, case) = CASES.iter().find(|(known, _)| *known == name).expect("for_each_case! lists every case");
    kept(|| case(&Fixture::new(make, given))).is_ok()
}

/// Runs `case`, and panics unless what it does is what `gaps` says.
fn judge(name: &str, gaps: &[(&str, &str)], case: impl FnOnce()) {
    let outcome = kept(case);
    let gap = gaps.iter().find(|(listed, _)| *listed == name);
    match (outcome, gap) {
        (Ok(()), None) => {}
        (Err(panic), None) => panic.resume(),
        (Err(_), Some((_, reason))) => println!("{name} is not supported: {reason}"),
        (Ok(()), Some((_, reason))) => {
            panic!("{name} passes, but is listed as unsupported ({reason}): remove it from the list")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use super::*;

    fn fails() {
        resume_unwind(Box::new("the case failed"));
    }

    fn panics(gaps: &[(&str, &str)], case: fn()) -> bool {
        kept(|| judge("a", gaps, case)).is_err()
    }

    #[test]
    fn a_case_is_judged_by_the_list_of_gaps() {
        assert!(!panics(&[], || {}));
        assert!(panics(&[], fails));
        assert!(!panics(&[("a", "because")], fails));
        assert!(panics(&[("a", "because")], || {}));
        assert!(panics(&[("b", "because")], fails));
    }

    #[test]
    fn cases_have_names_of_their_own() {
        assert!(is_case("memory::slices_nest"));
        assert!(!is_case("slices_nest"));
        for (index, (name, _)) in CASES.iter().enumerate() {
            assert!(CASES[..index].iter().all(|(other, _)| other != name), "{name} is listed twice");
        }
    }
}
