//! The shortest publisher: one sample to whoever comes first.

use taut::{DdsType, DomainParticipant, Duration, Qos, Result};

#[derive(DdsType)]
#[dds(final)]
struct Hello {
    text: String,
}

fn main() -> Result<()> {
    let topic = DomainParticipant::new(0)?.topic::<Hello>("Hello")?;
    let writer = topic.writer(Qos::default().reliable())?;
    writer.wait_matched(Duration::from_secs(30))?;
    writer.write(&Hello { text: "hello, world".into() })
}
