//! Dust DDS in the interoperability matrix: one writer or one reader.
//!
//! Command line and output are those of every peer; `interop/README.md` is the contract.

mod ends;
mod types;

use std::process::ExitCode;
use std::time::Duration;

use dust_dds::domain::domain_participant_factory::DomainParticipantFactory;
use dust_dds::infrastructure::error::DdsError;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, PublisherQos, QosKind, SubscriberQos};
use dust_dds::infrastructure::qos_policy::{
    DurabilityQosPolicy, DurabilityQosPolicyKind, HistoryQosPolicy, HistoryQosPolicyKind, PartitionQosPolicy,
    ReliabilityQosPolicy, ReliabilityQosPolicyKind, WriterDataLifecycleQosPolicy,
};
use dust_dds::infrastructure::status::NO_STATUS;
use dust_dds::infrastructure::time::DurationKind;
use taut_interop_kit::{
    Kept, MAX_BLOCKING, Options, Refusal, Result, Role, SampleType, look_again, publish, subscribe,
};

use ends::{Reader, Writer};
use types::{Data, Keyed, Metric, Plain, Shape};

/// Nothing tells when the participant's last message, which says that it leaves, has been sent. Too short: the
/// other side waits for its lease.
const LAST_WORD: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    taut_interop_kit::run("peer-dust_dds", |options| match options.r#type {
        SampleType::Plain => run::<Plain>(options),
        SampleType::Keyed => run::<Keyed>(options),
        SampleType::Shape => run::<Shape>(options),
        SampleType::Metric => run::<Metric>(options),
    })
}

/// What Dust DDS refused, as a sentence.
fn refused(what: &str) -> impl FnOnce(DdsError) -> Refusal {
    move |error| format!("{what}: {error:?}").into()
}

fn run<T: Data>(options: &Options) -> Result<u8> {
    let factory = DomainParticipantFactory::get_instance();
    factory.get_mut_transport().set_interface_name(Some(options.interface.clone()));
    let domain = i32::try_from(options.domain).map_err(|error| format!("--domain: {error}"))?;
    let participant = factory
        .create_participant(domain, QosKind::Default, NO_LISTENER, NO_STATUS)
        .map_err(refused("create_participant"))?;
    let topic = participant
        .create_topic::<T>(&options.topic, T::TYPE.get_name(), QosKind::Default, NO_LISTENER, NO_STATUS)
        .map_err(refused("create_topic"))?;
    let partition = PartitionQosPolicy { name: options.partition.clone().into_iter().collect() };
    let code = match options.role {
        Role::Pub => {
            let qos = PublisherQos { partition, ..Default::default() };
            let publisher = participant
                .create_publisher(QosKind::Specific(qos), NO_LISTENER, NO_STATUS)
                .map_err(refused("create_publisher"))?;
            let writer = publisher
                .create_datawriter::<T>(
                    &topic,
                    QosKind::Specific(writer_qos(options)),
                    NO_LISTENER,
                    NO_STATUS,
                )
                .map_err(refused("create_datawriter"))?;
            publish(options, &mut [Writer(writer)], &look_again)
        }
        Role::Sub => {
            let qos = SubscriberQos { partition, ..Default::default() };
            let subscriber = participant
                .create_subscriber(QosKind::Specific(qos), NO_LISTENER, NO_STATUS)
                .map_err(refused("create_subscriber"))?;
            let reader = subscriber
                .create_datareader::<T>(
                    &topic,
                    QosKind::Specific(reader_qos(options)),
                    NO_LISTENER,
                    NO_STATUS,
                )
                .map_err(refused("create_datareader"))?;
            subscribe(options, &mut Reader::new(reader), &look_again)
        }
    };
    participant.delete_contained_entities().map_err(refused("delete_contained_entities"))?;
    factory.delete_participant(&participant).map_err(refused("delete_participant"))?;
    std::thread::sleep(LAST_WORD);
    code
}

fn reliability(options: &Options) -> ReliabilityQosPolicy {
    let kind = match options.is_reliable() {
        true => ReliabilityQosPolicyKind::Reliable,
        false => ReliabilityQosPolicyKind::BestEffort,
    };
    ReliabilityQosPolicy { kind, max_blocking_time: DurationKind::Finite(MAX_BLOCKING.into()) }
}

fn history(options: &Options) -> HistoryQosPolicy {
    let kind = match options.history {
        Kept::All => HistoryQosPolicyKind::KeepAll,
        Kept::Last(depth) => HistoryQosPolicyKind::KeepLast(depth),
    };
    HistoryQosPolicy { kind }
}

fn durability(options: &Options) -> DurabilityQosPolicy {
    let kind = match options.is_transient_local() {
        true => DurabilityQosPolicyKind::TransientLocal,
        false => DurabilityQosPolicyKind::Volatile,
    };
    DurabilityQosPolicy { kind }
}

fn writer_qos(options: &Options) -> DataWriterQos {
    DataWriterQos {
        reliability: reliability(options),
        history: history(options),
        durability: durability(options),
        // `--final unregister` does not dispose.
        writer_data_lifecycle: WriterDataLifecycleQosPolicy { autodispose_unregistered_instances: false },
        ..Default::default()
    }
}

fn reader_qos(options: &Options) -> DataReaderQos {
    DataReaderQos {
        reliability: reliability(options),
        history: history(options),
        durability: durability(options),
        ..Default::default()
    }
}
