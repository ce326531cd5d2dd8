//! NATS core (no acks, no queue) where a row names it: the floods without confirms, fan-out, 20,000 a second, and request-reply,
//! by a client of the same kind as the one that loads the AMQP brokers: blocking sockets, batched writes.

use crate::peers::Peer;
use reactor::cli::bench::{Options, Workload, figure_text};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BODY_BYTES: usize = 250;
const BATCH: usize = 100;

/// A server of our own on a free port, killed at the end.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start() -> Option<Server> {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", &address.port().to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server { child: command.spawn().ok()?, address };
        let begun = Instant::now();
        while Client::connect(address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "nats-server does not answer");
            thread::sleep(Duration::from_millis(5));
        }
        Some(server)
    }
}

struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    at: usize,
    filled: usize,
}

impl Client {
    fn connect(to: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut client = Client { stream, input: vec![0; 256 * 1024], at: 0, filled: 0 };
        client.stream.write_all(b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\nPING\r\n")?;
        while client.line()?.is_none_or(|line| line != "PONG") {}
        Ok(client)
    }

    fn fill(&mut self) -> io::Result<()> {
        self.input.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        let count = self.stream.read(&mut self.input[self.filled..])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.filled += count;
        Ok(())
    }

    /// Waits for a line; `None` if a read ended before one was whole.
    fn line(&mut self) -> io::Result<Option<String>> {
        if let Some(end) = self.input[self.at..self.filled].windows(2).position(|two| two == b"\r\n") {
            let line = String::from_utf8_lossy(&self.input[self.at..self.at + end]).into_owned();
            self.at += end + 2;
            return Ok(Some(line));
        }
        self.fill()?;
        Ok(None)
    }

    /// Body and reply subject of every whole message that has come.
    fn messages(&mut self, mut each: impl FnMut(&[u8], Option<&str>)) {
        loop {
            let have = &self.input[self.at..self.filled];
            let Some(end) = have.windows(2).take(300).position(|two| two == b"\r\n") else { return };
            let head = std::str::from_utf8(&have[..end]).expect("a line of text");
            if !head.starts_with("MSG ") {
                self.at += end + 2;
                continue;
            }
            let words: Vec<&str> = head.split(' ').collect();
            let size: usize = words[words.len() - 1].parse().expect("a size");
            if have.len() < end + 2 + size + 2 {
                return;
            }
            each(&have[end + 2..end + 2 + size], (words.len() == 5).then(|| words[3]));
            self.at += end + 2 + size + 2;
        }
    }
}

/// Deliveries a second with `subscribers`, and the slow percentiles when `rate` paces it.
fn flood(to: SocketAddr, subscribers: u64, seconds: f64, rate: Option<u64>) -> (f64, Vec<Duration>) {
    let received = AtomicU64::new(0);
    let sent = AtomicU64::new(u64::MAX);
    let epoch = Instant::now();
    let subscribed: Vec<Client> = (0..subscribers)
        .map(|_| {
            let mut client = Client::connect(to).expect("a subscriber");
            client.stream.write_all(b"SUB bench 1\r\nPING\r\n").expect("a subscription");
            while client.line().expect("an answer").is_none_or(|line| line != "PONG") {}
            client.stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
            client
        })
        .collect();
    let (last, mut times) = thread::scope(|scope| {
        let reading: Vec<_> = subscribed
            .into_iter()
            .map(|mut client| {
                let (received, sent) = (&received, &sent);
                scope.spawn(move || {
                    let (mut last, mut times) = (epoch, Vec::new());
                    while received.load(Ordering::Acquire) < sent.load(Ordering::Acquire).saturating_mul(subscribers) {
                        if client.fill().is_ok() {
                            last = Instant::now();
                            let mut count = 0;
                            client.messages(|body, _| {
                                count += 1;
                                if rate.is_some() {
                                    let at = u64::from_be_bytes(body[..8].try_into().expect("eight bytes"));
                                    times.push(last.duration_since(epoch).saturating_sub(Duration::from_nanos(at)));
                                }
                            });
                            received.fetch_add(count, Ordering::AcqRel);
                        }
                    }
                    (last, times)
                })
            })
            .collect();
        sent.store(publish(to, epoch, seconds, rate), Ordering::Release);
        let done: Vec<_> = reading.into_iter().map(|handle| handle.join().expect("a subscriber ends")).collect();
        let last = done.iter().map(|(last, _)| *last).max().unwrap_or(epoch);
        (last, done.into_iter().flat_map(|(_, times)| times).collect::<Vec<_>>())
    });
    times.sort_unstable();
    (received.load(Ordering::Acquire) as f64 / last.duration_since(epoch).as_secs_f64(), times)
}

fn publish(to: SocketAddr, epoch: Instant, seconds: f64, rate: Option<u64>) -> u64 {
    let mut client = Client::connect(to).expect("a publisher");
    let head = format!("PUB bench {BODY_BYTES}\r\n");
    let (begun, mut sent, mut batch) = (Instant::now(), 0, Vec::new());
    while begun.elapsed().as_secs_f64() < seconds {
        let due = rate.map_or(BATCH as u64, |rate| (begun.elapsed().as_secs_f64() * rate as f64) as u64 - sent);
        if due == 0 {
            thread::sleep(Duration::from_micros(50));
            continue;
        }
        batch.clear();
        let at = u64::try_from(epoch.elapsed().as_nanos()).expect("a short run");
        for _ in 0..due {
            batch.extend_from_slice(head.as_bytes());
            batch.extend_from_slice(&at.to_be_bytes());
            batch.resize(batch.len() + BODY_BYTES - 8, b'x');
            batch.extend_from_slice(b"\r\n");
        }
        client.stream.write_all(&batch).expect("the server reads");
        sent += due;
    }
    sent
}

/// Round trips a second with so many under way.
fn requests(to: SocketAddr, concurrency: u64, seconds: f64) -> f64 {
    let over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        let mut server = Client::connect(to).expect("a server");
        server.stream.write_all(b"SUB call 1\r\nPING\r\n").expect("a subscription");
        while server.line().expect("an answer").is_none_or(|line| line != "PONG") {}
        server.stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        scope.spawn(|| {
            let mut server = server;
            while !over.load(Ordering::Acquire) {
                let mut out = Vec::new();
                if server.fill().is_ok() {
                    server.messages(|body, reply| {
                        let _ = write!(out, "PUB {} {}\r\n", reply.expect("a request"), body.len());
                        out.extend_from_slice(body);
                        out.extend_from_slice(b"\r\n");
                    });
                    server.stream.write_all(&out).expect("the server reads");
                }
            }
        });
        let mut client = Client::connect(to).expect("a client");
        client.stream.write_all(b"SUB inbox 1\r\n").expect("a subscription");
        let request =
            [format!("PUB call inbox {BODY_BYTES}\r\n").into_bytes(), vec![b'x'; BODY_BYTES], b"\r\n".to_vec()].concat();
        let (begun, mut sent, mut answered) = (Instant::now(), 0, 0);
        while begun.elapsed().as_secs_f64() < seconds || answered < sent {
            let more = if begun.elapsed().as_secs_f64() < seconds { concurrency - (sent - answered) } else { 0 };
            client.stream.write_all(&request.repeat(more as usize)).expect("the server reads");
            sent += more;
            if answered < sent {
                client.fill().expect("an answer");
                client.messages(|_, _| answered += 1);
            }
        }
        over.store(true, Ordering::Release);
        answered as f64 / begun.elapsed().as_secs_f64()
    })
}

