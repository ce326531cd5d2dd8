"""Published ports: `relay.py ADDRESS PORT…` hands connections to 127.0.0.1:PORT on to ADDRESS:PORT, as docker's own relay does."""

import asyncio
import sys

address, ports = sys.argv[1], [int(port) for port in sys.argv[2:]]


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


def relay(port):
    async def serve(reader, writer):
        try:
            their_reader, their_writer = await asyncio.open_connection(address, port)
        except OSError:
            return writer.close()
        await asyncio.gather(pump(reader, their_writer), pump(their_reader, writer))
        their_writer.close()
        writer.close()

    return serve


async def main():
    servers = [await asyncio.start_server(relay(port), "127.0.0.1", port) for port in ports]
    print("relaying", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


asyncio.run(main())
