// Package srvtest is a DNS server for tests, which answers from a table.
//
// It is for tests only. The main type is Zone.
//
// Invariants:
//  1. A name that is not in the table does not exist (NXDOMAIN).
//
// A Zone must not be changed once it serves.
package srvtest

import (
	"context"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Zone has the answers, by names that end with a dot.
type Zone struct {
	SRV  map[string][]dnsmessage.SRVResource
	A    map[string][4]byte
	Fail map[string]dnsmessage.RCode // instead of an answer
}

// Serve answers on loopback until the test ends, and returns a resolver that asks there.
func (z Zone) Serve(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		conn.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		buffer := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer := z.answer(buffer[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}
	return &net.Resolver{PreferGo: true, Dial: dial}
}

func (z Zone) answer(request []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(request) != nil || len(m.Questions) != 1 {
		return nil
	}
	question := m.Questions[0]
	name := strings.ToLower(question.Name.String())
	header := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET}
	answer := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RCode: z.Fail[name]},
		Questions: m.Questions,
	}
	address, isHost := z.A[name]
	switch {
	case answer.RCode != dnsmessage.RCodeSuccess:
	case question.Type == dnsmessage.TypeSRV && z.SRV[name] != nil:
		for _, r := range z.SRV[name] {
			answer.Answers = append(answer.Answers, dnsmessage.Resource{Header: header, Body: &r})
		}
	case isHost && question.Type == dnsmessage.TypeA:
		answer.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: address}}}
	case !isHost:
		answer.RCode = dnsmessage.RCodeNameError
	}
	packed, err := answer.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// Record makes one answer.
func Record(target string, port uint16) dnsmessage.SRVResource {
	return dnsmessage.SRVResource{Target: dnsmessage.MustNewName(target), Port: port}
}
