# A Perl application on AnyEvent::RabbitMQ. The broker is on AMQP_PORT.

use strict;
use warnings;
use AnyEvent;
use AnyEvent::RabbitMQ;

$| = 1;
my $DEADLINE = 30;

# Runs $body with a condition variable that it sends to; dies of what it croaks, or at the deadline.
sub wait_for {
    my ($body) = @_;
    my $done  = AnyEvent->condvar;
    my $timer = AnyEvent->timer(after => $DEADLINE, cb => sub { $done->croak("not within $DEADLINE s") });
    $body->($done, sub { $done->croak(reason(@_)) });
    return $done->recv;
}

# What a failure says: a string, or the frame that closed the channel.
sub reason {
    my ($why) = @_;
    return ref $why && $why->can('method_frame') ? $why->method_frame->reply_code . ' ' . $why->method_frame->reply_text : "$why";
}

sub check {
    my ($name, $body) = @_;
    eval { $body->(); 1 } and return print "ok $name\n";
    (my $why = "$@") =~ s/\s+/ /g;
    print "not ok $name # ", substr($why, 0, 300), "\n";
}

sub same {
    my ($expected, $got) = @_;
    $got //= 'nothing';
    die "expected $expected, got $got\n" unless $expected eq $got;
}

# It only lives as long as somebody holds it.
my $client     = AnyEvent::RabbitMQ->new->load_xml_spec;
my $connection = wait_for(sub {
    my ($done, $failed) = @_;
    $client->connect(
        host => '127.0.0.1', port => $ENV{AMQP_PORT}, user => 'guest', pass => 'guest', vhost => '/', timeout => $DEADLINE,
        tune => { heartbeat => 1 },
        on_success => sub { $done->send($_[0]) }, on_failure => $failed, on_read_failure => $failed, on_close => sub { },
    );
});

sub channel {
    return wait_for(sub {
        my ($done, $failed) = @_;
        $connection->open_channel(on_success => sub { $done->send($_[0]) }, on_failure => $failed, on_close => sub { });
    });
}

# Calls a method of the channel that has an answer.
sub call {
    my ($channel, $method, %arguments) = @_;
    return wait_for(sub {
        my ($done, $failed) = @_;
        $channel->$method(%arguments, on_success => sub { $done->send($_[0]) }, on_failure => $failed);
    });
}

sub queue { return call($_[0], 'declare_queue', queue => '', exclusive => 1)->method_frame->queue }

check 'a message is confirmed and got' => sub {
    my $channel = channel();
    my $queue   = queue($channel);
    call($channel, 'confirm');
    wait_for(sub {
        my ($done, $failed) = @_;
        $channel->publish(
            exchange => '', routing_key => $queue, body => 'hello', header => { delivery_mode => 2, headers => { kind => 'order' } },
            on_ack => sub { $done->send }, on_nack => $failed, on_return => $failed,
        );
    });
    my $got = call($channel, 'get', queue => $queue, no_ack => 1);
    same('hello order', $got->{body}->payload . ' ' . $got->{header}->headers->{kind});
};

check 'a consumer acks what it takes' => sub {
    my $channel = channel();
    my $queue   = queue($channel);
    call($channel, 'qos', prefetch_count => 1);
    $channel->publish(exchange => '', routing_key => $queue, body => $_) for 1 .. 5;
    my @bodies;
    wait_for(sub {
        my ($done, $failed) = @_;
        $channel->consume(
            queue => $queue, no_ack => 0, on_failure => $failed,
            on_consume => sub {
                my ($delivery) = @_;
                push @bodies, $delivery->{body}->payload;
                $channel->ack(delivery_tag => $delivery->{deliver}->method_frame->delivery_tag);
                $done->send if @bodies == 5;
            },
        );
    });
    same('1 2 3 4 5', "@bodies");
};

check 'an unroutable message comes back' => sub {
    my $channel = channel();
    call($channel, 'confirm');
    same('312 NO_ROUTE', wait_for(sub {
        my ($done, $failed) = @_;
        $channel->publish(
            exchange => '', routing_key => 'nowhere', body => 'lost', mandatory => 1, on_nack => $failed, on_ack => sub { },
            on_return => sub { my $frame = $_[0]->{return}->method_frame; $done->send($frame->reply_code . ' ' . $frame->reply_text) },
        );
    }));
};

check 'exchanges are declared, bound and route' => sub {
    my $channel = channel();
    my $queue   = queue($channel);
    call($channel, 'declare_exchange', exchange => 'perl.topic', type => 'topic', auto_delete => 1);
    call($channel, 'bind_queue', queue => $queue, exchange => 'perl.topic', routing_key => 'order.*');
    $channel->publish(exchange => 'perl.topic', routing_key => 'order.new', body => 'routed');
    call($channel, 'select_tx');
    call($channel, 'commit_tx');
    same('routed', call($channel, 'get', queue => $queue, no_ack => 1)->{body}->payload);
};

check 'a body larger than a frame arrives' => sub {
    my $channel = channel();
    my $queue   = queue($channel);
    my $body    = 'x' x 1_000_000;
    $channel->publish(exchange => '', routing_key => $queue, body => $body);
    same(length $body, length call($channel, 'get', queue => $queue, no_ack => 1)->{body}->payload);
};

check 'a queue that is not there is refused with its text' => sub {
    my $channel = channel();
    my $said = eval { call($channel, 'declare_queue', queue => 'perl.none', passive => 1); 'nothing' } // $@;
    die "refused with $said" unless index($said, "NOT_FOUND - no queue 'perl.none' in vhost '/'") >= 0;
};

check 'heartbeats keep an idle connection open' => sub {
    my $idle = AnyEvent->condvar;
    my $timer = AnyEvent->timer(after => 4, cb => sub { $idle->send });
    $idle->recv;
    queue(channel());
};

wait_for(sub { my ($done, $failed) = @_; $connection->close(on_success => sub { $done->send }, on_failure => $failed) });
