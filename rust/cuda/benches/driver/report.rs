//! What was measured, for people and for programs.

use std::fs::File;
use std::io::{self, Write};

use crate::row::{Cell, Measured};

/// See the module.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Measured>,
    /// Has a line for each column, with the row's numbers again.
    tsv: Option<File>,
}

impl Report {
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn new(tsv: Option<&str>) -> io::Result<Self> {
        let mut tsv = tsv.map(File::create).transpose()?;
        if let Some(file) = &mut tsv {
            writeln!(file, "operation\tcolumn\tmin_ns\tmedian_ns\trounds\tbytes\tratio\tgoal\tmet")?;
        }
        Ok(Self { rows: Vec::new(), tsv })
    }

    /// Says it at once, because a limit may end the program before the last.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn add(&mut self, row: Measured) -> io::Result<()> {
        let columns: Vec<String> = row.cells.iter().map(|cell| format!("{} {}", cell.name, times(cell))).collect();
        println!("             {}", columns.join("; "));
        if let Some(file) = &mut self.tsv {
            file.write_all(tsv(&row).as_bytes())?;
        }
        self.rows.push(row);
        Ok(())
    }

    pub(crate) fn print(&self) {
        let head = ["operation", "purlin", "beside", "ratio", "goal", "met", "GB/s", "others"].map(str::to_owned);
        let lines: Vec<[String; 8]> = [head].into_iter().chain(self.rows.iter().map(line)).collect();
        let widths: Vec<usize> = (0..8).map(|at| lines.iter().map(|line| line[at].len()).max().unwrap_or(0)).collect();
        println!();
        for line in &lines {
            let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
            println!("{}", cells.join("  ").trim_end());
        }
        let missed = self.rows.iter().filter(|row| row.is_met() == Some(false)).count();
        println!("min (median); the ratio is that of the minima, and in brackets that of the medians");
        println!("{} rows, {missed} MISSED", self.rows.len());
    }
}

fn tsv(row: &Measured) -> String {
    let bytes = row.bytes.map_or(String::new(), |bytes| bytes.to_string());
    let ratio = row.ratios().map_or(String::new(), |(ratio, _)| format!("{ratio:.4}"));
    let goal = row.goal.map_or(String::new(), |goal| goal.to_string());
    let (name, rounds, met) = (&row.name, row.rounds, met(row));
    let line = |Cell { name: column, min_ns, median_ns }: &Cell| {
        format!("{name}\t{column}\t{min_ns:.1}\t{median_ns:.1}\t{rounds}\t{bytes}\t{ratio}\t{goal}\t{met}\n")
    };
    row.cells.iter().map(line).collect()
}

fn line(row: &Measured) -> [String; 8] {
    let ratio = row.ratios().map_or("-".into(), |(min, median)| format!("{min:.3} ({median:.3})"));
    let peer = row.peer();
    let others = row.cells[1..].iter().filter(|cell| peer.is_none_or(|peer| peer.name != cell.name));
    let rate =
        |bytes: usize| row.cells.iter().map(|cell| format!("{:.1}", bytes as f64 / cell.min_ns)).collect::<Vec<_>>();
    let named = |cell: &Cell| format!("{} {}", cell.name, times(cell));
    [
        row.name.clone(),
        times(row.ours()),
        peer.map_or("-".into(), named),
        ratio,
        row.goal.map_or("-".into(), |goal| goal.to_string()),
        met(row).into(),
        row.bytes.map_or("-".into(), |bytes| rate(bytes).join(" ")),
        others.map(named).collect::<Vec<_>>().join("; "),
    ]
}

fn met(row: &Measured) -> &'static str {
    match row.is_met() {
        Some(true) => "ok",
        Some(false) => "MISSED",
        None => "-",
    }
}

fn times(cell: &Cell) -> String {
    format!("{} ({})", time(cell.min_ns), time(cell.median_ns))
}

fn time(ns: f64) -> String {
    match ns {
        ..1e3 => format!("{ns:.1} ns"),
        ..1e6 => format!("{:.2} us", ns / 1e3),
        _ => format!("{:.3} ms", ns / 1e6),
    }
}
