//! `taut nic`: what a NIC has to be set to so that critical traffic comes first; does it and takes it back.
//!
//! The plan and the way to the kernel are `taut-nic`'s; here are the file, the records and the words.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::json;
use taut_nic::{Able, Facts, Host, Identity, Machine, Namespace, NicConfig, Outcome, Plan, Record, Taken};
use taut_perf::words::counted;

use crate::args::Network;
use crate::failure::{End, Failure};
use crate::file;
use crate::output;
use crate::store::{self, Store};

/// The exit code for a NIC that is not as planned, though it could be.
const NOT_AS_PLANNED: u8 = 2;

/// What is to be done.
#[derive(Args)]
pub struct NicArguments {
    #[command(subcommand)]
    action: NicAction,
}

#[derive(Subcommand)]
enum NicAction {
    /// Print each step: what is, what would be, what it gains, whether it can be done; changes nothing
    Plan {
        #[command(flatten)]
        what: What,
        /// Plan for a NIC whose facts are in this file, as `taut nic facts` prints them
        #[arg(long, value_name = "FILE")]
        facts: Option<std::path::PathBuf>,
    },
    /// Do the steps that can be done, and record what was before
    Apply(What),
    /// Take back what apply did, in reverse order
    Undo {
        #[command(flatten)]
        what: What,
        /// Before that, forget what is recorded of this interface in a network namespace, if either is gone, as undo names it
        #[arg(long, value_name = "NAMESPACE")]
        forget: Option<String>,
    },
    /// Compare what is with the plan; ends with 2 if there is something to do
    Status(What),
    /// Print what the plan goes by: what this NIC and kernel are like
    Facts {
        /// The network interface
        #[arg(value_name = "INTERFACE")]
        name: String,
    },
}

/// What it is about.
#[derive(Args)]
struct What {
    /// The file that says what is wanted, or a network interface for the usual
    #[arg(value_name = "FILE|INTERFACE")]
    name: String,
    /// Print each step as a JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(network: &Network, options: &NicArguments) -> Result<End, Failure> {
    match &options.action {
        NicAction::Plan { what, facts } => {
            let facts = facts.as_deref().map(recorded).transpose()?;
            print_plan(&what.plan(network, facts)?, what.json)?;
            Ok(End::Done)
        }
        NicAction::Status(what) => {
            let plan = what.plan(network, None)?;
            print_plan(&plan, what.json)?;
            Ok(if plan.changes() == 0 { End::Done } else { End::Code(NOT_AS_PLANNED) })
        }
        NicAction::Apply(what) => apply(&what.config(network, None)?, what.json),
        NicAction::Undo { what, forget } => undo(what, forget.as_deref(), network),
        NicAction::Facts { name } => {
            let facts = host(name)?.facts().map_err(Failure::System)?;
            output::json(&facts)?;
            Ok(End::Done)
        }
    }
}

impl What {
    fn is_file(&self) -> bool {
        self.name.contains('/') || self.name.ends_with(".toml")
    }

    /// What the file says, or the usual for an interface; domains that it does not name are those of the command.
    fn config(&self, network: &Network, facts: Option<&Facts>) -> Result<NicConfig, Failure> {
        let domain_id = || network.config().map(|config| config.domain_id);
        if !self.is_file() {
            if facts.is_none() && Path::new(&self.name).is_file() {
                let hint = |text| format!("{text}; for the file of that name write ./{}", self.name);
                Host::open(&self.name).map_err(|text| Failure::Wrong(hint(text)))?;
            }
            let cpus = facts.map_or_else(Host::cpus, |facts| facts.cpus.clone());
            return Ok(NicConfig::of_interface(&self.name, domain_id()?, &cpus));
        }
        let text = file::text(Path::new(&self.name)).map_err(Failure::Wrong)?;
        let mut config = NicConfig::parse(&text, &self.name).map_err(Failure::Wrong)?;
        if config.domains.is_empty() && config.ports.is_empty() {
            config.domains.push(domain_id()?);
        }
        Ok(config)
    }

