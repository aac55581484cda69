package snapshots

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// handClock is moved by hand.
type handClock struct {
	env.WallClock
	now time.Time
}

func (c *handClock) Now() time.Time { return c.now }

func TestTransfers_of(t *testing.T) {
	fs := filestest.NewMem()
	if err := fs.MkdirAll("snap", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"a": 600, "b": 400} {
		if err := durable.WriteFile(fs, "snap/"+name, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	var tr transfers
	if got := tr.of(7); got != nil {
		t.Errorf("before any: %+v", got)
	}
	clock := &handClock{now: time.Unix(1, 0)}
	var sink bytes.Buffer
	w, done, err := tr.begin(7, &sink, fs, "snap", clock)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name  string
		after time.Duration
		sends int
		want  membership.TransferView
	}{
		{"at first there is no rate", 0, 0, membership.TransferView{Total: 1000}},
		{"half a second", 500 * time.Millisecond, 100, membership.TransferView{Sent: 100, Total: 1000, BytesPerSecond: 200}},
		{"a steady pace", time.Second, 200, membership.TransferView{Sent: 300, Total: 1000, BytesPerSecond: 200}},
		{"faster", time.Second, 400, membership.TransferView{Sent: 700, Total: 1000, BytesPerSecond: 400}},
		{"a stall shows", 3 * time.Second, 0, membership.TransferView{Sent: 700, Total: 1000, BytesPerSecond: 100}},
		{"the end mark is not counted beyond the whole", time.Second, 308,
			membership.TransferView{Sent: 1000, Total: 1000, BytesPerSecond: 77}},
	} {
		clock.now = clock.now.Add(step.after)
		if step.sends > 0 {
			if n, err := w.Write(make([]byte, step.sends)); n != step.sends || err != nil {
				t.Fatalf("%s: wrote %d, %v", step.name, n, err)
			}
		}
		if diff := cmp.Diff(&step.want, tr.of(7)); diff != "" {
			t.Errorf("%s: want -, got +\n%s", step.name, diff)
		}
	}
	_, later, err := tr.begin(7, &sink, fs, "snap", clock)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if got := tr.of(7); got == nil || got.Sent != 0 {
		t.Errorf("the end of the first is not that of the second: %+v", got)
	}
	later()
	if got := tr.of(7); got != nil {
		t.Errorf("after all: %+v", got)
	}
}
