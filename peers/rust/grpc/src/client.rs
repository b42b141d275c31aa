//! The sides that call: ping and sub.

use std::time::{Duration, Instant};

use bytes::Bytes;
use taut_perf_kit::{Options, Stop};
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

use crate::codec::Raw;
use crate::server::{EXCHANGE, MATCH_WITHIN, STREAM, authority};

/// Between two attempts to reach a server that is not there yet.
const RETRY: Duration = Duration::from_millis(20);

/// Calls pong: where to put samples, and where their answers come from.
pub async fn exchange(options: &Options) -> Result<(Sender<Vec<u8>>, Streaming<Bytes>), Stop> {
    let mut server = connect(options, &options.remote).await?;
    // Closed loop needs one place; the rest is for an open loop whose answers are late.
    let (out, samples) = channel(crate::server::queue(options));
    let path = PathAndQuery::from_static(EXCHANGE);
    let call = server.streaming(Request::new(ReceiverStream::new(samples)), path, Raw);
    Ok((out, call.await?.into_inner()))
}

/// Calls pub and takes what it streams, until it ends. What does not come is what the counts tell.
pub async fn subscribe(options: Options, take: impl Fn(Bytes)) {
    let called = async {
        let mut server = connect(&options, &options.remote).await?;
        let path = PathAndQuery::from_static(STREAM);
        // What is asked for is empty: there is only one topic.
        let asked = Request::new(tokio_stream::once(Vec::new()));
        let mut samples = server.streaming(asked, path, Raw).await?.into_inner();
        while let Some(sample) = samples.message().await? {
            take(sample);
        }
        Ok::<(), Stop>(())
    };
    if let Err(stop) = called.await {
        eprintln!("the stream ended: {stop:?}");
    }
}

async fn connect(options: &Options, host: &str) -> Result<Grpc<Channel>, Stop> {
    let endpoint = Endpoint::from_shared(format!("http://{}", authority(options, host)))?;
    let end = Instant::now() + MATCH_WITHIN;
    loop {
        match endpoint.connect().await {
            Ok(channel) => {
                let mut client = Grpc::new(channel).max_decoding_message_size(usize::MAX);
                client.ready().await.map_err(|error| Status::from_error(error.into()))?;
                return Ok(client);
            }
            Err(error) if Instant::now() >= end => return Err(error.into()),
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}
