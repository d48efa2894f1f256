//! Steps 1 to 3 of a run: checks, holds and memory, before anything is launched.

use std::borrow::Borrow;
use std::ffi::CStr;

use smallvec::SmallVec;

use super::acquire::{AllHeld, Held, Role, Wanted, acquire_in_order};
use super::check::check;
use super::options::ExecuteOptions;
use crate::loaded::{LoadedExecutable, Target};
use purlin_async::event::Event;
use purlin_base::{Error, Label, StatusOr};
use purlin_device::{AllocOptions, Buffer, RawBuffer};

/// The holds and the memory of a run on one device, before anything is launched. Dropping this releases all holds.
pub(super) struct Prepared<'a> {
    pub(super) target: &'a Target,
    /// The holds on the arguments, in their order, then those on the memory that is given for results.
    pub(super) held: AllHeld<'a>,
    /// Indexed by result.
    pub(super) results: SmallVec<[ResultMemory; 32]>,
    pub(super) temporaries: Option<RawBuffer>,
    /// Whether an argument failed before it had memory, so that the run fails, too.
    pub(super) has_failed: bool,
}

/// The memory of a result.
pub(super) struct ResultMemory {
    pub(super) place: ResultPlace,
    /// Ready when no earlier use of the memory is pending.
    pub(super) free: Event,
}

/// Which memory a result has.
pub(super) enum ResultPlace {
    /// None: the run has failed already, and there is no other memory than fresh one.
    Nowhere,
    /// Memory of its own.
    Fresh(RawBuffer),
    /// That of a donation hold, by its number among all rights.
    Held(usize),
}

impl ResultMemory {
    /// The memory, before the rights end.
    #[inline]
    pub(super) fn memory<'a>(&'a self, held: &'a [Held<'_>]) -> Option<&'a RawBuffer> {
        match &self.place {
            ResultPlace::Nowhere => None,
            ResultPlace::Fresh(memory) => Some(memory),
            ResultPlace::Held(at) => held[*at].memory(),
        }
    }
}

impl<'a> Prepared<'a> {
    /// No holds, and no memory.
    pub(super) fn nothing(target: &'a Target) -> Self {
        let (held, results) = (AllHeld::new(), SmallVec::new());
        Self { target, held, results, temporaries: None, has_failed: false }
    }
}

/// Prepares a run on all devices. `prepared` has an empty element for each of them, in their order. They are filled in
/// place, because they are large.
///
/// # Errors
/// As [`LoadedExecutable::execute`]. The caller then drops `prepared`, which releases the holds.
pub(super) fn prepare<'a, B: Borrow<Buffer>>(
    loaded: &LoadedExecutable,
    shards: &[&'a [B]],
    options: &'a ExecuteOptions<'_>,
    prepared: &mut [Prepared<'a>],
) -> Result<(), Error> {
    check_counts(loaded, shards, options)?;
    let mut is_taken = true;
    for (device, (arguments, one)) in shards.iter().zip(&mut *prepared).enumerate() {
        let target = one.target;
        one.held.reserve(arguments.len() + options.results.len());
        let mut take = |wanted: Wanted<'a>| -> Result<(), Error> {
            match wanted.take(options.donee(), false)? {
                Some(held) => one.held.push(held),
                None => is_taken = false,
            }
            Ok(())
        };
        for (number, buffer) in arguments.iter().enumerate() {
            take(argument(loaded, target, (device, number), buffer.borrow(), options)?)?;
        }
        if !options.results.is_empty() {
            for (number, buffer) in given(options, device, target.result_spaces.len()) {
                take(given_result(loaded, target, (device, number), buffer)?)?;
            }
        }
    }
    if !is_taken {
        prepare_in_order(loaded, shards, options, prepared)?;
    }
    for (device, one) in prepared.iter_mut().enumerate() {
        memory(loaded, device, one, options)?;
    }
    Ok(())
}

/// Step 2 once more, in the order of the buffers' identities, after a conflict.
#[cold]
fn prepare_in_order<'a, B: Borrow<Buffer>>(
    loaded: &LoadedExecutable,
    shards: &[&'a [B]],
    options: &'a ExecuteOptions<'_>,
    prepared: &mut [Prepared<'a>],
) -> Result<(), Error> {
    prepared.iter_mut().for_each(|one| one.held.clear());
    let mut all = Vec::new();
    for (device, (arguments, target)) in shards.iter().zip(&loaded.shared.targets).enumerate() {
        for (number, buffer) in arguments.iter().enumerate() {
            all.push(argument(loaded, target, (device, number), buffer.borrow(), options)?);
        }
        for (number, buffer) in given(options, device, target.result_spaces.len()) {
            all.push(given_result(loaded, target, (device, number), buffer)?);
        }
    }
    for (wanted, held) in all.iter().zip(acquire_in_order(&all, options.donee())?) {
        prepared[wanted.role.device()].held.push(held);
    }
    Ok(())
}

/// Step 1 for the argument of that device and number.
#[inline]
fn argument<'a>(
    loaded: &LoadedExecutable,
    target: &Target,
    (device, number): (usize, usize),
    buffer: &'a Buffer,
    options: &ExecuteOptions<'_>,
) -> StatusOr<Wanted<'a>> {
    let (program, role) = (loaded.program(), Role::Argument(device, number));
    check(role, buffer, &program.signature().parameters[number], &target.parameter_spaces[number])?;
    let may_donate = program.places().parameters[number].result.is_some();
    let donates = may_donate && !options.non_donatable_input_indices.contains(&number);
    Ok(Wanted { buffer, role, donates })
}

