package identity_test

import (
	"encoding/json"
	"testing"

	"github.com/quorate/quorate/internal/identity"
)

// Greetings of other processes come as JSON. However they lie, a founder decides without a panic, and begins only with a list
// of bindings that has its own storage id.
func FuzzFounder_Decide(f *testing.F) {
	for _, met := range [][]identity.Greeting{
		nil, {fresh(2, 2), fresh(3, 3)}, {recorded(2, 2, 1, 2, 3), recorded(3, 3, 1, 2, 3)}, {fresh(2, 9)},
	} {
		text, err := json.Marshal(met)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text []byte, begun bool) {
		var met []identity.Greeting
		if json.Unmarshal(text, &met) != nil {
			return
		}
		founder := founder(1, 1)
		if begun {
			founder.Bindings = bindingsOf(1, 2, 3)
		}
		d := founder.Decide(met)
		if len(d.Bindings) == 0 {
			return
		}
		for _, b := range d.Bindings {
			if b.Member == founder.Own.Member && b.Storage != founder.Own.Storage {
				t.Errorf("%d with a list of bindings that has another directory for this member: %+v", d.Verdict, d.Bindings)
			}
		}
		founder.Config(d.Bindings)
	})
}

// A claim from outside is judged without a panic, and what a guard remembers of non-members stays bounded.
func FuzzGuard_Meet(f *testing.F) {
	own := claim(2, 2, 1)
	text, err := json.Marshal([]identity.Claim{own, claim(3, 3, 1)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var claims []identity.Claim
		if json.Unmarshal(text, &claims) != nil {
			return
		}
		g := identity.NewGuard(claim(1, 1, 1), nil, identity.Rules{})
		g.Configure(bound(1, 2, 3))
		for i := range claims {
			refusal, _ := g.Meet(&claims[i], identity.Dialled, identity.Speaker{})
			if refusal == nil && claims[i].Cluster != own.Cluster {
				t.Errorf("a member of another cluster is welcome: %+v", claims[i])
			}
			if refusal == nil {
				g.Distrust(claims[i].Member, claims[i].Storage)
			} else if back := identity.Read(refusal.Error()); back == nil || back.Reason != refusal.Reason {
				t.Errorf("%q reads back as %v", refusal.Error(), back)
			}
		}
		if n := len(g.Seen()); n > 3+64 {
			t.Errorf("%d directories are remembered", n)
		}
	})
}
