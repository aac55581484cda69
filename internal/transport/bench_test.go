package transport_test

import (
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

// counting is a handler that counts entries.
type counting struct {
	quiet
	entries, messages atomic.Int64
	wake              chan struct{}
}

func (c *counting) Receive(messages []consensus.Message) {
	for i := range messages {
		c.entries.Add(int64(len(messages[i].Entries)))
	}
	c.messages.Add(int64(len(messages)))
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// BenchmarkTransport_Send measures one frame from Send to Receive, both ends in one process; "together" sends as fast
// as the queue allows, so that messages share frames, and "alone" waits for each message to arrive. CPU is the
// process's.
func BenchmarkTransport_Send(b *testing.B) {
	for _, entries := range []int{1, 64} {
		for _, window := range []int64{1, 256} {
			b.Run(fmt.Sprintf("entries=%d/outstanding=%d", entries, window), func(b *testing.B) {
				benchmarkSend(b, entries, window)
			})
		}
	}
}

func benchmarkSend(b *testing.B, entries int, window int64) {
	sink := &counting{wake: make(chan struct{}, 1)}
	var transports [2]*transport.Transport
	var urls [2]string
	for i := range transports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		urls[i] = "http://" + l.Addr().String()
		transports[i], err = transport.New(transport.Options{Self: identity.Claim{Member: consensus.MemberID(i + 1), Cluster: cluster},
			Handler: sink, Listeners: []net.Listener{l}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = transports[i].Close() }()
	}
	transports[0].SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{urls[1]}}})
	for up := false; !up; _, up = transports[0].ConnectedSince(2) {
		osYield()
	}
	sizes := make([]int, entries)
	for i := range sizes {
		sizes[i] = 256
	}
	batch := []consensus.Message{appendMessage(1, 2, 1, sizes...)}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	for i := range int64(b.N) {
		for i-sink.messages.Load() >= window {
			<-sink.wake
		}
		transports[0].Send(batch)
	}
	for sink.messages.Load() < int64(b.N) {
		<-sink.wake
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
	s := transports[0].Stats().Peers[0]
	b.ReportMetric(float64(s.Sent.Messages)/float64(s.Sent.Frames), "messages/frame")
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
