// Package outboundtest has a DNS resolver for tests of requests that leave the platform.
package outboundtest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"

	"golang.org/x/net/dns/dnsmessage"
)

// Resolver resolves every name to the IPv4 addresses of answers[0] at the first look-up, to those of answers[1] at the
// second, and so on. Look-ups after the last answer get the last one.
func Resolver(answers ...[]string) *net.Resolver {
	var asked atomic.Int64
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close() // a pipe's Close cannot fail
			answer(there, &asked, answers)
		}()
		return here, nil
	}}
}

// answer serves one DNS question over a stream (RFC 1035 §4.2.2). Each question for A gets the next answer; questions
// for AAAA get none.
func answer(conn net.Conn, asked *atomic.Int64, answers [][]string) {
	var size uint16
	if binary.Read(conn, binary.BigEndian, &size) != nil {
		return
	}
	query := make([]byte, size)
	if _, err := io.ReadFull(conn, query); err != nil {
		return
	}
	var m dnsmessage.Message
	if m.Unpack(query) != nil {
		return
	}
	m.Response, m.Additionals = true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		n := min(int(asked.Add(1)), len(answers))
		for _, address := range answers[n-1] {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: [4]byte(net.ParseIP(address).To4())},
			})
		}
	}
	packed, err := m.AppendPack(make([]byte, 2))
	if err != nil {
		return
	}
	binary.BigEndian.PutUint16(packed, uint16(len(packed)-2)) // a DNS message has less than 64 KiB
	_, _ = conn.Write(packed)
}
