//! The smallest AMQP 0-9-1 client that can saturate a broker: blocking sockets, prebuilt frames, one thread a connection.
//! It knows only what the workloads need and speaks to any broker.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub struct Client {
    pub stream: TcpStream,
    input: Vec<u8>,
    at: usize,
    filled: usize,
}

pub struct Frame<'a> {
    pub kind: u8,
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// Class and method id of a method frame.
    pub fn method(&self) -> Option<(u16, u16)> {
        (self.kind == 1).then(|| (be16(self.payload), be16(&self.payload[2..])))
    }
}

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

pub fn be64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"))
}

/// Builds method payloads.
#[derive(Default)]
pub struct Args(Vec<u8>);

impl Args {
    pub fn method(class: u16, method: u16) -> Self {
        let mut bytes = class.to_be_bytes().to_vec();
        bytes.extend(method.to_be_bytes());
        Args(bytes)
    }
    pub fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }
    pub fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }
    pub fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }
    pub fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }
    pub fn short(mut self, text: &str) -> Self {
        self.0.push(u8::try_from(text.len()).expect("a short string"));
        self.0.extend(text.as_bytes());
        self
    }
    pub fn long(mut self, bytes: &[u8]) -> Self {
        self.0.extend((bytes.len() as u32).to_be_bytes());
        self.0.extend(bytes);
        self
    }
    pub fn table(self) -> Self {
        self.long(&[])
    }
    pub fn frame(self, channel: u16) -> Vec<u8> {
        frame(1, channel, &self.0)
    }
}

pub fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(channel.to_be_bytes());
    bytes.extend((payload.len() as u32).to_be_bytes());
    bytes.extend(payload);
    bytes.push(0xce);
    bytes
}

/// One publish as the three frames that go over the wire; the body starts with 8 bytes for a sequence number.
pub fn publish_frames(channel: u16, exchange: &str, key: &str, body_bytes: usize) -> (Vec<u8>, usize) {
    let mut bytes = Args::method(60, 40).u16(0).short(exchange).short(key).u8(0).frame(channel);
    let mut header = 60u16.to_be_bytes().to_vec();
    header.extend(0u16.to_be_bytes());
    header.extend((body_bytes as u64).to_be_bytes());
    header.extend(0x1000u16.to_be_bytes());
    header.push(1);
    bytes.extend(frame(2, channel, &header));
    let sequence_at = bytes.len() + 7;
    bytes.extend(frame(3, channel, &vec![b'x'; body_bytes]));
    (bytes, sequence_at)
}

impl Client {
    pub fn connect(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut client = Client { stream, input: vec![0; 256 * 1024], at: 0, filled: 0 };
        client.stream.write_all(b"AMQP\x00\x00\x09\x01")?;
        client.expect(10, 10)?;
        let start_ok = Args::method(10, 11).table().short("PLAIN").long(b"\0guest\0guest").short("en_US");
        client.stream.write_all(&start_ok.frame(0))?;
        let tune = client.expect(10, 30)?;
        let tune_ok = Args::method(10, 31).u16(be16(&tune[4..])).u32(131_072).u16(0);
        client.stream.write_all(&tune_ok.frame(0))?;
        client.request(0, Args::method(10, 40).short("/").short("").u8(0), (10, 41))?;
        client.request(1, Args::method(20, 10).short(""), (20, 11))?;
        Ok(client)
    }

    /// Sends a method and waits for its answer.
    pub fn request(&mut self, channel: u16, args: Args, answer: (u16, u16)) -> io::Result<Vec<u8>> {
        self.stream.write_all(&args.frame(channel))?;
        self.expect(answer.0, answer.1)
    }

    pub fn expect(&mut self, class: u16, method: u16) -> io::Result<Vec<u8>> {
        loop {
            if let Some(frame) = self.next()? {
                match frame.method() {
                    Some(got) if got == (class, method) => return Ok(frame.payload.to_vec()),
                    Some((10 | 20, 50 | 40)) => {
                        let text = String::from_utf8_lossy(&frame.payload[7..]).into_owned();
                        return Err(io::Error::other(format!("the broker closed: {text}")));
                    }
                    _ => {}
                }
            } else {
                self.fill()?;
            }
        }
    }

    /// The next whole frame already read, if there is one.
    pub fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        let have = &self.input[self.at..self.filled];
        if have.len() < 8 {
            return Ok(None);
        }
        let size = u32::from_be_bytes(have[3..7].try_into().expect("four bytes")) as usize;
        if have.len() < size + 8 {
            return Ok(None);
        }
        let (kind, start) = (have[0], self.at + 7);
        self.at = start + size + 1;
        Ok(Some(Frame { kind, payload: &self.input[start..start + size] }))
    }

    /// Reads once; an error when the peer is gone.
    pub fn fill(&mut self) -> io::Result<usize> {
        self.input.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        let count = self.stream.read(&mut self.input[self.filled..])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.filled += count;
        Ok(count)
    }

    pub fn declare(&mut self, queue: &str) -> io::Result<()> {
        self.request(1, Args::method(50, 10).u16(0).short(queue).u8(0).table(), (50, 11))?;
        Ok(())
    }

    pub fn bind(&mut self, queue: &str, exchange: &str, key: &str) -> io::Result<()> {
        self.request(1, Args::method(50, 20).u16(0).short(queue).short(exchange).short(key).u8(0).table(), (50, 21))?;
        Ok(())
    }

    pub fn consume(&mut self, queue: &str, prefetch: u16, no_ack: bool) -> io::Result<()> {
        self.request(1, Args::method(60, 10).u32(0).u16(prefetch).u8(0), (60, 11))?;
        let flags = if no_ack { 2 } else { 0 };
        self.request(1, Args::method(60, 20).u16(0).short(queue).short("bench").u8(flags).table(), (60, 21))?;
        Ok(())
    }
}
