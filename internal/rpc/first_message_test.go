package rpc_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/limits/admission"
)

// halfSender speaks HTTP/2 itself, to send requests that do not end.
type halfSender struct {
	t    *testing.T
	conn net.Conn
}

// Kinds and flags of frames, and the longest frame (RFC 9113).
const (
	frameData, frameHeaders, frameReset, frameSettings = 0, 1, 3, 4
	flagEndHeaders                                     = 4
	frameBytes                                         = 16 << 10
)

func newHalfSender(t *testing.T, addr string) *halfSender {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	h := &halfSender{t, conn}
	h.must(conn.SetDeadline(time.Now().Add(testWait)))
	_, err = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	h.must(err)
	h.write(frameSettings, 0, 0, nil)
	return h
}

func (h *halfSender) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *halfSender) write(kind, flags byte, stream uint32, body []byte) {
	h.t.Helper()
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(body))<<8|uint32(kind))
	frame = binary.BigEndian.AppendUint32(append(frame, flags), stream)
	_, err := h.conn.Write(append(frame, body...))
	h.must(err)
}

// begin announces a message of size bytes and sends the first ones of it.
func (h *halfSender) begin(stream uint32, path string, size, sent int) {
	h.t.Helper()
	var block []byte // literal fields that are not indexed (RFC 7541, 6.2.2)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", path}, {":authority", "x"},
		{"content-type", "application/grpc"}, {"te", "trailers"}} {
		block = append(append(block, 0, byte(len(f[0]))), f[0]...)
		block = append(append(block, byte(len(f[1]))), f[1]...)
	}
	h.write(frameHeaders, flagEndHeaders, stream, block)
	h.write(frameData, 0, stream, binary.BigEndian.AppendUint32([]byte{0}, uint32(size)))
	for ; sent > 0; sent -= frameBytes {
		h.write(frameData, 0, stream, make([]byte, min(sent, frameBytes)))
	}
}

// awaitReset waits until the server resets a stream, and returns which.
func (h *halfSender) awaitReset() (stream uint32) {
	h.t.Helper()
	for {
		var head [9]byte
		_, err := io.ReadFull(h.conn, head[:])
		h.must(err)
		_, err = io.CopyN(io.Discard, h.conn, int64(binary.BigEndian.Uint32(head[:])>>8))
		h.must(err)
		if head[3] == frameReset {
			return binary.BigEndian.Uint32(head[5:])
		}
	}
}

func TestServer_halfSentRequest(t *testing.T) {
	for _, row := range []struct{ name, path string }{
		{"direct", pb.KV_Put_FullMethodName},
		{"generated", pb.Maintenance_Status_FullMethodName},
		{"stream of answers", pb.Maintenance_Snapshot_FullMethodName},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := serve(t, newMachineBackend(t), func(o *rpcOptions) {
				o.FirstMessage = admission.FirstMessageLimits{Timeout: time.Hour, Many: 2, ManyTimeout: 10 * time.Millisecond}
			})
			h := newHalfSender(t, s.addr)
			h.begin(1, row.path, 1<<20, 64<<10)
			h.begin(3, row.path, 1<<20, 64<<10)
			s.awaitMetric(t, "quorate_calls_unsent 2")
			h.begin(5, row.path, 1<<20, 64<<10)
			if stream := h.awaitReset(); stream > 5 {
				t.Errorf("stream %d was reset, which was not opened", stream)
			}
			s.awaitMetric(t, "quorate_calls_unsent 2")
			s.awaitMetric(t, "quorate_calls_unsent_ended_total 1")
		})
	}
}

func TestServer_requestsThatArriveDoNotWait(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) {
		o.FirstMessage = admission.FirstMessageLimits{Timeout: testWait}
	})
	ctx, cancel := context.WithCancel(waitContext(t))
	defer cancel()
	conn := s.conn(t)
	watch, err := pb.NewWatchClient(conn).Watch(ctx) // sends nothing
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte("k")}); err != nil {
		t.Fatal(err)
	}
	s.awaitMetric(t, "quorate_calls_unsent 0")
	if err := watch.Context().Err(); err != nil {
		t.Errorf("an idle watch stream ended: %v", err)
	}
}
