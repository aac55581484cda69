package moments_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/moments"
)

// Ensure that moments are told while revisions come, once after the last one, not below the level, and not by a clock whose
// time no moment can have.
func TestTeller_Look(t *testing.T) {
	var teller moments.Teller
	v := &moments.View{Self: 7, Active: level.First, Revision: 5}
	now, wall := time.Unix(1000, 0), time.UnixMilli(1234567)
	look := func(want bool) {
		t.Helper()
		command, due := teller.Look(v, now, wall)
		if due != want {
			t.Fatalf("at %v, of %+v: %v", now, v, due)
		}
		if m := command.Moment; due && (m.Time != 1234567 || m.Seen != v.Revision || m.Member != 7) {
			t.Fatalf("%+v", m)
		}
	}
	pass := func(d time.Duration) { now = now.Add(d) }
	look(false)
	v.Active = level.Second
	look(true)
	look(false) // not noted yet: it waits
	pass(moments.Interval)
	look(true) // it was lost
	v.Noted = kv.Moments{{Seen: 5}}
	pass(time.Hour)
	look(false)
	v.Revision = 6
	look(true)
	v.Revision = 7
	pass(moments.Interval - 1)
	look(false)
	pass(1)
	wall = time.UnixMilli(-1)
	look(false)
	wall = time.UnixMilli(kv.MostMomentTime + 1)
	look(false)
	wall = time.UnixMilli(1234567)
	look(true)
	v.Revision = 8
	look(false)
	teller.Rest()
	look(true)
	v.Revision, v.Noted = 1, nil
	pass(time.Hour)
	look(false) // nothing was ever written
}