    /// The plan for the NIC with these facts, else for the one of this machine.
    fn plan(&self, network: &Network, facts: Option<Facts>) -> Result<Plan, Failure> {
        let config = self.config(network, facts.as_ref())?;
        let facts = match facts {
            Some(facts) if facts.interface != config.interface => {
                return Err(Failure::Wrong(format!(
                    "the facts are of {}, and the plan is for {}: name the same interface",
                    facts.interface, config.interface
                )));
            }
            Some(facts) => facts,
            None => host(&config.interface)?.facts().map_err(Failure::System)?,
        };
        taut_nic::plan(&config, &facts).map_err(Failure::Wrong)
    }
}

fn host(interface: &str) -> Result<Host, Failure> {
    Host::open(interface).map_err(Failure::Wrong)
}

fn recorded(path: &Path) -> Result<Facts, Failure> {
    let shown = path.display();
    let text = file::text(path).map_err(Failure::Wrong)?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::Wrong(format!("{shown} holds no facts: {error}; `taut nic facts INTERFACE` prints them"))
    })
}

fn print_plan(plan: &Plan, json: bool) -> Result<(), Failure> {
    if json {
        for step in &plan.steps {
            output::json(&json!({"kind": "step", "step": step}))?;
        }
        return Ok(());
    }
    // Facts may be another's words.
    let page: Vec<String> = plan.page().lines().map(output::escaped).collect();
    output::line(&page.join("\n"))?;
    let cannot = plan.steps.iter().filter(|step| matches!(step.able, Able::Cannot(_))).count();
    output::line(&format!("{} to do, {cannot} that cannot be done here", plan.changes()))?;
    Ok(())
}

fn apply(config: &NicConfig, json: bool) -> Result<End, Failure> {
    let mut machine = host(&config.interface)?;
    let (store, mut records) = Store::open(store::directory("taut nic apply")?, "nic")?;
    let mut save = |records: &[Record]| store.save(records);
    let identity = identity(&machine)?;
    let outcomes =
        taut_nic::apply(&mut machine, config, &identity, &mut records, &mut save).map_err(Failure::Wrong)?;
    for (step, outcome) in &outcomes {
        if json {
            output::json(&json!({"kind": "step", "step": step, "outcome": outcome}))?;
        } else {
            output::line(step.done(outcome).trim_end())?;
        }
    }
    let failed = outcomes.iter().find(|(_, outcome)| matches!(outcome, Outcome::Failed(_)));
    let done = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Done).count();
    let Some((step, _)) = failed else {
        if !json {
            let has_records = records.iter().any(|record| record.is_here(&identity));
            output::line(&ending(done, has_records, &config.interface))?;
        }
        return Ok(End::Done);
    };
    let undo = if done == 0 {
        "nothing was changed".to_owned()
    } else {
        format!("{done} before it are done; `taut nic undo {}` takes them back", config.interface)
    };
    Err(Failure::System(format!("{} failed, the steps behind it were not tried, {undo}", step.item)))
}

/// The last line of `apply`; `has_records`: there is something to take back.
fn ending(done: usize, has_records: bool, interface: &str) -> String {
    let nothing = "nothing was changed: all that can be done is done";
    match (done, has_records) {
        (0, false) => nothing.into(),
        (0, true) => format!("{nothing}; `taut nic undo {interface}` takes back what was done before"),
        _ => format!("{done} done; `taut nic undo {interface}` takes it back"),
    }
}

/// The interface as the records know it.
fn identity(machine: &Host) -> Result<Identity, Failure> {
    let (interface, index) = (machine.interface().to_owned(), machine.index());
    Ok(Identity { interface, index, namespace: store::namespace()? })
}

/// The interface that was called so when it was set up, and is called otherwise now.
fn renamed(interface: &str, namespace: &Namespace, records: &[Record]) -> Option<Host> {
    let mut last = records.iter().rev();
    let found =
        last.find(|record| record.interface == interface && record.namespace.name == namespace.name)?;
    Host::at(found.index?)
}