/// Prints reactor beside NATS core; nothing when that is not installed.
pub fn compare(binary: &Path) {
    let Some(nats) = Server::start() else { return };
    let reactor = Peer::reactor(binary, &[]);
    let options =
        |seconds| Options { duration: Duration::from_secs_f64(seconds), body_bytes: BODY_BYTES, consumers: 1, count: None };
    let ours = |id: &str| {
        let workload = Workload::find(id).expect("a workload");
        let _ = workload.run(&reactor.target, options(0.3));
        let row = workload.run(&reactor.target, options(2.0)).unwrap_or_else(|error| panic!("{id}: {error:#}"));
        let summary = reactor::cli::bench::Summary::of(workload, &[row]).expect("a run");
        summary.figures.iter().take(2).map(figure_text).collect::<Vec<_>>().join(", ")
    };
    let (at, rate) = (nats.address, |value: f64| format!("rate {:.0} k/s", value / 1e3));
    println!("\nBeside NATS core, which neither keeps nor acks\n\n| workload | reactor | NATS |\n|---|---|---|");
    println!("| W3 | {} | {} |", ours("W3"), rate(flood(at, 1, 2.0, None).0));
    println!("| W6 | {} | {} |", ours("W6"), rate(flood(at, 4, 2.0, None).0));
    let (_, times) = flood(at, 1, 2.0, Some(20_000));
    let share = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_micros();
    println!("| W8 | {} | p50 {} µs, p99 {} µs |", ours("W8"), share(0.5), share(0.99));
    println!("| W12 | {} | {} |", ours("W12"), rate(requests(at, 1, 2.0)));
    println!("| W12-100 | {} | {} |", ours("W12-100"), rate(requests(at, 100, 2.0)));
}
