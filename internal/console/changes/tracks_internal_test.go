package changes

import (
	"testing"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
)

// Ensure that no more jobs are followed than can run and wait, of which those that were looked at last stay, and that nothing is
// kept of members that a job does not bring nearer.
func TestTracks_observe_bounded(t *testing.T) {
	var all tracks
	begin := time.UnixMilli(1_000_000)
	cluster := &quoratepb.Cluster{Members: []*quoratepb.Member{{Id: 1, Name: "m1"}, {Id: 4, Name: "m4"}}}
	for i := range 10 * maxTracks {
		all.observe(begin.Add(time.Duration(i)*time.Millisecond), cluster, &quoratepb.Job{Id: uint64(i + 1), State: "running",
			Newcomers: []uint64{4}})
	}
	if len(all.of) != maxTracks || all.of[10*maxTracks] == nil || all.of[1] != nil {
		t.Errorf("%d jobs are followed, want the last %d", len(all.of), maxTracks)
	}
	if few := movers(cluster, &quoratepb.Job{Newcomers: []uint64{4}}); len(few.Members) != 1 || few.Members[0].Id != 4 {
		t.Errorf("kept of the cluster: %v, want m4 alone", few)
	}
}
