//! The shortest subscriber: waits for one sample and prints it.

use taut::{DdsType, DomainParticipant, Duration, Qos, Result};

#[derive(DdsType)]
#[dds(final)]
struct Hello {
    text: String,
}

fn main() -> Result<()> {
    let topic = DomainParticipant::new(0)?.topic::<Hello>("Hello")?;
    let reader = topic.reader(Qos::default().reliable())?;
    reader.wait(Duration::from_secs(30))?;
    println!("{}", reader.take_next()?.unwrap().data.unwrap().text);
    Ok(())
}
