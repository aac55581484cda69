package gateway

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/admission"
)

// messagesForTesting are those of a stream that has its place.
func messagesForTesting(in *intake, body io.Reader, end context.CancelCauseFunc) *messages {
	place, err := in.openStream("a")
	if err != nil {
		panic(err)
	}
	return newMessages(io.NopCloser(body), place, end, func() {})
}

// watchOf is a message of so many bytes.
func watchOf(size int) string {
	const head, tail = `{"create_request":{"key":"`, `"}}`
	return head + strings.Repeat("A", (size-len(head)-len(tail))/4*4) + tail
}

// Ensure that what has come of a message counts as what the client holds, with what is made of it, until the next one begins;
// that what takes no more memory then does not count; and that a message without room ends the stream.
func TestMessages_count(t *testing.T) {
	const size = 60_000
	in := newIntake(1 << 20)
	body, client := io.Pipe()
	ctx, end := context.WithCancelCause(t.Context())
	m := messagesForTesting(in, body, end)
	decoder := newMarshaler(admission.NewTurns()).NewDecoder(m)
	empty := in.bytes.Load()
	decoded := make(chan error)
	decode := func() { decoded <- decoder.Decode(new(pb.WatchRequest)) }
	say := func(text string) {
		if _, err := io.WriteString(client, text); err != nil {
			t.Error(err)
		}
	}
	message := watchOf(size)
	go decode()
	say(message[:size/2])
	say(message[size/2 : size/2+1]) // what was said before was counted when this is read
	if got := in.bytes.Load() - empty; got < size {
		t.Errorf("half of %d bytes counts as %d", size, got)
	}
	say(message[size/2+1:])
	if err := <-decoded; err != nil {
		t.Fatal(err)
	}
	if got := in.bytes.Load() - empty; got < 2*int64(len(message)) {
		t.Errorf("a message of %d bytes counts as %d while it is served", len(message), got)
	}
	go decode()
	say(watchOf(100))
	if err := <-decoded; err != nil {
		t.Fatal(err)
	}
	if got := in.bytes.Load() - empty; got > 2*keptTextBytes {
		t.Errorf("a message of 100 bytes after it counts as %d", got)
	}
	var others []func()
	for _, host := range []string{"b", "c"} { // a quarter of all is left for hosts that have little
		free := 1<<20 - in.held.Stats().Bytes
		leave, entered := in.held.Enter(host, min(free/2, free-1<<18))
		if !entered {
			t.Fatal("half of what is free cannot be taken")
		}
		others = append(others, leave)
	}
	go func() { _, _ = io.WriteString(client, message) }()
	err := decoder.Decode(new(pb.WatchRequest))
	if !errors.Is(err, io.EOF) || status.Code(context.Cause(ctx)) != codes.ResourceExhausted {
		t.Errorf("a message without room: got %v, and the call ended with %v", err, context.Cause(ctx))
	}
	for _, leave := range others {
		leave()
	}
	body.Close()
	m.place.leave()
	if err := m.place.keep(1); err == nil {
		t.Error("a call that has ended takes room")
	}
	if got := in.bytes.Load() + in.held.Stats().Bytes; got != 0 {
		t.Errorf("%d bytes count afterwards", got)
	}
}

// Ensure that a message that is begun has a deadline, wherever its beginning was read, and that blanks begin none.
func TestMessages_halfSent(t *testing.T) {
	for _, row := range []struct {
		name, said string
		messages   int
		late       bool
	}{
		{"nothing", "", 0, false},
		{"a part", `{"create_request":`, 0, true},
		{"one, and blanks", watchOf(100) + " \n", 1, false},
		{"one, and a part read with it", watchOf(100) + "{", 1, true},
		{"a large one, and a part read with it", watchOf(2*keptTextBytes) + " {", 1, true},
		{"three, the second of them large", watchOf(100) + watchOf(30_000) + watchOf(50), 3, false},
	} {
		in := newIntake(1 << 20)
		in.first = admission.NewFirstMessages(admission.FirstMessageLimits{Timeout: time.Nanosecond, Many: 1 << 10})
		body, client := io.Pipe()
		ctx, end := context.WithCancelCause(t.Context())
		m := messagesForTesting(in, body, end)
		m.stop = func() { _ = body.Close() }
		decoder := newMarshaler(admission.NewTurns()).NewDecoder(m)
		go func() { _, _ = io.WriteString(client, row.said) }()
		for i := range row.messages {
			if err := decoder.Decode(new(pb.WatchRequest)); err != nil {
				t.Fatalf("%s: message %d: %v", row.name, i, err)
			}
		}
		ended := make(chan error)
		go func() { ended <- decoder.Decode(new(pb.WatchRequest)) }()
		if !row.late {
			_, _ = client.Write([]byte(" ")) // it is read once the decoder waits
			if waiting, _ := in.first.Counts(); waiting != 0 {
				t.Errorf("%s: waits for the rest of a message", row.name)
			}
			client.Close()
			if err := <-ended; !errors.Is(err, io.EOF) || ctx.Err() != nil {
				t.Errorf("%s: got %v, and the call ended with %v", row.name, err, context.Cause(ctx))
			}
			continue
		}
		for waiting := 0; waiting == 0; {
			waiting, _ = in.first.Counts()
		}
		in.first.Sweep(time.Now().Add(time.Second))
		if err := <-ended; !errors.Is(err, io.EOF) || status.Code(context.Cause(ctx)) != codes.DeadlineExceeded {
			t.Errorf("%s: got %v, and the call ended with %v", row.name, err, context.Cause(ctx))
		}
		if waiting, late := in.first.Counts(); waiting != 0 || late != 1 {
			t.Errorf("%s: %d wait, %d were late", row.name, waiting, late)
		}
	}
}
