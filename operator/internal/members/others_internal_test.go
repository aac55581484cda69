package members

import (
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that a look tells what each member passes on of a leader, beside the word that counts: not of another cluster, of a former
// epoch, of no leader, or of members without itself, as one passes it on that was removed and has not heard it yet.
func TestGroup_Look_others(t *testing.T) {
	honest := func(change func(*quoratepb.Cluster)) *quoratepb.Cluster {
		d := &quoratepb.Cluster{ClusterId: 9, Leader: 2, Term: 7, Epoch: "1-ab"}
		for id := uint64(1); id <= 4; id++ {
			d.Members = append(d.Members, &quoratepb.Member{Id: id, Name: "m" + string(rune('0'+id)), Role: quoratepb.Role_ROLE_VOTER})
		}
		if change != nil {
			change(d)
		}
		return d
	}
	for name, row := range map[string]struct {
		change func(*quoratepb.Cluster)
		tells  bool
	}{
		"the leader":         {nil, true},
		"another cluster":    {func(d *quoratepb.Cluster) { d.ClusterId = 8 }, false},
		"a former epoch":     {func(d *quoratepb.Cluster) { d.Epoch = "0" }, false},
		"no leader":          {func(d *quoratepb.Cluster) { d.Leader = 0 }, false},
		"it has not the own": {func(d *quoratepb.Cluster) { d.Members = d.Members[3:] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := &Group{login: &login{}}
			defer g.Close()
			liar := honest(func(d *quoratepb.Cluster) { d.Leader, d.Term, d.Members = 1, 1<<63, d.Members[:1] })
			for i, d := range []*quoratepb.Cluster{liar, honest(row.change)} {
				f := &former{described: d, observed: &quoratepb.Observation{ClusterId: 9}}
				g.seats = append(g.seats, Seat{Member: "m" + string(rune('1'+i))})
				g.conns = append(g.conns, serve(t, f, f))
			}
			c := g.Look(t.Context(), 9, decide.ParseEpoch("1-ab")).Cluster()
			if c == nil || c.By != "m1" || c.Leader != 1 || (len(c.Others) == 1) != row.tells {
				t.Fatalf("told %+v", c)
			}
			if row.tells && (c.Others[0].Member != "m2" || c.Others[0].Leader != 2 || len(c.Others[0].Members) != 4 ||
				!c.Others[0].Members[3].Voter || c.Others[0].Epoch.Name != "1-ab") {
				t.Errorf("told %+v", c.Others[0])
			}
		})
	}
}
