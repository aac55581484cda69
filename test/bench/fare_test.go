package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// heldWell is what came of an attack that harmed no client.
func heldWell() *held {
	r := &held{limit: 128, peak: 100, fare: &fare{renewals: 20}, start: time.Second, attack: tally{Calls: 9}}
	for range 500 {
		r.fare.puts.Record(10 * time.Millisecond)
	}
	return r
}

func TestHeld_faults(t *testing.T) {
	fail := func(puts, renewals int) func(*held) {
		return func(r *held) {
			r.fare.failed, r.fare.unrenewed, r.fare.said = puts, renewals, errors.New("unavailable")
		}
	}
	wait := func(d time.Duration) func(*held) {
		return func(r *held) {
			for range 10 {
				r.fare.puts.Record(d)
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*held)
		attack holding
		most   time.Duration
		want   string // in the only fault; empty: there is none
	}{
		{"all is well", func(*held) {}, holding{}, mostP99, ""},
		{"a put failed", fail(1, 0), holding{}, mostP99, "1 of 500 puts of others failed: unavailable"},
		{"a renewal failed", fail(0, 2), holding{}, mostP99, "2 of 20 renewals of others failed: unavailable"},
		{"both may fail", fail(1, 2), holding{mayFail: true}, mostP99, ""},
		{"slow puts", wait(150 * time.Millisecond), holding{}, mostP99, "p99 of others' puts is 15"},
		{"slow puts that are allowed", wait(150 * time.Millisecond), holding{p99: 200 * time.Millisecond}, mostP99, ""},
		{"slower ones", wait(300 * time.Millisecond), holding{p99: 200 * time.Millisecond}, mostP99, "more than 200ms"},
		{"a larger bound of the command line", wait(300 * time.Millisecond), holding{p99: 200 * time.Millisecond}, time.Second, ""},
		{"slow puts beside somebody else", func(r *held) { wait(250 * time.Millisecond)(r); r.others = 11 }, holding{}, mostP99, ""},
		{"slower ones", func(r *held) { wait(310 * time.Millisecond)(r); r.others = 11 }, holding{}, mostP99, "more than 300ms"},
		{"much else", func(r *held) { wait(900 * time.Millisecond)(r); r.others = 41 }, holding{}, mostP99, ""},
		{"too slow for any machine", func(r *held) { wait(1100 * time.Millisecond)(r); r.others = 99 }, holding{}, mostP99, "more than 1s"},
		{"hardly anybody else", func(r *held) { wait(250 * time.Millisecond)(r); r.others = 9 }, holding{}, mostP99, "more than 100ms"},
		{"no bound", wait(4 * time.Second), holding{}, 0, ""},
		{"what the runtime misses", func(r *held) { r.peak = 133 }, holding{}, mostP99, ""},
		{"memory", func(r *held) { r.peak = 134 }, holding{}, mostP99, "took 134.0 MiB of 128"},
		{"pages of files", func(r *held) { r.peak = 135 }, holding{files: 2}, mostP99, ""},
		{"more than these", func(r *held) { r.peak = 136 }, holding{files: 2}, mostP99, "took 136.0 MiB of 130"},
		{"an end", func(r *held) { r.ended = "m1 ended" }, holding{}, mostP99, "m1 ended"},
		{"a slow start", func(r *held) { r.start = 10_001 * time.Millisecond }, holding{}, mostP99, "killed members answered after 10.001s"},
		{"no attack", func(r *held) { r.attack = tally{Said: "refused"} }, holding{}, mostP99, "made no call: refused"},
		{"none is meant", func(r *held) { r.attack = tally{} }, holding{none: true}, mostP99, ""},
		{"nothing was seen", func(r *held) { r.fare = &fare{} }, holding{}, mostP99, "nothing of others was seen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := heldWell()
			c.change(r)
			got := r.faults(&c.attack, c.most)
			note := r.row("128MiB", &c.attack, got).Note
			switch {
			case c.want == "" && len(got) > 0:
				t.Fatalf("faults: %q, want none", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Fatalf("faults: %q, want one of %q", got, c.want)
			case c.want != "" && !strings.Contains(note, got[0]):
				t.Fatalf("the row does not say %q: %s", got[0], note)
			}
		})
	}
}

// TestHoldings_differ wants names that name one attack each, and a reason wherever others may fare worse.
func TestHoldings_differ(t *testing.T) {
	var names []string
	for _, h := range allHoldings() {
		if slices.Contains(names, h.name) {
			t.Errorf("two attacks are called %q", h.name)
		}
		names = append(names, h.name)
		if excepted := h.mayFail || h.p99 > 0 || h.files > 0; excepted != (h.because != "") {
			t.Errorf("%s: p99 %s, may fail: %t, because %q", h.name, h.p99, h.mayFail, h.because)
		}
		if h.p99 > 0 && h.p99 <= mostP99 {
			t.Errorf("%s: a p99 of %s is what every attack may have", h.name, h.p99)
		}
	}
}
