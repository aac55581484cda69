package doctor_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

// Ensure that the largest bundle whose members know each other, and differ in everything that they say, is judged. Each round
// takes a few hundredths of a second; with a scan of all peers for each pair, or of all findings for each finding, one round
// takes many, and this test runs into the time that all tests have.
func TestJudge_large(t *testing.T) {
	h := hospital{healthy(128)}
	for i := 1; i <= 128; i++ {
		o := h.of(i)
		for _, p := range o.Peers {
			p.Connected = p.Id > uint64(i) != (p.Id*uint64(i)%3 == 0) // many links are one-way
			p.RoundTripUs = int64(150_000 + 1000*i + int(p.Id))
			if !p.Connected {
				p.Fault, p.Failures = "unreachable", uint64(i*1000)+p.Id
			}
			o.Alarms = append(o.Alarms, &quoratepb.ObservedAlarm{Kind: "CORRUPT", Member: uint64(i)<<32 + p.Id})
			o.Troubles = append(o.Troubles, fmt.Sprintf("a process of history %d/%d runs", i, p.Id))
		}
	}
	for range 3 {
		if found := doctor.Judge(h.Collected); len(found) < 10_000 {
			t.Fatalf("%d findings", len(found))
		}
	}
}

// Ensure that lists end at a bound.
func TestTrimmed_lists(t *testing.T) {
	c := healthy(3)
	for range 1000 {
		c.Members = append(c.Members, &quoratepb.CollectedMember{})
		c.Members[0].Observation.Peers = append(c.Members[0].Observation.Peers, &quoratepb.ObservedPeer{})
		c.Members[0].Observation.Config.Members = append(c.Members[0].Observation.Config.Members, &quoratepb.ObservedMember{})
	}
	c = doctor.Trimmed(c)
	o := c.Members[0].Observation
	if len(c.Members) != 128 || len(o.Peers) != 128 || len(o.Config.Members) != 128 {
		t.Errorf("%d members, %d peers, %d known", len(c.Members), len(o.Peers), len(o.Config.Members))
	}
}
