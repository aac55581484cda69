package autopilot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/membership"
)

// placed returns a configuration in which the members 1, 2 and so on are at these URLs.
func placed(urls ...string) *consensus.Config {
	config := &consensus.Config{}
	for i, url := range urls {
		id := consensus.MemberID(i + 1)
		config.Voters = append(config.Voters, id)
		config.Members = append(config.Members, consensus.Member{ID: id, PeerURLs: []string{url}})
	}
	return config
}

func configAt(index consensus.Index, term consensus.Term) consensus.ConfigID {
	return consensus.ConfigID{Index: index, Term: term}
}

// said is what member 2 of the cluster says, by a configuration in which member 1 has moved.
func said(id consensus.ConfigID, urls ...string) *autopilot.Whereabouts {
	w := autopilot.NewWhereabouts(&identity.Claim{Cluster: 7, Epoch: consensus.Epoch{Number: 1}, Member: 2},
		placed(append(urls, "http://b:1", "http://c:1", "http://d:1")...), id)
	return &w
}

var (
	self = identity.Claim{Cluster: 7, Epoch: consensus.Epoch{Number: 1}, Member: 3}
	own  = placed("http://a:1", "http://b:1", "http://c:1")
	ownN = configAt(10, 2)
)

// dials are the URLs at which member 1 is looked for.
func dials(l *autopilot.Learned, id consensus.ConfigID) string {
	return strings.Join(l.Beside(own.Members, id)[0].PeerURLs, " ")
}

// Ensure that a member looks for another one where a member of its configuration says, beside where it did, until its own
// configuration is as new.
func TestLearned(t *testing.T) {
	var l autopilot.Learned
	if got := dials(&l, ownN); got != "http://a:1" {
		t.Fatalf("before: %s", got)
	}
	if !l.Take(&self, own, ownN, said(configAt(20, 2), "http://a:2")) {
		t.Fatal("it is no news")
	}
	if got := dials(&l, ownN); got != "http://a:2 http://a:1" {
		t.Errorf("learned: %s", got)
	}
	if n := len(l.Beside(own.Members, ownN)); n != 3 {
		t.Errorf("%d members, want those of the own configuration", n)
	}
	if own.Members[0].PeerURLs[0] != "http://a:1" {
		t.Error("the configuration was changed")
	}
	for _, row := range []struct {
		id   consensus.ConfigID
		news bool
		want string
	}{
		{configAt(20, 2), false, "http://a:2 http://a:1"}, {configAt(15, 2), false, "http://a:2 http://a:1"},
		{configAt(15, 3), true, "http://a:3 http://a:1"},
	} {
		if news := l.Take(&self, own, ownN, said(row.id, "http://a:3")); news != row.news || dials(&l, ownN) != row.want {
			t.Errorf("told of %v: news %t, %s", row.id, news, dials(&l, ownN))
		}
	}
	for _, id := range []consensus.ConfigID{configAt(15, 3), configAt(16, 3)} { // in force, and not committed
		if got := dials(&l, id); got != "http://a:1" {
			t.Errorf("with configuration %v in force: %s", id, got)
		}
	}
	if l.Outlived(configAt(99, 2)) || dials(&l, ownN) != "http://a:3 http://a:1" {
		t.Error("an older term has outlived it")
	}
	if !l.Outlived(configAt(15, 3)) || dials(&l, ownN) != "http://a:1" || l.Outlived(configAt(16, 3)) {
		t.Error("it stays for ever")
	}
}

// Ensure that nobody is believed who is no member of the own cluster and epoch, and that he changes nothing.
func TestLearned_Take_whoIsBelieved(t *testing.T) {
	for name, change := range map[string]func(*autopilot.Whereabouts){
		"another cluster":     func(w *autopilot.Whereabouts) { w.Cluster = 8 },
		"no cluster":          func(w *autopilot.Whereabouts) { w.Cluster = 0 },
		"another epoch":       func(w *autopilot.Whereabouts) { w.Epoch.Number = 2 },
		"no member":           func(w *autopilot.Whereabouts) { w.Member = consensus.NoMember },
		"a non-member":        func(w *autopilot.Whereabouts) { w.Member = 4 },
		"itself":              func(w *autopilot.Whereabouts) { w.Member = 3 },
		"an older one":        func(w *autopilot.Whereabouts) { w.Config = configAt(9, 2) },
		"the same one":        func(w *autopilot.Whereabouts) { w.Config = ownN },
		"no configuration":    func(w *autopilot.Whereabouts) { w.Config = consensus.ConfigID{} },
		"nothing about any":   func(w *autopilot.Whereabouts) { w.Members = nil },
		"only of non-members": func(w *autopilot.Whereabouts) { w.Members = w.Members[3:] },
		"no URL that can be": func(w *autopilot.Whereabouts) {
			w.Members = []autopilot.Whereabout{{Member: 1, URLs: []string{"", "a:2", "ftp://a:2", "http://" + strings.Repeat("a", 600) + ":1"}}}
		},
	} {
		var l autopilot.Learned
		w := said(configAt(20, 2), "http://a:2")
		change(w)
		if l.Take(&self, own, ownN, w) || dials(&l, ownN) != "http://a:1" {
			t.Errorf("%s: it is looked for at %s", name, dials(&l, ownN))
		}
	}
}

// Ensure that whatever is said, only a bounded number of URLs is remembered, and nothing of itself.
func TestLearned_Take_bounded(t *testing.T) {
	var l autopilot.Learned
	w := said(configAt(20, 2), "http://a:2")
	for i := range 1000 {
		w.Members[0].URLs = append(w.Members[0].URLs, fmt.Sprintf("http://a:%d", i+3))
		w.Members = append(w.Members, autopilot.Whereabout{Member: consensus.MemberID(i + 10), URLs: []string{"http://x:1"}})
	}
	w.Members[2].URLs = []string{"http://elsewhere:1"} // member 3 asks
	if !l.Take(&self, own, ownN, w) {
		t.Fatal("it is no news")
	}
	all := l.Beside(own.Members, ownN)
	if n := len(all[0].PeerURLs); len(all) != 3 || n != membership.MaxURLs+1 {
		t.Errorf("%d members, %d URLs of one", len(all), n)
	}
	if !slices.Equal(all[2].PeerURLs, own.Members[2].PeerURLs) {
		t.Errorf("it believes others that it is itself at %v", all[2].PeerURLs)
	}
}

// Ensure that a member asks an election timeout after it has heard a leader last, and then more rarely, and that it does not
// ask while it hears one.
func TestLearned_Look(t *testing.T) {
	var l autopilot.Learned
	var asked []int
	for second := range 40 {
		if l.Look(time.Duration(second)*time.Second, 2*time.Second, second == 20) {
			asked = append(asked, second)
		}
	}
	if want := []int{2, 6, 14, 23, 27, 35}; !slices.Equal(asked, want) {
		t.Errorf("it asks at %v, want %v", asked, want)
	}
}