/// `forget` is the namespace that was named, of which nothing may be recorded of this interface.
fn print_forgotten(
    records: &[Record],
    forget: Option<&str>,
    interface: &str,
    json: bool,
) -> Result<(), Failure> {
    if json {
        for Record { item, written, before, namespace, .. } in records {
            let (from, to, namespace) = (written.shown(), before.shown(), &namespace.name);
            let forgotten = json!({"item": item, "from": from, "to": to, "namespace": namespace});
            output::json(&json!({"kind": "forgotten", "forgotten": forgotten}))?;
        }
    } else if !records.is_empty() {
        output::line(&format!("forgotten: {}", counted(records.len(), "step")))?;
    } else if let Some(namespace) = forget {
        output::line(&format!("nothing is recorded of {interface} in {namespace}"))?;
    }
    Ok(())
}

/// The interface is not here, and may come back.
fn left_absent(record: &Record) -> Taken {
    let Record { interface, namespace, item, .. } = record;
    let why = format!(
        "its interface is not here: undo it when it is back, or, if that is gone, forget it by `taut nic undo {interface} \
         --forget '{}'`",
        namespace.name
    );
    let (from, to) = (record.written.shown(), record.before.shown());
    Taken { item: item.clone(), from, to, left: Some(why), refused: false }
}

fn undo(what: &What, forget: Option<&str>, network: &Network) -> Result<End, Failure> {
    let interface = if what.is_file() { what.config(network, None)?.interface } else { what.name.clone() };
    let (store, mut records) = Store::open_existing(store::directory("taut nic undo")?, "nic")?;
    let namespace = store::namespace()?;
    let mut save = |records: &[Record]| store.save(records);
    // One that is not here may be elsewhere for a while, and comes back as it was set.
    let is_absent = |record: &Record| {
        let has_no_interface = || record.index.is_some_and(|index| Host::at(index).is_none());
        record.interface == interface && record.namespace.is(&namespace) && has_no_interface()
    };
    let of_here = |name: &str| name == namespace.name;
    let is_checked = |name: &&str| !of_here(name) || !records.iter().any(is_absent);
    forget.filter(is_checked).map_or(Ok(()), |name| store::may_forget(name, &namespace))?;
    // What was set is gone with its namespace.
    let is_forgotten = |record: &Record| {
        let name = &record.namespace.name;
        let is_told = forget == Some(name) && record.interface == interface;
        record.namespace.is_gone_by(&namespace) || is_told && (!of_here(name) || is_absent(record))
    };
    let forgotten: Vec<Record> = records.extract_if(.., |record| is_forgotten(record)).collect();
    save(&records).map_err(Failure::System)?;
    print_forgotten(&forgotten, forget, &interface, what.json)?;
    let absent: Vec<Taken> = records.iter().rev().filter(|one| is_absent(one)).map(left_absent).collect();
    let mut all = match (Host::open(&interface), renamed(&interface, &namespace, &records)) {
        (Ok(mut machine), _) | (Err(_), Some(mut machine)) => {
            let identity = identity(&machine)?;
            taut_nic::undo(&mut machine, &identity, &mut records, &mut save).map_err(Failure::System)?
        }
        (Err(why), None) => match taut_nic::left_elsewhere(&interface, &namespace, &records) {
            left if !left.is_empty() || !absent.is_empty() => left,
            _ if forgotten.is_empty() => return Err(Failure::Wrong(why)),
            _ => return Ok(End::Done),
        },
    };
    all.extend(absent);
    undone(&all, what)
}

/// Tells what became of the records.
fn undone(all: &[Taken], what: &What) -> Result<End, Failure> {
    for taken in all {
        if what.json {
            output::json(&json!({"kind": "undo", "undo": taken}))?;
        } else {
            output::line(&taken.line())?;
        }
    }
    if all.is_empty() && !store::is_root() && store::has_of_root("nic") {
        return Err(Failure::Wrong(format!(
            "nothing that you have changed; what root has, root takes back: `sudo taut nic undo {}`",
            what.name
        )));
    }
    if all.is_empty() && !what.json {
        output::line("nothing to undo")?;
    }
    match all.iter().filter(|taken| taken.refused).count() {
        0 => Ok(End::Done),
        refused => Err(Failure::System(format!(
            "{refused} of {} could not be taken back",
            counted(all.len(), "step")
        ))),
    }
}
