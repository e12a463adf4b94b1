// Package egresstest contains test data for users of the guarded client: forbidden URLs and
// a DNS double.
package egresstest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
)

// Refused lists all spellings of addresses that must not be reached.
var Refused = []string{
	// usual form
	"http://127.0.0.1/", "http://127.8.9.1/", "http://[::1]/", "http://0.0.0.0/", "http://[::]/", "http://localhost/", "https://localhost/",
	"http://10.0.0.1/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/", "http://100.64.0.1/", "http://[fc00::1]/", "http://[fd12:3456::1]/",
	"http://169.254.0.1/", "http://[fe80::1]/", "http://[fec0::1]/",
	// metadata of clouds
	"http://169.254.169.254/latest/meta-data/", "http://169.254.170.2/", "http://[fd00:ec2::254]/", "http://100.100.100.200/", "http://192.0.0.192/", "http://168.63.129.16/",
	// reserved
	"http://0.1.2.3/", "http://192.0.0.1/", "http://192.0.2.1/", "http://198.18.0.1/", "http://198.51.100.1/", "http://203.0.113.1/", "http://224.0.0.1/", "http://240.0.0.1/",
	"http://255.255.255.255/", "http://192.88.99.1/", "http://[ff02::1]/", "http://[100::1]/", "http://[2001:db8::1]/", "http://[3fff::1]/",
	// IPv4 inside IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo
	"http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::ffff:10.0.0.1]/", "http://[::ffff:a9fe:a9fe]/", "http://[::127.0.0.1]/", "http://[::ffff:0:127.0.0.1]/",
	"http://[64:ff9b::7f00:1]/", "http://[64:ff9b::169.254.169.254]/", "http://[64:ff9b:1::7f00:1]/", "http://[2002:7f00:1::]/", "http://[2002:a00:1::1]/", "http://[2001:0:7f00:1::1]/",
	// other spellings of IPv4
	"http://2130706433/", "http://017700000001/", "http://0x7f000001/", "http://0X7F000001/", "http://127.1/", "http://127.0.1/", "http://0177.0.0.1/", "http://0x7f.0.0.1/",
	"http://127.0.0.0x1/", "http://127.000.000.001/", "http://00000127.0.0.1/", "http://3232235777/", "http://1.1/", "http://256.256.256.256/", "http://0x/", "http://8.8.8.0x8/",
	"http://①②⑦.0.0.1/", "http://127。0。0。1/", "http://１２７.0.0.1/", "http://ⓛocalhost/", "http://bücher.example/",
	// dots at the end
	"http://127.0.0.1./", "http://localhost./", "http://example.com./", "http://2130706433./", "http://./", "http://../",
	// zones and other characters
	"http://[fe80::1%25lo]/", "http://[::1%25eth0]/", "http://[::ffff:8.8.8.8%25x]/", "http://exa%00mple.com/", "http://example.com%2f@127.0.0.1/", "http://a!b/", "http:///x", "http://:80/",
	// a name and a password
	"http://user@example.com/", "http://user:secret@example.com/", "http://example.com@127.0.0.1/", "http://127.0.0.1@example.com/", "http://:@example.com/",
	// ports that are not the web's
	"http://8.8.8.8:22/", "http://8.8.8.8:6379/", "https://8.8.8.8:8443/", "http://8.8.8.8:0/", "http://8.8.8.8:65616/", "http://127.0.0.1:19560/",
	// other schemes
	"file:///etc/passwd", "ftp://example.com/", "gopher://127.0.0.1:70/_", "unix:///run/x.sock", "data:text/plain,x", "//example.com/", "example.com/", "javascript:alert(1)", "ws://example.com/",
}

// resolver answers A queries with the next of a name's addresses, and repeats the last one.
type resolver struct {
	mu    sync.Mutex
	names map[string][]string
}

func (r *resolver) next(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	list := r.names[name]
	if len(list) == 0 {
		return ""
	}
	if len(list) > 1 {
		r.names[name] = list[1:]
	}
	return list[0]
}

// serve speaks DNS over TCP: each message is prefixed with its length in two bytes.
func (r *resolver) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, q); err != nil {
			return
		}
		name, at := "", 12
		for q[at] != 0 {
			name += string(q[at+1:at+1+int(q[at])]) + "."
			at += 1 + int(q[at])
		}
		question, kind := q[12:at+5], binary.BigEndian.Uint16(q[at+1:])
		answer := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
		if kind == 1 {
			if ip := net.ParseIP(r.next(name)).To4(); ip != nil {
				answer[7] = 1
				answer = append(append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip...)
			}
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func Resolver(names map[string][]string) *net.Resolver {
	r := &resolver{names: names}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go r.serve(theirs)
		return ours, nil
	}}
}
