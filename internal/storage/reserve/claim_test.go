package reserve_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/reserve"
)

// Ensure that what files still need is compared with what the disk has beside its reserve, over all of them.
func TestWatch_Claim(t *testing.T) {
	d := &disks{FS: filestest.NewMem(), room: map[string]uint64{"data": 1000}}
	w := reserve.New(d, 400, "data")
	claim := func(bytes int64, want error) *reserve.Claim {
		t.Helper()
		c, err := w.Claim(bytes)
		if !errors.Is(err, want) {
			t.Fatalf("claim %d: got %v, want %v", bytes, err, want)
		}
		return c
	}
	first := claim(500, nil)
	claim(101, reserve.ErrNoRoom)
	second := claim(100, nil)
	claim(1, reserve.ErrNoRoom)
	written := func(c *reserve.Claim, bytes int64, want error) {
		t.Helper()
		if err := c.Written(bytes); !errors.Is(err, want) {
			t.Fatalf("%d are written: got %v, want %v", bytes, err, want)
		}
	}
	d.room["data"] -= 500 // by the first, which has all of its claim now
	written(first, 500, nil)
	claim(1, reserve.ErrNoRoom)
	written(first, 501, reserve.ErrNoRoom) // longer than thought
	d.room["data"] += 500
	first.Release() // and removed
	third := claim(450, nil)
	written(second, 120, nil) // beyond its claim, and there is room
	d.room["data"] -= 120
	written(second, 120, nil)
	claim(16, reserve.ErrNoRoom)
	third.Release()
	second.Release()
	claim(481, reserve.ErrNoRoom)
	claim(480, nil)
}

// Ensure that a member without a reserve, and one whose disk cannot tell, have room.
func TestWatch_Claim_unknown(t *testing.T) {
	var none *reserve.Watch
	for _, w := range []*reserve.Watch{none, reserve.New(&disks{FS: filestest.NewMem(), err: env.ErrNoDiskUsage}, 1<<30, "data")} {
		c, err := w.Claim(1 << 40)
		if err == nil {
			err = c.Written(1 << 41)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Release()
	}
}
