//! Steps 1 to 3 of a run: what is checked, held and allocated before anything is launched.

use std::ffi::CStr;

use smallvec::SmallVec;

use super::acquire::{AllHeld, Held, Role, Taker, Wanted, acquire};
use super::check::check;
use super::options::ExecuteOptions;
use crate::loaded::{LoadedExecutable, Target};
use purlin_async::event::Event;
use purlin_base::{Error, StatusOr};
use purlin_device::{AllocOptions, Buffer, MemorySpace, RawBuffer};

/// What one device needs for a run, before anything is launched. Its drop gives all rights back.
pub(super) struct Prepared<'a> {
    pub(super) target: &'a Target,
    /// Of the arguments, in their order; then of memory for results.
    pub(super) held: AllHeld,
    /// By result.
    pub(super) results: SmallVec<[ResultMemory; 8]>,
    pub(super) temporaries: Option<RawBuffer>,
    /// An argument has failed before it had memory, and with it the run.
    pub(super) has_failed: bool,
}

/// Where a result is to be.
pub(super) struct ResultMemory {
    /// `None`: the run has failed already, and the result has no other memory than fresh one.
    pub(super) memory: Option<RawBuffer>,
    /// Until when others may use it.
    pub(super) free: Event,
}

/// For all devices.
///
/// # Errors
/// Those of [`LoadedExecutable::execute`]; nothing is held then.
pub(super) fn prepare<'a>(
    loaded: &'a LoadedExecutable,
    shards: &[&[&Buffer]],
    options: &ExecuteOptions<'_>,
    taker: Taker,
) -> StatusOr<SmallVec<[Prepared<'a>; 1]>> {
    let wanted = wanted(loaded, shards, options)?;
    let mut held = acquire(&wanted, taker)?.into_iter();
    let mut prepared = SmallVec::new();
    for (device, target) in loaded.shared.targets.iter().enumerate() {
        let roles = || wanted.iter().map(|wanted| wanted.role).filter(move |role| role.device() == device);
        let mine: AllHeld = held.by_ref().take(roles().count()).collect();
        let given = roles().filter_map(|role| if let Role::Result(_, number) = role { Some(number) } else { None });
        prepared.push(memory(loaded, target, mine, &given.collect::<SmallVec<[usize; 4]>>(), taker)?);
    }
    Ok(prepared)
}

/// Step 1: the buffers of all devices, device by device, arguments first.
fn wanted<'a>(
    loaded: &LoadedExecutable,
    shards: &[&[&'a Buffer]],
    options: &ExecuteOptions<'a>,
) -> StatusOr<SmallVec<[Wanted<'a>; 8]>> {
    let (program, targets) = (loaded.program(), &loaded.shared.targets);
    let (parameters, results) = (&program.signature().parameters, &program.signature().results);
    check_counts(loaded, shards, options)?;
    let mut wanted = SmallVec::new();
    for (device, (arguments, target)) in shards.iter().zip(targets).enumerate() {
        for (number, &buffer) in arguments.iter().enumerate() {
            let role = Role::Argument(device, number);
            check(role, buffer, &parameters[number], &target.parameter_spaces[number])?;
            let may_donate = program.places().parameters[number].result.is_some();
            let donates = may_donate && !options.non_donatable_input_indices.contains(&number);
            wanted.push(Wanted { buffer, role, donates });
        }
        let given = options.results.iter().skip(device * results.len()).take(results.len()).enumerate();
        for (number, buffer) in given.filter_map(|(number, buffer)| Some((number, buffer.as_ref()?))) {
            let role = Role::Result(device, number);
            check(role, buffer, &results[number], &target.result_spaces[number])?;
            wanted.push(Wanted { buffer, role, donates: true });
        }
    }
    Ok(wanted)
}

fn check_counts(loaded: &LoadedExecutable, shards: &[&[&Buffer]], options: &ExecuteOptions<'_>) -> Result<(), Error> {
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
    match options.non_donatable_input_indices.iter().find(|&&index| index >= parameters) {
        Some(index) => {
            Err(Error::invalid_argument(format!("argument {index} shall not be donated, and there are {parameters}")))
        }
        None => Ok(()),
    }
}

/// Step 3, for one device. `given`: the results for which memory is held, behind the arguments.
fn memory<'a>(
    loaded: &LoadedExecutable,
    target: &'a Target,
    held: AllHeld,
    given: &[usize],
    taker: Taker,
) -> StatusOr<Prepared<'a>> {
    let places = loaded.program().places();
    let has_failed = held.iter().any(|held| matches!(held, Held::Failed(..)));
    let allocate = |space: &MemorySpace, size_bytes, label: &'static CStr| {
        let options = AllocOptions { label: label.into(), ..AllocOptions::default() };
        RawBuffer::allocate_at(space, size_bytes, &options, taker.place)
    };
    let mut results = SmallVec::new();
    for (number, spec) in loaded.program().signature().results.iter().enumerate() {
        let donated = places.results[number].map(|parameter| &held[parameter as usize]);
        let given = given.iter().position(|&given| given == number).map(|at| &held[places.parameters.len() + at]);
        let result = match (donated, given) {
            (Some(Held::Donation(_)), Some(_)) => {
                return Err(Error::invalid_argument(format!(
                    "memory for result {number} is given, and it has that of a donated argument"
                )));
            }
            (Some(Held::Donation(hold)), _) | (_, Some(Held::Donation(hold))) => {
                ResultMemory { memory: Some(hold.memory().clone()), free: hold.free() }
            }
            _ if has_failed => ResultMemory { memory: None, free: Event::ready() },
            _ => {
                let memory = allocate(&target.result_spaces[number], spec.size_bytes(), c"result")?;
                ResultMemory { memory: Some(memory), free: Event::ready() }
            }
        };
        results.push(result);
    }
    let temporaries = match places.temporary_bytes {
        size_bytes if size_bytes > 0 && !has_failed => {
            Some(allocate(&target.temporary_space, size_bytes, c"temporaries")?)
        }
        _ => None,
    };
    Ok(Prepared { target, held, results, temporaries, has_failed })
}
