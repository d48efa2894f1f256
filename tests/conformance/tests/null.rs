//! The null backend under conformance: all of its gaps have one root.

use std::sync::Arc;

use purlin::NullBackend;

/// Lists the gaps that come from having no bytes.
macro_rules! suite_without_bytes {
    ($($case:literal)*) => {
        purlin_conformance::suite!(
            || Arc::new(NullBackend::new()),
            unsupported = [$(($case, "the null backend holds no bytes")),*]
        );
    };
}

suite_without_bytes! {
    "memory::addresses_are_aligned_to_64_bytes"
    "memory::addresses_of_live_allocations_do_not_overlap"
    "channel::a_fulfilled_channel_is_the_other_buffer"
    "channel::an_allocated_channel_has_memory_of_its_own"
    "foreign::imported_memory_is_used_in_place"
    "copy::bytes_come_back"
    "copy::parts_go_where_they_should"
    "copy::sizes_around_a_page_and_the_inline_limit_come_back"
    "copy::slices_are_copied_by_their_own_offsets"
    "copy::every_pair_of_spaces_copies"
    "copy::a_copy_to_a_larger_buffer_leaves_the_rest"
    "copy::overlapping_ranges_move_forward"
    "copy::overlapping_ranges_move_backward"
    "copy::a_buffer_copied_to_itself_stays"
    "copy::many_threads_copy_at_once"
    "copy_order::a_copy_finds_what_is_there_when_it_begins"
    "copy_order::copies_chain_by_their_events"
    "copy_order::a_waiter_sees_the_bytes"
    "copy_range::parts_are_copied_to_parts"
    "copy_range::parts_of_one_buffer_may_overlap"
    "copy_range::a_part_waits_for_its_dependencies"
    "copy_range::slices_come_together_or_not_at_all"
    "failure::a_copy_behind_a_failed_dependency_copies_nothing"
    "lifetime::what_a_copy_in_flight_keeps_is_intact"
    "buffer::an_array_comes_back"
    "buffer::a_scalar_is_one_element"
    "buffer::the_source_is_free_after_the_call"
    "buffer::the_source_is_read_until_the_event"
    "buffer::a_blocked_runner_does_not_block_the_call"
    "buffer::copies_to_every_space_come_back"
    "buffer::a_copy_is_another_array"
    "buffer::a_pending_array_can_be_copied_on"
    "buffer::the_raw_alias_is_the_same_memory"
    "buffer_delete::a_pending_read_survives_delete"
    "buffer_delete::a_raw_alias_survives_delete"
    "buffer_delete::readers_race_with_delete"
    "donation::a_bitcast_may_change_the_layout"
    "donation::a_copy_goes_into_given_memory"
    "donation::a_donated_array_is_another_one_after_the_event"
    "donation::an_array_may_be_provided_later"
    "donation::bitcasts_share_the_bytes"
    "staging::a_buffer_is_not_donated_while_it_is_read"
    "staging::a_byte_has_one_piece"
    "staging::a_copier_that_goes_tells_everybody"
    "staging::a_failed_dependency_ends_its_read_alone"
    "staging::a_poisoned_sink_writes_no_more"
    "staging::a_pool_of_nothing_is_refused"
    "staging::a_read_of_nothing_takes_its_turn"
    "staging::a_sink_that_goes_fails"
    "staging::bytes_pass_through_both_from_many_threads"
    "staging::leases_are_lent_and_come_back"
    "staging::no_more_is_under_way_than_there_are_leases"
    "staging::pieces_come_in_order_and_whole"
    "staging::pieces_make_a_whole_in_any_order"
    "staging::reads_are_told_in_the_order_in_which_they_were_asked_for"
    "staging::who_is_told_may_panic"
    "staging::who_is_told_may_read_again"
    "from_host::a_dynamic_array_says_its_dimensions"
    "from_host::aliased_memory_is_the_hosts_until_the_last_use"
    "from_host::any_strides_and_layouts_come_back_row_major"
    "from_host::every_semantics_brings_the_bytes"
    "from_host::large_strided_arrays_do_not_block_the_call"
    "from_host::narrow_elements_are_packed_and_come_back"
    "from_host::raw_reads_are_ranges_of_what_is_there"
    "from_host::reads_go_to_any_strides"
    "shards::every_shard_comes_to_its_device"
    "transfer::a_buffer_is_retrieved_once_and_used_at_once"
    "transfer::illegal_steps_are_errors_and_change_nothing"
    "transfer::pieces_come_from_many_threads"
    "transfer::pieces_come_in_any_order"
    "transfer::whole_arrays_are_packed_and_ordered"
    "from_host::who_is_told_is_told_before_the_array_is_ready"
}
