#!/usr/bin/env bash
# librabbitmq's command line tools at work: what a C program sends. The broker is in AMQP_URL.
# The tools are quiet about what they did, so each check looks at what another of them sees.

url=(--url "$AMQP_URL")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# check NAME EXPECTED GOT
check() {
  if [ "$2" = "$3" ]; then echo "ok $1"; else echo "not ok $1 # expected $(printf %q "${2:0:100}"), got $(printf %q "${3:0:100}")"; fi
}

tool() { timeout 30 "amqp-$1" "${url[@]}" "${@:2}" 2>&1; }

check "a queue is declared" c.work "$(tool declare-queue --queue=c.work --durable)"
check "a queue gets a name" amq.gen- "$(tool declare-queue --queue= | cut -c1-8)"

tool publish --routing-key=c.work --persistent --content-type=text/plain --header="kind: order" --body="first"
check "what is published can be got" first "$(tool get --queue=c.work)"

printf 'one\ntwo\nthree\n' | tool publish --routing-key=c.work --line-buffered
check "a consumer takes as many as it wants, in order" "one two three" "$(tool consume --queue=c.work --count=3 -- cat | tr '\n' ' ' | sed 's/ $//')"

head -c 3000000 /dev/urandom > "$folder/large"
tool publish --routing-key=c.work < "$folder/large"
tool get --queue=c.work > "$folder/back"
check "a body larger than a frame arrives" "$(sha256sum < "$folder/large")" "$(sha256sum < "$folder/back")"

for number in 1 2 3 4 5; do tool publish --routing-key=c.work --body="$number" --content-type=text/plain; done
check "prefetch and acks one by one" "1 2 3 4 5" "$(tool consume --queue=c.work --prefetch-count=1 --count=5 -- bash -c 'cat; echo' | tr '\n' ' ' | sed 's/ $//')"

(tool consume --queue= --exchange=amq.topic --routing-key='c.#' --count=1 -- cat > "$folder/bound") &
consumer=$!
# The consumer names and binds a queue of its own; what is published before that is nobody's.
for _ in $(seq 300); do
  kill -0 "$consumer" 2>/dev/null || break
  tool publish --exchange=amq.topic --routing-key=c.bound --body=bound
  sleep 0.1
done
wait "$consumer"
check "a consumer binds a queue of its own" bound "$(cat "$folder/bound")"

tool get --queue=c.work > "$folder/empty"
check "an empty queue is told apart" 2 "$?"
check "a queue that is not there is refused with its text" "NOT_FOUND - no queue 'c.none' in vhost '/'" \
  "$(tool get --queue=c.none | grep -o "NOT_FOUND - no queue 'c.none' in vhost '/'" | head -1)"
check "a wrong password is refused with its text" "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN" \
  "$(timeout 30 amqp-get --url "${AMQP_URL/guest:guest/guest:wrong}" --queue=c.work 2>&1 | grep -o 'ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN' | head -1)"
check "a queue is deleted with what is in it" 0 "$(tool delete-queue --queue=c.work)"
