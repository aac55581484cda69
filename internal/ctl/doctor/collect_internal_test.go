package doctor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

// three is what three members say, of which the others hear the third one. fault is why that does not answer; empty: it does.
func three(fault string) *quoratepb.Collected {
	c := &quoratepb.Collected{AtMs: 1_800_000_000_000}
	var all []*quoratepb.ObservedMember
	for id := uint64(1); id <= 3; id++ {
		all = append(all, &quoratepb.ObservedMember{Id: id, Name: "m", Voter: true, Started: true, ClientUrls: []string{"http://m:1"}})
	}
	for id := uint64(1); id <= 3; id++ {
		m := &quoratepb.CollectedMember{Id: id, Name: "m", Endpoint: "m:1"}
		if c.Members = append(c.Members, m); id == 3 && fault != "" {
			m.Fault, m.FaultText = fault, "no route to host"
			continue
		}
		m.Observation = &quoratepb.Observation{MemberId: id, ClusterId: 5, Core: &quoratepb.ObservedCore{Leader: 1},
			Config: &quoratepb.ObservedConfig{Members: all}}
		for other := uint64(1); other <= 3; other++ {
			if other != id {
				m.Observation.Peers = append(m.Observation.Peers, &quoratepb.ObservedPeer{Id: other, Connected: true, Active: true,
					Received: 1, Followed: id == 1})
			}
		}
	}
	return c
}

// Ensure that the members are asked once more, after a pause and not before, where a client URL seems wrong, and only there; and
// that the first answers count where the second question fails, or the command has ended.
func TestAskTwice(t *testing.T) {
	well, wrong, denied := three(""), three(doctor.FaultUnreachable), three(doctor.FaultDenied)
	still := three(doctor.FaultUnreachable)
	isWrong := func(c *quoratepb.Collected) bool {
		return slices.ContainsFunc(doctor.Judge(c), func(f doctor.Finding) bool { return f.Code == doctor.ClientURLWrong })
	}
	if isWrong(well) || !isWrong(wrong) || isWrong(denied) {
		t.Fatalf("the rule is another one: %v, %v", doctor.Judge(well), doctor.Judge(wrong))
	}
	const pause = 2 * time.Second
	failure := errors.New("no member answers")
	type answer struct {
		collected *quoratepb.Collected
		err       error
	}
	for name, row := range map[string]struct {
		answers []answer
		endsIn  time.Duration // the command; zero: it does not
		want    answer
		took    time.Duration
	}{
		"all is well":                {answers: []answer{{collected: well}}, want: answer{collected: well}},
		"another finding":            {answers: []answer{{collected: denied}}, want: answer{collected: denied}},
		"nothing is answered":        {answers: []answer{{err: failure}}, want: answer{err: failure}},
		"a member was starting":      {answers: []answer{{collected: wrong}, {collected: well}}, want: answer{collected: well}, took: pause},
		"the URL is wrong":           {answers: []answer{{collected: wrong}, {collected: still}}, want: answer{collected: still}, took: pause},
		"the second question fails":  {answers: []answer{{collected: wrong}, {err: failure}}, want: answer{collected: wrong}, took: pause},
		"the command ends meanwhile": {answers: []answer{{collected: wrong}}, endsIn: time.Second, want: answer{collected: wrong}, took: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				if row.endsIn > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), row.endsIn)
				}
				defer cancel()
				begun, asked := time.Now(), 0
				got, err := askTwice(ctx, pause, func() (*quoratepb.Collected, error) {
					if asked++; asked > len(row.answers) {
						t.Fatalf("asked %d times", asked)
					}
					return row.answers[asked-1].collected, row.answers[asked-1].err
				})
				if took := time.Since(begun); got != row.want.collected || !errors.Is(err, row.want.err) || asked != len(row.answers) || took != row.took {
					t.Errorf("%p, %v after %v, asked %d times; want %p, %v after %v", got, err, took, asked, row.want.collected,
						row.want.err, row.took)
				}
			})
		})
	}
}
