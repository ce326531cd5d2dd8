# Two images from one file:
#
#   docker build -t reactor .                          attach only: a static binary and nothing else that runs
#   docker build -t reactor:debian --target debian .   with Python and Node, so that it can run services itself
#
# Run it with its ports published on loopback:
#
#   docker run --rm -p 127.0.0.1:80:80 -p 127.0.0.1:443:443 -p 127.0.0.1:15000-15010:15000-15010 \
#     -p 127.0.0.1:16000:16000 -p 127.0.0.1:5672:5672 reactor
#
# BuildKit is needed, docker's own since 23. `tests/run image` builds both from this very file, without docker, and tries them.

FROM node:20-bookworm-slim AS ui
WORKDIR /ui
COPY ui/package.json ui/package-lock.json ui/.npmrc ./
RUN npm ci --no-audit --no-fund
COPY ui ./
RUN npm run build -- --outDir /ui-dist

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock build.rs ./
COPY .cargo .cargo
COPY src src
COPY assets assets
COPY tests/bench tests/bench
COPY --from=ui /ui-dist /ui-dist
ENV REACTOR_UI=prebuilt:/ui-dist
# `--build-arg PROFILE=dev` for a look at the image rather than at its speed: it compiles in a fraction of the time.
ARG PROFILE=dist
# --target keeps +crt-static away from procedural macros. The caches hold what was compiled of other people's crates; ours is always
# compiled anew, because the times of copied files say nothing about which of two is newer.
RUN --mount=type=cache,id=reactor-registry,target=/usr/local/cargo/registry \
    --mount=type=cache,id=reactor-target,target=/src/target \
    touch build.rs src/lib.rs src/main.rs \
 && target="$(uname -m)-unknown-linux-gnu" \
 && RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --profile "$PROFILE" --bin reactor --target "$target" \
 && if [ "$PROFILE" = dev ]; then folder=debug; else folder=$PROFILE; fi \
 && install -D "target/$target/$folder/reactor" /out/reactor
# The file tree of the static image: the binary, certificates, a user, somewhere to write.
RUN mkdir -p /out/root/etc/ssl/certs /out/root/tmp /out/data \
 && cp /out/reactor /out/root/reactor \
 && cp /etc/ssl/certs/ca-certificates.crt /out/root/etc/ssl/certs/ \
 && echo 'reactor:x:65532:65532::/data:/sbin/nologin' > /out/root/etc/passwd \
 && echo 'reactor:x:65532:' > /out/root/etc/group \
 && echo 'hosts: files dns' > /out/root/etc/nsswitch.conf \
 && chmod 1777 /out/root/tmp

# Node comes with the base; pip comes into every virtual environment that python3-venv makes.
FROM node:20-bookworm-slim AS debian
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates python3 python3-venv \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 65532 reactor \
 && useradd --no-log-init --uid 65532 --gid 65532 --home-dir /data --shell /usr/sbin/nologin reactor \
 && install -d -o 65532 -g 65532 /data
COPY --from=build /out/reactor /usr/local/bin/reactor
ENV REACTOR_BIND=all REACTOR_IMAGE=1
USER 65532:65532
WORKDIR /data
EXPOSE 80 443 4317 4318 5671 5672 15000-15010 16000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=5s CMD ["reactor", "status", "--health"]
ENTRYPOINT ["reactor"]
CMD []

FROM scratch AS static
COPY --from=build /out/root /
COPY --from=build --chown=65532:65532 /out/data /data
ENV REACTOR_BIND=all REACTOR_IMAGE=1
USER 65532:65532
WORKDIR /data
EXPOSE 80 443 4317 4318 5671 5672 15000-15010 16000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=5s CMD ["/reactor", "status", "--health"]
ENTRYPOINT ["/reactor"]
CMD []
