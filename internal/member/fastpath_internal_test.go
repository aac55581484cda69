package member

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

func TestFastPath_pays(t *testing.T) {
	for _, row := range []struct {
		fast     FastPath
		distance time.Duration
		want     bool
	}{
		{FastPathAuto, 0, false},
		{FastPathAuto, 300 * time.Microsecond, false},
		{FastPathAuto, farAway, true},
		{"", 50 * time.Millisecond, true},
		{FastPathAlways, 0, true},
		{FastPathNever, time.Second, false},
	} {
		if got := row.fast.pays(row.distance); got != row.want {
			t.Errorf("%q at %v: got %t", row.fast, row.distance, got)
		}
	}
}

func TestMayBeFast(t *testing.T) {
	put := func(bytes int) kv.Command {
		return kv.Command{Put: &kv.PutOp{Key: []byte("a"), Value: make([]byte, bytes)}}
	}
	for _, row := range []struct {
		name    string
		command kv.Command
		want    bool
	}{
		{"a put", put(100), true},
		{"a large one", put(1 << 20), false},
		{"a lease, whose answer shows the revision of the store", kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 1}}, false},
	} {
		if got := mayBeFast(row.command.Append(nil)); got != row.want {
			t.Errorf("%s: got %v", row.name, got)
		}
	}
}