/// Step 1 for memory that the caller gives for a result.
fn given_result<'a>(
    loaded: &LoadedExecutable,
    target: &Target,
    (device, number): (usize, usize),
    buffer: &'a Buffer,
) -> StatusOr<Wanted<'a>> {
    let role = Role::Result(device, number);
    check(role, buffer, &loaded.program().signature().results[number], &target.result_spaces[number])?;
    Ok(Wanted { buffer, role, donates: true })
}

/// The memory that the caller gives for results of that device, with the number of each result.
fn given<'a>(
    options: &'a ExecuteOptions<'_>,
    device: usize,
    result_count: usize,
) -> impl Iterator<Item = (usize, &'a Buffer)> {
    let of_device = options.results.iter().skip(device * result_count).take(result_count);
    of_device.enumerate().filter_map(|(number, buffer)| Some((number, buffer.as_ref()?)))
}

fn check_counts<B>(loaded: &LoadedExecutable, shards: &[&[B]], options: &ExecuteOptions<'_>) -> Result<(), Error> {
    let devices = loaded.shared.targets.len();
    let signature = loaded.program().signature();
    let (parameters, results) = (signature.parameters.len(), signature.results.len());
    if shards.len() != devices {
        return Err(Error::invalid_argument(format!(
            "arguments for {} devices are given, and it is loaded for {devices}",
            shards.len()
        )));
    }
    if let Some((device, shard)) = shards.iter().enumerate().find(|(_, shard)| shard.len() != parameters) {
        let of_device = if device == 0 { String::new() } else { format!(" for device {device}") };
        return Err(Error::invalid_argument(format!(
            "{} arguments are given{of_device}, and the program takes {parameters}",
            shard.len()
        )));
    }
    if !options.results.is_empty() && options.results.len() != devices * results {
        return Err(Error::invalid_argument(format!(
            "memory for {} results is given, and there are {results} on each of {devices} devices",
            options.results.len()
        )));
    }
    if options.untuple == Some(false) && results != 1 {
        return Err(Error::unimplemented(format!(
            "the {results} results shall be one tuple, and the memory of its devices has no tuples: they are separate \
             buffers, and `untuple` must not be false"
        )));
    }
    match options.non_donatable_input_indices.iter().find(|&&index| index >= parameters) {
        Some(index) => {
            Err(Error::invalid_argument(format!("argument {index} shall not be donated, and there are {parameters}")))
        }
        None => Ok(()),
    }
}

/// Step 3, for one device.
fn memory(
    loaded: &LoadedExecutable,
    device: usize,
    prepared: &mut Prepared<'_>,
    options: &ExecuteOptions<'_>,
) -> Result<(), Error> {
    let Prepared { target, held, results, temporaries, has_failed } = prepared;
    let (places, specs) = (loaded.program().places(), &loaded.program().signature().results);
    let (arguments, of_results) = held.split_at(places.parameters.len());
    *has_failed = arguments.iter().any(|held| matches!(held, Held::Failed(..)));
    let label_of = |kind: &'static CStr| if options.label == Label::default() { kind.into() } else { options.label };
    // The numbers of the results that get new memory.
    let mut fresh: SmallVec<[usize; 32]> = SmallVec::new();
    let first_given = device * specs.len();
    let is_given = |number: usize| options.results.get(first_given + number).is_some_and(Option::is_some);
    // Rights to given memory stand in the order of the results.
    let mut given = (arguments.len()..).zip(of_results);
    results.reserve(specs.len());
    for number in 0..specs.len() {
        let donated = places.results[number].map(|parameter| (parameter as usize, &arguments[parameter as usize]));
        let given = if is_given(number) { given.next() } else { None };
        let result = match (donated, given) {
            (Some((_, Held::Donation(_))), Some(_)) => {
                return Err(Error::invalid_argument(format!(
                    "memory for result {number} is given, and it has that of a donated argument"
                )));
            }
            (Some((at, Held::Donation(hold))), _) | (_, Some((at, Held::Donation(hold)))) => {
                ResultMemory { place: ResultPlace::Held(at), free: hold.free() }
            }
            _ => {
                if !*has_failed {
                    fresh.push(number);
                }
                ResultMemory { place: ResultPlace::Nowhere, free: Event::ready() }
            }
        };
        results.push(result);
    }
    let (spaces, label) = (&target.result_spaces, label_of(c"result"));
    if let [number] = fresh[..] {
        let of_result = AllocOptions { label, ..AllocOptions::default() };
        let memory = RawBuffer::allocate_with(&spaces[number], specs[number].size_bytes(), &of_result)?;
        results[number].place = ResultPlace::Fresh(memory);
        fresh.clear();
    }
    for numbers in fresh.chunk_by(|&one, &next| spaces[one] == spaces[next]) {
        let sizes_bytes: SmallVec<[usize; 32]> = numbers.iter().map(|&number| specs[number].size_bytes()).collect();
        let mut places = numbers.iter();
        RawBuffer::allocate_all(&spaces[numbers[0]], &sizes_bytes, label, |memory| {
            if let Some(&number) = places.next() {
                results[number].place = ResultPlace::Fresh(memory);
            }
        })?;
    }
    if target.temporary_bytes > 0 && !*has_failed {
        let of_run = AllocOptions { label: label_of(c"temporaries"), ..AllocOptions::default() };
        *temporaries = Some(RawBuffer::allocate_with(&target.temporary_space, target.temporary_bytes, &of_run)?);
    }
    Ok(())
}
