#!/usr/bin/env perl
# catalog: what the shop sells, over plain HTTP. No messaging, no packages: any program that listens on $PORT is a service.
#
#   GET /products        all of them
#   GET /products/ID     one
#   GET /healthz         204
use strict;
use warnings;
use IO::Socket::INET;

$| = 1;
$SIG{TERM} = sub { exit 0 };
$SIG{CHLD} = 'IGNORE';
$SIG{PIPE} = 'IGNORE';

my %products = (
    teapot  => { name => 'Teapot, cast iron',  price => 4900 },
    cup     => { name => 'Cup, two handles',   price => 1250 },
    kettle  => { name => 'Kettle, gooseneck',  price => 8900 },
    sencha  => { name => 'Sencha, 100 g',      price => 1490 },
    oolong  => { name => 'Oolong, 100 g',      price => 1890 },
    whisk   => { name => 'Whisk, bamboo',      price => 2100 },
    unicorn => { name => 'Unicorn, when found', price => 99900 },
);

sub product_json {
    my ($id) = @_;
    return sprintf '{"id":"%s","name":"%s","price_cents":%d}', $id, $products{$id}{name}, $products{$id}{price};
}

# Status, content type and body for a request.
sub answer {
    my ($method, $path) = @_;
    return (405, 'text/plain', "only GET\n") if $method ne 'GET' && $method ne 'HEAD';
    return (204, '', '') if $path eq '/healthz';
    return (200, 'application/json', '[' . join(',', map { product_json($_) } sort keys %products) . ']') if $path eq '/products';
    if ($path =~ m{^/products/([a-z]+)$} && $products{$1}) {
        my $id = $1;
        # The unicorn is looked for in the far shelf.
        select undef, undef, undef, 0.7 + rand 0.6 if $id eq 'unicorn';
        return (200, 'application/json', product_json($id));
    }
    return (404, 'application/problem+json', '{"title":"No such product","status":404}');
}

my %reasons = (200 => 'OK', 204 => 'No Content', 404 => 'Not Found', 405 => 'Method Not Allowed');

# One connection, request after request, until the peer closes it or is silent for a minute.
sub serve {
    my ($client) = @_;
    local $SIG{ALRM} = sub { exit 0 };
    while (1) {
        alarm 60;
        my $line = <$client>;
        return if !defined $line;
        my ($method, $target) = $line =~ m{^([A-Z]+) (\S+) HTTP/1\.[01]\r?\n$} or return;
        my ($length, $close) = (0, 0);
        while (defined(my $field = <$client>)) {
            last if $field =~ /^\r?\n$/;
            $length = $1 if $field =~ /^content-length:\s*(\d+)/i;
            $close = 1 if $field =~ /^connection:\s*close/i;
        }
        read $client, my $ignored, $length if $length;
        my ($path) = split /\?/, $target;
        my ($status, $type, $body) = answer($method, $path);
        print "$method $path $status\n" if $path ne '/healthz';
        my $head = "HTTP/1.1 $status $reasons{$status}\r\n";
        $head .= "content-type: $type\r\n" if $type;
        $head .= 'content-length: ' . length($body) . "\r\n" if $status != 204;
        $head .= "connection: close\r\n" if $close;
        print {$client} $head, "\r\n", $method eq 'HEAD' ? '' : $body;
        $client->flush;
        return if $close;
    }
}

my $port = $ENV{PORT} || 5001;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 64, ReuseAddr => 1)
    or die "ERROR cannot listen on port $port: $@\n";
print "INFO catalog listens on port $port\n";
while (1) {
    my $client = $server->accept or next;
    my $child = fork;
    if (defined $child && $child == 0) {
        close $server;
        serve($client);
        exit 0;
    }
    close $client;
}
