package rpc_test

import (
	"io"
	"net"
	"runtime"
	"testing"

	"golang.org/x/net/http2"
)

// BenchmarkIdle measures the memory of an idle connection, heap and stacks, after its settings were exchanged. The client's end
// of it, which has no goroutine, is included. `-grpc-go` measures --grpc-transport=grpc-go.
func BenchmarkIdle(b *testing.B) {
	const connections = 2000
	s := serve(b, newMachineBackend(b), nil)
	for b.Loop() {
		before := inUse()
		var open []net.Conn
		for range connections {
			open = append(open, greeted(b, s.addr))
		}
		b.ReportMetric(float64(inUse()-before)/connections, "B/conn")
		for _, c := range open {
			c.Close()
		}
	}
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// greeted is a connection whose server has acknowledged the client's settings.
func greeted(b *testing.B, addr string) net.Conn {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	f := http2.NewFramer(c, c)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		b.Fatal(err)
	}
	if err := f.WriteSettings(); err != nil {
		b.Fatal(err)
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			b.Fatal(err)
		}
		if settings, ok := frame.(*http2.SettingsFrame); ok && settings.IsAck() {
			return c
		}
	}
}
