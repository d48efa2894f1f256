use super::*;

fn from(pairs: &[(&str, &str)]) -> Result<Options, String> {
    Options::from_variables(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
}

#[test]
fn what_is_written_is_what_is_read() {
    let options = Options {
        devices: 4,
        memory_bytes: 192 << 20,
        capability: (12, 1),
        driver_version: 12_020,
        without_pools: true,
        without_graphs: true,
        fabric: Fabric { state: 3, status: 999, clique: 7 },
        delays: Some((7, 300)),
        faults: vec![
            Fault { entry: "cuInit".to_owned(), number: 1, code: 9999, effect: Effect::Once },
            Fault { entry: "cuEventRecord".to_owned(), number: 3, code: 700, effect: Effect::Sticky },
            Fault { entry: "cuLaunchKernel".to_owned(), number: 0, code: 719, effect: Effect::Async },
        ],
        traps: vec![("softmax".to_owned(), 700)],
        endless: vec!["spin".to_owned()],
        detector: false,
        on_report: OnReport::Abort,
        ignored_waits: Ignored::Labels(vec!["h2d".to_owned(), "d2h".to_owned()]),
        empty: true,
        ..Options::default()
    };
    for options in [options, Options::default()] {
        let variables = options.variables();
        let read = Options::from_variables(|name| Some(variables.iter().find(|(key, _)| *key == name)?.1.clone()));
        assert_eq!(read, Ok(options));
    }
    assert_eq!(from(&[]), Ok(Options::default()));
}

#[test]
fn a_value_that_is_not_understood_is_named() {
    for (name, value) in [
        (DEVICES, "many"),
        (DEVICES, "129"),
        (MEMORY, "4X"),
        (MEMORY, ""),
        (MEMORY, "99999999999T"),
        (CAPABILITY, "9"),
        (DRIVER_VERSION, "13.0"),
        (WITHOUT, "pools,nothing"),
        (FABRIC, "3:0"),
        (FABRIC, "3:0:7:1"),
        (FABRIC, "256:0:7"),
        (DELAYS, "7"),
        (FAULTS, "cuInit"),
        (FAULTS, "cuInit:1:2:now"),
        (FAULTS, "cuInit:1:2:sticky:more"),
        (TRAPS, "k:x"),
        (DETECTOR, "yes"),
        (ON_REPORT, "cry"),
        (MODE, "half"),
    ] {
        assert_eq!(from(&[(name, value)]), Err(format!("{name} is '{value}', which is not understood")));
    }
}

#[test]
fn sizes_have_units() {
    let memory = |text| from(&[(MEMORY, text)]).map(|options| options.memory_bytes);
    assert_eq!(memory("192M"), Ok(192 << 20));
    assert_eq!(memory("1T"), Ok(1 << 40));
    assert_eq!(memory("17"), Ok(17));
}

#[test]
fn a_trap_is_a_failed_launch_unless_its_code_is_said() {
    let traps = from(&[(TRAPS, "one, two:700")]).map(|options| options.traps);
    assert_eq!(traps, Ok(vec![("one".to_owned(), 719), ("two".to_owned(), 700)]));
}

#[test]
fn devices_differ_by_their_names() {
    let (first, last) = (Identity { ordinal: 0 }, Identity { ordinal: 63 });
    assert_eq!((first.pci_bus_id(), last.pci_bus_id()), ("0000:01:00.0".to_owned(), "0000:40:00.0".to_owned()));
    assert_ne!(first.uuid(), last.uuid());
}
