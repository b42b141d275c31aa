//! The sides that are called: pong and pub.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use taut_perf_kit::packed::{Layout, Seen};
use taut_perf_kit::{Line, Options, Payload, Stop};
use tokio::net::TcpListener;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream as Samples, StreamExt};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::codec::Raw;
use crate::sample;

/// The call of ping.
pub const EXCHANGE: &str = "/perf.Perf/Exchange";
/// The call of a subscriber.
pub const STREAM: &str = "/perf.Perf/Stream";

/// The other process has as long to come as the driver would wait for it.
pub const MATCH_WITHIN: Duration = Duration::from_secs(30);

/// The contract's limit for what is not yet acknowledged.
const FLUSH_WITHIN: Duration = Duration::from_secs(5);

/// More subscribers than any workload has.
const SUBSCRIBERS: usize = 1_024;

/// What waits for a stream, as many samples as DDS adapters keep, and not more memory than this: too low
/// and a writer waits for its own runtime, too high and large samples fill the machine.
const QUEUED: usize = 1_024;
const QUEUED_BYTES: usize = 16 << 20;

/// How many samples wait for a stream.
pub fn queue(options: &Options) -> usize {
    (QUEUED_BYTES / options.size.max(1)).clamp(1, QUEUED)
}

/// Where the server of a domain is.
pub fn authority(options: &Options, host: &str) -> String {
    format!("{host}:{}", 20_000 + 50 * options.domain)
}

type Outgoing = Pin<Box<dyn Samples<Item = Result<Vec<u8>, Status>> + Send>>;
type Called = Arc<dyn Fn(Streaming<Bytes>) -> Outgoing + Send + Sync>;

/// The service: one function for whatever is called.
#[derive(Clone)]
struct Perf(Called);

impl NamedService for Perf {
    const NAME: &'static str = "perf.Perf";
}

impl Service<http::Request<Body>> for Perf {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = self.clone();
        Box::pin(async move {
            let mut grpc = Grpc::new(Raw).max_decoding_message_size(usize::MAX);
            Ok(grpc.streaming(method, request).await)
        })
    }
}

impl StreamingService<Bytes> for Perf {
    type Response = Vec<u8>;
    type ResponseStream = Outgoing;
    type Future = std::future::Ready<Result<Response<Outgoing>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        std::future::ready(Ok(Response::new((self.0)(request.into_inner()))))
    }
}

/// Serves until `ended`, or for ever if nobody ends it.
async fn serve(
    options: &Options,
    called: Called,
    ended: impl Future<Output = ()> + Send + 'static,
) -> Result<JoinHandle<()>, Stop> {
    let listener = TcpListener::bind(authority(options, &options.address)).await?;
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let server = Server::builder().add_service(Perf(called));
    Ok(tokio::spawn(async move {
        // A server that fails is calls that end: their counts tell.
        let _ = server.serve_with_incoming_shutdown(incoming, ended).await;
    }))
}

/// Answers each sample of each call.
pub async fn answer(
    options: &Options,
    answer: impl Fn(Bytes) -> Option<Vec<u8>> + Clone + Send + Sync + 'static,
) -> Result<(), Stop> {
    let called: Called = Arc::new(move |samples| {
        let answer = answer.clone();
        // A sample that is cut off has no answer; ping counts it as lost.
        Box::pin(samples.filter_map(move |sample| sample.map(&answer).transpose()))
    });
    serve(options, called, std::future::pending()).await.map(drop)
}

/// The streams to all subscribers.
pub struct Stream<L> {
    subscribers: Vec<Sender<Vec<u8>>>,
    server: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    size: usize,
    reliable: bool,
    layout: PhantomData<L>,
}

impl<L: Layout> Stream<L> {
    /// Serves until all subscribers have called.
    pub async fn open(options: &Options) -> Result<Stream<L>, Stop> {
        let (newcomer, mut newcomers): (Sender<Sender<Vec<u8>>>, Receiver<_>) = channel(SUBSCRIBERS);
        let room = queue(options);
        let called: Called = Arc::new(move |_| {
            let (out, samples) = channel(room);
            // One too many has a stream that ends at once.
            let _ = newcomer.try_send(out);
            Box::pin(ReceiverStream::new(samples).map(Ok))
        });
        let (end, ended) = oneshot::channel();
        let ended = async move { drop(ended.await) };
        let served = serve(options, called, ended).await?;
        let mut subscribers = Vec::new();
        let all = async {
            while subscribers.len() < options.remotes
                && let Some(subscriber) = newcomers.recv().await
            {
                subscribers.push(subscriber);
            }
        };
        if tokio::time::timeout(MATCH_WITHIN, all).await.is_err() {
            return Err(Stop::Failed(format!("not all subscribers called within {MATCH_WITHIN:?}")));
        }
        let server = Some((end, served));
        Ok(Stream {
            subscribers,
            server,
            size: options.size,
            reliable: options.reliable(),
            layout: PhantomData,
        })
    }

    /// Ends all streams and waits until what they held is out.
    pub async fn close(&mut self) -> Result<(), Stop> {
        self.subscribers.clear();
        if let Some((end, served)) = self.server.take() {
            // Who has ended already needs no word. Beyond the limit the rest is lost, which is counted.
            let _ = end.send(());
            let _ = tokio::time::timeout(FLUSH_WITHIN, served).await;
        }
        Ok(())
    }
}

impl<L: Layout> Line for Stream<L> {
    type Out = Seen;
    type In = Seen;

    fn send(&mut self, written: &Seen) -> Result<(), Stop> {
        let mut refused = false;
        for subscriber in &self.subscribers {
            let sample = sample::<L>(self.size, written.stamp());
            refused |= if self.reliable {
                subscriber.blocking_send(sample).is_err()
            } else {
                // A full queue drops: that is best effort. A closed one is a failure.
                matches!(subscriber.try_send(sample), Err(TrySendError::Closed(_)))
            };
        }
        if refused { Err(Stop::Failed("a subscriber is gone".into())) } else { Ok(()) }
    }

    fn receive(&mut self, _: Duration) -> Result<Option<Seen>, Stop> {
        Ok(None)
    }

    fn wait(&self, _: &Options) -> &'static str {
        "listener"
    }
}
